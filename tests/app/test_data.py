"""Data that change during or between runs, or that commands read in another way than the run. Existing files at output
paths."""
import os
import random
import signal
import struct
import time

import support
from support import Case

CONFIG = """\
seed: 3
model: {inputs: {x: [3]}, layers: [{dense: {units: 2}}]}
dataset:
  train: {csv: {file: g.csv, target: -1}}
strategy: {single: {device: cpu:0}}
train: {epochs: 1, batch_size: 10, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
checkpoint: {every: 2 steps, keep: 100}
"""
NAMED = CONFIG.replace("target: -1", "target: label, header: true")


def rows(count, seed=1):
    draw = random.Random(seed)
    return "".join(f"{draw.random():g},{draw.random():g},{draw.random():g},{draw.randrange(2)}\n" for _ in range(count))


class Data(Case):
    def setUp(self):
        super().setUp()
        self.write("g.csv", rows(100))

    def wait_for(self, process, path):
        while process.poll() is None and not (self.dir / path).exists():
            time.sleep(0.005)
        self.assertIsNone(process.poll())

    # Files that are never overwritten.

    def test_a_cache_never_replaces_a_users_file(self):
        os.rename(self.dir / "g.csv", self.dir / "digits.train")
        before = (self.dir / "digits.train").read_bytes()
        config = CONFIG.replace("g.csv", "digits.train")
        for command in ("check", "fit"):
            self.write("config.yaml", config)
            process = self.dtrain(command, "config.yaml", "--set", "dataset.cache={file: digits}", expect=2)
            self.assertRegex(process.err, r"config.yaml:4:10: error: .*digits.train: .* not a cache file of dtrain")
        self.assertEqual((self.dir / "digits.train").read_bytes(), before)

    def test_outputs_and_logs_never_replace_other_files(self):
        self.fit(config=CONFIG)
        data = (self.dir / "g.csv").read_bytes()
        self.write("in.csv", "1,2,3\n")
        self.assertIn("data set", self.dtrain("predict", "run", "-i", "in.csv", "-o", "g.csv", expect=2).err)
        (self.dir / "copy.h5").write_bytes(self.checkpoints()[-1].read_bytes())
        self.assertIn("checkpoint", self.dtrain("predict", "run", "-i", "in.csv", "-o", "copy.h5", expect=2).err)
        os.mkfifo(self.dir / "pipe.csv")
        self.assertIn("pipe.csv", self.dtrain("predict", "run", "-i", "in.csv", "-o", "pipe.csv", expect=2).err)
        self.assertIn("step log", self.fit("--step-log", "g.csv", config=CONFIG, output="other", expect=2).err)
        self.assertEqual((self.dir / "g.csv").read_bytes(), data)
        for _ in range(2):  # the second run appends to the logs
            self.fit("--step-log", "log", "--overwrite", config=CONFIG)
        self.assertEqual(len((self.dir / "log").read_text().splitlines()), 20)

    def test_a_directory_with_a_foreign_config_yaml_is_an_error(self):
        for name in ("config.yaml", "metrics.jsonl", "metrics.csv", "report.html"):
            folder = self.dir / name.replace(".", "-")
            folder.mkdir()
            (folder / name).write_text("mine")
            self.assertIn(name, self.fit(config=CONFIG, output=folder.name, expect=2).err)
            self.assertEqual((folder / name).read_text(), "mine")
            self.assertEqual(os.listdir(folder), [name])

    def test_temporary_cache_files_of_killed_runs_are_removed(self):
        for number in ("999999999-0123abcd", "999999998-000000ff"):
            self.write(f".cc.train.dtrain-tmp-{number}", "x" * 1000)
        self.fit("--set", "dataset.cache={file: cc}", config=CONFIG)
        self.assertEqual([name for name in sorted(os.listdir(self.dir)) if "cc" in name], ["cc.train"])

    def test_runs_share_a_cache_only_for_the_same_data_set(self):
        cache = "dataset.cache={file: cc}"
        process = self.start_long(CONFIG, "--set", cache)
        self.fit("--set", cache, config=CONFIG, output="same")
        self.write("h.csv", rows(90))
        refused = self.fit("--set", cache, config=CONFIG.replace("g.csv", "h.csv"), output="other", expect=2).err
        self.assertIn("cc.train: another run uses this cache file for another data set ('file: g.csv' instead of "
                      "'file: h.csv')", refused)
        process.kill()
        process.communicate()
        self.fit("--set", cache, config=CONFIG.replace("g.csv", "h.csv"), output="other")  # the cache is no longer in use

    # Files changed while in use.

    def start_long(self, config, *arguments):
        self.write("config.yaml", config.replace("epochs: 1,", "epochs: 1000000,").replace("2 steps", "1000000 epochs"))
        process = self.start("fit", "config.yaml", "-o", "run", "--step-log", "log", *arguments)
        self.wait_for(process, "run/metrics.jsonl")
        time.sleep(0.2)
        return process

    def ends_with(self, process, *messages):
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        for message in messages:
            self.assertIn(message, err)

    def test_a_cache_file_that_shrinks_is_an_error(self):
        self.write("g.csv", rows(20000))
        process = self.start_long(CONFIG, "--set", "dataset.cache={file: cc}")
        os.truncate(self.dir / "cc.train", 1000)
        self.ends_with(process, "cc.train", "changed while it was in use")

    def test_an_array_that_shrinks_is_an_error(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (20000, 3), }".ljust(117) + b"\n"
        (self.dir / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header + b"\0\0\x80\x3f" * 60000)
        config = CONFIG.replace("csv: {file: g.csv, target: -1}", "npy: {input: x.npy, target: x.npy}").replace(
            "{sparse_categorical_crossentropy: {from_logits: true}}", "mean_squared_error").replace("units: 2", "units: 3")
        process = self.start_long(config)
        os.truncate(self.dir / "x.npy", 1000)
        self.ends_with(process, "x.npy", "changed while it was in use")

    # Data that changed between two runs.

    def test_resuming_within_an_epoch_requires_unchanged_data(self):
        self.fit(config=CONFIG)
        within, end = self.checkpoints()[1], self.checkpoints()[-1]
        self.assertEqual(within.name, "ckpt-00000004.h5")
        kept = (self.dir / "g.csv").read_text()
        lines = kept.splitlines(keepends=True)
        changes = {"grown": kept + rows(100, 2), "shrunk": "".join(lines[:60]), "reordered": "".join(reversed(lines))}
        for name, text in changes.items():
            with self.subTest(name):
                self.write("g.csv", text)
                refusal = self.dtrain("resume", within, "-o", "other", expect=2).err
                self.assertIn("the data have changed in the middle of an epoch: g.csv", refusal)
                self.assertFalse((self.dir / "other").exists())
                warning = self.dtrain("resume", end, "--epochs", 2, "-o", name).err
                self.assertIn("warning: the data of the split 'train' have changed: g.csv", warning)
        self.write("g.csv", kept)
        error = self.dtrain("resume", within, "-o", "other", "--set", "dataset.train.rows=[0,90]", expect=2).err
        self.assertIn("the rows are [0, 90) (they were [0, 100))", error)
        # Moved but unchanged data count as the same.
        self.write("elsewhere/h.csv", kept)
        os.remove(self.dir / "g.csv")
        moved = self.dtrain("resume", within, "-o", "moved", "--set", f"dataset.train.csv.file={self.dir}/elsewhere/h.csv")
        self.assertNotIn("warning", moved.err)
        self.assertEqual(self.arrays(end), self.arrays(self.checkpoints("moved")[-1]))

    # Commands read other data in the same way as the run reads its data.

    def test_columns_are_found_by_name(self):
        lines = [line.split(",") for line in rows(100).splitlines()]
        self.write("g.csv", "a,b,c,label\n" + "".join(",".join(line) + "\n" for line in lines))
        other = "label,b,id,c,a\n" + "".join(f"{line[3]},{line[1]},i{n},{line[2]},{line[0]}\n" for n, line in enumerate(lines))
        self.write("v.csv", other)
        config = NAMED.replace("strategy", "  validation: {csv: {file: v.csv, target: label, header: true}}\nstrategy")
        self.fit(config=config)
        record = self.metrics()[-1]
        train = self.json("evaluate", "run", "--split", "train")
        self.assertAlmostEqual(record["val_loss"], train["loss"], places=6)
        self.assertAlmostEqual(self.json("evaluate", "run", "--split", "validation")["loss"], train["loss"], places=6)
        for number, file in enumerate(("g.csv", "v.csv")):
            self.dtrain("predict", "run", "-i", file, "-o", f"{number}.csv")
        self.assertEqual((self.dir / "0.csv").read_text(), (self.dir / "1.csv").read_text())
        self.write("less.csv", "a,b\n1,2\n")
        self.assertIn("'c'", self.dtrain("predict", "run", "-i", "less.csv", "-o", "out.csv", expect=2).err)

    def test_predict_reads_text_like_the_run(self):
        self.write("g.csv", "0;1;2;3\n" + rows(100).replace(",", ";"))
        self.fit(config=CONFIG.replace("target: -1", "target: -1, header: true, delimiter: ';'"))
        predict = lambda *arguments, **options: self.dtrain("predict", "run", "-o", "out.csv", *arguments, **options)
        self.write("in.csv", "0;1;2\n10;11;12\n13;14;15\n")
        self.assertIn("2 samples", predict("-i", "in.csv").out)
        self.assertIn("3 samples", predict("-i", "in.csv", "--no-header").out)
        self.write("in.csv", "2,1,0\n10,11,12\n")
        self.assertIn("1 sample ", predict("-i", "in.csv", "--delimiter", ",").out)
        self.write("in.csv", "10\t11\t12\n")
        self.assertIn("1 sample ", predict("-i", "in.csv", "--delimiter", "\\t", "--no-header").out)
        self.assertIn("--delimiter", predict("-i", "in.csv", "--delimiter", "ab", expect=2).err)

    def test_a_row_of_tabs_alone_is_a_row(self):
        self.write("g.csv", rows(100).replace(",", "\t"))
        self.fit(config=CONFIG.replace("target: -1", r'target: -1, delimiter: "\t", fill: median'))
        self.write("in.csv", "1\t2\t3\n\t\t\n \n4\t5\t6\n\n")
        self.assertIn("3 samples", self.dtrain("predict", "run", "-i", "in.csv", "-o", "out.csv").out)

    def test_a_number_with_a_plus_is_a_number_in_any_order(self):
        self.write("config.yaml", CONFIG)
        messages = []
        for labels in (("+1", "-1"), ("-1", "+1")):
            self.write("g.csv", "".join(f"{i},{i % 3},{i % 5},{labels[i % 2]}\n" for i in range(40)))
            messages.append(self.dtrain("check", "config.yaml", expect=2).err)
        for message in messages:
            self.assertIn("has the value -1 for 'dense', which takes values from 0 to 1", message)

    def test_a_linked_configuration_finds_files_in_its_own_folder(self):
        os.makedirs(self.dir / "deep" / "configs")
        os.makedirs(self.dir / "deep" / "datasets")
        model, dataset = CONFIG.split("dataset:\n")
        self.write("deep/datasets/d.yaml", "train: {csv: {file: ../../g.csv, target: -1}}\n")
        self.write("deep/configs/c.yaml", model + "dataset: ../datasets/d.yaml\n" + dataset.split("\n", 1)[1])
        os.symlink("deep/configs", self.dir / "c")
        self.dtrain("check", "c/c.yaml")

    def test_a_number_with_leading_zeros_is_decimal(self):
        self.fit("--epochs", "010")
        self.assertEqual(len(self.metrics()), 10)

    def test_a_first_row_with_a_gap_is_not_a_header(self):
        self.write("config.yaml", CONFIG.replace("csv: {file: g.csv, target: -1}", "synthetic: {samples: 20, target: {classes: 2}}"))
        self.dtrain("fit", "config.yaml", "-o", "run")
        for first in ("1,nan,3", "1,,3", "1,two,3"):
            self.write("in.csv", first + "\n4,5,6\n")
            self.assertIn("in.csv:1:3: expected", self.dtrain("predict", "run", "-i", "in.csv", "-o", "o.csv", expect=2).err)
        self.write("in.csv", "a,b,c\n4,5,6\n")
        self.assertIn("1 sample ", self.dtrain("predict", "run", "-i", "in.csv", "-o", "o.csv").out)

    # Problems that `check` detects.

    def test_check_and_fit_reject_the_same_data(self):
        self.write("one_hot.csv", rows(20).replace(",1\n", ",7\n"))
        for name, config in {
            "one_hot": CONFIG.replace("sparse_categorical", "categorical").replace(
                "strategy", "  transforms: [{one_hot: 2}]\n  test: {csv: {file: one_hot.csv, target: -1}}\nstrategy"),
            "one_hot for a loss that takes anything": CONFIG.replace("{sparse_categorical_crossentropy: {from_logits: true}}",
                "mean_squared_error").replace("strategy",
                "  transforms: [{one_hot: 2}]\n  test: {csv: {file: one_hot.csv, target: -1}}\nstrategy"),
            "a folder that is not there": CONFIG.replace("strategy", "  cache: {file: nowhere/cache}\nstrategy"),
        }.items():
            with self.subTest(name):
                self.write("config.yaml", config)
                self.assertRegex(self.dtrain("check", "config.yaml", expect=2).err, r"config.yaml:\d+:\d+: error: ")

    def test_targets_outside_0_to_1_are_errors_for_probabilities(self):
        self.write("g.csv", rows(100).replace(",1\n", ",2\n").replace(",0\n", ",1\n"))
        config = CONFIG.replace("units: 2", "units: 1").replace("sparse_categorical", "binary")
        self.write("config.yaml", config)
        for command in (["check", "config.yaml"], ["fit", "config.yaml", "-o", "other"]):
            self.assertRegex(self.dtrain(*command, expect=2).err, "sample .* has the value 2 for 'dense', which takes values from 0 to 1")
        self.assertFalse((self.dir / "other").exists())

    def test_damage_late_in_a_file_is_found(self):
        header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (2000, 3), }".ljust(117) + b"\n"
        values = [1] * 6000
        values[5000] = 1 << 40
        (self.dir / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header + struct.pack("<6000q", *values))
        self.write("config.yaml", CONFIG.replace("csv: {file: g.csv, target: -1}", "npy: {input: x.npy, target: x.npy}").replace(
            "{sparse_categorical_crossentropy: {from_logits: true}}", "mean_squared_error").replace("units: 2", "units: 3"))
        self.assertIn("x.npy: the integer at element 5000 is out of the range of int32",
                      self.dtrain("check", "config.yaml", expect=2).err)

    def test_errors_in_data_name_the_file_and_the_configuration(self):
        self.write("g.csv", rows(3) + "1,two,3,0\n")
        for command in ("check", "fit"):
            self.write("config.yaml", CONFIG)
            self.assertRegex(self.dtrain(command, "config.yaml", expect=2).err,
                             r"^config.yaml:4:10: error: .*g.csv:4:3: expected a finite number, found 'two'")
        # Two splits are drawn from the faulty split. Its error is reported only once. If another split has a separate
        # error, this error is reported as well.
        drawn = "  test: {split: {of: validation, fraction: 0.2}}\n  validation: {split: {of: train, fraction: 0.2}}\n"
        for splits, count in ((drawn, 1), (drawn.replace("{split: {of: train, fraction: 0.2}}", "{csv: {file: none.csv, target: -1}}"), 2)):
            self.write("config.yaml", CONFIG.replace("strategy", splits + "strategy"))
            errors = self.dtrain("check", "config.yaml", expect=2).err
            self.assertEqual(errors.count("error: "), count, errors)


if __name__ == "__main__":
    support.main()
