#!/usr/bin/env python3
"""Kills runs with every strategy (SIGKILL) at random moments and resumes them, repeatedly. At the end, weights,
optimizer state and the metrics of all epochs must have the bits of an undisturbed run.

A finding is a run that does not resume, hangs, or ends with other bits."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

COUNT, LONG_COUNT = 12, 100
SECONDS = 300

CONFIG = """\
seed: 3
model:
  inputs: {x: [12]}
  blocks:
    part: {layers: [dense: {units: 16, activation: tanh}, batch_normalization: {}, dropout: {rate: 0.2}]}
  layers:
    - dense: {units: 16, name: first, activation: tanh}
    - part: {name: second, recompute: true}
    - dense: {name: again, shared_with: second/dense}
    - part: {name: third}
    - dense: {units: 3, name: head}
dataset:
  train:      {synthetic: {samples: 500, target: {classes: 3}, seed: 1}}
  validation: {synthetic: {samples: 60, target: {classes: 3}, seed: 2}}
train:
  epochs: 8
  batch_size: 18
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy, f1_score]
  clip_norm: 0.5
  callbacks: [{ema: {decay: 0.9}}]
checkpoint: {every: 7 steps, keep: 3, best: {monitor: val_loss}}
"""


def devices(count):
    return [f"cpu:{i}" for i in range(count)]


STRATEGIES = [
    "single",
    {"mirrored": {"devices": devices(2)}},
    {"mirrored": {"devices": devices(3)}},
    {"placed": {"layers": {"first": "cpu:0", "second/*": "cpu:1", "third/*": "cpu:0", "head": "cpu:2"}}},
    {"pipeline": {"devices": devices(2), "stages": ["third"], "microbatches": 4, "schedule": "1f1b"}},
    {"pipeline": {"devices": devices(4), "stages": ["second", "again", "third"], "microbatches": 8, "schedule": "gpipe"}},
    {"pipeline": {"devices": devices(4), "stages": ["again"], "microbatches": 3, "replicas": 2}},
    {"sharded": {"devices": devices(3), "level": "optimizer"}},
    {"sharded": {"devices": devices(4), "level": "gradients"}},
    {"sharded": {"devices": devices(2), "level": "parameters"}},
    {"sharded": {"devices": devices(4), "level": "parameters"}},
]


class Found(Exception):
    pass


class Killer:
    def __init__(self, program, folder, draw):
        self.program, self.dir, self.draw = program, folder, draw
        self.kills = 0

    def dtrain(self, *arguments):
        try:
            done = subprocess.run([self.program, *arguments], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Found(f"dtrain {' '.join(arguments)}: hangs")
        if done.returncode != 0:
            raise Found(f"dtrain {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def fit(self, run):
        return ["fit", "c.yaml", "--output", run, "--resume", "--quiet"]

    def kill_once(self, run, seconds):
        """Kills the run: sometimes before it trains, mostly within the next `seconds` of training. Returns False if the
        run ended before it was killed."""
        log = self.dir / "steps.jsonl"
        log.unlink(missing_ok=True)
        process = subprocess.Popen([self.program, *self.fit(run), "--step-log", str(log)], cwd=self.dir, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if self.draw.random() < 0.85:
            end = time.monotonic() + SECONDS
            while process.poll() is None and not (log.exists() and log.stat().st_size) and time.monotonic() < end:
                time.sleep(0.001)
        time.sleep(self.draw.uniform(0, seconds))
        process.kill()
        _, err = process.communicate()
        if process.returncode == 0:
            return False
        if process.returncode != -9:
            raise Found(f"a run resumed after a kill ends with exit code {process.returncode}\n{err.decode('utf-8', 'replace')}")
        self.kills += 1
        return True

    def outcome(self, run):
        newest = sorted((self.dir / run / "checkpoints").glob("ckpt-*.h5"))[-1]
        inspected = json.loads(self.dtrain("inspect", str(newest), "--json"))
        lines = [json.loads(line) for line in (self.dir / run / "metrics.jsonl").read_text().splitlines()]
        return newest.name, inspected["weights"], inspected["slots"], [
            {key: value for key, value in line.items() if key not in ("seconds", "samples_per_second")} for line in lines]

    def try_strategy(self, number, strategy, kills):
        (self.dir / "c.yaml").write_text(CONFIG + f"strategy: {json.dumps(strategy)}\n")
        whole, killed = f"whole{number}", f"killed{number}"
        start = time.monotonic()
        self.dtrain(*self.fit(whole))
        seconds = (time.monotonic() - start) / (kills + 1)
        expected = self.outcome(whole)
        done = again = 0
        while done < kills:
            if self.kill_once(killed, seconds):
                done += 1
                continue
            self.compare(killed, expected)  # the run ended too soon: starts again
            again += 1
            killed = f"killed{number}-{again}"
        self.dtrain(*self.fit(killed))
        self.compare(killed, expected)

    def compare(self, run, expected):
        for what, found, wanted in zip(("the last checkpoint", "weights", "slots", "metrics"), self.outcome(run), expected):
            if found != wanted:
                raise Found(f"{what} of the killed run: {found}\nof the undisturbed run: {wanted}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, help=f"kills, spread over the strategies ({COUNT})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help=f"{LONG_COUNT} kills")
    options = parser.parse_args()
    count = options.count or (LONG_COUNT if options.long else COUNT)
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        killer = Killer(os.path.abspath(options.program), pathlib.Path(folder).resolve(), random.Random(options.seed))
        for number, strategy in enumerate(STRATEGIES):
            kills = count * (number + 1) // len(STRATEGIES) - count * number // len(STRATEGIES)
            try:
                killer.try_strategy(number, strategy, kills)
            except Found as what:
                found += 1
                print(f"{json.dumps(strategy)}: {what}\nagain: {sys.argv[0]} --program {options.program} --count {count} "
                      f"--seed {options.seed}\n", flush=True)
            else:
                if options.long:
                    print(f"{kills} kills under {json.dumps(strategy)}", flush=True)
        print(f"{killer.kills} kills under {len(STRATEGIES)} strategies, {found} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
