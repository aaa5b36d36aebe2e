#!/usr/bin/env python3
"""Makes the n-th memory request of small runs fail, alone or with all later requests. Checks that the run then ends
with a message and exit code 1 (or continues and ends with 0), without a signal or a hang, and that every checkpoint
under its final name is complete.

    fuzz_malloc.py --program DTRAIN [--count N] [--seed S] [--long | --every] [--case NAME] [--at n]

--count: number of requests to try, in all cases together. --long: tries the first request from each place (call stack)
in the program. --every: all requests. This takes a day (with --case fit-small --mode once, less than an hour on two
cores). --at: only this request, with its stack.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

from patience import shared
from sanitizers import has_sanitizers

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 5  # a run that takes longer hangs
SHORT = 60

# A model with arrays larger than 1 MiB. If a request of this size fails, the process need not end
# (app/cli/last_resort.h).
LARGE = """\
model:
  inputs: {x: [8, 8, 1]}
  layers: [flatten, {dense: {units: 5000, activation: relu}}, {dense: {units: 300}}, {dense: {units: 3}}]
dataset: {train: {npy: {input: x.npy, target: y.npy}}, validation: {npy: {input: x.npy, target: y.npy}}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 1
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
checkpoint: {every: 1 steps, keep: 2}
"""
SMALL = """\
model: {inputs: {x: [8, 8, 1]}, layers: [flatten, {dense: {units: 3}}]}
dataset: {train: {npy: {input: x.npy, target: y.npy}}}
train: {batch_size: 30, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
"""
# The run reads a file in every step, so one of its threads reads ahead. It also saves during training, so another
# thread writes.
CONFIG = """\
seed: 3
model:
  inputs: {x: [8, 8, 1]}
  layers:
    - conv2d: {filters: 4, kernel_size: 3, activation: relu}
    - batch_normalization
    - max_pooling2d: {pool_size: 2}
    - flatten
    - dropout: {rate: 0.1}
    - dense: {units: 3}
dataset:
  train:      {npy: {input: x.npy, target: y.npy}, rows: [0, 20]}
  validation: {npy: {input: x.npy, target: y.npy}, rows: [20, 30]}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 1
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
  metrics: [sparse_categorical_accuracy]
checkpoint: {every: 1 steps, keep: 2, best: {monitor: val_loss}}
"""
ONE = "strategy=single"
PLACED = "strategy={placed: {layers: {conv2d: 'cpu:0', batch_normalization: 'cpu:1', dense: 'cpu:0'}}}"
PIPELINE = "strategy={pipeline: {devices: ['cpu:0', 'cpu:1'], stages: [flatten], microbatches: 3}}"
CASES = {
    "fit-small": ["fit", "small.yaml", "--output", "run"],
    "fit": ["fit", "config.yaml", "--output", "run", "--set", ONE],
    "fit-2": ["fit", "config.yaml", "--output", "run"],
    "fit-placed": ["fit", "config.yaml", "--output", "run", "--set", PLACED],
    "fit-pipeline": ["fit", "config.yaml", "--output", "run", "--set", PIPELINE],
    "resume": ["resume", "saved", "--epochs", "2", "--set", ONE],
    "resume-2": ["resume", "saved", "--epochs", "2"],
    "resume-pipeline": ["resume", "saved", "--epochs", "2", "--set", PIPELINE],
    "evaluate": ["evaluate", "saved", "--split", "validation"],
    "evaluate-pipeline": ["evaluate", "saved", "--split", "validation", "--set", PIPELINE],
    "predict": ["predict", "saved", "--input", "x.npy", "--output", "out.npy"],
    "check": ["check", "config.yaml"],
    "csv": ["check", "csv.yaml"],
    "large": ["fit", "large.yaml", "--output", "run"],
    "large-evaluate": ["evaluate", "large"],
}


def npy(path, kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


def write_project(folder):
    rng = random.Random(1)
    npy(folder / "x.npy", "<f4", (30, 8, 8, 1), struct.pack("<1920f", *(rng.random() for _ in range(1920))))
    npy(folder / "y.npy", "<i4", (30,), struct.pack("<30i", *(rng.randrange(3) for _ in range(30))))
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "large.yaml").write_text(LARGE)
    (folder / "small.yaml").write_text(SMALL)
    (folder / "t.csv").write_text("".join(f"{rng.random()},{rng.random()},{rng.randrange(2)}\n" for _ in range(20)))
    (folder / "csv.yaml").write_text(
        "model: {inputs: {x: [2]}, layers: [{dense: {units: 2}}]}\n"
        "dataset: {train: {csv: {file: t.csv, target: -1}}, cache: memory}\n"
        "train: {batch_size: 4, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}\n")


class Fuzzer:
    def __init__(self, program, folder):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = folder
        self.shim = folder / "shim.so"
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if not compiler:
            sys.exit("fuzz_malloc.py: there is no C compiler for tests/fuzz/malloc_shim.c")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", self.shim, HERE / "malloc_shim.c", "-ldl"], check=True)
        self.project = folder / "project"
        self.project.mkdir()
        write_project(self.project)
        for config, output in (("config.yaml", "saved"), ("large.yaml", "large")):
            subprocess.run([self.program, "fit", config, "--output", output, "--quiet"], cwd=self.project, check=True)

    def run(self, case, **shim):
        """Returns the exit code (None if the run hung), standard error, and the folder of the run."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        unused = None if case.startswith("large") else shutil.ignore_patterns("large")
        shutil.copytree(self.project, folder, dirs_exist_ok=True, ignore=unused)
        # The command names a checkpoint by its path, and the path contains the folder of the run.
        env = {**os.environ, "LD_PRELOAD": str(self.shim), "OMP_WAIT_POLICY": "passive",
               "MALLOC_SHIM_LEAST": str(1 << 20 if case.startswith("large") else 0),
               **{f"MALLOC_SHIM_{key.upper()}": str(value) for key, value in shim.items()}}
        sets = ["--set", f"dataset.root={folder}"] if CASES[case][0] in ("resume", "evaluate") else []
        process = subprocess.Popen([self.program, *CASES[case], *sets], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        try:
            _, err = process.communicate(timeout=shared(SECONDS))
            return process.returncode, err, folder
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
            return None, err, folder

    def requests(self, case, every):
        """Returns the numbers of the requests to try."""
        report = self.folder / f"{case}.requests"
        code, err, folder = self.run(case, report=report)
        shutil.rmtree(folder)
        if code != 0:
            sys.exit(f"fuzz_malloc.py: {case} fails although no memory request fails:\n{err}")
        total, *firsts = map(int, report.read_text().split())
        return range(1, total + 1) if every else firsts

    def damaged(self, folder):
        """Returns the name of a checkpoint that has its final name but cannot be read. Returns None if all checkpoints
        can be read."""
        for path in sorted(folder.glob("*/checkpoints/ckpt-*.h5")):
            before = self.project / path.relative_to(folder)
            if before.exists() and before.read_bytes() == path.read_bytes():
                continue
            if subprocess.run([self.program, "inspect", path, "--quiet"], stderr=subprocess.DEVNULL,
                              check=False).returncode != 0:
                return path.name
        return None

    def finding(self, case, mode, at):
        """Returns a description of the failure if this request fails; None if there is none."""
        code, err, folder = self.run(case, fail=at, mode=mode)
        kept = sorted(path.name for path in (self.project / "saved/checkpoints").iterdir())
        try:
            if code is None:
                return f"hangs: {err[-300:]}"
            if code not in (0, 1):
                return f"exit {code}: {err[-300:]}"
            if code == 1 and not err.strip():
                return "exit 1 without a message"
            if damaged := self.damaged(folder):
                return f"exit {code}, and {damaged} is damaged"
            there = [path.name for path in (folder / "saved/checkpoints").glob("ckpt-*")]
            if code != 0 and kept and not there:
                return "no checkpoint is left"
            return None
        finally:
            shutil.rmtree(folder)


def report(program, one, what, kinds):
    """Prints the first finding of each kind."""
    case, mode, at = one
    kinds[case, mode, what] += 1
    if kinds[case, mode, what] == 1:
        print(f"{case}, {mode} {at}: {what}\n    {sys.argv[0]} --program {program} --case {case} --mode {mode} --at {at}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=SHORT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--mode", choices=("once", "from"))
    parser.add_argument("--at", type=int)
    options = parser.parse_args()
    if has_sanitizers(options.program):
        print("skipped: sanitizers have their own malloc")
        return
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(options.program, pathlib.Path(folder))
        modes = [options.mode] if options.mode else ["once", "from"]
        cases = [options.case] if options.case else list(CASES)
        if options.at:
            for case in cases:
                for mode in modes:
                    code, err, _ = fuzzer.run(case, fail=options.at, mode=mode, trace=1)
                    print(f"--- {case} {mode} {options.at}: exit {code}\n{err}")
            return
        tries = [(case, mode, at) for case in cases for at in fuzzer.requests(case, options.every) for mode in modes]
        total = len(tries)
        rng = random.Random(options.seed)
        if options.long:  # each place in one of the modes, because their results hardly differ
            tries = [rng.choice(pair) for pair in zip(*(tries[i :: len(modes)] for i in range(len(modes))))]
        elif not options.every:
            tries = sorted(rng.sample(tries, min(options.count, total)))
        kinds = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for done, (one, what) in enumerate(zip(tries, pool.map(lambda one: fuzzer.finding(*one), tries)), 1):
                if what:
                    report(options.program, one, what, kinds)
                if done % 1000 == 0:
                    print(f"{done} of {len(tries)}, {one[0]}, {sum(kinds.values())} findings", flush=True)
    print(f"{len(tries)} of {total} requests tried, {sum(kinds.values())} findings")
    sys.exit(1 if kinds else 0)


if __name__ == "__main__":
    main()
