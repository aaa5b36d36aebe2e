#!/usr/bin/env python3
"""Compares how fast dtrain and other libraries read data, on this machine and in one run. For batches of images, dtrain
is compared with tf.data and torchvision's loader. For a table of numbers, it is compared with Polars and Arrow.

    bench/reading.py pictures FOLDER [--python PYTHON ...]    FOLDER has a folder of JPEGs for each class
    bench/reading.py table FILE.csv [--python PYTHON ...]     FILE has a header; its last column is the target

Each PYTHON may have any of the libraries (tensorflow, torchvision, polars, pyarrow); missing libraries are skipped.
Every round runs all programs in turn; the output shows the medians. The time of a library does not include its import.
For a table, dtrain's time does not include the training epoch, and the time for a table of ten rows is subtracted. For
images, dtrain's speed is the speed of training a tiny network, measured from the first step on.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZE, CROP, BATCH = 256, 224, 64

PICTURES = """\
seed: 1
model:
  inputs: {image: [224, 224, 3]}
  layers: [global_average_pooling2d, dense: {units: %d}]
dataset:
  train: {images: {directory: %s, size: [256, 256], resize: stretch}}
  augment: [random_crop: {height: 224, width: 224}, random_flip: {mode: horizontal}]
  transforms: [rescale: {scale: 1/255}]
  cache: none
train: {epochs: 1, batch_size: 64, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
"""

TENSORFLOW = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
folder, size, crop, batch = sys.argv[1], *map(int, sys.argv[2:5])
classes = sorted(c for c in os.listdir(folder) if os.path.isdir(os.path.join(folder, c)))
files = [(os.path.join(folder, c, f), i) for i, c in enumerate(classes) for f in sorted(os.listdir(os.path.join(folder, c)))]
def read(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, [size, size], antialias=True)
    image = tf.image.random_flip_left_right(tf.image.random_crop(image, [crop, crop, 3]))
    return image / 255.0, label
data = tf.data.Dataset.from_tensor_slices(([f for f, _ in files], [i for _, i in files])).shuffle(len(files), seed=1)
data = data.map(read, num_parallel_calls=tf.data.AUTOTUNE).batch(batch).prefetch(tf.data.AUTOTUNE)
start, count = time.perf_counter(), 0
for images, labels in data:
    count += images.shape[0]
print(count / (time.perf_counter() - start))
"""

TORCHVISION = """
import os, sys, time
import torch, torchvision
from torchvision import transforms
folder, size, crop, batch = sys.argv[1], *map(int, sys.argv[2:5])
data = torchvision.datasets.ImageFolder(folder, transforms.Compose([
    transforms.Resize((size, size)), transforms.RandomCrop(crop), transforms.RandomHorizontalFlip(), transforms.ToTensor()]))
loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, num_workers=os.cpu_count())
start, count = time.perf_counter(), 0
for images, labels in loader:
    count += images.shape[0]
print(count / (time.perf_counter() - start))
"""

TABLE = """\
seed: 1
model: {inputs: {x: [%d]}, layers: [dense: {units: 1}]}
dataset: {train: {csv: {file: %s, header: true, target: -1}}}
train: {epochs: 1, batch_size: 65536, loss: mean_squared_error, optimizer: {sgd: {learning_rate: 0}}}
"""

POLARS = """
import sys, time
import polars
start = time.perf_counter()
table = polars.read_csv(sys.argv[1])
print(time.perf_counter() - start)
"""

ARROW = """
import sys, time
from pyarrow import csv
start = time.perf_counter()
table = csv.read_csv(sys.argv[1])
print(time.perf_counter() - start)
"""


def peer(pythons, module, script, *arguments):
    """Runs the script with the first interpreter that has the module, and returns the number that the script prints.
    Returns None if no interpreter has the module."""
    for python in pythons:
        if subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0:
            return float(subprocess.run([python, "-c", script, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout)
    return None


def dtrain(program, config, folder):
    path = pathlib.Path(folder, "config.yaml")
    path.write_text(config)
    subprocess.run([program, "fit", path, "--output", pathlib.Path(folder, "run"), "--overwrite", "--quiet"], check=True)
    return json.loads(pathlib.Path(folder, "run/metrics.jsonl").read_text().splitlines()[-1])


def pictures(options, scratch):
    """Yields (program, images per second)."""
    folder = os.path.abspath(options.path)
    classes = [name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))]
    record = dtrain(options.program, PICTURES % (len(classes), json.dumps(folder)), scratch)
    yield "dtrain", record["samples_per_second"]
    yield "tf.data", peer(options.python, "tensorflow", TENSORFLOW, folder, SIZE, CROP, BATCH)
    yield "torchvision", peer(options.python, "torchvision", TORCHVISION, folder, SIZE, CROP, BATCH)


def table(options, scratch):
    """Yields (program, seconds from the file to a table in memory)."""
    path, small = os.path.abspath(options.path), os.path.join(scratch, "small.csv")
    with open(path, encoding="utf-8") as file, open(small, "w", encoding="utf-8") as few:
        few.writelines(next(file) for _ in range(11))
    def seconds(name):
        start = time.perf_counter()
        record = dtrain(options.program, TABLE % (columns, json.dumps(name)), scratch)
        return time.perf_counter() - start - record["seconds"]
    columns = pathlib.Path(small).read_text(encoding="utf-8").split("\n")[0].count(",")
    yield "dtrain", seconds(path) - seconds(small)
    yield "polars", peer(options.python, "polars", POLARS, path)
    yield "pyarrow", peer(options.python, "pyarrow", ARROW, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pictures", "table"])
    parser.add_argument("path")
    parser.add_argument("--program", default=ROOT / "build/release/app/dtrain")
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.python = options.python or [sys.executable]
    measure = {"pictures": pictures, "table": table}[options.what]
    found = {}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as scratch:
            for name, value in measure(options, scratch):
                if value is not None:
                    found.setdefault(name, []).append(value)
    unit, better = ("images/s", "more is better") if options.what == "pictures" else ("s", "less is better")
    for name, values in found.items():
        line = f"{name:12} {statistics.median(values):10.2f} {unit} ({min(values):.2f} to {max(values):.2f})"
        if name != "dtrain":
            line += f"   dtrain/{name} {statistics.median(mine / its for mine, its in zip(found['dtrain'], values)):.2f} ({better})"
        print(line)


if __name__ == "__main__":
    main()
