#!/usr/bin/env python3
"""Runs bench/gpu/first_hour.py with a program that pretends to have two GPUs. Tests that dtrain accepts all commands,
and that failures, timeouts and differences are reported.

    first_hour_test.py DTRAIN
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = PROJECT / "bench" / "gpu" / "first_hour.py"
sys.path.insert(0, str(SCRIPT.parent))
import first_hour  # noqa: E402

DTRAIN = ""
# This program answers `gpus --json` itself, and runs all other commands on the CPU. The first losses of
# `sharded-gradients` are wrong.
PROGRAM = """#!/usr/bin/env bash
if [[ $1 == gpus && ${{2:-}} == --json ]]; then
  echo '{{"gpu": {{"count": {count}, "reason": "none at hand", "devices": [{{"name": "Pretended"}}]}}}}'
  exit
fi
"{dtrain}" "${{@//gpu:/cpu:}}" || exit
for argument; do
  [[ $argument != */sharded-gradients.jsonl ]] || sed -i 's/"loss": [0-9]/"loss": 7/' "$argument"
done
"""


class FirstHour(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def first_hour(self, *only, gpus=2):
        program = self.folder / "dtrain"
        program.write_text(PROGRAM.format(dtrain=DTRAIN, count=gpus), encoding="utf-8")
        program.chmod(0o755)
        self.report = self.folder / "report.md"
        result = subprocess.run([sys.executable, SCRIPT, "--dtrain", program, "--tests", self.folder, "--output", self.report, "--only", *only],
                                text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        self.err = result.stderr
        self.results = {line.split()[1].rstrip(":"): line for line in result.stdout.splitlines() if not line.startswith("report")}
        return result.returncode

    def test_passing_checks_are_reported(self):
        passing = ["cpu", "gpu", "eager", "replicas", "gpu-and-cpu", "repeatable", "class-weights", "adafactor", "mnist-mlp-cpu",
                   "mnist-mlp", "mnist-mlp-eager-float32", "gpt-small-cpu", "gpt-small", "generate", "mirrored", "pipeline",
                   "sharded-optimizer", "sharded-parameters", "without-peers", "two-repeatable"]
        self.assertEqual(self.first_hour(*passing), 0, self.results)
        self.assertEqual(list(self.results), passing)
        for line in self.results.values():
            self.assertTrue(line.startswith("passed"), line)
        text = self.report.read_text(encoding="utf-8")
        self.assertIn("# The first hour on Pretended", text)
        self.assertIn("20 passed, 0 FAILED, 0 skipped", text)
        self.assertIn("fit configs/digits-mlp.yaml --output $OUT/gpu", text)

    def test_failed_and_skipped_checks_are_reported(self):
        self.assertEqual(self.first_hour("gpu", "libraries", "sharded-gradients", "test_ops"), 1)
        self.assertIn("FAILED   libraries: exit status 1, expected 0", self.results["libraries"])
        self.assertIn("FAILED   sharded-gradients: step 1: loss", self.results["sharded-gradients"])
        self.assertIn("FAILED   test_ops: exit status 127", self.results["test_ops"])
        self.assertIn("FAILED   gpu: [Errno 2]", self.results["gpu"])  # `cpu` did not run
        self.assertEqual(self.first_hour("cpu", "mirrored", gpus=1), 0)
        self.assertIn("skipped  mirrored: needs 2 GPUs", self.results["mirrored"])
        self.assertIn("1 passed, 0 FAILED, 1 skipped", self.report.read_text(encoding="utf-8"))
        self.assertEqual(self.first_hour("cpu", gpus=0), 2)
        self.assertIn("no GPU: none at hand", self.err)
        self.assertEqual(self.first_hour("gppu"), 2)
        self.assertIn("unknown check gppu; available: devices, ", self.err)

    def test_a_check_that_hangs_is_ended_with_its_children(self):
        check = first_hour.Check("slow", "", f"(sleep 600; touch {self.folder}/late) & echo begun; wait")
        status, output = first_hour.run(check, 0.5)
        self.assertIsNone(status)
        self.assertEqual(output, "begun\n")
        self.assertEqual(first_hour.verdict(check, status, output, 0.5), "it did not end within 0 seconds")

    def test_an_output_must_match_the_expected_pattern(self):
        judge = first_hour.must_say("warning|note")
        self.assertEqual(judge("a note"), "")
        self.assertIn("nothing that matches 'warning|note'", judge("all is well"))

    def write(self, name, rows):
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    def test_losses_are_compared(self):
        one = self.write("one", [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}])
        other = self.write("other", [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5001}])
        self.assertEqual(first_hour.same_losses(one, other, 1e-3)(""), "")
        self.assertEqual(first_hour.same_losses(one, other, 0, 1)(""), "")
        self.assertIn("step 2: loss 0.5 against 0.5001", first_hour.same_losses(one, other, 0)(""))
        self.assertIn("1 losses", first_hour.same_losses(self.write("short", [{"loss": 1.0}]), other, 0)(""))
        self.assertIn("step 1", first_hour.same_losses(self.write("nan", [{"loss": float("nan")}] * 2), other, 1)(""))
        tail = self.write("tail", [{"step": 2, "loss": 0.5}])
        self.assertEqual(first_hour.same_steps(one, tail)(""), "")
        self.assertIn("step 2: loss 0.5 against 0.5001", first_hour.same_steps(other, tail)(""))
        self.assertIn("no step", first_hour.same_steps(one, self.write("none", []))(""))


if __name__ == "__main__":
    DTRAIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
