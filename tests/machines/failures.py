#!/usr/bin/env python3
"""Makes a run over two hosts fail in every way that docs/machines.md describes, at random moments.

    failures.py DTRAIN [--rounds N] [--mpi openmpi|mpich] [--failure NAME...] [--log FILE]
    failures.py --summary FILE

The hosts are two network namespaces; the launcher of each MPI starts the processes. A round starts a run, causes the
failure after a random step (or during the start, or while process 0 collects a sharded state to save it), and checks

  - that all processes of dtrain end in time (the limit is longer while the machine runs other programs), and that the
    launcher ends,
  - that exactly one message was printed, which names host, process, step and phase,
  - that run.jsonl records the expected outcome, and that process 0, if it lives, has saved the last finished step,
  - that one process with two replicas continues the run, and its weights are bitwise equal to those of an undisturbed
    run.

The script prints a row for each failure; --log appends a JSON line for each round. Exits with 1 if a round fails a
check. Prints the reason and exits with 77 if it cannot create network namespaces on this machine, or if there is no
launcher."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

import hosts
from hosts import Hosts, processes

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("app", "fuzz")]
from new_case import png_of_rows  # noqa: E402
from patience import shared  # noqa: E402

# The rate of the links between the hosts. Each step transfers 24 kB, so that it takes about 50 ms but little CPU time.
RATE = "4mbit"
PEER_TIMEOUT = 5  # seconds
SAVE_EVERY = 7  # steps
CONFIG = f"""\
seed: 3
model:
  inputs: {{x: [8, 8, 3]}}
  layers: [flatten, {{dense: {{units: 30, activation: relu}}}}, {{dropout: {{rate: 0.2}}}}, {{dense: {{units: 2}}}}]
dataset:
  train: {{images: {{directory: samples/train}}}}
  validation: {{images: {{directory: samples/validation}}}}
strategy: {{mirrored: {{devices: [cpu:0], replicas: 1}}}}
train:
  epochs: 3
  batch_size: 8
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{adam: {{learning_rate: 0.01}}}}
  peer_timeout: {PEER_TIMEOUT} seconds
