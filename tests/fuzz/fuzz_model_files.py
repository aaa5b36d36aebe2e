#!/usr/bin/env python3
"""Untrusted model files: randomly mutated .keras, .h5, .safetensors and .onnx files are imported, inspected and used as
pretrained weights. Each command must end in time with 0 or 2, and use at most 4 times the file's size and 200 MB of
memory. A rejected import must leave no files.

    fuzz_model_files.py --program DTRAIN [--count N] [--seed S] [--keep FOLDER] [FILE...]

FILEs are mutated in addition to those that dtrain creates.
"""
import argparse
import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

from fuzz_checkpoint import RAW
from sanitizers import has_sanitizers

SHORT, LONG = 120, 10000
SECONDS = 30
HEADER = 512  # size of a checkpoint's header; an HDF5 file in Keras's format follows

CONFIG = {
    "seed": 1,
    "model": {"inputs": {"x": [6, 6, 2]},
              "layers": [{"conv2d": {"filters": 3, "kernel_size": 3, "activation": "relu"}}, "batch_normalization",
                         "flatten", {"dense": {"units": 4, "name": "a"}}, {"dense": {"units": 4, "name": "b", "inputs": "flatten"}},
                         {"add": {"inputs": ["a", "b"]}}, {"dense": {"units": 2}}]},
    "dataset": {"train": {"synthetic": {"samples": 16, "target": {"classes": 2}}}},
    "strategy": "single",
    "train": {"epochs": 1, "batch_size": 8, "loss": {"sparse_categorical_crossentropy": {"from_logits": True}}, "optimizer": "adam"},
}


def bases(program, folder, files):
    """Returns the files to mutate: name and bytes."""
    (folder / "run.yaml").write_text(json.dumps(CONFIG))
    for arguments in (["fit", "run.yaml", "--output", "run"], ["export", "run", "--output", "a.keras"],
                      ["export", "run", "--output", "a.safetensors"], ["export", "run", "--output", "a.onnx"]):
        subprocess.run([program, *arguments, "--quiet"], cwd=folder, check=True)
    found = [(name, (folder / name).read_bytes()) for name in ("a.keras", "a.safetensors", "a.onnx")]
    found.append(("a.h5", next((folder / "run/checkpoints").glob("*.h5")).read_bytes()[HEADER:]))
    return found + [(path.name, path.read_bytes()) for path in files]


def mutate_json(draw, value, depth=0):
    """Returns the JSON value with one random change."""
    absurd = [None, True, -1, 0, 1, 2 ** 31, 2 ** 40, 1e300, "", "x" * 1000, [], {}, [[]], "Dense", "Lambda", "InputLayer"]
    if depth > 12 or draw.random() < 0.06 or not isinstance(value, (dict, list)) or not value:
        return draw.choice(absurd)
    if isinstance(value, dict):
        key = draw.choice(list(value))
        change = draw.random()
        if change < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if change < 0.15:
            return {**value, key + "_": value[key]}
        return {**value, key: mutate_json(draw, value[key], depth + 1)}
    at = draw.randrange(len(value))
    change = draw.random()
    if change < 0.1:
        return value[:at] + value[at + 1:]
    if change < 0.2:
        return value[:at] + [value[at]] * draw.choice([2, 3, 50]) + value[at + 1:]
    if change < 0.3:
        return draw.sample(value, len(value))
    return value[:at] + [mutate_json(draw, value[at], depth + 1)] + value[at + 1:]


def mutate_bytes(draw, data):
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 5, 20])):
        if not data:
            break
        at, way = draw.randrange(len(data)), draw.random()
        if way < 0.4:
            data[at] ^= 1 << draw.randrange(8)
        elif way < 0.7:
            width = draw.choice([1, 2, 4, 8])
            data[at:at + width] = draw.choice([0, 1, 0xff, 1 << (8 * width - 1), draw.getrandbits(8 * width)]).to_bytes(9, "little")[:width]
        elif way < 0.8:
            del data[at:at + draw.choice([1, 8, 512])]
        elif way < 0.9:
            other = draw.randrange(len(data))
            data[at:at + 16] = data[other:other + 16]
        else:
            del data[at:]
    return bytes(data)


def mutate(draw, name, data):
    """Mutates a file. For an archive, mutates the bytes of the file, or its entries with correct checksums."""
    if not name.endswith(".keras") or draw.random() < 0.3:
        return mutate_bytes(draw, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    if draw.random() < 0.6:
        config = json.loads(entries["config.json"])
        for _ in range(draw.choice([1, 1, 3])):
            config = mutate_json(draw, config)
        entries["config.json"] = json.dumps(config).encode()
    else:
        entry = draw.choice(list(entries))
        entries[entry] = mutate_bytes(draw, entries[entry])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    return made.getvalue()


def run(command, folder):
    """Returns the exit code, the peak memory in bytes, and the output."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        end = time.monotonic() + SECONDS
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.001)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return process.returncode, usage.ru_maxrss * 1024, output.read().decode(errors="replace")


def problem_of(program, folder, name, limits_memory):
    """Returns a description of dtrain's failure on a file; "" if there is none."""
    size = (folder / name).stat().st_size
    config = json.loads(json.dumps(CONFIG))
    config["model"]["weights"] = {"from": name}
    (folder / "from.yaml").write_text(json.dumps(config))
    shutil.rmtree(folder / "imported", ignore_errors=True)
    commands = [["import", name, "--output", "imported"], ["inspect", name], ["summary", name], ["check", "from.yaml"]]
    for arguments in commands:
        code, memory, output = run([program, *arguments], folder)
        if code not in (0, 2):
            return f"dtrain {' '.join(arguments)}: exit code {code}\n{output}"
        if RAW.search(output):
            return f"dtrain {' '.join(arguments)}: a library's text\n{output}"
        if limits_memory and memory > 4 * size + 200e6:
            return f"dtrain {' '.join(arguments)}: {memory / 1e6:.0f} MB of memory for a file of {size} bytes\n{output}"
        if arguments[0] == "import" and code == 2 and (folder / "imported").exists():
            return f"dtrain {' '.join(arguments)}: the rejected import left a folder\n{output}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--count", type=int)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the file that causes a finding")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    count = arguments.count or (LONG if arguments.long else SHORT)
    limits_memory = not has_sanitizers(arguments.program)
    imported = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        originals = bases(arguments.program, folder, arguments.files)
        for i in range(count):
            draw = random.Random(f"{arguments.seed} {i}")
            base, data = originals[i % len(originals)]
            (folder / base).write_bytes(mutate(draw, base, data))
            problem = problem_of(arguments.program, folder, base, limits_memory)
            imported += (folder / "imported").exists()
            if problem:
                print(f"--seed {arguments.seed}, file {i} ({base}): {problem}")
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(folder / base, arguments.keep / f"{i}-{base}")
                sys.exit(1)
    print(f"{count} model files, {imported} of them imported: 0 findings")


if __name__ == "__main__":
    main()
