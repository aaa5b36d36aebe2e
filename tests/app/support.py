"""What the tests of the program share: running it as a user would, in a directory of the test's own."""
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

# Small, quick, with everything that a resume has to bring back: dropout, Adam's slots, a schedule, validation.
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
STEPS_PER_EPOCH = 32  # of CONFIG; the last batch holds 4 samples


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
        """Runs to the end, and checks the exit code (unless None is expected, which is any)."""
        process = self.start(*arguments, env=env, **options)
        process.out, process.err = process.communicate(timeout=300)
        if expect is not None:
            self.assertEqual(process.returncode, expect, f"dtrain {arguments}:\n{process.out}\n{process.err}")
        return process

    def preloaded(self, source, *linking):
        """The environment in which the program runs under a shim, a C file of the project; `linking`: options for that."""
        shim = self.dir / "shim.so"
        if not shim.exists():
            subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-shared", "-fPIC", "-o", shim, PROJECT / source, "-ldl", *linking], check=True)
        options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        # Before ThreadSanitizer a shim hides who opens what, so that a number that is used again looks like a race.
        races = ":".join(filter(None, [os.environ.get("TSAN_OPTIONS"), "report_bugs=0"]))
        return {"LD_PRELOAD": str(shim), "ASAN_OPTIONS": options, "TSAN_OPTIONS": races}

    def json(self, *arguments, **options):
        """The one document on standard output."""
        return json.loads(self.dtrain(*arguments, "--json", **options).out)

    def fit(self, *arguments, config=CONFIG, output="run", **options):
        self.write("config.yaml", config)
        return self.dtrain("fit", "config.yaml", "--output", output, *arguments, **options)

    def checkpoints(self, run="run"):
        return sorted((self.dir / run / "checkpoints").glob("ckpt-*.h5"))

    def metrics(self, run="run"):
        """The lines of metrics.jsonl without what a clock says."""
        lines = [json.loads(line) for line in (self.dir / run / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in line.items() if k not in ("seconds", "samples_per_second")} for line in lines]

    def kill_on_the_way(self, *arguments, after=20, **options):
        """Begins a run and kills it once the step log has so many lines."""
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
        """Name to shape and checksum of every array of a checkpoint: equal for equal bits."""
        document = self.json("inspect", checkpoint)
        groups = [("weight", document["weights"])] + [(s["name"], s["arrays"]) for s in document["slots"]]
        return {(group, a["name"]): (a["shape"], a["checksum"]) for group, arrays in groups for a in arrays}

    def assert_same_run(self, run, other):
        """Same bits at the end, and metrics that read the same."""
        self.assertEqual(self.checkpoints(run)[-1].name, self.checkpoints(other)[-1].name)
        self.assertEqual(self.arrays(self.checkpoints(run)[-1]), self.arrays(self.checkpoints(other)[-1]))
        self.assertEqual(self.metrics(run), self.metrics(other))


def main():
    global BINARY
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BINARY [unittest's arguments]")
    # This module is imported under its own name by the tests, whatever was started.
    BINARY = str(pathlib.Path(sys.argv.pop(1)).resolve())
    # A shell that starts the tests in the background ignores it, which the programs that they start would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(module="__main__")
