"""The losses per output, the weights and the metrics that a run reports, and the options --per-class and --errors of
`dtrain evaluate`."""
import json

import support
from support import Case

RUN = """\
model:
  inputs: {pixels: [64]}
  layers:
    - dense: {name: trunk, units: 16, activation: relu}
    - dense: {name: digit, units: 10}
    - dense: {name: ink, units: 1, inputs: trunk}
  outputs: [digit, ink]
dataset:
  train: {synthetic: {samples: 200, targets: {digit: {classes: 10}, ink: {shape: [1]}}, seed: 3}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 2
  batch_size: 64
  loss:
    digit: {sparse_categorical_crossentropy: {from_logits: true, label_smoothing: 0.1}}
    ink: {mean_squared_error: {weight: 0.5}}
  metrics: {digit: [sparse_categorical_accuracy, f1_score, confusion_matrix], ink: mean_absolute_error}
  optimizer: adam
"""

BINARY = """\
model:
  inputs: {x: [4]}
  layers: [dense: {units: 1, activation: sigmoid}]
dataset:
  train: {csv: {file: train.csv, target: 4}}
  test: {csv: {file: test.csv, target: 4}}
strategy: single
train:
  epochs: 5
  batch_size: 16
  loss: binary_crossentropy
  class_weight: {1: 3}
  metrics: [precision, recall, f1_score, auc]
  optimizer: {adam: {learning_rate: 0.05}}
checkpoint: {best: {monitor: auc}}
"""


