#!/usr/bin/env python3
"""Changes checkpoints and corrects their checksums, as an attacker could, and checks that `inspect`, `evaluate` and
`resume` end without a signal, within five seconds, with exit code 0, 1 or 2, and print only dtrain's own error
messages.

    fuzz_checkpoint.py --program DTRAIN [--count N] [--seed S] [--only I] [--long]

--count: number of changed checkpoints; --only: runs only the I-th checkpoint, and keeps its file. A checkpoint depends
only on the seed and I.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from patience import patiently

SECONDS = 5  # a command that takes longer hangs
SHORT, LONG = 60, 10_000
HEADER = 512
MASK = (1 << 64) - 1
ODD = 0x9E3779B97F4A7C15

# Text that comes from a library or a runtime. dtrain must not print it.
RAW = re.compile(r"HDF5-DIAG|std::|terminate called|basic_string|vector::|_M_|filesystem error|what\(\)|yaml-cpp|[Aa]ssert|"
                 r"runtime error|Sanitizer|could not create a|stoi|from_chars|variant|optional access")

# The numbers have at most two digits. Therefore changed numbers do not cause runs with much memory or time.
DATASET = """\
dataset:
  train:      {synthetic: {samples: 20, target: {classes: 3}, seed: 1}}
  validation: {synthetic: {samples: 6, target: {classes: 3}, seed: 2}}
strategy: {single: {device: cpu:0}}
"""
LOSS = "loss: {sparse_categorical_crossentropy: {from_logits: true}}"
CONFIGS = {
    "dense": """\
model: {inputs: {x: [4]}, layers: [{dense: {units: 5, activation: relu}}, {dropout: {rate: 0.2}}, {dense: {units: 3}}]}
%s
train:
  epochs: 2
  batch_size: 8
  %s
  optimizer: {adam: {learning_rate: {reduce_on_plateau: {initial: 0.01, patience: 1}}}}
  metrics: [sparse_categorical_accuracy]
  callbacks: [{early_stopping: {patience: 9}}, terminate_on_nan]
checkpoint: {every: 2 steps, keep: 10, best: {monitor: val_loss}}
""" % (DATASET, LOSS),
    "images": """\
