"""Shared code of the end-to-end tests: runs the program as a user would, in a temporary directory per test."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ""  # set by main()

# A small and fast run with all state that a resume must restore: dropout, Adam's slots, a schedule, validation.
CONFIG = """\
seed: 3
model:
  inputs: {x: [12]}
  layers:
    - dense: {units: 16, activation: relu}
    - dropout: {rate: 0.2}
    - dense: {units: 3}
dataset:
  train:      {synthetic: {samples: 500, target: {classes: 3}, seed: 1}}
  validation: {synthetic: {samples: 60, target: {classes: 3}, seed: 2}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 4
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: {exponential_decay: {initial: 0.01, decay_steps: 50, decay_rate: 0.9}}}}
  metrics: [sparse_categorical_accuracy]
checkpoint: {every: 10 steps, keep: 100}
"""
STEPS_PER_EPOCH = 32  # number of steps with CONFIG; the last batch has 4 samples


class Case(unittest.TestCase):
    """Each test has an empty directory, `self.dir`, which is the program's working directory."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *arguments, env=None, **options):
        environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "DTRAIN_DATA")}
        environment.update(env or {})
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("errors", "surrogateescape")
        return subprocess.Popen([BINARY, *map(str, arguments)], cwd=self.dir, env=environment, text=True,
                                stdin=subprocess.DEVNULL, **options)

    def dtrain(self, *arguments, expect=0, env=None, **options):
        """Runs the program to its end and checks the exit code (None accepts any)."""
        process = self.start(*arguments, env=env, **options)
        process.out, process.err = process.communicate(timeout=300)
        if expect is not None:
            self.assertEqual(process.returncode, expect, f"dtrain {arguments}:\n{process.out}\n{process.err}")
        return process

    def preloaded(self, source, *linking):
        """Returns the environment for running the program with a preloaded shim (a C file of the project). `linking`:
        linker options for the shim."""
        shim = self.dir / "shim.so"
        if not shim.exists():
            subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-shared", "-fPIC", "-o", shim, PROJECT / source, "-ldl", *linking], check=True)
        options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        # Under the shim, ThreadSanitizer does not see calls of open() and close(). It would therefore report races
        # between threads that use the same file descriptor one after the other.
        races = ":".join(filter(None, [os.environ.get("TSAN_OPTIONS"), "report_bugs=0"]))
        return {"LD_PRELOAD": str(shim), "ASAN_OPTIONS": options, "TSAN_OPTIONS": races}

    def json(self, *arguments, **options):
        """Returns the JSON document on standard output."""
        return json.loads(self.dtrain(*arguments, "--json", **options).out)

    def fit(self, *arguments, config=CONFIG, output="run", **options):
        self.write("config.yaml", config)
        return self.dtrain("fit", "config.yaml", "--output", output, *arguments, **options)

    def checkpoints(self, run="run"):
        return sorted((self.dir / run / "checkpoints").glob("ckpt-*.h5"))

    def metrics(self, run="run"):
        """Returns the lines of metrics.jsonl without the values that depend on the time."""
        lines = [json.loads(line) for line in (self.dir / run / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in line.items() if k not in ("seconds", "samples_per_second")} for line in lines]

    def kill_on_the_way(self, *arguments, after=20, **options):
        """Starts a run and kills it once the step log has `after` lines."""
        log = self.dir / "steps.log"
        log.unlink(missing_ok=True)
        process = self.start(*arguments, "--step-log", log, **options)
        end = time.monotonic() + 60
        while not log.exists() or len(log.read_bytes().splitlines()) < after:
            self.assertLess(time.monotonic(), end, "nothing happened")
            self.assertIsNone(process.poll(), "it ended before it was killed")
            time.sleep(0.005)
        process.kill()
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGKILL, "it ended before it was killed")

    def arrays(self, checkpoint):
        """Returns the shape and the checksum of each array in a checkpoint, by name. Arrays with equal bits have equal
        checksums."""
        document = self.json("inspect", checkpoint)
        groups = [("weight", document["weights"])] + [(s["name"], s["arrays"]) for s in document["slots"]]
        return {(group, a["name"]): (a["shape"], a["checksum"]) for group, arrays in groups for a in arrays}

    def assert_same_run(self, run, other):
        """Asserts that two runs end with bitwise equal arrays and have equal metrics."""
        self.assertEqual(self.checkpoints(run)[-1].name, self.checkpoints(other)[-1].name)
        self.assertEqual(self.arrays(self.checkpoints(run)[-1]), self.arrays(self.checkpoints(other)[-1]))
        self.assertEqual(self.metrics(run), self.metrics(other))


def main():
    global BINARY
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BINARY [unittest's arguments]")
    # Tests import this module by name, so the started script and this module share it.
    BINARY = str(pathlib.Path(sys.argv.pop(1)).resolve())
    # If a shell starts the tests in the background, it makes them ignore SIGINT. The programs that the tests start
    # would inherit this setting.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(module="__main__")