class Measures(Case):
    def test_each_output_has_separate_losses_and_metrics(self):
        self.write("run.yaml", RUN)
        self.dtrain("fit", "run.yaml", "--output", "run")
        records = [json.loads(line) for line in (self.dir / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(len(records), 2)
        last = records[-1]
        for name in ("loss", "digit_loss", "ink_loss", "digit_sparse_categorical_accuracy", "ink_mean_absolute_error"):
            self.assertIsInstance(last[name], float, name)
        self.assertNotIn("ink_f1_score", last)
        self.assertAlmostEqual(last["loss"], last["digit_loss"] + 0.5 * last["ink_loss"], places=9)
        self.assertNotIn("digit_confusion_matrix", last)
        (tables,) = [json.loads(line) for line in (self.dir / "run/tables.jsonl").read_text().splitlines()]
        self.assertEqual((tables["epoch"], tables["step"]), (2, last["step"]))
        self.assertEqual(len(tables["digit_f1_score"]), 10)
        self.assertEqual(sum(map(sum, tables["digit_confusion_matrix"])), 200)
        result = self.json("evaluate", "run", "--split", "train", "--per-class", "--errors", 3)
        matrix, report = result["digit_confusion_matrix"], result["digit_per_class"]
        for number, row in enumerate(report):
            self.assertEqual(row["class"], number)
            self.assertEqual(row["support"], sum(matrix[number]))
            predicted = sum(line[number] for line in matrix)
            right = matrix[number][number]
            self.assertAlmostEqual(row["precision"], right / predicted if predicted else 0)
            self.assertAlmostEqual(row["recall"], right / sum(matrix[number]) if sum(matrix[number]) else 0)
            self.assertAlmostEqual(row["f1_score"], result["digit_f1_score"][number])
        shown = self.dtrain("evaluate", "run", "--split", "train").out.splitlines()
        title = shown.index("digit_confusion_matrix, predictions in columns")
        self.assertEqual(shown[title + 1].split(), ["target", *map(str, range(10))])
        for number, row in enumerate(matrix):
            self.assertEqual(shown[title + 3 + number].split(), [str(number), *map(str, row)])
        self.assertEqual(len(result["errors"]), 3)
        self.assertEqual(sorted((e["loss"] for e in result["errors"]), reverse=True),
                         [e["loss"] for e in result["errors"]])
        self.assertGreater(result["errors"][0]["loss"], result["loss"])
        for error in result["errors"]:
            self.assertIn(error["digit"]["target"], range(10))
            self.assertEqual(error["digit"]["prediction"], max(range(10), key=error["digit"]["scores"].__getitem__))
            self.assertIsInstance(error["ink"]["prediction"], float)

    def test_tables_of_many_classes_do_not_grow_with_the_epochs(self):
        """The files with tables must not be larger than `check` predicts."""
        config = """\
model: {inputs: {x: [4]}, layers: [{dense: {units: 300}}]}
dataset: {train: {synthetic: {samples: 300, target: {classes: 300}}}, validation: {synthetic: {samples: 300, seed: 2, target: {classes: 300}}}}
strategy: {single: {device: cpu:0}}
train: {epochs: 30, batch_size: 100, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd, metrics: [confusion_matrix]}
checkpoint: {every: 1 epoch, keep: 2}
"""
        self.write("config.yaml", config)
        plan = self.json("check", "config.yaml")
        self.assertIn("Metrics that are tables, such as a confusion matrix, need up to another ", self.dtrain("check", "config.yaml").out)
        elements = 2 * 300 * 300
        self.assertGreaterEqual(plan["tables"], 40 * elements)
        self.fit(config=config)
        weights = 300 * 5 * 4
        for path in [*self.checkpoints(), self.dir / "run/tables.jsonl"]:
            self.assertLess(path.stat().st_size, plan["tables_on_disk"] + weights + 100_000, path)
        self.assertLess((self.dir / "run/metrics.jsonl").stat().st_size, 30 * 1000)
        self.assertLess((self.dir / "run/metrics.csv").stat().st_size, 30 * 1000)

    def test_a_metric_may_have_the_name_of_a_table(self):
        self.write("run.yaml", RUN.replace("f1_score,", "{f1_score: {name: my_per_class}},"))
        self.dtrain("fit", "run.yaml", "--output", "run", "--epochs", 1)
        text = self.dtrain("evaluate", "run", "--split", "train", "--per-class").out
        self.assertRegex(text, r"\ndigit_my_per_class \[[\d., ]+\]\n")
        self.assertRegex(text, r"\ndigit_per_class\n +class +support +precision")

    def test_the_direction_of_the_best_follows_from_the_metric(self):
        self.write("train.csv", "".join("%g,%g,%g,%g,%d\n" % (i % 7 / 3 - 1, i % 5 / 2 - 1, 0, 1, i % 7 + i % 5 > 5) for i in range(100)))
        self.write("test.csv", "0,0,0,0,1\n")
        self.write("run.yaml", BINARY.replace("auc]", "{auc: {name: roc}}]").replace("monitor: auc", "monitor: roc"))
        self.dtrain("fit", "run.yaml", "--output", "run")
        values = [json.loads(line)["roc"] for line in (self.dir / "run/metrics.jsonl").read_text().splitlines()]
        self.assertGreater(max(values), min(values))
        (listed,) = self.json("runs", ".")
        self.assertEqual(listed["best"], {"monitor": "roc", "value": max(values), "epoch": values.index(max(values)) + 1})

    def one_class(self, *sets):
        """Trains with a validation split of only one class, so that its auc is nan."""
        self.write("train.csv", "".join("%g,%g,0,1,%d\n" % (i % 7 / 3 - 1, i % 5 / 2 - 1, i % 7 + i % 5 > 5) for i in range(100)))
        self.write("test.csv", "".join("%g,0,0,1,0\n" % (i / 10) for i in range(10)))
        self.write("run.yaml", BINARY.replace("  test:", "  validation:").replace("monitor: auc", "monitor: val_auc").replace("epochs: 5", "epochs: 3"))
        return self.dtrain("fit", "run.yaml", "--output", "run", "--overwrite", *(a for s in sets for a in ("--set", s)))

    def test_a_monitored_metric_may_be_nan(self):
        process = self.one_class("train.callbacks=[{early_stopping: {monitor: val_auc, patience: 1}}]")
        self.assertEqual(process.err.count("warning: the monitored 'val_auc' is nan in epoch 1"), 1, process.err)
        self.assertNotIn("has not improved", process.err)
        self.assertEqual([line["val_auc"] for line in self.metrics()], ["nan"] * 3)
        self.assertRegex(self.dtrain("evaluate", "run", "--best", expect=2).err, "no best checkpoint, because its monitor 'val_auc' is nan")
        self.one_class("train.optimizer={sgd: {learning_rate: {reduce_on_plateau: {initial: 0.1, monitor: val_auc, patience: 0}}}}")
        self.assertEqual([line["learning_rate"] for line in self.metrics()], [0.1] * 3)

    def test_an_inexact_auc_gives_its_error_bound(self):
        self.one_class()
        self.assertNotIn("may be off", self.dtrain("evaluate", "run", "--split", "train").err)
        # All scores are near 3000 and differ only in their last digits. Therefore several scores are counted as equal,
        # and auc is inexact.
        self.write("train.csv", "".join("%.7g,0,0,1,%d\n" % (3e3 + i / 100, i % 3 == 0) for i in range(100)))
        process = self.dtrain("fit", "run.yaml", "--output", "run", "--overwrite", "--set", "train.optimizer={sgd: {learning_rate: 0}}",
                              "--set", "model.layers=[dense: {units: 1}]", "--set", "train.loss={binary_crossentropy: {from_logits: true}}")
        self.assertEqual(process.err.count("warning: auc may be off by up to 0."), 1, process.err)
        self.assertIn("warning: auc may be off by up to 0.", self.dtrain("evaluate", "run", "--split", "train").err)

    def test_a_class_with_a_larger_weight_is_predicted_more(self):
        rows = [[(i * 7 % 11) / 5 - 1, (i * 5 % 13) / 6 - 1, (i * 3 % 7) / 3 - 1, i % 2] for i in range(120)]
        lines = ["%g,%g,%g,%g,%d\n" % (*row, row[0] + row[1] > 0.9) for row in rows]
        self.write("train.csv", "".join(lines))
        self.write("test.csv", "".join(lines[:50]))
        self.write("run.yaml", BINARY)
        self.dtrain("fit", "run.yaml", "--output", "run")
        weighted = self.json("evaluate", "run", "--per-class", "--errors", 50)
        self.dtrain("fit", "run.yaml", "--output", "plain", "--set", "train.class_weight=null")
        plain = self.json("evaluate", "plain")
        self.assertGreaterEqual(weighted["recall"], plain["recall"])
        self.assertGreater(weighted["auc"], 0.5)
        self.assertEqual([row["support"] for row in weighted["per_class"]],
                         [sum(line.endswith(",%d\n" % c) for line in lines[:50]) for c in (0, 1)])
        self.assertAlmostEqual(weighted["per_class"][1]["f1_score"], weighted["f1_score"])
        # The loss is the mean over all samples: class weights apply only to training.
        self.assertEqual(sorted(e["row"] for e in weighted["errors"]), list(range(50)))
        self.assertAlmostEqual(sum(e["loss"] for e in weighted["errors"]) / 50, weighted["loss"], places=5)
        text = self.dtrain("evaluate", "run", "--per-class", "--errors", 2).out
        self.assertIn("support", text)
        self.assertIn("largest losses", text)

    def test_a_run_resumed_within_an_epoch_keeps_its_sums(self):
        self.fit(config=RUN + "checkpoint: {every: 3 steps, keep: 10}\n")
        middle = self.checkpoints()[0]  # within the four steps of the first epoch
        self.dtrain("resume", middle, "--output", "again")
        self.assert_same_run("run", "again")


if __name__ == "__main__":
    support.main()
