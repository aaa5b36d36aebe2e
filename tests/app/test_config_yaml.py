"""Other YAML readers, especially PyYAML, read a run's config.yaml in the same way as dtrain. Also tests the JSON
schema."""
import json
import random
import re
import unittest

import support
from support import Case

try:
    import yaml
except ImportError:
    yaml = None

# PyYAML's rules for the types of plain scalars (YAML 1.1). The first rule that matches determines the type.
RULES = [
    ("bool", r"(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)"),
    ("float", r"(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
              r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"),
    ("int", r"(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+"
            r"|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)"),
    ("other", r"(?:<<|=)"),
    ("null", r"(?:~|null|Null|NULL|)"),
    ("date", r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}"
             r":[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9]{2})?))?)"),
]


def meaning(text):
    """Returns the type of a scalar by the rules above."""
    if text.startswith('"'):
        return "string"
    return next((kind for kind, rule in RULES if re.fullmatch(rule, text)), "string")


def generated_names(draw, count):
    """Generates layer names that look like values of other types."""
    names = ["on", "yes", "no", "off", "true", "null", "y", "n", "Null", "TRUE", "nan", "inf", "e5", "1e-07", "1.0e-07",
             "010", "0o17", "0x1F", "0b1", "1_000", "2001-12-14", "1.5", "5.", "0", "00", "9", "1-1", "1e5", "1.e5", "0.1.2"]
    while len(names) < count:
        name = "".join(draw.choice("0123456789eExXob_-.aAfFnyNY") for _ in range(draw.randrange(1, 9)))
        if re.fullmatch(r"[0-9a-zA-Z_][-.0-9a-zA-Z_]*", name) and name not in names:
            names.append(name)
    return names


def generated_numbers(draw, count):
    numbers = [1e-7, 1e-30, 1.5e-30, 5e22, 1e22, 0.1, 1 / 255, 1.0, 2.0, 123456789012345678.0, 3e38, 0.5]
    while len(numbers) < count:
        numbers.append(float(f"{draw.uniform(1, 10):.{draw.randrange(0, 17)}e}") * 10.0 ** draw.randrange(-37, 37))
    return numbers


