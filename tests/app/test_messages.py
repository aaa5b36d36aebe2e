"""Messages about small mistakes, and small features of the commands."""
import os

import support
from support import Case

CONFIG = """\
seed: 99
model: {inputs: {x: [1]}, layers: [{dense: {units: 2}}]}
dataset:
  train: {csv: {file: a.csv, target: -1}}
  validation: {split: {of: train, fraction: 0.99}}
strategy: {single: {device: cpu:0}}
train: {epochs: 1, batch_size: 2, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
"""
ALONE = CONFIG.replace("  validation: {split: {of: train, fraction: 0.99}}\n", "")


class Messages(Case):
    def setUp(self):
        super().setUp()
        self.write("a.csv", "1,0\n2,1\n3,0\n4,1\n")

    def test_a_split_that_leaves_nothing_names_its_place_once(self):
        error = self.fit(config=CONFIG, expect=2).err
        self.assertRegex(error, r"^(.*\n)*config.yaml:4:10: error: split: this split gets none of the 4 samples of 'train'")
        self.assertEqual(error.count("config.yaml:4:10"), 1)

    def test_a_single_target_needs_no_name(self):
        for reader in ("csv: {file: a.csv, targets: {dense: -1}}", "npy: {input: x.npy, targets: {out: y.npy}}"):
            self.write("x.npy", "x")
            self.write("y.npy", "y")
            error = self.fit(config=ALONE.replace("csv: {file: a.csv, target: -1}", reader), expect=2).err
            self.assertIn("'targets' is for models with several outputs, but this model has only one; give 'target'", error)

    def test_an_empty_file_is_called_empty(self):
        self.write("empty", "")
        for reader in ("csv: {file: empty, target: -1}", "npy: {input: empty, target: empty}",
                       "idx: {input: empty, target: empty}", "hdf5: {file: empty, input: x, target: y}"):
            error = self.fit(config=ALONE.replace("csv: {file: a.csv, target: -1}", reader), expect=2).err
            self.assertIn("empty: expected data, found an empty file", error, reader)
        shards = ALONE.replace("csv: {file: a.csv, target: -1}", "webdataset: empty").replace("[1]", "[2, 2, 3]")
        self.assertIn("empty: expected a tar archive, found an empty file", self.fit(config=shards, expect=2).err)
        self.assertIn("found an empty file", self.dtrain("inspect", "empty", expect=2).err)

    def test_a_path_of_another_kind_is_an_error_that_names_the_kind(self):
        self.fit(config=ALONE, output="runs/config")
        self.fit(config=ALONE, output="runs/other")
        for command, options in (("evaluate", ()), ("predict", ("-i", "a.csv", "-o", "out.csv"))):
            error = self.dtrain(command, "runs", *options, expect=2).err
            self.assertIn("runs: expected a run, but found a folder of runs; give one of these runs: 'runs/config', 'runs/other'", error)
            error = self.dtrain(command, "config.yaml", *options, expect=2).err
            self.assertIn(f"found a configuration; its run is runs/config, so use `dtrain {command} runs/config`", error)
        self.write("new.yaml", ALONE)
        self.assertIn("use `dtrain fit new.yaml` to train it", self.dtrain("evaluate", "new.yaml", expect=2).err)
        for command in ("fit", "check"):
            self.assertIn("use `dtrain resume runs/config` to continue the run", self.dtrain(command, "runs/config", expect=2).err)
            self.assertIn("use `dtrain resume RUN` to continue a run", self.dtrain(command, "runs", expect=2).err)
            self.assertIn("use `dtrain new a.csv` to write a configuration", self.dtrain(command, "a.csv", expect=2).err)
        self.assertIn("'dtrain report RUN...' compares runs", self.dtrain("compare", "runs/config", "runs/other", expect=2).err)

    def test_incompatible_settings_are_errors(self):
        error = self.fit("--set", "train.optimizer.adam.learning_rate=0.1,0.2", expect=2).err
        self.assertIn("--set train.optimizer.adam.learning_rate=0.1,0.2: to train with several values of a key, use `dtrain sweep`", error)
        error = self.fit("--set", "train.loss=binary_crossentropy", "--set", "model.layers.2.dense.units=1", expect=2).err
        self.assertIn("the metric cannot be used with the loss binary_crossentropy; use 'accuracy', which works with every classification loss", error)
        error = self.fit("--set", "model.layers.2.dense.units=1", expect=2).err
        self.assertIn("'dense_1', which takes values from 0 to 0; class 1 needs an output of at least 2 units, but 'dense_1' has 1 (with `units: auto`", error)

    def test_outputs_without_probabilities_are_reported(self):
        self.fit(config=ALONE.replace("{sparse_categorical_crossentropy: {from_logits: true}}", "binary_crossentropy").replace("units: 2", "units: 1"))
        self.write("large.csv", "900\n-900\n")
        predict = ("predict", "run", "-i", "large.csv", "-o", "out.csv")
        done = self.dtrain(*predict)
        self.assertIn("which is not a probability, but the loss expects probabilities", done.err)
        self.assertIn("the model's outputs, which are not all probabilities", done.out)
        self.assertEqual(self.json(*predict)["outputs"], "raw")

    def test_advice_names_only_options_that_the_loss_has(self):
        pixels = ALONE.replace("csv: {file: a.csv, target: -1}", "synthetic: {samples: 8, target: {shape: [4, 4, 2]}}").replace("[1]", "[4, 4, 1]")
        self.write("pixels.yaml", pixels)
        loss = ("--set", "model.layers=[{conv2d: {filters: 2, kernel_size: 1}}]")
        error = self.dtrain("check", "pixels.yaml", *loss, "train.loss=dice").err
        self.assertIn("dice expects probabilities, but 'conv2d' does not end in a softmax or sigmoid; add such an activation", error)
        error = self.dtrain("check", "pixels.yaml", *loss, "train.loss=categorical_crossentropy").err
        self.assertIn("softmax or sigmoid; set from_logits: true, or add such an activation", error)
        error = self.dtrain("check", "pixels.yaml", *loss, "train.loss=jaccard", expect=2).err
        self.assertIn("unknown loss 'jaccard'; use `tversky: {alpha: 1, beta: 1}`", error)

    def test_a_schedule_that_ends_early_is_a_warning(self):
        rate = lambda steps: ("--set", f"train.optimizer.adam.learning_rate={{cosine_decay: {{initial: 0.1, steps: {steps}}}}}")
        warning = "warning: the learning rate is 0 from step 65 (epoch 3 of 4)"
        self.assertIn(warning, self.fit(*rate("2 epochs")).err)
        self.assertIn(warning, self.dtrain("check", "config.yaml", *rate("64")).err)
        for steps in ("4 epochs", "auto"):
            self.assertNotIn("learning rate", self.fit(*rate(steps), output=steps).err)
        self.assertEqual(self.metrics("auto")[-1], self.metrics("4 epochs")[-1])
        self.assertGreater(self.metrics("auto")[-1]["learning_rate"], 0)
        # If a run is resumed with more epochs, `steps: auto` spreads the learning rates over the longer training.
        self.dtrain("resume", "auto", "--epochs", 8)
        self.fit("--epochs", 8, *rate("auto"), output="long")
        rates = [[line["learning_rate"] for line in self.metrics(run)] for run in ("auto", "long")]
        self.assertEqual(rates[0][4:], rates[1][4:])

    def test_the_best_epoch_is_printed_at_the_end(self):
        out = self.fit(config=support.CONFIG.replace("keep: 100}", "keep: 2, best: {monitor: val_loss, mode: min}}")).out
        best = min(self.metrics(), key=lambda line: line["val_loss"])
        self.assertLess(best["epoch"], 4)  # otherwise the test is vacuous
        self.assertRegex(out, rf"\nbest  run/checkpoints/\S+ \(val_loss \S+\)\n      epoch {best['epoch']}: loss .*val_sparse_categorical_accuracy")

    def test_runs_prints_times_in_the_local_time_zone(self):
        self.fit(config=ALONE, env={"TZ": "UTC"})
        times = [self.dtrain("runs", ".", env={"TZ": zone}).out.splitlines()[-1][-16:] for zone in ("UTC", "UTC-5:30")]
        minutes = [int(time[11:13]) * 60 + int(time[14:16]) for time in times]
        self.assertEqual((minutes[1] - minutes[0]) % (24 * 60), 5 * 60 + 30, times)

    def test_new_treats_infinite_numbers_as_missing(self):
        self.write("n.csv", "a,b,y\n" + "".join(f"{i * 7 % 40 / 8},{i * 11 % 40 / 16},{'inf' if i % 7 == 0 else i % 2 + 1}\n"
                                               for i in range(40)))
        self.dtrain("new", "n.csv")
        self.assertRegex((self.dir / "n.yaml").read_text(), r"na_values: \[?'?\"?inf")
        self.dtrain("check", "n.yaml")

    def test_new_rejects_a_pipe(self):
        os.mkfifo(self.dir / "pipe")
        self.assertIn("found a pipe or a device", self.dtrain("new", "pipe", expect=2).err)

    def test_new_prints_the_configuration(self):
        self.write("a.csv", "a,b,y\n" + "".join(f"{i * 7 % 40 / 8},{i * 11 % 40 / 16},{i % 2}\n" for i in range(40)))
        printed = self.dtrain("new", "a.csv", "--output", "-").out
        self.assertIn("\nmodel:\n", printed)
        self.assertEqual(sorted(os.listdir(self.dir)), ["a.csv"])
        self.write("printed.yaml", printed)
        self.dtrain("check", "printed.yaml")
        self.assertIn("give only one of them", self.dtrain("new", "a.csv", "--output", "-", "--json", expect=2).err)


