"""train.threshold: the threshold is chosen on the validation split, saved in checkpoints, and used by `dtrain predict`
and `dtrain evaluate`."""
import csv
import random

import support
from support import Case

CONFIG = """\
seed: 2
model:
  inputs: {x: [2]}
  layers: [dense: {units: 8, activation: tanh}, LAST]
dataset:
  train: {csv: {file: train.csv, header: true, target: fraud}}
  validation: {csv: {file: validation.csv, header: true, target: fraud}}
  test: {csv: {file: test.csv, header: true, target: fraud}}
strategy: STRATEGY
train:
  epochs: 3
  batch_size: 32
  loss: LOSS
  optimizer: {adam: {learning_rate: 0.02}}
  metrics: [accuracy]
  threshold: GOAL
"""
KINDS = {"probability": ("dense: {units: 1, activation: sigmoid}", "binary_crossentropy"),
         "logit": ("dense: {units: 1}", "{binary_crossentropy: {from_logits: true}}"),
         "classes": ("dense: {units: 2, activation: softmax}", "sparse_categorical_crossentropy"),
         "class logits": ("dense: {units: 2}", "{sparse_categorical_crossentropy: {from_logits: true}}")}


def scores(table, threshold):
    """Returns accuracy, precision, recall and F1 for rows of (probability, label)."""
    hits = sum(p > threshold and y for p, y in table)
    positive, true = sum(p > threshold for p, y in table), sum(y for p, y in table)
    right = sum((p > threshold) == y for p, y in table)
    return right / len(table), hits / positive if positive else 0, hits / true, 2 * hits / (positive + true)


