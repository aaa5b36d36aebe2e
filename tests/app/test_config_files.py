"""Syntax of configuration files, and of overrides on the command line."""
import unittest

import support
from support import Case

BASE = """\
seed: 1
model:
  inputs: {x: [2]}
  layers:
    - dense: {units: 4, activation: relu}
    - dense: {units: 2}
dataset:
  train: {csv: {file: t.csv, header: true, target: label}}
  validation: {csv: {file: t.csv, header: true, target: label}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 1
  batch_size: 4
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
checkpoint: {keep: 2}
"""
TABLE = "a,b,label\n" + "".join(f"{i},{i * i},{i % 2}\n" for i in range(8))


class Configurations(Case):
    def resolved(self, *arguments, config="c.yaml", **options):
        """Runs with these arguments and returns the run's config.yaml."""
        self.dtrain("fit", config, "--output", "run", "--overwrite", "--epochs", 0, *arguments, **options)
        return (self.dir / "run" / "config.yaml").read_text()

    def test_paths_and_locations_in_a_base_refer_to_the_base(self):
        self.write("base/t.csv", TABLE)
        self.write("base/base.yaml", BASE)
        self.write("own/mine.csv", TABLE + "8,64,0\n")
        self.write("own/c.yaml", """\
base: ../base/base.yaml
dataset: {validation: {csv: {file: mine.csv}}}
strategy: {single: {device: cpu:0}}
train: {epochs: 2, optimizer: {sgd: {learning_rate: 0.1}}}
checkpoint: {best: {monitor: val_loss}}
""")
        self.dtrain("fit", "own/c.yaml", "--output", "run")
        text = (self.dir / "run" / "config.yaml").read_text()
        for part in ("single:", "sgd:", "keep: 2", "monitor: val_loss", "batch_size: 4"):
            self.assertIn(part, text)
        for part in ("mirrored", "adam", "base:"):
            self.assertNotIn(part, text)
        self.assertEqual(self.json("evaluate", "run", "--split", "validation")["samples"], 9)
        self.assertEqual(self.json("evaluate", "run", "--split", "train")["samples"], 8)
        # A configuration may use a reader of another type than its base. This reader replaces the reader of the base.
        self.write("own/d.yaml", "base: c.yaml\ndataset: {validation: {split: {of: train, fraction: 0.25}}}\n")
        self.dtrain("check", "own/d.yaml")
        # An error in the base is reported with the path of the base's file and the location in this file.
        self.write("base/base.yaml", BASE.replace("batch_size", "batchsize"))
        self.assertIn("own/../base/base.yaml:13:3: error: unknown key".replace("own/../", ""),
                      self.dtrain("check", "own/c.yaml", expect=2).err)
        self.assertIn("--set base=x.yaml: error: base: ",
                      self.dtrain("check", "own/c.yaml", "--set", "base=x.yaml", expect=2).err)

    def test_weights_and_data_are_found_next_to_a_base(self):
        self.write("base/t.csv", TABLE)
        self.write("base/base.yaml", BASE)
        self.dtrain("fit", "base/base.yaml", "--output", "run")
        newest = self.checkpoints()[-1]
        newest.rename(self.dir / "base" / "pre.h5")
        self.write("base/base.yaml", BASE.replace("  layers:", "  weights: pre.h5\n  layers:"))
        self.write("c.yaml", "base: base/base.yaml\nseed: 5\n")
        self.assertIn("pre.h5", self.resolved())
        self.write("c.yaml", "base: base/base.yaml\nmodel: {weights: {from: base/pre.h5, skip: [\"dense_1/*\"]}}\n")
        self.assertIn("skip", self.resolved())

    def test_variables_are_read_as_yaml(self):
        self.write("t.csv", TABLE)
        text = BASE.replace("0.01", '"${RATE:-0.5}"').replace("[cpu:0, cpu:1]", "'${WHERE:-auto}'")
        self.write("c.yaml", text.replace("epochs: 1", "epochs: '${EPOCHS}'"))
        found = self.resolved(env={"EPOCHS": "3", "WHERE": "[cpu:0]"})
        self.assertIn("value: 0.5", found)
        self.assertRegex(found, r"devices:\s*(\[cpu:0\]|\n\s*- cpu:0)")
        self.assertIn("value: 0.25", self.resolved(env={"EPOCHS": "3", "RATE": "1/4"}))
        self.assertIn("c.yaml:12:11: error: ", self.dtrain("check", "c.yaml", env={"EPOCHS": "many"}, expect=2).err)

    def test_set_may_be_repeated(self):
        self.write("t.csv", TABLE)
        self.write("c.yaml", BASE)
        found = self.resolved("--set", "seed=7", "model.layers[0].dense.units=9", "train.callbacks=[]", "--set=name=x",
                              "train.batch_size=3")
        for part in ("seed: 7", "units: 9", "callbacks: []", "name: \"x\"", "batch_size: 3"):
            self.assertIn(part, found)
        self.assertIn("seed: 7", self.resolved("--set", "model.layers.0.dense.units=9", "seed=7"))
        # After --set, an argument that is not an assignment is the configuration file.
        self.dtrain("check", "--set", "seed=7", "name=x", "c.yaml")
        # An assignment to an option of another optimizer replaces the previous optimizer.
        self.assertNotIn("adam", self.resolved("--set", "train.optimizer.sgd.momentum=0.5"))
        for wrong in ("train.epochs=many", "train.epoch=1", "train.optimizer.adam.lr=1", "train.optimizer.what.x=1",
                      "model.layers[7].dense.units=1", "train.epochs", "seed=[1"):
            with self.subTest(wrong):
                self.assertIn(f"--set {wrong}: error: ", self.dtrain("check", "c.yaml", "--set", "seed=1", "--set", wrong, expect=2).err)

    def test_a_single_required_option_needs_no_key(self):
        self.write("t.csv", TABLE)
        text = BASE.replace("{units: 4, activation: relu}", "4").replace("  validation", "  transforms: [{rescale: 1/255}]\n  validation")
        self.write("c.yaml", text.replace("checkpoint:", "  metrics: accuracy\n  weighted_metrics: acc\ncheckpoint:"))
        found = self.resolved()
        self.assertIn("units: 4", found)
        self.assertIn("scale: 0.00392156862745098", found)
        self.assertRegex(found, r"\n  metrics:\s*(\[accuracy\]|\n\s*- accuracy)")
        self.write("c.yaml", BASE.replace("{units: 4, activation: relu}", "many"))
        self.assertIn("c.yaml:5:14: error: dense's units: expected an integer", self.dtrain("check", "c.yaml", expect=2).err)

    def test_keras_names_are_accepted_and_written_as_dtrains(self):
        self.write("t.csv", TABLE)
        text = BASE.replace("- dense: {units: 4, activation: relu}", "- Dense: {units: 4, activation: swish, kernel_initializer: HeNormal}")
        text = text.replace("{adam:", "{Adam:").replace("sparse_categorical_crossentropy:", "SparseCategoricalCrossentropy:")
        self.write("c.yaml", text.replace("checkpoint:", "  metrics: [acc, AUC]\n  callbacks: [EarlyStopping]\ncheckpoint:")
                   .replace("sgd", "SGD"))
        self.dtrain("fit", "c.yaml", "--output", "run", "--set", "train.metrics=[acc]")
        found = (self.dir / "run" / "config.yaml").read_text()
        for part in ("dense:", "name: dense\n", "silu", "he_normal", "adam:", "sparse_categorical_crossentropy:", "accuracy", "early_stopping"):
            self.assertIn(part, found)
        for part in ("Dense", "swish", "HeNormal", "Adam", "Crossentropy", "acc]", "EarlyStopping"):
            self.assertNotIn(part, found)
        self.assertIn("accuracy", self.metrics()[-1])
        self.dtrain("resume", "run", "--epochs", 2, "--set", "train.optimizer.adam.learning_rate=0.1")
        self.assertIn("value: 0.1", (self.dir / "run" / "config.yaml").read_text())

    def test_commands_of_other_tools_are_suggested(self):
        for word, meant in (("train", "fit"), ("eval", "evaluate"), ("val", "evaluate"), ("test", "evaluate"),
                            ("reusme", "resume"), ("c.yaml", "dtrain fit c.yaml")):
            self.assertIn(f"unknown command '{word}'; did you mean '{meant}'?", self.dtrain(word, expect=2).err)


if __name__ == "__main__":
    support.main()
