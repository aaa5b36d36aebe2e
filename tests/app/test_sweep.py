"""`dtrain sweep`: all combinations are trained, a stopped sweep can be continued, and a table shows means and standard
deviations."""
import csv
import json
import os
import signal
import statistics
import time

import support
from support import CONFIG, Case

RATE = "train.optimizer.adam.learning_rate"
SMALL = CONFIG.replace("{mirrored: {devices: [cpu:0, cpu:1]}}", "single").replace(
    "{learning_rate: {exponential_decay: {initial: 0.01, decay_steps: 50, decay_rate: 0.9}}}", "{learning_rate: 0.01}")
SWEEP = ("sweep", "config.yaml", "--set", f"{RATE}=0.001,0.01")


class Sweep(Case):
    def setUp(self):
        super().setUp()
        self.write("config.yaml", SMALL)

    def folders(self, sweep="runs/config-sweep"):
        return sorted(path.name for path in (self.dir / sweep).iterdir() if (path / "checkpoints").is_dir())

    def lines(self, sweep="runs/config-sweep"):
        return [json.loads(line) for line in (self.dir / sweep / "sweep.jsonl").read_text().splitlines()]


class Tables(Sweep):
    def test_every_combination_has_a_row_in_the_table(self):
        result = self.json(*SWEEP, "--set", "train.batch_size=16,32", "--set", "train.epochs=2", "--seeds", 2)
        self.assertEqual(len(result["settings"]), 4)
        self.assertEqual(len(result["runs"]), 8)
        self.assertEqual(result["monitor"], "val_loss")
        means = [setting["mean"] for setting in result["settings"]]
        self.assertEqual(means, sorted(means))
        for setting in result["settings"]:
            rate, batch = setting["values"][RATE], setting["values"]["train.batch_size"]
            best = []
            for seed in (3, 4):
                run = f"runs/config-sweep/learning_rate={rate},batch_size={batch},seed={seed}"
                self.assertEqual(len(self.metrics(run)), 2)
                best.append(min(line["val_loss"] for line in self.metrics(run)))
                resolved = (self.dir / run / "config.yaml").read_text()
                self.assertIn(f"seed: {seed}", resolved)
                self.assertIn(f"batch_size: {batch}", resolved)
            self.assertAlmostEqual(setting["mean"], statistics.mean(best), places=12)
            self.assertAlmostEqual(setting["deviation"], statistics.stdev(best), places=12)
        self.assertEqual(self.lines(), result["settings"])
        with (self.dir / "runs/config-sweep/sweep.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["mean"]) for row in rows], means)
        self.assertEqual([float(row[RATE]) for row in rows], [s["values"][RATE] for s in result["settings"]])
        again = self.dtrain(*SWEEP, "--set", "train.batch_size=16,32", "--set", "train.epochs=2", "--seeds", 2)
        self.assertIn("8 runs, 0 to train", again.err)
        self.assertRegex(again.out, r"learning_rate +batch_size +runs +best val_loss +deviation\n")
        self.assertRegex(again.out, r"0\.01 +16 +2/2 +\d")
        runs = self.dtrain("runs").out
        self.assertRegex(runs, r"run +learning_rate +batch_size +seed +state")
        self.assertIn("runs/config-sweep: mean and deviation by setting\n" + again.out, runs)
        self.assertEqual(self.json("runs")[0]["varied"]["seed"], "3")

    def test_a_schedules_option_has_a_short_title(self):
        line = ("sweep", "config.yaml", "--set", f"{RATE}={{cosine_decay: {{initial: 0.1}}}}", "--set", f"{RATE}.cosine_decay.initial=0.1,0.2",
                "--set", "train.epochs=1")
        done = self.dtrain(*line)
        self.assertRegex(done.out, r"^learning_rate\.initial +runs ")
        key = f"{RATE}.cosine_decay.initial"
        best = done.out.splitlines()[2].split()[0]
        self.assertRegex(done.err, rf"best: {key}={best} \(mean best val_loss \S+\); to train it: dtrain fit config.yaml "
                         rf"--set '{RATE}={{cosine_decay: {{initial: 0.1}}}}' --set train.epochs=1 --set {key}={best}\n")
        self.assertEqual(self.folders(), ["learning_rate.initial=0.1", "learning_rate.initial=0.2"])
        self.assertEqual(self.json("report", "runs/config-sweep")["varied"], {f"{RATE}.cosine_decay.initial": "learning_rate.initial"})

    def test_more_seeds_keep_the_run_of_the_first_seed(self):
        line = (*SWEEP, "--set", "train.epochs=1")
        self.dtrain(*line)
        again = self.dtrain(*line, "--seeds", 2)
        self.assertIn("2 settings, 4 runs, 2 to train", again.err)
        found = self.json(*line, "--seeds", 2)
        self.assertEqual([setting["runs"] for setting in found["settings"]], [2, 2])
        self.assertIn("2 settings, 2 runs, 0 to train", self.dtrain(*line).err)

    def test_seeds_that_draw_other_splits_are_a_note(self):
        note = "each seed draws a different validation split"
        drawn = "dataset.validation={split: {of: train, fraction: 0.2%s}}"
        line = ("sweep", "config.yaml", "--set", "train.epochs=1")
        self.assertIn(note, self.dtrain(*line, "--set", drawn % "", "--seeds", 2).err)
        self.assertIn(note, self.dtrain(*line, "--set", drawn % "", "--set", "seed=1,2").err)
        for same in (("--set", drawn % ", seed: 1", "--seeds", 2), ("--seeds", 2), ("--set", drawn % "", "--set", f"{RATE}=0.1,0.2")):
            self.assertNotIn(note, self.dtrain(*line, *same).err)

    def test_metrics_to_maximize_are_sorted_in_descending_order(self):
        result = self.json(*SWEEP, "--set", "train.epochs=2", "--set",
                           "checkpoint.best={monitor: val_sparse_categorical_accuracy}")
        means = [setting["mean"] for setting in result["settings"]]
        self.assertEqual(means, sorted(means, reverse=True))
        self.assertIsNone(result["settings"][0]["deviation"])

    def test_random_combinations_are_reproducible(self):
        line = ("sweep", "config.yaml", "--set", f"{RATE}=0.1,0.2,0.3,0.4,0.5", "--set", "train.batch_size=100,200,300",
                "--set", "train.epochs=1", "--random", 3)
        first = self.json(*line)
        self.assertEqual(len(first["settings"]), 3)
        self.assertEqual(self.json(*line), first)
        other = self.json(*line, "--set", "seed=9", "--output", "other")
        self.assertNotEqual([run["values"] for run in other["runs"]], [run["values"] for run in first["runs"]])

    def test_values_may_contain_commas(self):
        result = self.json("sweep", "config.yaml", "--set", "train.epochs=1", "--set",
                           "train.optimizer={sgd: {learning_rate: 0.1, momentum: 0.9}}, adam,'rmsprop'", "--set",
                           "dataset.train.rows=[0, 100],[0, 200]")
        self.assertEqual(len(result["runs"]), 6)
        self.assertEqual({run["values"]["train.optimizer"] for run in result["runs"]},
                         {"{sgd: {learning_rate: 0.1, momentum: 0.9}}", "adam", "'rmsprop'"})
        self.assertEqual({run["values"]["dataset.train.rows"] for run in result["runs"]}, {"[0, 100]", "[0, 200]"})


class Mistakes(Sweep):
    def test_mistakes_are_reported_once_before_training(self):
        for sets, words in ((["train.bach_size=5", f"{RATE}=0.1,0.2"], "bach_size"), ([f"{RATE}=0.1,fast"], "fast"),
                            (["train.bach_size=5,6,7"], "--set train.bach_size=5: error: unknown key 'bach_size'"),
                            (["train.epochs=1"], "at least one key"), ([f"{RATE}=0.1,,0.2"], "a value before or after a comma is missing"),
                            ([f"{RATE}=0.1,0.1"], "'0.1' is given twice"), ([f"{RATE}=1,2", f"{RATE}=3,4"], "in two --set options"),
                            (["dataset.train={csv: {file: missing.csv, target: 0}}", f"{RATE}=0.1,0.2"], "missing.csv")):
            with self.subTest(sets):
                error = self.dtrain("sweep", "config.yaml", *[part for s in sets for part in ("--set", s)], expect=2).err
                self.assertEqual(error.count("error: "), 1, error)
                self.assertIn(words, error)
                self.assertFalse(list(self.dir.glob("runs/*/*/checkpoints")))
        self.assertIn("--seeds", self.dtrain(*SWEEP, "--set", "seed=1,2", "--seeds", 2, expect=2).err)

    def test_a_failed_setting_does_not_stop_the_others(self):
        process = self.dtrain("sweep", "config.yaml", "--set", f"{RATE}=0.01,1.0e+30", "--set", "train.epochs=2",
                              "--seeds", 2, "--json", expect=1)
        good, bad = json.loads(process.out)["settings"]
        self.assertEqual((good["finished"], good["failed"]), (2, 0))
        self.assertEqual((bad["finished"], bad["failed"], bad["mean"]), (0, 2, None))
        self.assertRegex(bad["note"], "loss|weights")
        self.assertIn("2 of 4 runs failed", process.err)

    def test_other_sweeps_and_files_are_kept(self):
        self.dtrain(*SWEEP, "--set", "train.epochs=1")
        process = self.dtrain(*SWEEP, "--set", "train.epochs=2")  # another configuration
        self.assertIn("saved in runs/config-sweep-2", process.err)
        self.dtrain("sweep", "config.yaml", "--set", "train.epochs=1", "--seeds", 2)  # a sweep over other keys
        self.assertEqual(self.folders("runs/config-sweep-3"), ["seed=3", "seed=4"])
        more = self.dtrain("sweep", "config.yaml", "--set", f"{RATE}=0.001,0.01,0.1", "--set", "train.epochs=1")
        self.assertIn("3 runs, 1 to train; saved in runs/config-sweep\n", more.err)
        self.assertIn("different configuration or keys", self.dtrain(*SWEEP, "--output", "runs/config-sweep-3", expect=2).err)
        self.write("mine/sweep.csv", "mine\n")
        self.assertIn("'sweep.csv'", self.dtrain(*SWEEP, "--output", "mine", expect=2).err)
        self.assertEqual(os.listdir(self.dir / "mine"), ["sweep.csv"])


class Processes(Sweep):
    def arrays_of(self, sweep):
        return {run: self.arrays(self.checkpoints(f"{sweep}/{run}")[-1]) for run in self.folders(sweep)}

    def test_bits_do_not_depend_on_the_number_of_jobs(self):
        sets = ("--set", "model.layers.0.dense.units=256", "--set", "train.epochs=1", "--seeds", 2, "--quiet")
        self.dtrain(*SWEEP, *sets, "--jobs", 1, "--output", "one")
        self.dtrain(*SWEEP, *sets, "--output", "many")
        self.assertEqual(len(self.arrays_of("one")), 4)
        self.assertEqual(self.arrays_of("one"), self.arrays_of("many"))

    def start_endless(self):
        """Starts a sweep and returns once it has trained one epoch more than before."""
        epochs = lambda: sum(len(path.read_text().splitlines())
                             for path in self.dir.glob("runs/config-sweep/*/metrics.jsonl"))
        before = epochs()
        process = self.start(*SWEEP, "--set", "train.epochs=1000000", "--jobs", 2)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(lambda: process.poll() is not None or epochs() > before)
        return process

    def wait_for(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, "nothing happened")
            time.sleep(0.02)

    def test_a_stopped_sweep_saves_every_run_and_resumes(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = self.start_endless()
            process.send_signal(number)
            out, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, error)
            self.assertIn("run the same command again to continue", error)
            self.assertIn("0/1", out)
            started = self.folders()
            self.assertTrue(started)
            for run in started:
                self.assertTrue(self.checkpoints(f"runs/config-sweep/{run}"), error)
                self.assertIn("stopped", (self.dir / f"runs/config-sweep/{run}/run.jsonl").read_text())

    def test_an_interrupted_sweep_has_the_results_of_an_uninterrupted_one(self):
        line = (*SWEEP, "--set", "train.epochs=40", "--quiet")
        process = self.start(*line)
        self.wait_for(lambda: process.poll() is not None or list(self.dir.glob("runs/config-sweep/*/metrics.jsonl")))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.dtrain(*line)
        self.dtrain(*line, "--output", "whole")
        self.assertEqual(self.arrays_of("runs/config-sweep"), self.arrays_of("whole"))

    def test_the_runs_of_a_killed_sweep_end(self):
        process = self.start_endless()
        process.kill()
        process.communicate()
        states = lambda: [run["state"] for run in self.json("runs")]
        self.wait_for(lambda: "running" not in states())

    def test_an_error_of_the_sweep_itself_ends_its_runs(self):
        self.dtrain("sweep", "config.yaml", "--set", "train.epochs=1,2")
        table = self.dir / "runs/config-sweep/sweep.csv"
        table.unlink()
        table.mkdir()
        failed = self.dtrain("sweep", "config.yaml", "--set", "train.epochs=3,1000000", "--jobs", 2, expect=1)
        self.assertIn("sweep.csv: could not be renamed", failed.err)
        self.assertEqual(failed.err.count("error: "), 1, failed.err)
        states = {run["path"].rpartition("/")[2]: run["state"] for run in self.json("runs")}
        self.assertEqual(states["epochs=3"], "finished")
        self.assertIn(states.get("epochs=1000000"), (None, "stopped"))  # None: with one core, this run has not started

    def test_a_second_process_for_the_same_sweep_is_an_error(self):
        process = self.start_endless()
        self.assertIn("another process is training this sweep",
                      self.dtrain(*SWEEP, "--set", "train.epochs=1000000", expect=2).err)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


if __name__ == "__main__":
    support.main()