model:
  inputs: {x: [6, 6, 2]}
  blocks:
    basic:
      layers:
        - conv2d: {filters: 2, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization: {name: body}
        - add: {inputs: [body, input]}
  layers: [{basic: {repeat: 2}}, flatten, {dense: {units: 3}}]
%s
train: {epochs: 2, batch_size: 8, %s, optimizer: {sgd: {learning_rate: 0.1, momentum: 0.9}}}
checkpoint: {every: 2 steps, keep: 10}
""" % (DATASET, LOSS),
    # The model has 25 layers. HDF5 stores the names of this number of groups in a heap with an index.
    "many": """\
model: {inputs: {x: [4]}, blocks: {b: {layers: [{dense: {units: 4}}, layer_normalization]}}, layers: [{b: {repeat: 12}}, {dense: {units: 3}}]}
%s
train: {epochs: 2, batch_size: 8, %s, optimizer: rmsprop}
checkpoint: {every: 2 steps, keep: 10}
""" % (DATASET, LOSS),
}


def checksum(image):
    """Returns the checksum that lib/checkpoint/hash.h computes."""
    def step(lane, word):
        x = lane ^ word
        x = ((x ^ (x >> 32)) * ODD) & MASK
        return ((x << 29) | (x >> 35)) & MASK

    lanes = [(ODD * (i + 1)) & MASK for i in range(8)]
    padded = image + b"\0" * (-len(image) % 64)
    for at in range(0, len(padded), 64):
        words = struct.unpack_from("<8Q", padded, at)
        lanes = [step(lane, word) for lane, word in zip(lanes, words)]
    value = len(image)
    for lane in lanes:
        value = step(value, lane)
    value = ((value ^ (value >> 32)) * ODD) & MASK
    return value ^ (value >> 29)


def with_header(image, number=None):
    """Returns the file of this image with the format version `number`."""
    text = b"dtrain checkpoint\nformat %d\nbytes %d\nchecksum %016x\n" % (number, len(image), checksum(image))
    return text.ljust(HEADER, b"\0") + image


class Base:
    """A checkpoint to be changed, and the positions of its parts."""

    def __init__(self, path):
        data = path.read_bytes()
        self.format = int(re.search(rb"\nformat (\d+)\n", data[:HEADER]).group(1))
        self.image = data[HEADER:]
        if with_header(self.image, self.format) != data:
            sys.exit("fuzz_checkpoint: this script computes another checksum than the program")
        signatures = re.finditer(rb"\x89HDF|OHDR|OCHK|FRHP|FHDB|FHIB|BTHD|BTLF|BTIN", self.image)
        self.places = sorted({i for found in signatures for i in range(found.start(), min(found.start() + 250, len(self.image)))})
        self.objects = [found.start() for found in re.finditer(rb"OHDR|FRHP|BTHD", self.image)]
        self.texts = self.find_texts()

    def find_texts(self):
        """Finds the start and end of the state and of the configuration."""
        begin = self.image.index(b'{"step": ')
        length = json.JSONDecoder().raw_decode(self.image[begin:].decode("latin-1"))[1]
        config = max(self.image.find(b"name: "), self.image.find(b"seed: "))
        found = re.compile(rb"[\n -~]+").search(self.image, min(x for x in (self.image.find(b"\nmodel:"), config) if x > 0))
        return {"state": (begin, begin + length), "config": found.span()}


def other_value(rng, value):
    choices = [None, True, -1, 0, 1, 2, 3, 99, 10**15, 2**63 - 1, -(2**63), 0.5, -0.0, 1e308, "", "nan", "inf", "x", [], {}, [1], {"a": 1}]
    if isinstance(value, int) and not isinstance(value, bool):
        choices += [value + 1, value - 1, value * 2, -value]
    return rng.choice(choices)


def change_json(rng, value):
    """Returns a copy of the JSON document in which one value is changed, removed or duplicated."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {k: change_json(rng, v) if k == key else v for k, v in value.items()}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value[:at] + rng.choice([[], [value[at], value[at]]]) + value[at + 1:]
        return [change_json(rng, v) if i == at else v for i, v in enumerate(value)]
    return other_value(rng, value)


def change_state(rng, base):
    begin, end = base.texts["state"]
    text = json.dumps(change_json(rng, json.loads(base.image[begin:end])), separators=(",", ":")).encode()
    return [(begin, text.ljust(end - begin))] if len(text) <= end - begin else []


def change_config(rng, base):
    begin, end = base.texts["config"]
    at = rng.randrange(begin, end)
    words = [found.span() for found in re.finditer(rb"[\w.]+", base.image[begin:end])]
    kind = rng.random()
    if kind < 0.4:  # overwrites one word by another
        (a, b), (c, d) = rng.choice(words), rng.choice(words)
        word = base.image[begin + c:begin + d][:b - a]
        return [(begin + a, word.ljust(b - a))]
    if kind < 0.7:
        return [(at, bytes([rng.choice(b"0123456789-.:,[]{}\"'&*!|>%@`# \n\tabe~")]))]
    return [(at, bytes([rng.randrange(256)]))]


def change_bytes(rng, base):
    at = rng.choice(base.places) if rng.random() < 0.8 else rng.randrange(len(base.image))
    kind = rng.random()
    if kind < 0.3:
        return [(at, bytes([rng.randrange(256)]))]
    if kind < 0.4:
        return [(at, bytes([base.image[at] ^ (1 << rng.randrange(8))]))]
    if kind < 0.9:
        size = len(base.image)
        value = rng.choice([0, 1, 0xFF, 0xFFFF, 2**31, 2**32, 2**63, 2**64 - 1, size, size - 1, size // 2, rng.choice(base.objects),
                            rng.choice(base.places), rng.randrange(2**64)])
        return [(at, struct.pack("<Q", value)[:rng.choice([1, 2, 4, 8])])]
    source = rng.choice(base.places)
    return [(at, base.image[source:source + rng.choice([8, 16, 64, 256])])]


def change_floats(rng, base):
    at = rng.randrange(0, len(base.image) - 4)
    return [(at, struct.pack("<f", rng.choice([float("nan"), float("inf"), -3e38, 1e-45, 0.0])))]


def edits_of(rng, base):
    kind = rng.choices([change_bytes, change_state, change_config, change_floats], [6, 3, 2, 1])[0]
    count = rng.choice([1, 1, 1, 2, 3, 8])
    return [edit for _ in range(count) for edit in kind(rng, base)]


def apply(base, edits, cut):
    image = bytearray(base.image)
    for at, data in edits:
        data = data[:len(image) - at]
        image[at:at + len(data)] = data
    return with_header(bytes(image[:cut]), base.format)


class Fuzzer:
    def __init__(self, program, folder, seed):
        self.program, self.folder, self.seed = str(program), folder, seed
        self.bases = self.make_bases()

    def make_bases(self):
        bases = []
        for name, text in CONFIGS.items():
            work = self.folder / name
            work.mkdir()
            (work / "c.yaml").write_text("seed: 3\n" + text)
            subprocess.run([self.program, "fit", "c.yaml", "-o", "r", "-q"], cwd=work, check=True, timeout=60)
            paths = sorted((work / "r/checkpoints").glob("ckpt-*.h5"))
            bases += [Base(paths[1]), Base(paths[-1])]  # a checkpoint within an epoch, and the last one
        return bases

    def change(self, number):
        rng = random.Random(f"{self.seed}/{number}")
        base = rng.choice(self.bases)
        edits = edits_of(rng, base)
        cut = rng.randrange(len(base.image)) if rng.random() < 0.02 else len(base.image)
        return base, edits, cut

    def finding(self, base, edits, cut, work):
        """Returns a description of the program's failure on the changed file; None if there is none."""
        path = work / "ckpt-00000003.h5"
        path.write_bytes(apply(base, edits, cut))
        for command in (["inspect", path], ["inspect", path, "--json"], ["evaluate", path],
                        ["resume", path, "-o", work / "resumed", "--epochs", "2", "-q"]):
            line = " ".join(map(str, command))

            def run(seconds):
                shutil.rmtree(work / "resumed", ignore_errors=True)
                return subprocess.run([self.program, *map(str, command)], cwd=work, stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=seconds)

            try:
                done = patiently(run, SECONDS)
            except subprocess.TimeoutExpired as hang:
                return f"{line}: more than {hang.timeout:.0f} s"
            errors = done.stderr.decode("utf-8", "replace")
            if done.returncode not in (0, 1, 2):
                return f"{line}: exit code {done.returncode}\n{errors[-2000:]}"
            if RAW.search(errors):
                return f"{line}: a library's text\n{errors[-2000:]}"
            if done.returncode and not errors.strip():
                return f"{line}: exit code {done.returncode} without a message"
            if "--json" in command and done.returncode == 0:
                try:
                    json.loads(done.stdout.decode("utf-8"))
                except ValueError as error:
                    return f"{line}: the output is not JSON: {error}"
        return None

    def try_one(self, number, keep=None):
        base, edits, cut = self.change(number)
        work = self.folder / f"try-{number}"
        work.mkdir()
        try:
            found = self.finding(base, edits, cut, work)
            if found:
                found, edits, cut = self.smallest(base, edits, cut, work, found)
            if keep:
                keep.write_bytes(apply(base, edits, cut))
            return found and f"#{number} (--seed {self.seed} --only {number}): {found}\nchanged at " + ", ".join(
                f"{at}: {data[:40]!r}" for at, data in edits) + (f", cut at {cut}" if cut < len(base.image) else "")
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def smallest(self, base, edits, cut, work, found):
        """Returns the finding with only the changes that are needed to cause it."""
        for at in range(len(edits) - 1, -1, -1):
            fewer = edits[:at] + edits[at + 1:]
            still = self.finding(base, fewer, cut, work)
            if still:
                found, edits = still, fewer
        return found, edits, cut


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=lambda p: pathlib.Path(p).resolve(), required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    count = options.count or (LONG if options.long else SHORT)
    with tempfile.TemporaryDirectory(prefix="fuzz-checkpoint-") as folder:
        fuzzer = Fuzzer(options.program, pathlib.Path(folder), options.seed)
        if options.only is not None:
            keep = pathlib.Path(f"fuzz-checkpoint-{options.seed}-{options.only}.h5").resolve()
            print(fuzzer.try_one(options.only, keep) or "nothing found", f"\nthe file: {keep}")
            return 0
        found = 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for finding in pool.map(fuzzer.try_one, range(count)):
                if finding:
                    found += 1
                    print(finding, flush=True)
                if found >= 10:
                    pool.shutdown(cancel_futures=True)
                    break
    print(f"fuzz_checkpoint: {count} changed checkpoints, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
