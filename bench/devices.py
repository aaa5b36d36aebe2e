#!/usr/bin/env python3
"""Compares strategies on the CPU devices of this machine, to find out how much time it costs or saves to place,
pipeline or shard a model. Each device has one core.

    bench/devices.py [WORKLOAD ...] [--rounds 4] [--epochs 6]

Each round trains a workload with both of its strategies in turn. The time is the median of all epochs except the first
epoch of each run. The ratio is the time of the first strategy divided by the time of the second strategy, for the
same samples.
"""
import argparse
import csv
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

CONFIG = """\
seed: 1
model:
  inputs: {x: [%(input)s]}
  layers: [%(layers)s, {dense: {units: 10}}]
dataset: {train: {synthetic: {samples: %(samples)d, target: {classes: 10}, seed: 4}}}
train:
  epochs: %(epochs)d
  batch_size: %(batch)d
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.001}}
strategy: %(strategy)s
"""

CONVOLUTION = "{conv2d: {%s, kernel_size: 3, padding: same, activation: relu}}"
BRANCH = ", ".join([CONVOLUTION % "name: %(side)s/stem, filters: 16, inputs: x", CONVOLUTION % "name: %(side)s/body, filters: 16",
                    "{global_average_pooling2d: {name: %(side)s/mean}}"])
BRANCHES = ", ".join([BRANCH % {"side": "left"}, BRANCH % {"side": "right"},
                      "{concatenate: {inputs: [left/mean, right/mean], name: both}}"])
CONVOLUTIONS = ", ".join([CONVOLUTION % "filters: 32"] * 8 + ["global_average_pooling2d"])
WIDE = ", ".join(["{dense: {units: 2048, activation: tanh}}"] * 2)
BLOCKS = ", ".join(["{dense: {units: 1024, activation: relu}}, layer_normalization"] * 8)

SINGLE, MIRRORED = "{single: {device: cpu:0}}", "{mirrored: {devices: [cpu:0, cpu:1]}}"
PLACED = "{placed: {layers: {'left/*': cpu:0, 'right/*': cpu:1, both: cpu:0}}}"
PIPELINE = "{pipeline: {devices: [cpu:0, cpu:1], stages: auto, microbatches: 8}}"
SHARDED = "{sharded: {devices: [cpu:0, cpu:1], level: optimizer}}"

# `must` is the maximum ratio of the two times. If it is None, the ratio is only reported. The workloads
# "pipeline-rows-*" have no maximum, because they only show how much a pipeline costs if its microbatches have few rows.
WORKLOADS = {
    "placed": dict(input="32, 32, 3", layers=BRANCHES, samples=1024, batch=64, strategies=(PLACED, SINGLE), one_core=True, must=0.65),
    "sharded": dict(input="512", layers=WIDE, samples=4096, batch=128, strategies=(SHARDED, MIRRORED), must=1.10),
    "pipeline": dict(input="32, 32, 16", layers=CONVOLUTIONS, samples=1024, batch=128, strategies=(PIPELINE, MIRRORED), must=1.25),
    "pipeline-rows-128": dict(input="1024", layers=BLOCKS, samples=4096, batch=1024, strategies=(PIPELINE, MIRRORED), must=None),
    "pipeline-rows-16": dict(input="1024", layers=BLOCKS, samples=4096, batch=128, strategies=(PIPELINE, MIRRORED), must=None),
}


def seconds_of_epochs(options, spec, strategy, one_core):
    """Runs one training and returns the seconds per epoch, without the first epoch."""
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch, "config.yaml")
        config.write_text(CONFIG % dict(spec, strategy=strategy, epochs=options.epochs))
        cores = sorted(os.sched_getaffinity(0))
        subprocess.run([options.program, "fit", config, "--quiet", "--output", pathlib.Path(scratch, "run")], check=True,
                       preexec_fn=(lambda: os.sched_setaffinity(0, cores[:1])) if one_core else None)
        with open(pathlib.Path(scratch, "run", "metrics.csv"), encoding="utf-8", newline="") as file:
            return [float(row["seconds"]) for row in csv.DictReader(file)][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--program", default=ROOT / "build/release/app/dtrain")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args()
    if unknown := set(options.workloads) - set(WORKLOADS):
        parser.error(f"unknown workload {', '.join(sorted(unknown))}; available: {', '.join(WORKLOADS)}")
    if len(os.sched_getaffinity(0)) < 2:
        parser.error("two devices need one core each")
    print("| workload | ms per sample | of the second | ratio | must |\n|---|---|---|---|---|")
    for name in options.workloads or WORKLOADS:
        spec = WORKLOADS[name]
        times = [[], []]
        for _ in range(options.rounds):
            for which, strategy in enumerate(spec["strategies"]):
                times[which] += seconds_of_epochs(options, spec, strategy, which == 1 and spec.get("one_core", False))
        first, second = (1e3 * statistics.median(one) / spec["samples"] for one in times)
        print(f"| {name} | {first:.4f} | {second:.4f} | {first / second:.2f} | {spec['must'] or ''} |", flush=True)


if __name__ == "__main__":
    main()
