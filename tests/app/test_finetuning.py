"""Training from existing weights: a new head on a frozen trunk, averaged weights, frozen weights."""
import gzip
import json

from support import PROJECT, Case, main

CNN = """\
seed: 1
model:
  inputs: {{image: [8, 8, 1]}}
  layers:
    - conv2d: {{name: trunk/conv_1, filters: 12, kernel_size: 3, activation: relu}}
    - batch_normalization: {{name: trunk/norm}}
    - conv2d: {{name: trunk/conv_2, filters: 24, kernel_size: 3, activation: relu}}
    - flatten
    - dense: {{name: head, units: {classes}, activation: softmax}}
{model}
dataset:
  train: {{csv: {{file: {data}.csv, target: -1}}}}
  validation: {{csv: {{file: {data}-more.csv, target: -1}}}}
  transforms: [{{rescale: {{scale: 1/16}}}}, {{reshape: {{shape: [8, 8, 1]}}}}]
strategy: single
train:
  epochs: {epochs}
  batch_size: 32
  loss: sparse_categorical_crossentropy
  optimizer: {{adam: {{learning_rate: {rate}}}}}
  metrics: [sparse_categorical_accuracy]
"""


class FineTuning(Case):
    def write_digits(self):
        """Writes six.csv with the digits 0 to 5, and four.csv with a few of the digits 6 to 9 as classes 0 to 3.
        The files for validation have other rows."""
        lines = gzip.open(PROJECT / "datasets" / "digits.csv.gz", "rt").read().split()
        rows = [line.rsplit(",", 1) for line in lines if line[0].isdigit()]
        for name, part in {"six": rows[:1200], "six-more": rows[1200:]}.items():
            self.write(name + ".csv", "".join(f"{x},{y}\n" for x, y in part if int(y) < 6))
        for name, part in {"four": rows[:500], "four-more": rows[1200:]}.items():
            self.write(name + ".csv", "".join(f"{x},{int(y) - 6}\n" for x, y in part if int(y) >= 6))

    def test_a_new_head_is_trained_on_a_frozen_trunk(self):
        self.write_digits()
        self.write("six.yaml", CNN.format(classes=6, data="six", epochs=8, rate=0.005, model=""))
        self.dtrain("fit", "six.yaml", "--output", "six")
        begin = """\
  weights: {from: %s, skip: ["head/*"]}
  freeze: ["trunk/*"]
""" % self.checkpoints("six")[-1]
        self.write("four.yaml", CNN.format(classes=4, data="four", epochs=1, rate=0.005, model=begin))
        self.dtrain("check", "four.yaml")
        tuned = self.dtrain("fit", "four.yaml", "--output", "four")
        self.assertIn("8 of 10 weights from ", tuned.err)
        self.assertIn("with initial values: 'head/kernel', 'head/bias'", tuned.err)
        before, after = (self.arrays(self.checkpoints(run)[-1]) for run in ("six", "four"))
        trunk = [name for group, name in after if group == "weight" and name.startswith("trunk/")]
        self.assertEqual(len(trunk), 8)
        for name in trunk:
            self.assertEqual(before["weight", name], after["weight", name], name)
        self.assertEqual([name for group, name in after if group == "momentum"], ["head/kernel", "head/bias"])
        self.write("four.yaml", CNN.format(classes=4, data="four", epochs=1, rate=0.005, model=begin.replace(
            str(self.checkpoints("six")[-1]), "six")))
        self.dtrain("fit", "four.yaml", "--output", "by-run")
        self.assertEqual(self.arrays(self.checkpoints("by-run")[-1]), after)
        self.write("fresh.yaml", CNN.format(classes=4, data="four", epochs=1, rate=0.005, model=""))
        self.dtrain("fit", "fresh.yaml", "--output", "fresh")
        accuracy = {run: self.metrics(run)[-1]["val_sparse_categorical_accuracy"] for run in ("four", "fresh")}
        self.assertGreater(accuracy["four"], accuracy["fresh"])
        # The run's configuration records the file of its initial weights; the run continues without this file.
        self.checkpoints("six")[-1].unlink()
        self.dtrain("resume", "four", "--epochs", "2")
        # The key model.freeze alone determines the frozen layers, also for a resumed run.
        self.dtrain("resume", "four", "--epochs", "3", "--set", "model.freeze=null")
        now = self.arrays(self.checkpoints("four")[-1])
        self.assertTrue(all(before["weight", name] != now["weight", name] for name in trunk if name.endswith("/kernel")))
        self.assertIn("the model has no weights to train", self.dtrain(
            "resume", "four", "--epochs", "4", "--set", "model.freeze='*'").err)

    def test_an_unsuitable_weight_file_is_an_error_with_its_location(self):
        self.write_digits()
        self.write("six.yaml", CNN.format(classes=6, data="six", epochs=1, rate=0.005, model=""))
        self.dtrain("fit", "six.yaml", "--output", "six")
        begin = "  weights: {from: %s}\n" % self.checkpoints("six")[-1]
        self.write("four.yaml", CNN.format(classes=4, data="four", epochs=1, rate=0.005, model=begin))
        for command in ("check", "fit"):
            error = self.dtrain(command, "four.yaml", expect=2).err
            self.assertIn("four.yaml:10:12: error: weights: ", error)
            self.assertIn("expected the shape 384x4 for the weight 'head/kernel', but found 384x6 in the file's 'head/kernel'", error)
            self.assertIn("expected the shape 4 for the weight 'head/bias', but found 6 in the file's 'head/bias'", error)
        self.assertFalse((self.dir / "runs").exists())


class Average(Case):
    EMA = ("--set", "train.callbacks=[{ema: {decay: 0.9}}]")

    def test_the_average_is_validated_saved_and_evaluated(self):
        self.fit(*self.EMA)
        self.fit(output="plain")
        last = self.metrics("run")[-1]
        self.assertEqual(last["loss"], self.metrics("plain")[-1]["loss"])  # training is unchanged
        self.assertNotEqual(last["val_loss"], self.metrics("plain")[-1]["val_loss"])
        found = self.json("evaluate", "run", "--split", "validation")
        self.assertAlmostEqual(found["loss"], last["val_loss"], places=12)
        averaged, plain = (self.arrays(self.checkpoints(run)[-1]) for run in ("run", "plain"))
        for (group, name), value in plain.items():
            if group == "weight":
                self.assertEqual(averaged["unaveraged", name], value)
            else:
                self.assertEqual(averaged[group, name], value)

    def test_a_resumed_average_has_the_same_bits(self):
        self.fit(*self.EMA)
        self.fit(*self.EMA, "--epochs", "2", output="halves")
        self.dtrain("resume", "halves", "--epochs", "4")
        self.assert_same_run("run", "halves")

    def test_averaging_may_be_switched_off_and_on(self):
        self.fit(*self.EMA, "--epochs", "2")
        self.dtrain("resume", "run", "--epochs", "4", "--set", "train.callbacks=[]")
        self.fit(output="plain")
        self.assert_same_weights("run", "plain")
        again = self.dtrain("resume", "run", "--epochs", "5", *self.EMA)
        self.assertIn("the checkpoint has no average of the weights, so the average starts as a copy of the weights", again.err)

    def assert_same_weights(self, run, other):
        self.assertEqual(self.arrays(self.checkpoints(run)[-1]), self.arrays(self.checkpoints(other)[-1]))


if __name__ == "__main__":
    main()