class ConfigYaml(Case):
    def test_names_and_numbers_keep_their_type_in_config_yaml(self):
        draw = random.Random(7)
        names = [name for name in generated_names(draw, 120) if name not in ("off", "1e3", "dense")]
        numbers = generated_numbers(draw, len(names))
        layers = "".join(f'    - activation: {{name: "{name}", activation: {{leaky_relu: {{negative_slope: {number!r}}}}}}}\n'
                         for name, number in zip(names, numbers))
        self.write("c.yaml", f"""\
name: 12:30
model:
  inputs: {{"1": [2]}}
  layers:
    - dense: {{units: 2, trainable: false}}
{layers}    - dense: {{units: 1, name: "off"}}
    - dense: {{units: 1, name: "1e3", inputs: "{names[-1]}"}}
  outputs: ["off", "1e3"]
dataset: {{train: {{synthetic: {{samples: 2, targets: {{"off": {{shape: [1]}}, "1e3": {{shape: [1]}}}}}}}}}}
strategy: {{single: {{device: cpu:0}}}}
train:
  epochs: 0
  loss: {{"off": mean_squared_error, "1e3": huber}}
  optimizer: {{adam: {{learning_rate: 1/1000, epsilon: 1e-10}}}}
""")
        self.dtrain("fit", "c.yaml")
        text = (self.dir / "runs" / "12:30" / "config.yaml").read_text()
        # This check also works without PyYAML: it applies PyYAML's rules to each name and number in the text.
        written = re.findall(r'\bname: ("[^"]*"|[^,}\s]+)', text)
        self.assertEqual([one.strip('"') for one in written], ["12:30", "dense", *names, "off", "1e3"])
        for one in written:
            self.assertEqual(meaning(one), "string", one)
        slopes = re.findall(r"negative_slope: ([^,}\s]+)", text)
        self.assertEqual([float(one) for one in slopes], numbers)
        for one in slopes + re.findall(r"\b(?:value|epsilon): ([^,}\s]+)", text):
            self.assertIn(meaning(one), ("int", "float"), one)
        if yaml is None:
            return
        tree = yaml.safe_load(text)
        self.assertEqual(tree["name"], "12:30")
        self.assertEqual(list(tree["model"]["inputs"]), ["1"])
        read = [next(iter(layer.values())) for layer in tree["model"]["layers"]]
        self.assertEqual([layer["name"] for layer in read], ["dense", *names, "off", "1e3"])
        self.assertEqual([layer["activation"]["leaky_relu"]["negative_slope"] for layer in read[1:-2]], numbers)
        self.assertEqual(list(tree["train"]["loss"]), ["off", "1e3"])
        self.assertEqual(tree["train"]["optimizer"]["adam"]["epsilon"], 1e-10)
        self.assertEqual(tree["train"]["optimizer"]["adam"]["learning_rate"], {"constant": {"value": 0.001}})
        self.assertIs(read[0]["trainable"], False)

    def test_config_yaml_gives_the_same_run(self):
        text = support.CONFIG.replace("decay_steps: 50", "decay_steps: 1.5 epochs")
        self.fit("--epochs", "2", config=text)
        self.assertIn("decay_steps: 1.5 epochs", (self.dir / "run" / "config.yaml").read_text())
        self.dtrain("fit", "run/config.yaml", "--output", "again")
        self.assert_same_run("run", "again")
        self.assertEqual((self.dir / "run" / "config.yaml").read_text(), (self.dir / "again" / "config.yaml").read_text())
        # An epoch has 32 steps.
        self.fit("--epochs", "2", config=support.CONFIG.replace("decay_steps: 50", "decay_steps: 48"), output="steps")
        self.assert_same_run("run", "steps")

    def test_devices_of_layers_become_the_strategys(self):
        """The run's config.yaml has no devices in its layers. Therefore the run can be resumed under any other strategy."""
        config = support.CONFIG.replace("strategy: {mirrored: {devices: [cpu:0, cpu:1]}}", "strategy: placed")
        config = config.replace("- dropout: {rate: 0.2}", "- dropout: {rate: 0.2, device: cpu:0, recompute: true}")
        self.fit("--epochs", "1", config=config)
        written = (self.dir / "run/config.yaml").read_text()
        self.assertNotIn("device:", written)
        self.assertIn("\nstrategy: {placed: {layers: {dropout: cpu:0}}}\n", written)
        self.assertIn("recompute: true", written)
        self.dtrain("fit", "run/config.yaml", "--epochs", "1", "--output", "again")
        self.assertEqual((self.dir / "again/config.yaml").read_text(), written)
        self.assert_same_run("run", "again")
        self.dtrain("resume", "run", "--epochs", "2", "--set", "strategy={single: {device: cpu:0}}")
        self.assertIn("device: ", self.dtrain("fit", "config.yaml", "--set", "strategy=single", expect=2).err)

    def test_chosen_stages_of_a_pipeline_are_kept(self):
        config = support.CONFIG.replace("mirrored: {devices: [cpu:0, cpu:1]}", "pipeline: {devices: [cpu:0], stages: auto}")
        self.fit("--epochs", "1", config=config)
        written = (self.dir / "run/config.yaml").read_text()
        self.assertIn("stages: []", written)
        self.fit("--epochs", "2", "--resume", config=config)
        self.assertIn("stages: []", (self.dir / "run/config.yaml").read_text())

    def test_a_name_names_the_run(self):
        self.write("c.yaml", "name: first\n" + support.CONFIG)
        self.dtrain("fit", "c.yaml", "--epochs", "1")
        self.assertTrue((self.dir / "runs" / "first" / "checkpoints").is_dir())
        self.dtrain("fit", "c.yaml", "--epochs", "1", "--set", "name=second run")
        self.assertTrue((self.dir / "runs" / "second run" / "checkpoints").is_dir())
        self.assertFalse((self.dir / "runs" / "c").exists())


class Schema(Case):
    def test_the_json_schema_defines_each_kind_once_and_resolves_all_references(self):
        text = self.dtrain("schema").out
        schema = json.loads(text)
        self.assertLess(len(text), 500_000)
        names, references = [], []

        def walk(node):
            if isinstance(node, list):
                for item in node:
                    walk(item)
            elif isinstance(node, dict):
                if "$ref" in node:
                    references.append(node["$ref"])
                if isinstance(node.get("const"), str):
                    names.append(node["const"])
                for value in node.values():
                    walk(value)

        walk(schema)
        for reference in set(references):
            node = schema
            self.assertTrue(reference.startswith("#/"))
            for key in reference[2:].split("/"):
                node = node[key]
            self.assertIsInstance(node, dict)
        self.assertEqual({reference.split("/")[2] for reference in references}, set(schema["$defs"]))
        for name in ("max_pooling2d", "glorot_uniform", "leaky_relu", "adam", "huber"):
            self.assertEqual(names.count(name), 1, name)
        self.assertEqual(text.count('"synthetic"'), 2)  # the name also occurs as a required key of the split


if __name__ == "__main__":
    support.main()
