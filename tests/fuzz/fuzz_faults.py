#!/usr/bin/env python3
"""Makes a small run fail, or kills it, at each of its calls that access a file. In every case, the resumed run must end
with the bits of an undisturbed run.

A fault is a call (the n-th call of the run, as counted by faults.c) and an action. The call fails with EIO, ENOSPC or
EACCES, or this call and all later calls that write fail with ENOSPC, or the process is killed before or after the call.
The run must end within five seconds: with exit code 0, with 1 or 2 and a message, or because it was killed. Then `fit
--resume` must reach the same arrays and metrics, without half-written files."""
import argparse
import errno
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

from patience import shared

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 5
CONFIG = """\
seed: 3
model:
  inputs: {x: [3]}
  layers: [{dense: {units: 4, activation: relu}}, {dropout: {rate: 0.2}}, {dense: {units: 2}}]
dataset:
  train: {csv: {file: data.csv, target: -1}, rows: [0, 20]}
  validation: {csv: {file: data.csv, target: -1}, rows: [20, 26]}
strategy: STRATEGY
train:
  epochs: 4
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
checkpoint: {every: 2 steps, keep: 2, best: {monitor: val_loss, mode: max}}
"""
STRATEGIES = {"mirrored": "{mirrored: {devices: [cpu:0, cpu:1]}}",
              "placed": "{placed: {layers: {dense: cpu:0, dropout: cpu:1}}}",
              "pipeline": "{pipeline: {devices: [cpu:0, cpu:1], stages: [dropout], microbatches: 3}}"}
ACTIONS = {"EIO": {"FAULT_DO": str(errno.EIO)},
           "ENOSPC": {"FAULT_DO": str(errno.ENOSPC)},
           "EACCES": {"FAULT_DO": str(errno.EACCES)},
           "ENOSPC from then on": {"FAULT_DO": str(errno.ENOSPC), "FAULT_ON": "1"},
           "killed before": {"FAULT_DO": "before"},
           "killed after": {"FAULT_DO": "after"}}


class Found(Exception):
    pass


class Fuzzer:
    def __init__(self, program, folder, strategy):
        self.program = program
        folder.mkdir()
        self.dir = folder / "work"
        self.log = folder / "log"
        self.shim = folder / "faults.so"
        self.dir.mkdir()
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O1", "-shared", "-fPIC", "-o", self.shim,
                        HERE / "faults.c", "-ldl"], check=True)
        data = random.Random(1)
        rows = [[data.gauss(0, 1) for _ in range(3)] + [data.randrange(2)] for _ in range(26)]
        (self.dir / "data.csv").write_text("".join(",".join(f"{v:g}" for v in row) + "\n" for row in rows))
        (self.dir / "config.yaml").write_text(CONFIG.replace("STRATEGY", STRATEGIES[strategy]))
        self.run("fit", "config.yaml", "--output", "whole")
        self.whole = self.outcome("whole")
        # The list of all calls in a run without faults.
        self.run("fit", "config.yaml", "--output", "run", environment=self.faults({}))
        self.calls = self.log.read_text().splitlines()
        shutil.rmtree(self.dir / "run")

    def faults(self, action):
        preloaded = {"LD_PRELOAD": str(self.shim), "FAULT_UNDER": str(self.dir), "FAULT_LOG": str(self.log)}
        # AddressSanitizer requires that it is the first library to be loaded. The option verify_asan_link_order=0 turns
        # this check off.
        options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        return {**preloaded, "ASAN_OPTIONS": options, **action}

    def run(self, *arguments, environment=None, codes=(0,)):
        try:
            done = subprocess.run([self.program, *arguments], cwd=self.dir, env={**os.environ, **(environment or {})},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  timeout=shared(SECONDS) * (10 if environment is None else 1))
        except subprocess.TimeoutExpired as late:
            raise Found(f"dtrain {' '.join(arguments)}: takes more than {late.timeout:.0f} s")
        if done.returncode not in codes:
            raise Found(f"dtrain {' '.join(arguments)}: exit {done.returncode}, expected {codes}\n{done.stderr}")
        return done

    def outcome(self, run):
        """Returns the content of the last checkpoint and the metrics, without times."""
        newest = sorted((self.dir / run / "checkpoints").glob("ckpt-*.h5"))[-1]
        inspected = json.loads(self.run("inspect", newest, "--json").stdout)
        lines = map(json.loads, (self.dir / run / "metrics.jsonl").read_text().splitlines())
        metrics = [{k: v for k, v in line.items() if k not in ("seconds", "samples_per_second")} for line in lines]
        return newest.name, inspected["weights"], inspected["slots"], metrics

    def disturb(self, number, name):
        shutil.rmtree(self.dir / "run", ignore_errors=True)
        self.log.unlink(missing_ok=True)
        killed = name.startswith("killed")
        done = self.run("fit", "config.yaml", "--output", "run",
                        environment=self.faults({"FAULT_AT": str(number), **ACTIONS[name]}),
                        codes=(0, -signal.SIGKILL) if killed else (0, 1, 2))
        if done.returncode > 0 and "error: " not in done.stderr:
            raise Found(f"exit {done.returncode} without a message\n{done.stderr}")
        self.run("fit", "config.yaml", "--output", "run", "--resume")
        if self.outcome("run") != self.whole:
            raise Found(f"the resumed run has other arrays or metrics\n{done.stderr}")
        for folder in ("run", "run/checkpoints"):
            left = [entry for entry in os.listdir(self.dir / folder) if ".dtrain-tmp-" in entry]
            if left:
                raise Found(f"temporary files are left in {folder}: {left}")
        recovered = list(self.dir.glob("run-recovered*"))
        if recovered:
            raise Found(f"the run saved to another directory: {recovered}\n{done.stderr}")

    def describe(self, number, name):
        """Describes a call by its line in the log of this run. The log of another run may differ, because two threads
        make calls, and the order of their calls varies."""
        calls = self.log.read_text().splitlines() if self.log.exists() else []
        return f"call {number} ({calls[number - 1] if number <= len(calls) else '?'}): {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, help="faults to try under each strategy (12)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="250 faults under each")
    parser.add_argument("--strategy", choices=STRATEGIES, help="try only this strategy")
    parser.add_argument("--call", type=int, help="try only this call")
    options = parser.parse_args()
    strategies = [options.strategy] if options.strategy else list(STRATEGIES)
    with tempfile.TemporaryDirectory() as folder:
        found = sum(try_all(options, strategy, pathlib.Path(folder).resolve() / strategy) for strategy in strategies)
    sys.exit(1 if found else 0)


def try_all(options, strategy, folder):
    """Tries faults under one strategy, and returns the number of findings."""
    fuzzer = Fuzzer(os.path.abspath(options.program), folder, strategy)
    numbers = [options.call] if options.call else range(1, len(fuzzer.calls) + 1)
    faults = list(itertools.product(numbers, ACTIONS))
    random.Random(options.seed).shuffle(faults)
    count = options.count or (len(faults) if options.call else 250 if options.long else 12)
    print(f"{strategy}: {len(fuzzer.calls)} calls touch files; {min(count, len(faults))} of {len(faults)} faults")
    found = tried = 0
    for number, name in faults[:count]:
        tried += 1
        try:
            fuzzer.disturb(number, name)
        except Found as what:
            found += 1
            print(f"{fuzzer.describe(number, name)}\n{what}\n"
                  f"again: {sys.argv[0]} --program {options.program} --strategy {strategy} --call {number}\n", flush=True)
            if found == 5:
                break
    print(f"{tried} faults tried, {found} findings")
    return found


if __name__ == "__main__":
    main()
