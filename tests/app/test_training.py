"""fit and resume: rejected input, written files, and stopping without loss of data."""
import fcntl
import json
import math
import os
import random
import re
import signal
import struct
import time

import support
from support import CONFIG, PROJECT, STEPS_PER_EPOCH, Case

TOTAL_STEPS = 4 * STEPS_PER_EPOCH


class Fit(Case):
    def test_training_learns_the_digits(self):
        run = self.json("fit", PROJECT / "configs/digits-mlp.yaml")
        self.assertEqual(run["run_directory"], "runs/digits-mlp")
        result = self.json("evaluate", "runs/digits-mlp", "--split", "validation")
        self.assertGreater(result["sparse_categorical_accuracy"], 0.9)
        self.assertEqual(result["samples"], 250)

    def test_the_run_directory_has_the_documented_files(self):
        self.fit()
        self.assertEqual(sorted(p.name for p in (self.dir / "run").iterdir()),
                         ["checkpoints", "config.yaml", "metrics.csv", "metrics.jsonl", "report.html", "run.jsonl",
                          "tensorboard"])
        lines = [json.loads(line) for line in (self.dir / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["epoch"] for line in lines], [1, 2, 3, 4])
        self.assertEqual([line["step"] for line in lines], [STEPS_PER_EPOCH * n for n in (1, 2, 3, 4)])
        self.assertEqual(set(lines[0]), {"epoch", "step", "loss", "sparse_categorical_accuracy", "val_loss",
                                         "val_sparse_categorical_accuracy", "learning_rate", "seconds",
                                         "samples_per_second"})
        self.assertEqual(self.checkpoints()[-1].name, f"ckpt-{TOTAL_STEPS:08}.h5")

    def test_the_resolved_configuration_gives_the_same_run(self):
        self.fit()
        self.dtrain("fit", "run/config.yaml", "--output", "again")
        self.assert_same_run("again", "run")

    def test_existing_checkpoints_are_an_error_unless_overwritten_or_resumed(self):
        self.fit("--epochs", 1)
        refusal = self.fit(expect=2)
        self.assertIn("--resume", refusal.err)
        self.assertIn("--overwrite", refusal.err)
        self.fit("--resume")
        self.assertEqual(len(self.metrics()), 4)
        self.fit("--overwrite", "--epochs", 2)
        self.assertEqual(len(self.metrics()), 2)
        self.assertEqual(self.checkpoints()[-1].name, f"ckpt-{2 * STEPS_PER_EPOCH:08}.h5")
        self.fit("--overwrite", "--resume", expect=2)

    def test_a_run_does_not_overwrite_its_configuration(self):
        text = self.write("run/config.yaml", CONFIG).read_text()
        self.assertIn("--output", self.dtrain("fit", "run/config.yaml", "--output", "run", expect=2).err)
        self.assertEqual((self.dir / "run/config.yaml").read_text(), text)

    def test_a_run_directory_has_one_run_at_a_time(self):
        self.write("config.yaml", CONFIG)
        first = self.start("fit", "config.yaml", "--output", "run", "--epochs", 1000000)
        while first.poll() is None and not self.checkpoints():
            time.sleep(0.01)
        try:
            for arguments in (["fit", "config.yaml", "--output", "run", "--overwrite"], ["resume", "run"]):
                self.assertIn("another dtrain", self.dtrain(*arguments, expect=2).err)
        finally:
            first.kill()
            first.communicate()
        self.dtrain("resume", "run", "--epochs", 1)

    def test_a_run_ended_early_continues_with_other_callbacks_or_epochs(self):
        stopping = ["--set", "train.callbacks=[{early_stopping: {patience: 1, min_delta: 100}}]"]
        self.fit(*stopping, "--epochs", 30)
        self.assertEqual(len(self.metrics()), 2)
        self.assertIn("a callback ended the run", self.dtrain("resume", "run").err)
        self.dtrain("resume", "run", "--epochs", 3)
        self.assertEqual(len(self.metrics()), 3)
        self.dtrain("resume", "run", "--set", "train.callbacks=[]", "--epochs", 4)
        self.dtrain("resume", "run", "--set", "train.callbacks=[]", "--epochs", 4)
        self.assertEqual(len(self.metrics()), 4)

    def test_overwriting_removes_nothing_if_the_new_run_is_invalid(self):
        self.fit("--epochs", 1)
        before = self.checkpoints()
        self.fit("--overwrite", "--set", "dataset.train={idx: {input: missing-a, target: missing-b}}", expect=2)
        self.assertEqual(self.checkpoints(), before)

    def test_resume_without_checkpoints_starts_fresh(self):
        self.fit("--resume")
        self.fit(output="fresh")
        self.assert_same_run("run", "fresh")

    def test_json_is_one_document_and_quiet_is_silent(self):
        self.write("config.yaml", CONFIG)
        run = self.json("fit", "config.yaml", "--output", "run")
        self.assertEqual(run["step"], TOTAL_STEPS)
        self.assertEqual(run["run_directory"], "run")
        self.assertTrue((self.dir / run["checkpoint"]).is_file())
        self.assertEqual(run["last_epoch"]["epoch"], 4)
        quiet = self.fit("--quiet", output="other")
        self.assertEqual((quiet.out, quiet.err), ("", ""))

    def test_the_step_log_has_a_line_per_step(self):
        self.fit("--step-log", "steps.jsonl")
        steps = [json.loads(line) for line in (self.dir / "steps.jsonl").read_text().splitlines()]
        self.assertEqual([step["step"] for step in steps], list(range(1, TOTAL_STEPS + 1)))
        seconds = [step["seconds"] for step in steps]
        self.assertEqual(seconds, sorted(seconds))
        self.assertGreater(seconds[0], 0)

    def test_replicas_agree_with_one_device(self):
        losses = {}
        for replicas in (1, 2, 3, 5):
            log = f"{replicas}.jsonl"
            self.fit("--set", f"strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {replicas}}}}}",
                     "--step-log", log, output=f"run{replicas}")
            losses[replicas] = [json.loads(line)["loss"] for line in (self.dir / log).read_text().splitlines()]
        for replicas in (2, 3, 5):
            for step, (one, several) in enumerate(zip(losses[1], losses[replicas])):
                self.assertAlmostEqual(several, one, delta=1e-4 * abs(one), msg=f"{replicas} replicas, step {step}")

    def test_a_nan_loss_ends_the_run(self):
        process = self.fit("--set", "train.optimizer={sgd: {learning_rate: 1.0e30}}", expect=1)
        self.assertRegex(process.err, r"error: the loss is -?(nan|inf) at step \d+")
        self.assertEqual(process.err.count("error: "), 1, process.err)  # the shutdown does not print it again

    def test_a_nan_in_the_data_is_named(self):
        rows = [[0.5, 1.0], [2.0, 0.25], [1.5, math.nan], [0.0, 3.0]]
        header = str({"descr": "<f4", "fortran_order": False, "shape": (4, 2)}).ljust(117) + "\n"
        (self.dir / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                                         b"".join(struct.pack("<2f", *row) for row in rows))
        config = """
model: {inputs: {x: [2]}, layers: [{dense: {units: 2}}]}
dataset: {train: {npy: {input: x.npy, target: x.npy}}, shuffle: false}
train: {epochs: 1, batch_size: 2, loss: mean_squared_error, optimizer: sgd}
"""
        self.write("nan.yaml", config)
        cause = "sample 2 (counted from 0, row 2) of {} has the value nan in the input 'x'"
        self.assertIn("warning: " + cause.format("the split 'train'"), self.dtrain("check", "nan.yaml").err)
        error = self.fit(config=config, expect=1).err
        self.assertRegex(error, r"error: the loss is nan at step 2 \(epoch 1\)")
        self.assertIn(cause.format("the training data"), error)


