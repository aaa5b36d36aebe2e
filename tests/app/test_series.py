"""Time series: windows of a table, from training to forecasts."""
import csv
import json
import math
import random

import support
from support import Case

CONFIG = """\
seed: 4
model:
  inputs: {x: auto}
  layers:
    - lstm: {units: 12}
    - dense: {units: auto}
dataset:
  train:
    csv: {file: power.csv, header: true, target: load}
    windows: {length: 24, horizon: 6, by: meter, time: time}
  validation: {split: {of: train, fraction: 0.15}}
  test: {split: {of: train, fraction: 0.15}}
  transforms: [standardize, {standardize: {of: [target]}}]
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 12
  batch_size: 32
  loss: mean_squared_error
  optimizer: {adam: {learning_rate: 0.01}}
  metrics: [mean_absolute_error]
checkpoint: {every: 5 steps, keep: 100}
"""
ROWS = 300  # number of rows of each series


def load(meter, hour):
    return 500 + 100 * meter + 50 * math.sin(2 * math.pi * hour / 12)


def lines(hours, seed=1):
    """Returns the rows of two series in random order."""
    draw = random.Random(seed)
    rows = [f"{load(meter, hour) + draw.uniform(-1, 1):.3f},{'north' if meter else 'south'},2026-01-{1 + hour // 24:02d}T{hour % 24:02d}:00,"
            f"{draw.random():.3f}\n" for meter in range(2) for hour in hours]
    draw.shuffle(rows)
    return "load,meter,time,noise\n" + "".join(rows)


class Series(Case):
    def setUp(self):
        super().setUp()
        self.write("power.csv", lines(range(ROWS)))

    def read(self, name):
        with open(self.dir / name, newline="") as file:
            return list(csv.DictReader(file))

    def test_forecasts_continue_each_series_in_its_units(self):
        self.fit(config=CONFIG)
        # Of the rows of each series, 45 are for validation and 45 for test. A window belongs to the split that contains
        # the rows of its 6 targets, so each of these two splits has 45 - 6 + 1 = 40 windows per series.
        for split, samples in (("train", 2 * (210 - 30 + 1)), ("validation", 80), ("test", 80)):
            measured = self.json("evaluate", "run", "--split", split)
            self.assertEqual(measured["samples"], samples)
        self.assertLess(measured["in_units_of_data"]["mean_absolute_error"], 20)
        self.assertGreater(measured["in_units_of_data"]["mean_absolute_error"], measured["mean_absolute_error"])

        (self.dir / "power.csv").unlink()
        self.write("new.csv", lines(range(60, 100)))
        self.dtrain("predict", "run", "-i", "new.csv", "-o", "next.csv")
        found = self.read("next.csv")
        self.assertEqual(list(found[0]), ["meter", "step", "load"])
        self.assertEqual(len(found), 12)
        self.assertEqual({row["meter"] for row in found}, {"north", "south"})
        for start in (0, 6):
            series = found[start:start + 6]
            self.assertEqual([row["step"] for row in series], list("123456"))
            for row in series:
                self.assertEqual(row["meter"], series[0]["meter"])
                expected = load(row["meter"] == "north", 99 + int(row["step"]))
                self.assertLess(abs(float(row["load"]) - expected), 60)
        self.dtrain("predict", "run", "-i", "new.csv", "-o", "next.jsonl")
        first = json.loads((self.dir / "next.jsonl").read_text().splitlines()[0])
        self.assertEqual(first["meter"], found[0]["meter"])
        self.assertEqual([round(value, 2) for value in first["load"]], [round(float(row["load"]), 2) for row in found[:6]])
        self.assertEqual(list(self.json("predict", "run", "-i", "new.csv", "-o", "next.npy")["shapes"].values()), [[2, 6]])

    def test_rows_without_a_target_are_no_past_values(self):
        """A file for a forecast may have rows of the future, whose target is empty. The forecast continues the last row
        that has a target, as in the training, and `fill` does not invent past targets."""
        data = "file: power.csv, header: true, target: load}"
        self.assertIn(data, CONFIG)
        self.fit(config=CONFIG.replace(data, data.replace("}", ", fill: median, missing_target: skip}")))
        known = lines(range(60, 100))
        self.write("known.csv", known)
        future = "".join(f",{meter},2026-01-05T{hour:02d}:00,0.5\n" for meter in ("north", "south") for hour in range(4, 9))
        self.write("future.csv", known + future)
        for name in ("known", "future"):
            self.dtrain("predict", "run", "-i", f"{name}.csv", "-o", f"{name}-next.csv")
        self.assertEqual((self.dir / "future-next.csv").read_text(), (self.dir / "known-next.csv").read_text())

        self.fit(config=CONFIG.replace(data, data.replace("}", ", fill: median}")), output="strict")
        err = self.dtrain("predict", "strict", "-i", "future.csv", "-o", "x.csv", expect=2).err
        self.assertIn("a target must have a value in every row; set 'missing_target: skip'", err)

    def test_evaluate_takes_a_file_with_all_its_windows(self):
        self.fit(config=CONFIG)
        self.write("new.csv", lines(range(60, 100)))
        self.assertEqual(self.json("evaluate", "run", "--input", "new.csv")["samples"], 2 * (40 - 30 + 1))

    def test_a_killed_run_resumes_to_the_same_bits(self):
        self.fit(config=CONFIG, output="straight")
        self.write("config.yaml", CONFIG)
        self.kill_on_the_way("fit", "config.yaml", "--output", "killed", after=20)
        self.dtrain("resume", "killed")
        self.assert_same_run("straight", "killed")

    def test_several_target_columns(self):
        config = CONFIG.replace("target: load}", "target: [load, noise]}").replace("units: auto}", "units: 12}\n    - reshape: [6, 2]")
        self.fit(config=config.replace("epochs: 12", "epochs: 1"))
        self.write("new.csv", lines(range(60, 100)))
        self.dtrain("predict", "run", "-i", "new.csv", "-o", "next.csv")
        found = self.read("next.csv")
        self.assertEqual(list(found[0]), ["meter", "step", "load", "noise"])
        self.assertEqual(len(found), 12)

    def test_a_series_that_is_too_short_has_its_place(self):
        self.write("config.yaml", CONFIG)
        (self.dir / "power.csv").write_text(lines(range(20)))
        err = self.dtrain("check", "config.yaml", expect=2).err
        self.assertIn("config.yaml:10:", err)
        self.assertRegex(err, r"power.csv: windows: the series '(north|south)' needs at least 30 rows \(length \+ horizon\), but has only 20")

    def test_a_missing_column_of_windows_has_its_place(self):
        """The error always has a location. If the model contains `auto`, dtrain reads the file before the model is
        complete, and the error has a location in this case, too."""
        complete = CONFIG.replace("x: auto", "x: [24, 2]").replace("units: auto", "units: 6")
        for config in (CONFIG, complete):
            for wrong, right, column in (("by: metre", "by: meter", 43), ("time: hour", "time: time", 56)):
                self.write("config.yaml", config.replace(right, wrong))
                for command in ("check", "fit"):
                    err = self.dtrain(command, "config.yaml", expect=2).err
                    self.assertRegex(err, rf"(?m)^config\.yaml:10:{column}: error: \S*power\.csv: expected a column named '{wrong.split()[1]}'")
                    self.assertEqual(err.count("error: "), 1, err)


if __name__ == "__main__":
    support.main()
