#!/usr/bin/env python3
"""Sends signals to runs of dense models at random moments: SIGUSR1 repeatedly, then SIGINT, SIGTERM or SIGHUP once,
twice in a row, or not at all. Each run must save and end with 128 + the signal's number, and the resumed run must end
with the bits of a run without signals.

A finding is a crash, a hang, another exit code, a missing checkpoint, or different bits."""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from fuzz_kills import SECONDS, Found, Killer, devices

COUNT, LONG_COUNT = 16, 400
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None]

# oneDNN computes products of this size in blocked loops. Signal handlers used to corrupt the data of these loops.
CONFIG = """\
seed: 3
model:
  inputs: {x: [256]}
  layers: [dense: {units: 512, activation: relu}, dense: {units: 512, activation: relu}, dense: {units: 10}]
dataset: {train: {synthetic: {samples: 1024, target: {classes: 10}}}}
train: {epochs: 4, batch_size: 128, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
checkpoint: {every: 1 epoch, keep: 2}
"""
STRATEGIES = [
    "single",
    {"mirrored": {"devices": devices(2)}},
    {"pipeline": {"devices": devices(2), "microbatches": 2}},
    {"sharded": {"devices": devices(2), "level": "parameters"}},
]


class Signaller(Killer):
    sent = 0

    def send(self, process, number):
        process.send_signal(number)
        self.sent += 1

    def begin(self, run):
        """Starts a run and waits for its first step."""
        log = self.dir / "steps.jsonl"
        log.unlink(missing_ok=True)
        process = subprocess.Popen([self.program, *self.fit(run), "--step-log", str(log)], cwd=self.dir, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + SECONDS
        while process.poll() is None and not (log.exists() and log.stat().st_size) and time.monotonic() < end:
            time.sleep(0.001)
        return process

    def disturb(self, process, stop, seconds):
        """Sends SIGUSR1 during part of these seconds (to the end of the run if `stop` is None), then `stop`."""
        end = time.monotonic() + (SECONDS if stop is None else self.draw.uniform(0, seconds))
        pause = self.draw.choice([0.0003, 0.002, 0.02])
        while process.poll() is None and time.monotonic() < end:
            self.send(process, signal.SIGUSR1)
            time.sleep(self.draw.uniform(0, pause))
        if stop is None:
            return
        self.send(process, stop)
        if self.draw.random() < 0.3:
            time.sleep(self.draw.choice([0, 0.02]))
            self.send(process, stop)

    def trial(self, run, stop, seconds):
        """Runs one trial. Returns False if the run ended before it was stopped."""
        process = self.begin(run)
        self.disturb(process, stop, seconds)
        try:
            _, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Found(f"the run hangs after signal {stop}: {process.communicate()[1]}")
        if process.returncode == 0:
            return stop is None
        if stop is None or process.returncode != 128 + stop:
            raise Found(f"after signal {stop}: exit {process.returncode}\n{err.decode('utf-8', 'replace')}")
        path = err.decode().split("; saved ")[-1].strip()
        if not (self.dir / path).is_file():
            raise Found(f"after signal {stop} there is no checkpoint: {err.decode('utf-8', 'replace')}")
        self.dtrain(*self.fit(run))
        return True

    def try_strategy(self, number, strategy, trials):
        (self.dir / "c.yaml").write_text(CONFIG + f"strategy: {json.dumps(strategy)}\n")
        start = time.monotonic()
        self.dtrain(*self.fit(f"whole{number}"))
        seconds = time.monotonic() - start
        expected = self.outcome(f"whole{number}")
        done = started = 0
        while done < trials:
            run = f"run{number}-{started}"
            started += 1
            done += self.trial(run, STOPS[done % len(STOPS)], seconds)
            self.compare(run, expected)
            subprocess.run(["rm", "-r", run], cwd=self.dir, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, help=f"runs, spread over the strategies ({COUNT})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help=f"{LONG_COUNT} runs")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGHUP):  # the parent (nohup, a background shell) may ignore them
        signal.signal(number, signal.SIG_DFL)
    count = options.count or (LONG_COUNT if options.long else COUNT)
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        signaller = Signaller(os.path.abspath(options.program), pathlib.Path(folder).resolve(), random.Random(options.seed))
        for number, strategy in enumerate(STRATEGIES):
            trials = count * (number + 1) // len(STRATEGIES) - count * number // len(STRATEGIES)
            try:
                signaller.try_strategy(number, strategy, trials)
            except Found as what:
                found += 1
                print(f"{json.dumps(strategy)}: {what}\nagain: {sys.argv[0]} --program {options.program} --count {count} "
                      f"--seed {options.seed}\n", flush=True)
            else:
                if options.long:
                    print(f"{trials} runs under {json.dumps(strategy)}", flush=True)
        print(f"{signaller.sent} signals in {count} runs, {found} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