class Resume(Case):
    def setUp(self):
        super().setUp()
        self.fit(output="whole")

    def interrupt(self, number, code, output="run"):
        """Starts a run and sends it a signal after its first save."""
        self.write("config.yaml", CONFIG)
        process = self.start("fit", "config.yaml", "--output", output)
        while process.poll() is None and not self.checkpoints(output):
            time.sleep(0.001)
        process.send_signal(number)
        process.out, process.err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, process.err)
        return process

    def test_a_signal_stops_a_run_which_can_be_resumed(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(code):
                output = f"run{code}"
                process = self.interrupt(number, code, output)
                step = int(re.search(r"stopped at step (\d+)", process.err)[1])
                self.assertEqual(self.checkpoints(output)[-1].name, f"ckpt-{step:08}.h5")
                self.dtrain("resume", output)
                self.assert_same_run(output, "whole")

    def test_a_run_killed_at_any_moment_can_be_resumed(self):
        moments = random.Random(7)
        self.write("config.yaml", CONFIG)
        for round_ in range(6):
            process = self.start("fit", "config.yaml", "--output", "run", "--resume", "--quiet")
            time.sleep(moments.uniform(0.02, 0.4))
            process.kill()
            process.communicate()
        self.dtrain("fit", "config.yaml", "--output", "run", "--resume")
        self.assert_same_run("run", "whole")

    def test_a_signal_a_second_later_ends_at_once(self):
        if "sanitizers thread" in self.dtrain("--version").out:
            self.skipTest("ThreadSanitizer's _exit() flushes standard error, which is blocked in this test")
        self.write("config.yaml", CONFIG)
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        os.write(write, b"x" * fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096))
        process = self.start("fit", "config.yaml", "--output", "run", stderr=write)  # blocks forever on the full pipe
        os.close(write)
        while process.poll() is None and not (self.dir / "run/run.jsonl").exists():
            time.sleep(0.01)
        start = time.monotonic()
        while process.poll() is None and time.monotonic() < start + 60:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        self.assertGreater(time.monotonic(), start + 1)
        process.kill()
        process.communicate()
        self.assertEqual(process.returncode, 143)
        self.assertEqual(self.checkpoints(), [])

    def test_resume_skips_a_damaged_newest_checkpoint(self):
        self.fit("--epochs", 2)
        newest = self.checkpoints()[-1]
        newest.write_bytes(newest.read_bytes()[:1000])
        process = self.dtrain("resume", "run", "--epochs", 4)
        self.assertIn("warning: ", process.err)
        self.assertIn(newest.name, process.err)
        self.assert_same_run("run", "whole")

    def test_only_damaged_checkpoints_are_an_error(self):
        self.fit("--epochs", 1)
        for path in self.checkpoints():
            path.write_bytes(b"no checkpoint")
        self.dtrain("resume", "run", expect=2)

    def test_an_older_checkpoint_sets_the_newer_aside(self):
        self.fit()
        older = self.checkpoints()[2]
        newer = [path.name for path in self.checkpoints()[3:]]
        process = self.dtrain("resume", older)
        aside = {path.name for path in (self.dir / "run/checkpoints").glob("*.set-aside")}
        self.assertEqual(aside, {f"{name}.set-aside" for name in newer})
        self.assertEqual(process.err.count("set aside"), len(newer))
        self.assert_same_run("run", "whole")

    def test_a_checkpoint_without_its_run_is_resumed(self):
        self.fit("--epochs", 2)
        (self.dir / "alone.h5").write_bytes(self.checkpoints()[-1].read_bytes())
        self.assertIn("--output", self.dtrain("resume", "alone.h5", "--epochs", 4, expect=2).err)
        self.dtrain("resume", "alone.h5", "--epochs", 4, "--output", "moved")
        self.assert_same_run("moved", "whole")
        self.dtrain("resume", "alone.h5", "--output", "whole", expect=2)

    def test_the_best_checkpoint_is_copied_to_another_directory(self):
        best = ("--set", "checkpoint={every: 1 epoch, keep: 1, best: {monitor: loss, mode: max}}")  # the first epoch is the best
        self.fit("--epochs", 2, *best)
        names = [path.name for path in self.checkpoints()]
        self.assertEqual(names, [f"ckpt-{STEPS_PER_EPOCH * n:08}.h5" for n in (1, 2)])
        self.assertNotIn("warning", self.dtrain("resume", "run", "--epochs", 3, "--output", "moved").err)
        self.assertEqual(self.checkpoints("moved")[0].name, names[0])
        # alone.h5 is a copy of the newest checkpoint. The best checkpoint is not in its folder.
        (self.dir / "alone.h5").write_bytes(self.checkpoints()[-1].read_bytes())
        process = self.dtrain("resume", "alone.h5", "--epochs", 3, "--output", "alone", "--json")
        self.assertRegex(process.err, rf"warning: {names[0]}: .*; the best checkpoint will be chosen only from the epochs that are trained from now on")
        self.assertEqual(json.loads(process.out)["best"]["step"], 3 * STEPS_PER_EPOCH)
        self.assertEqual([path.name for path in self.checkpoints("alone")], [f"ckpt-{3 * STEPS_PER_EPOCH:08}.h5"])

    def test_resuming_within_an_epoch_requires_the_same_samples_and_metrics(self):
        self.fit("--epochs", 1)
        within = self.checkpoints()[-2]  # saved at step 30 of the first epoch
        for change in ("seed=4", "dataset.shuffle=false", "train.metrics=[]"):
            with self.subTest(change):
                process = self.dtrain("resume", within, "--set", change, "--output", "other", expect=2)
                self.assertIn("in the middle of an epoch", process.err)
                self.assertFalse((self.dir / "other").exists())
        self.dtrain("resume", "run", "--epochs", 2, "--set", "seed=4")

    def test_resume_accepts_other_epochs_strategy_and_learning_rate(self):
        self.fit("--epochs", 1)
        self.dtrain("resume", "run/checkpoints", "--epochs", 2, "--set", "strategy=single",
                    "--set", "train.optimizer.adam.learning_rate=0.5")
        self.assertEqual(len(self.metrics()), 2)
        self.assertEqual(self.metrics()[1]["learning_rate"], 0.5)
        done = self.dtrain("resume", "run")
        self.assertIn("nothing left to train", done.err)

    def test_a_checkpoint_of_an_older_dtrain_is_resumed(self):
        # The checkpoint has format 1 and was saved in the second of four epochs. The expected numbers come from the
        # version of dtrain that wrote the checkpoint.
        self.write("run/checkpoints/note", "")
        old = self.dir / "run/checkpoints/ckpt-00000005.h5"
        old.write_bytes((PROJECT / "tests/checkpoint/format-1.h5").read_bytes())
        self.assertAlmostEqual(self.json("evaluate", "run", "--split", "train")["loss"], 1.1380472, places=4)
        self.dtrain("resume", "run")
        self.assertEqual([line["epoch"] for line in self.metrics()], [1, 2, 3, 4])
        self.assertAlmostEqual(self.json("evaluate", "run", "--split", "train")["loss"], 1.0309143, places=3)
        self.assertIn("residual_1/second/gamma", str(self.arrays(self.checkpoints()[-1])))

    def test_a_layer_unfrozen_on_resume_is_trained(self):
        self.fit("--epochs", 1, "--set", "model.layers.0.dense.trainable=false")
        frozen = self.arrays(self.checkpoints()[-1])
        resumed = self.dtrain("resume", "run", "--set", "model.layers.0.dense.trainable=true", "--epochs", 2)
        self.assertIn("no optimizer state for 'dense/kernel', 'dense/bias', which were not trained before", resumed.err)
        trained = self.arrays(self.checkpoints()[-1])
        self.assertNotIn(("momentum", "dense/kernel"), frozen)
        self.assertIn(("momentum", "dense/kernel"), trained)
        self.assertNotEqual(frozen["weight", "dense/kernel"], trained["weight", "dense/kernel"])

    def test_an_invalid_path_is_an_error(self):
        self.dtrain("resume", "nowhere", expect=2)
        (self.dir / "empty").mkdir()
        self.dtrain("resume", "empty", expect=2)
        self.write("text.h5", "no checkpoint")
        self.dtrain("resume", "text.h5", expect=2)


if __name__ == "__main__":
    support.main()
