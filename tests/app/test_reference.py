"""docs/reference.md equals the output of `dtrain schema --markdown`, and the program accepts every example in it."""
import itertools
import re

import support
from support import Case

REFERENCE = support.PROJECT / "docs" / "reference.md"
RENEW = "build/release/app/dtrain schema --markdown > build/reference.md && mv build/reference.md docs/reference.md"

# A complete configuration. It has a placeholder for each kind of example. PLAIN has the default values of the
# placeholders.
RUN = """\
model:
  inputs: {{{inputs}}}
  layers:
    - {layer}
dataset:
  train: {{{reader}}}
  validation: {{{reader}}}
  transforms: [{transform}]
  cache: {{{cache}}}
strategy: {{{strategy}}}
train:
  loss: {{{loss}}}
  optimizer: {{{optimizer}}}
  metrics: [{metric}]
  callbacks: [{callback}]
"""
PLAIN = {"inputs": "a: [16]", "layer": "dense: {units: 10}", "reader": "synthetic: {samples: 8, target: {shape: [10]}}",
         "transform": "", "cache": "none: {}", "strategy": "single: {}", "loss": "mean_squared_error: {}",
         "optimizer": "sgd: {}", "metric": "", "callback": ""}

# For each section of the reference: a function that returns the values of RUN's placeholders for an example of this
# section.
PLACES = {
    "Readers": lambda example: {"reader": example},
    "Transforms": lambda example: {"transform": braced(example)},
    "Caches": lambda example: {"cache": example},
    "Strategies": lambda example: {"strategy": example},
    "Losses": lambda example: {"loss": example, **suited(example)},
    "Metrics": lambda example: {"metric": braced(example), **suited(example)},
    "Optimizers": lambda example: {"optimizer": example},
    "Learning rates": lambda example: {"optimizer": f"sgd: {{learning_rate: {braced(example)}}}"},
    "Callbacks": lambda example: {"callback": braced(example)},
    "Activations": lambda example: {"layer": f"dense: {{units: 10, activation: {braced(example)}}}"},
    "Initializers": lambda example: {"layer": f"dense: {{units: 10, kernel_initializer: {braced(example)}}}"},
    "Regularizers": lambda example: {"layer": f"dense: {{units: 10, kernel_regularizer: {braced(example)}}}"},
    "Constraints": lambda example: {"layer": f"dense: {{units: 10, kernel_constraint: {braced(example)}}}"},
}
# Each layer accepts one or two inputs whose shape is in this list.
INPUTS = ["[16]", "[8, 8, 3]", "[8, 8, 8, 3]", "[8, 3]", "[8, 16]", "{shape: [5], dtype: int32}"]


def braced(example):
    """Wraps an example in braces, so that it may be used in a list or after a colon."""
    return f"{{{example}}}"


def suited(example):
    """Adapts the model and data to a loss or metric for classes."""
    if example.startswith(("dice", "tversky")):  # losses and metrics of images
        return {"inputs": "a: [4, 4, 3]", "layer": "conv2d: {filters: 2, kernel_size: 1, activation: softmax}",
                "reader": "synthetic: {samples: 8, target: {shape: [4, 4, 2]}}"}
    sparse = example.startswith(("sparse_", "accuracy", "perplexity"))
    return {"loss": example if "crossentropy" in example else "sparse_categorical_crossentropy: {}"} if sparse else {}


def examples(text):
    """Yields (section, type, example) for every type; an example has the form "type: {...}"."""
    section = ""
    for part in re.split(r"(?m)^(?=#{2,3} )", text):
        if part.startswith("## "):
            section = part[3:].split("\n", 1)[0]
        if section not in {*PLACES, "Layers"}:
            continue
        for name in re.findall(r"(?m)^\| `([a-z0-9_]+)` \| [^|]* \|$", part):  # types without options
            yield section, name, f"{name}: {{}}"
        if part.startswith("### "):
            kind = part[4:].split("\n", 1)[0]
            block = re.search(r"(?s)```yaml\n(.*?)\n```", part)
            written = block[1] if block else ""
            yield section, kind, written if ":" in written else f"{written}: {{}}"


class Reference(Case):
    def test_the_reference_is_up_to_date(self):
        printed = self.dtrain("schema", "--markdown").out.split("\n")
        written = REFERENCE.read_text(encoding="utf-8").split("\n") if REFERENCE.is_file() else []
        for number, (line, expected) in enumerate(itertools.zip_longest(written, printed), 1):
            if line != expected:
                self.fail(f"docs/reference.md is out of date; update it: {RENEW}\n"
                          f"docs/reference.md:{number}: {line}\nthe program prints: {expected}")

    def accepted(self, **places):
        config = self.write("run.yaml", RUN.format(**{**PLAIN, **places}))
        process = self.start("summary", config)
        _, error = process.communicate(timeout=60)
        return process.returncode == 0, error

    def accepted_layer(self, example):
        errors = []
        for shape in INPUTS:
            two = "inputs: [a, b]" in example
            good, error = self.accepted(inputs=f"a: {shape}, b: {shape}" if two else f"a: {shape}", layer=example)
            if good:
                return True, ""
            errors.append(error)
        return False, "\n".join(errors)

    def test_every_example_is_valid(self):
        found = list(examples(self.dtrain("schema", "--markdown").out))
        self.assertEqual({section for section, _, _ in found}, {*PLACES, "Layers"})
        for section, kind, example in found:
            with self.subTest(section=section, kind=kind, example=example):
                self.assertTrue(example.startswith(f"{kind}:"))
                good, error = (self.accepted_layer(example) if section == "Layers"
                               else self.accepted(**PLACES[section](example)))
                self.assertTrue(good, error)

    def test_an_invalid_example_is_found(self):
        self.assertFalse(self.accepted(optimizer="adam: {learning_rat: 0.1}")[0])
        self.assertFalse(self.accepted_layer("dense: {units: 0}")[0])

    def test_whole_examples_are_valid(self):
        text = self.dtrain("schema", "--markdown").out
        run = re.search(r"(?s)## The run\n.*?```yaml\n(.*?)\n```", text)[1]
        self.dtrain("summary", self.write("whole.yaml", run))
        model = re.search(r"(?s)## model\n.*?```yaml\n(.*?)\n```", text)[1]
        rest = run[run.index("dataset:"):]
        self.dtrain("summary", self.write("model.yaml", f"{model}\n{rest}"))

    def test_every_kind_is_documented(self):
        text = self.dtrain("schema", "--markdown").out
        names = {kind for _, kind, _ in examples(text)}
        for kind in ("dense", "relu", "glorot_uniform", "csv", "one_hot", "memory", "mirrored", "huber", "top_k", "adamw",
                     "cosine_decay", "early_stopping"):
            self.assertIn(kind, names)
        self.dtrain("schema", "--markdown", "--json", expect=2)


if __name__ == "__main__":
    support.main()