class Overlap(Case):
    """A run that starts with the weights of another run."""

    def test_samples_of_the_initial_runs_training_data_are_counted(self):
        self.write("a.csv", "".join(f"{i},{i % 2}\n" for i in range(100)))
        config = ALONE.replace("strategy:", "  validation: {split: {of: train, fraction: 0.2}}\n"
                                            "  test: {split: {of: train, fraction: 0.2}}\nstrategy:")
        self.fit(config=config, output="first")
        again = config.replace("layers:", "weights: {from: first}, layers:")
        self.assertNotIn("was trained on", self.fit(config=again, output="same").err)
        other = self.fit("--set", "seed=1", config=again, output="other").err
        for name in ("validation", "test"):
            self.assertRegex(other, rf"warning: .*ckpt-\d+.h5: this model was trained on 1\d of the 20 samples of the split '{name}', so its "
                                    r"scores on this split say little about unseen samples; to use the same splits as that run, set `split: {seed: 99}`")
        shared = [f"--set=dataset.{name}.split.seed=99" for name in ("validation", "test")]
        self.assertNotIn("was trained on", self.fit("--set", "seed=1", *shared, config=again, output="shared").err)
        self.write("a.csv", "".join(f"{i},{(i + 1) % 2}\n" for i in range(100)))  # other data
        self.assertNotIn("was trained on", self.fit("--set", "seed=1", config=again, output="data").err)


if __name__ == "__main__":
    support.main()
