#!/usr/bin/env python3
"""Compares two processes, which have one core each, with one process that has two replicas, on this machine.

    bench/processes.py [WORKLOAD ...] [--rounds 5] [--steps 40] [--mpirun mpirun.openmpi]

Each round trains a workload in both ways in turn, with the same weights and batches. The time is the median of all
steps except those of the first epoch. The ratio is the time of two processes divided by that of one process; the script
prints the median of the rounds' ratios. The losses must be bitwise equal. The difference of the times is the cost of
exchanging gradients between the processes.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import scaling_measure
from scaling_measure import STEPS_OF_EPOCH

HERE = pathlib.Path(__file__).resolve().parent

# The values of each workload are: the batch size, the number of classes, and the maximum ratio. If the maximum ratio is
# None, the ratio is only reported, because a step is shorter than a few exchanges.
WORKLOADS = {"mnist-mlp": (64, 10, None), "resnet20": (128, 10, 1.10), "wide-mlp": (1024, 2, 1.10)}


def train(options, work, workload, processes):
    """Returns (median seconds of a step, losses)."""
    batch, classes, _ = WORKLOADS[workload]
    log = pathlib.Path(work, "steps.jsonl")
    log.unlink(missing_ok=True)
    devices = "cpu:0, cpu:1" if processes == 1 else "cpu:0"
    sets = [f"strategy={{mirrored: {{devices: [{devices}]}}}}",
            f"dataset.train={{synthetic: {{samples: {batch * STEPS_OF_EPOCH}, target: {{classes: {classes}}}}}}}",
            f"train.batch_size={batch}", f"train.epochs={-(-options.steps // STEPS_OF_EPOCH) + 1}"]
    command = [options.program, "fit", HERE / f"workloads/{workload}.yaml", "--quiet", "--overwrite", "--output",
               pathlib.Path(work, "run"), "--step-log", log]
    for one in sets:
        command += ["--set", one]
    if processes > 1:
        command = [options.mpirun, "-n", str(processes), *command]
    done = subprocess.run(list(map(str, command)), env=scaling_measure.environment(DTRAIN_BENCH=work), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=scaling_measure.MOST_SECONDS)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    losses = [json.loads(line)["loss"] for line in log.read_text(encoding="utf-8").splitlines()]
    return scaling_measure.median_step(log), losses


def compare(options, work, workload):
    """Measures a workload, prints its row, and returns whether the losses were equal."""
    ratios, one_process, two_processes, equal = [], [], [], True
    for _ in range(options.rounds):
        one, losses = train(options, work, workload, 1)
        two, losses_of_two = train(options, work, workload, 2)
        equal = equal and losses == losses_of_two
        one_process.append(one)
        two_processes.append(two)
        ratios.append(two / one)
    print(f"| {workload} | {WORKLOADS[workload][0]} | {1e3 * statistics.median(one_process):.3f} | "
          f"{1e3 * statistics.median(two_processes):.3f} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
          f"{WORKLOADS[workload][2] or ''} | {'equal' if equal else 'DIFFERENT'} |", flush=True)
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--program", default=HERE.parent / "build/release/app/dtrain")
    parser.add_argument("--mpirun", default="mpirun", help="the launcher: mpirun.openmpi, mpirun.mpich (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    if unknown := set(options.workloads) - set(WORKLOADS):
        parser.error(f"unknown workload {', '.join(sorted(unknown))}; available: {', '.join(WORKLOADS)}")
    if not shutil.which(options.mpirun):
        parser.error(f"{options.mpirun} is not a program; install openmpi-bin or mpich, or name a launcher with --mpirun")
    if len(os.sched_getaffinity(0)) != 2:
        parser.error("expected two cores; start this script with taskset -c 0,1")
    print("| workload | batch | ms with one process | ms with two | ratio (lowest to highest) | must | losses |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="dtrain-processes-") as work:
        equal = [compare(options, work, workload) for workload in options.workloads or WORKLOADS]
    sys.exit(0 if all(equal) else 1)


if __name__ == "__main__":
    main()