class Threshold(Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(9)
        for name, count in (("train", 400), ("validation", 200), ("test", 150)):
            lines = ["a,b,fraud\n"]
            for _ in range(count):
                a, b = draw.gauss(0, 1), draw.gauss(0, 1)
                lines.append(f"{a:.4f},{b:.4f},{'yes' if a + b + draw.gauss(0, 1) > 2 else 'no'}\n")
            self.write(f"{name}.csv", "".join(lines))

    def config(self, goal, kind="logit", strategy="single"):
        last, loss = KINDS[kind]
        return CONFIG.replace("LAST", last).replace("LOSS", loss).replace("GOAL", goal).replace("STRATEGY", strategy)

    def predicted(self, split, *more):
        """Returns (probability of yes, label) of each row, and the predictions."""
        self.dtrain("predict", "run", "--input", f"{split}.csv", "--output", "out.csv", *more)
        with open(self.dir / "out.csv", newline="") as file:
            out = list(csv.DictReader(file))
        with open(self.dir / f"{split}.csv", newline="") as file:
            truth = [row["fraud"] == "yes" for row in csv.DictReader(file)]
        return [(float(row["yes"]), y) for row, y in zip(out, truth)], [row["fraud"] for row in out]

    def check_best(self, threshold, worth):
        """Checks that no other threshold scores much better on the validation split. A slightly better score is
        allowed, because dtrain compares only the thresholds between its buckets of scores."""
        table, _ = self.predicted("validation")
        best = max(worth(*scores(table, p)) for p in [0] + [p for p, _ in table])
        self.assertGreaterEqual(worth(*scores(table, threshold)), best - 0.02)

    def test_the_threshold_is_chosen_saved_used_and_reported(self):
        found = []
        for kind in KINDS:
            with self.subTest(kind):
                self.fit("--overwrite", config=self.config("{maximize: f1_score}", kind))
                threshold = self.metrics()[-1]["val_threshold"]
                found.append(threshold)
                self.check_best(threshold, lambda accuracy, precision, recall, f1: f1)
                table, names = self.predicted("test")
                self.assertEqual(names, ["yes" if p > threshold else "no" for p, _ in table])
                report = self.json("evaluate", "run")
                self.assertNotIn("threshold", report)
                at = report["at_threshold"]
                self.assertEqual(at["threshold"], threshold)
                for name, value in zip(("accuracy", "precision", "recall", "f1_score"), scores(table, threshold)):
                    self.assertAlmostEqual(at[name], value, msg=name)
                self.assertIn(f"at_threshold:  threshold {threshold:.4f}  accuracy ", self.dtrain("evaluate", "run").out)
        self.assertLess(found[0], 0.5)  # one row in seven is positive

    def test_the_chosen_threshold_reaches_its_goal(self):
        self.fit(config=self.config("{maximize: balanced_accuracy}"))
        table, _ = self.predicted("validation")
        balanced = lambda threshold: (sum(p > threshold for p, y in table if y) / sum(y for _, y in table)
                                      + sum(p <= threshold for p, y in table if not y) / sum(not y for _, y in table)) / 2
        self.assertGreaterEqual(balanced(self.metrics()[-1]["val_threshold"]), max(balanced(p) for p, _ in table) - 0.02)
        for goal in ("precision", "recall"):
            self.fit("--overwrite", config=self.config(f"{{{goal}: 0.8}}"))
            table, _ = self.predicted("validation")
            _, precision, recall, _ = scores(table, self.metrics()[-1]["val_threshold"])
            self.assertGreaterEqual({"precision": precision, "recall": recall}[goal], 0.79)
            other = {"precision": recall, "recall": precision}[goal]
            best = max((r if goal == "precision" else p) for _, p, r, _ in (scores(table, t) for t, _ in table)
                       if (p if goal == "precision" else r) >= 0.8)
            self.assertGreaterEqual(other, best - 0.03)

    def test_the_threshold_may_be_a_number(self):
        self.fit(config=self.config("0.2"))
        self.assertNotIn("val_threshold", self.metrics()[-1])
        table, names = self.predicted("test")
        self.assertEqual(names, ["yes" if p > 0.2 else "no" for p, _ in table])
        self.assertEqual(self.json("evaluate", "run")["at_threshold"]["threshold"], 0.2)
        _, names = self.predicted("test", "--set", "train.threshold=0.7")
        self.assertEqual(names, ["yes" if p > 0.7 else "no" for p, _ in table])

    def test_the_threshold_is_the_same_with_any_strategy_and_after_resuming(self):
        chosen = []
        for strategy in ("single", "{mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}"):
            self.fit("--overwrite", config=self.config("{maximize: f1_score}", strategy=strategy))
            chosen.append(self.metrics()[-1]["val_threshold"])
        self.assertAlmostEqual(*chosen, places=9)
        self.fit("--epochs", 1, output="part", config=self.config("{maximize: f1_score}"))
        self.dtrain("resume", "part", "--epochs", 3)
        self.assertEqual(self.metrics("part")[-1]["val_threshold"], chosen[0])
        (self.dir / "validation.csv").unlink()
        self.predicted("test")  # works without training data
        error = self.dtrain("evaluate", "run", "--set", "train.threshold={recall: 0.9}", expect=2).err
        self.assertIn("the threshold in this checkpoint was not chosen for the goal in train.threshold", error)

    def test_invalid_thresholds_are_errors(self):
        for goal, message in {"1.5": "expected a number between 0 and 1, or one of {maximize: f1_score}",
                              "{maximise: f1_score}": "unknown key 'maximise'; did you mean 'maximize'?",
                              "{maximize: accuracy}": "expected f1_score or balanced_accuracy",
                              "{precision: 2}": "threshold's precision: expected a number between 0 and 1"}.items():
            self.write("config.yaml", self.config(goal))
            self.assertRegex(self.dtrain("check", "config.yaml", expect=2).err, r"config.yaml:16:\d+: error: ")
            self.assertIn(message, self.dtrain("check", "config.yaml", expect=2).err)
        self.write("config.yaml", "".join(line for line in self.config("{recall: 0.9}").splitlines(True) if "validation" not in line))
        self.assertIn("threshold: the threshold is chosen on the validation split, but the data set has no validation split",
                      self.dtrain("check", "config.yaml", expect=2).err)
        self.write("config.yaml", self.config("0.3").replace("units: 1", "units: 3"))
        self.assertIn("threshold: this option requires an output with two classes", self.dtrain("check", "config.yaml", expect=2).err)


if __name__ == "__main__":
    support.main()