checkpoint: {{every: {SAVE_EVERY} steps, keep: 3}}
"""
STEPS = 60
ALONE = "strategy={mirrored: {devices: [cpu:0], replicas: 2}}"  # both replicas in one process
MESSAGE = re.compile(r"^(?:.*: )?error: .*$", re.MULTILINE)
START_WAIT = 300  # seconds in which a run must reach the moment of its failure, also on a busy machine
WAIT = 60  # seconds until a round gives up
# Time limit in seconds for a launcher that is disconnected from a host. This launcher may wait much longer than dtrain.
CUT_WAIT = 20


SHARDED = "strategy={sharded: {devices: [cpu:0], level: optimizer}}"


def message_about(process, text, place=r"step \d+, \w+"):
    return rf"error: node{process + 1} \(process {process} of 2\): .*{text}.*{place}"


class Failure:
    """The cause of a failure, and its required consequences."""

    def __init__(self, cause, seconds, message, ends, stopped=None, cuts=False, noticed_late=False, moment="a step", sets=()):
        """`seconds` is the time in which all processes must end. It is counted from the failure or, if
        `noticed_late` is true, from the message. `message` is a text that the message must contain; if it is "",
        there must be no message. `ends` lists the possible outcomes in run.jsonl; None means that run.jsonl has no
        outcome. `stopped` is the rank of a process that cannot end by itself. `cuts` is true if the failure
        disconnects the launcher from a host. `moment` is "a step", "a save" or "the start". `sets` lists changes of
        the configuration."""
        self.cause, self.seconds, self.message, self.ends, self.stopped = cause, seconds, message, ends, stopped
        self.cuts, self.noticed_late, self.moment, self.sets = cuts, noticed_late, moment, sets

    def saves(self):
        """Returns true if the run must save the last finished step after this failure. If the state is sharded, it
        cannot be saved after the failure, and the previous checkpoint remains the newest."""
        return self.ends[0] in ("failed", "interrupted") and self.moment == "a step" and self is not FAILURES[DISK]


def to_process(number, rank):
    return lambda round: round.process(rank).kill(number)


def to_launcher(number):
    return lambda round: os.kill(round.launcher_pid(), number)


DEAD = "the process ended without a message"
SILENT = f"no heartbeat for {PEER_TIMEOUT} seconds"
KILL, STOP, TERM, USR1 = signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGUSR1
FAILURES = {
    "SIGKILL of process 1": Failure(to_process(KILL, 1), 5, message_about(1, DEAD), ("failed",)),
    # If process 1 is killed before the run has begun, run.jsonl has no outcome.
    "SIGKILL of process 1 at the start": Failure(to_process(KILL, 1), 5, message_about(1, DEAD, r"\w+"), ("failed", None),
                                                 moment="the start"),
    "SIGKILL of process 1 while saving": Failure(to_process(KILL, 1), 5, message_about(1, DEAD), ("failed",),
                                                 moment="a save", sets=(SHARDED,)),
    "SIGKILL of process 0": Failure(to_process(KILL, 0), 5, message_about(0, DEAD), (None,)),
    "SIGKILL of all processes of host 2": Failure(lambda round: round.kill_host(2), 5, message_about(1, DEAD), ("failed",)),
    "link of host 2 down": Failure(lambda round: round.hosts.cut(2), PEER_TIMEOUT + 5, message_about(1, SILENT), ("failed",), cuts=True),
    "SIGSTOP of process 1": Failure(to_process(STOP, 1), PEER_TIMEOUT + 5, message_about(1, SILENT), ("failed",), stopped=1),
    "SIGSTOP of process 0": Failure(to_process(STOP, 0), PEER_TIMEOUT + 5, message_about(0, SILENT), (None, "failed"), stopped=0),
    "disk of process 0 full": Failure(lambda round: round.fill_disk(), 5, message_about(0, "No space left on device"), ("failed",),
                                      noticed_late=True),
    "data of process 1 damaged": Failure(lambda round: round.damage_data(), 5, message_about(1, r"samples/train/\w+/\d+\.png"), ("failed",),
                                         noticed_late=True),
    "SIGTERM to process 0": Failure(to_process(TERM, 0), 5, "", ("interrupted",)),
    "SIGTERM to process 1": Failure(to_process(TERM, 1), 5, "", ("interrupted",)),
    # mpirun of Open MPI forwards SIGTERM only after two seconds. The run may end before it receives the signal.
    "SIGTERM to the launcher": Failure(to_launcher(TERM), 5, "", ("interrupted", "done")),
    "SIGUSR1 to process 0": Failure(to_process(USR1, 0), WAIT, "", ("done",)),
    "SIGUSR1 to process 1": Failure(to_process(USR1, 1), WAIT, "", ("done",)),
    "SIGUSR1 to the launcher": Failure(to_launcher(USR1), WAIT, "", ("done",)),
    "dtrain stop": Failure(lambda round: round.stop(), 5, "", ("interrupted",)),
}
DISK = "disk of process 0 full"


class Missed(Exception):
    """The run ended before the failure."""


class Round:
    def __init__(self, program, mpi, hosts_, whole, draw):
        self.program, self.mpi, self.hosts, self.whole, self.draw = program, mpi, hosts_, whole, draw
        self.run = hosts_.work / "runs/run"
        self.log = hosts_.folder / "steps.log"
        self.problems = []
        self.facts = {}
        self.lines, self.first_error = [], None
        self.found = {}  # processes of dtrain by rank

    def check(self, condition, problem):
        if not condition:
            self.problems.append(problem)

    def process(self, rank):
        """Returns a process of dtrain. Raises Missed if it has ended."""
        if rank not in self.found or not self.found[rank].lives():
            self.found = {one.rank(): one for one in processes() if one.program == self.program}
        if rank not in self.found:
            raise Missed
        return self.found[rank]

    def launcher_pid(self):
        """Returns the launcher's PID, which is the PID of the started script, because the script ends with exec."""
        return self.launcher.pid

    def kill_host(self, number):
        for one in processes():
            if one.is_on(number):
                one.kill()

    def fill_disk(self):
        with open(self.hosts.work / "runs/filler", "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def damage_data(self):
        for path in (self.hosts.samples(2) / "train").rglob("*.png"):
            path.write_bytes(b"damaged")

    def stop(self):
        subprocess.run([self.program, "stop", "runs/run", "--quiet"], cwd=self.hosts.work, check=True)

    def steps(self):
        return len(self.log.read_bytes().splitlines()) if self.log.exists() else 0

    def saved(self):
        return sorted(int(path.stem.split("-")[1]) for path in (self.run / "checkpoints").glob("ckpt-*.h5"))

    def read(self):
        """Reads the output of the launcher, and notes the time of the first error."""
        for line in self.launcher.stdout:
            self.lines.append(line)
            if self.first_error is None and MESSAGE.search(line):
                self.first_error = time.monotonic()

    def is_at(self, moment, step):
        """Returns true if the run has reached the step. For the moment "the start", returns true if the run has
        created its directory, because the processes are already connected at this time."""
        return self.run.exists() if moment == "the start" else self.steps() >= step

    def start(self, failure):
        """Starts a run, and waits for a random moment of the run."""
        self.log.unlink(missing_ok=True)
        sets = [word for one in failure.sets for word in ("--set", one)]
        self.launcher = self.hosts.launch(self.mpi, self.program, "fit", "config.yaml", "--output", "runs/run", "--step-log", self.log,
                                          *sets)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        after = self.draw.randint(1, STEPS - 8)
        if failure.moment == "a save":
            after = max(1, after // SAVE_EVERY) * SAVE_EVERY
        end = time.monotonic() + START_WAIT
        while not self.is_at(failure.moment, after) and self.launcher.poll() is None:
            if time.monotonic() > end:
                self.launcher.kill()
                raise AssertionError("the run does not start:\n" + "".join(self.lines))
            if self.steps() > 0 and not self.found:
                self.process(0)  # finding the process takes long, and must not delay the failure of a save
            time.sleep(0.005)
        time.sleep(self.draw.uniform(0, 0.03 if failure.moment == "a save" else 0.1))
        if self.launcher.poll() is not None:
            raise Missed

    def wait_until_gone(self, failure, own, begin):
        """Measures two times from `begin`: until the processes of dtrain have ended, and until the launcher has
        ended. A stopped process cannot end by itself, so it ends only when the launcher kills it."""
        ended = {}
        while time.monotonic() < begin + (CUT_WAIT if len(ended) == len(own) and failure.cuts else WAIT):
            ended.update({rank: time.monotonic() - begin for rank, one in own.items() if rank not in ended and not one.lives()})
            if len(ended) == len(own) and self.launcher.poll() is not None:
                break
            time.sleep(0.02)
        seconds = max(ended.get(rank, WAIT) for rank in own if rank != failure.stopped)
        if failure.noticed_late and self.first_error:
            self.facts["noticed"] = self.first_error - begin
            seconds = max(0, seconds - self.facts["noticed"])
        self.facts.update(seconds=seconds, all_seconds=max(ended.values(), default=WAIT), load=os.getloadavg()[0],
                          launcher_seconds=time.monotonic() - begin, launcher_ended=self.launcher.poll() is not None)
        self.check(len(ended) == len(own), f"processes are left after {WAIT} s")
        self.check(seconds <= shared(failure.seconds), "late")
        self.check(self.launcher.poll() is not None or failure.cuts, f"the launcher is left after {WAIT} s")

    def clear(self):
        """Ends all remaining processes on the hosts, repairs the hosts, and returns the output of the launcher."""
        time.sleep(0.2)
        left = [os.path.basename(one.program) for one in processes()]
        self.facts["left"] = left
        for one in processes():
            one.kill()
        self.hosts.heal(2)
        (self.hosts.work / "runs/filler").unlink(missing_ok=True)
        for path in (self.hosts.samples(2) / "train").rglob("*.png"):
            restore(self.hosts.samples(1) / path.relative_to(self.hosts.samples(2)), path)
        self.launcher.wait()
        self.reader.join()
        return "".join(self.lines)

    def check_message(self, failure, text):
        found = MESSAGE.findall(text)
        self.facts.update(messages=len(found), output=text[-3000:], exit_code=self.launcher.returncode)
        if not failure.message:
            self.check(not found, f"an error after a request: {found[:1]}")
        else:
            self.check(len(found) == 1, f"{len(found)} messages")
            for one in found:
                self.check(re.search(failure.message, one), f"message: {one}")

    def check_record(self, failure):
        record = self.run / "run.jsonl"
        events = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() or None not in failure.ends else [{}]
        ends = events[-1].get("outcome")  # None for a run whose last line is its beginning
        self.check(ends in failure.ends, f"run.jsonl: {ends}, expected {failure.ends[0]}")
        self.facts.update(ends=ends, steps=self.steps(), saved=self.saved())
        if failure.saves() and self.steps() > 0:
            self.check(self.saved()[-1:] == [self.steps()], f"saved {self.saved()}, finished {self.steps()} steps")

    def check_continued(self):
        command = self.hosts.on("all", self.program, "fit", "config.yaml", "--output", "runs/run", "--resume", "--quiet", "--set", ALONE)
        done = subprocess.run(command, cwd=self.hosts.work, env=hosts.environment(), capture_output=True, text=True)
        self.check(done.returncode == 0, f"the run does not continue: {done.stderr[-300:]}")
        if done.returncode == 0:
            self.check(arrays(self.program, self.run) == self.whole, "the continued run has other weights")

    def play(self, name, failure):
        mounted = name == DISK
        runs = self.hosts.work / "runs"
        runs.mkdir(exist_ok=True)
        if mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", runs], check=True)
        try:
            self.start(failure)
            saved = self.saved()
            own = {rank: self.process(rank) for rank in (0, 1)}
            begin = time.monotonic()
            failure.cause(self)
            self.facts["cause_seconds"] = time.monotonic() - begin
            if self.steps() >= STEPS:
                raise Missed
            self.wait_until_gone(failure, own, begin)
            text = self.clear()
            self.check_message(failure, text)
            self.check_record(failure)
            self.facts["saved_before"] = saved
            self.check_continued()
        except Missed:
            self.clear()
            raise
        finally:
            shutil.rmtree(self.run, ignore_errors=True)
            if mounted:
                subprocess.run(["umount", runs], check=True)


def restore(source, path):
    """Copies a file with its modification time."""
    shutil.copy2(source, path)


def arrays(program, run):
    """Maps the arrays of the last checkpoint to their checksums."""
    newest = sorted((run / "checkpoints").glob("ckpt-*.h5"))[-1]
    document = json.loads(subprocess.run([program, "inspect", newest, "--json"], check=True, capture_output=True, text=True).stdout)
    slots = {f"{slot['name']} {one['name']}": one["checksum"] for slot in document["slots"] for one in slot["arrays"]}
    return {**{one["name"]: one["checksum"] for one in document["weights"]}, **slots}


def write_data(folder):
    draw = random.Random(1)
    for split, count in (("train", 80), ("validation", 8)):
        for name, high in (("dark", 128), ("light", 255)):
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                rows = [[draw.randint(high - 128, high) for _ in range(24)] for _ in range(8)]
                (folder / split / name / f"{i}.png").write_bytes(png_of_rows(rows, 3))


def undisturbed(program, mpi, place):
    """Returns the arrays of an undisturbed run on both hosts. They must equal the arrays of a run of one process
    with two replicas."""
    process = place.launch(mpi, program, "fit", "config.yaml", "--output", f"whole-{mpi}")
    text = process.communicate(timeout=START_WAIT)[0]
    if process.returncode:
        raise AssertionError(f"the undisturbed run fails:\n{text}")
    return arrays(program, place.work / f"whole-{mpi}")


def prepared_hosts(folder):
    place = Hosts(folder, RATE)
    write_data(place.samples(1))
    shutil.copytree(place.samples(1), place.samples(2))
    (place.work / "config.yaml").write_text(CONFIG)
    return place


def play_all(options, mpi, place):
    whole = undisturbed(options.program, mpi, place)
    draw = random.Random(f"{options.seed} {mpi}")
    records = []
    for _ in range(options.rounds):
        for name in options.failure or FAILURES:
            one = play_one(Round(options.program, mpi, place, whole, draw), name)
            records.append({"mpi": mpi, "failure": name, "problems": one.problems, **one.facts})
            if options.log:
                with open(options.log, "a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    return records


def play_one(one, name):
    """Runs one round, and repeats it if the run ends before the failure."""
    while True:
        try:
            one.play(name, FAILURES[name])
            return one
        except Missed:
            one = Round(one.program, one.mpi, one.hosts, one.whole, one.draw)


def print_rows(records):
    for mpi, name in dict.fromkeys((one["mpi"], one["failure"]) for one in records):
        rounds = [one for one in records if (one["mpi"], one["failure"]) == (mpi, name)]
        seconds = [one["seconds"] for one in rounds if one["seconds"] is not None]
        passed = sum(not one["problems"] for one in rounds)
        times = f"median {statistics.median(seconds):.1f} s, worst {max(seconds):.1f} s" if seconds else ""
        print(f"{mpi:8} {name:36} {passed} of {len(rounds)} passed  {times}")
        if waits := sum(not one["launcher_ended"] for one in rounds):
            print(f"         {waits} x the launcher still waits for the lost host")
        for problem, count in Counter(problem for one in rounds for problem in one["problems"]).most_common(8):
            print(f"         {count} x {problem}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), help="run only with this MPI")
    parser.add_argument("--failure", choices=FAILURES, nargs="+", help="cause only these failures")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=pathlib.Path, help="file to which a JSON line about each round is appended")
    parser.add_argument("--summary", type=pathlib.Path, help="only print the table for a file that --log has written")
    options = parser.parse_args()
    if options.summary:
        return print_rows([json.loads(line) for line in options.summary.read_text().splitlines()])
    options.program = os.path.realpath(options.program)
    hosts.enter_namespaces()
    records = []
    mpis = [mpi for mpi in hosts.launchers() if options.mpi in (None, mpi)]
    if not mpis:
        hosts.skip("neither mpirun.openmpi nor mpiexec.mpich is installed")
    with tempfile.TemporaryDirectory() as folder:
        place = prepared_hosts(folder)
        for mpi in mpis:
            records += play_all(options, mpi, place)
    print_rows(records)
    return 1 if any(one["problems"] for one in records) else 0


if __name__ == "__main__":
    sys.exit(main())
