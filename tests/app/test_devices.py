"""Training on several devices: runs that are killed, stopped and resumed, data that are truncated, and nan losses."""
import os
import random
import re
import signal
import struct
import time

import support
from support import STEPS_PER_EPOCH, Case

PLACED = "{placed: {layers: {dense: 'cpu:0', dropout: 'cpu:1', dense_1: 'cpu:0'}}}"
PIPELINE = "{pipeline: {devices: ['cpu:0', 'cpu:1', 'cpu:2'], stages: [dropout, dense_1], microbatches: 3}}"
REPLICATED = ("{pipeline: {devices: ['cpu:0', 'cpu:1', 'cpu:2', 'cpu:3'], stages: [dense_1], microbatches: 2, schedule: gpipe, "
              "replicas: 2}}")
STRATEGIES = (PLACED, PIPELINE, REPLICATED)
MIRRORED = "{mirrored: {devices: [cpu:0, cpu:1]}}"


def config_with(strategy):
    return support.CONFIG.replace(MIRRORED, strategy)


class Devices(Case):
    def test_every_strategy_gives_the_results_of_one_device(self):
        """The metrics and the output of evaluate, predict and summary must be the same."""
        self.fit(config=config_with("single"), output="single")
        expected = self.metrics("single")
        self.write("x.csv", "".join(f"{','.join(str((i * j) % 7 - 3) for j in range(1, 13))}\n" for i in range(20)))
        for number, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy):
                run = f"run{number}"
                self.fit(config=config_with(strategy), output=run)
                for epoch, line in zip(expected, self.metrics(run)):
                    for key, value in epoch.items():
                        self.assertAlmostEqual(line[key], value, delta=1e-4 * abs(value), msg=key)
                measured = {}
                for one in (strategy, "single"):
                    sets = ("--set", f"strategy={one}")
                    measured[one] = self.json("evaluate", run, *sets)["loss"]
                    self.dtrain("predict", run, "--input", "x.csv", "--output", f"{one[:7]}.csv", *sets)
                self.assertAlmostEqual(measured[strategy], measured["single"], delta=1e-6)
                tables = [[float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", (self.dir / name).read_text())]
                          for name in (f"{strategy[:7]}.csv", "single.csv")]
                self.assertEqual(len(tables[0]), 60)  # three probabilities per row
                for one, other in zip(*tables):
                    self.assertAlmostEqual(one, other, delta=1e-5)

    def test_a_run_killed_at_any_moment_resumes(self):
        moments = random.Random(7)
        for number, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy):
                run, whole = f"run{number}", f"whole{number}"
                self.fit(config=config_with(strategy), output=whole)
                for _ in range(4):
                    process = self.start("fit", "config.yaml", "--output", run, "--resume", "--quiet")
                    time.sleep(moments.uniform(0.02, 0.4))
                    process.kill()
                    process.communicate()
                self.dtrain("fit", "config.yaml", "--output", run, "--resume")
                self.assert_same_run(run, whole)

    def test_a_run_killed_within_an_epoch_resumes(self):
        for number, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy):
                run, whole = f"run{number}", f"whole{number}"
                self.fit("--epochs", 30, config=config_with(strategy), output=whole)
                self.kill_on_the_way("fit", "config.yaml", "--output", run, "--epochs", 30, after=STEPS_PER_EPOCH + 13)
                self.dtrain("resume", run)
                self.assert_same_run(run, whole)

    def test_a_signal_stops_a_run(self):
        for number, strategy in enumerate(STRATEGIES):
            for signal_, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                with self.subTest(strategy=strategy, code=code):
                    run = f"run{number}-{code}"
                    self.write("config.yaml", config_with(strategy))
                    process = self.start("fit", "config.yaml", "--output", run, "--epochs", 1000000)
                    while process.poll() is None and not self.checkpoints(run):
                        time.sleep(0.001)
                    process.send_signal(signal_)
                    _, err = process.communicate(timeout=20)
                    self.assertEqual(process.returncode, code, err)
                    step = int(re.search(r"stopped at step (\d+)", err)[1])
                    self.assertEqual(self.checkpoints(run)[-1].name, f"ckpt-{step:08}.h5")
                    end = step // STEPS_PER_EPOCH + 1
                    self.dtrain("resume", run, "--epochs", end)
                    self.fit("--epochs", end, config=config_with(strategy), output=f"{run}-whole")
                    self.assert_same_run(run, f"{run}-whole")

    def test_a_nan_loss_ends_the_run(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy):
                process = self.fit("--overwrite", "--set", "train.optimizer={sgd: {learning_rate: 1.0e30}}",
                                   config=config_with(strategy), expect=1)
                self.assertEqual(len(re.findall("error: ", process.err)), 1, process.err)
                self.assertRegex(process.err, r"error: the loss is -?(nan|inf) at step \d+")

    def test_truncated_data_ends_the_run_with_one_message(self):
        """The last finished step is saved, and one message is printed."""
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (20000, 12), }".ljust(117) + "\n"
        npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"\0\0\x80\x3f" * 240000
        for strategy in STRATEGIES:
            with self.subTest(strategy):
                (self.dir / "x.npy").write_bytes(npy)
                config = config_with(strategy)
                for old, new in (("{synthetic: {samples: 500, target: {classes: 3}, seed: 1}}", "{npy: {input: x.npy, target: x.npy}}"),
                                 ("units: 3", "units: 12"), ("[sparse_categorical_accuracy]", "[]"), ("every: 10 steps", "every: 1000 epochs"),
                                 ("{sparse_categorical_crossentropy: {from_logits: true}}", "mean_squared_error")):
                    self.assertIn(old, config)
                    config = config.replace(old, new)
                self.write("config.yaml", "".join(line for line in config.splitlines(True) if "validation" not in line))
                process = self.start("fit", "config.yaml", "--output", "run", "--overwrite", "--epochs", 1000000, "--step-log", "log")
                log = self.dir / "log"
                while process.poll() is None and not (log.exists() and log.stat().st_size):
                    time.sleep(0.005)
                os.truncate(self.dir / "x.npy", 5000)
                _, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 1, err)
                self.assertEqual(len(re.findall("error: ", err)), 1, err)
                self.assertRegex(err, r"error: .*x\.npy")
                self.assertIn(f"saved run/checkpoints/{self.checkpoints()[-1].name}", err)
                log.unlink()


if __name__ == "__main__":
    support.main()
