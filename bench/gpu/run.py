#!/usr/bin/env python3
"""Compares dtrain to PyTorch on one GPU, in one run: for each workload, the script measures first PyTorch, then dtrain.

    bench/gpu/run.py [WORKLOAD ...] [--dtrain PATH] [--gpu-bench PATH] [--output DIRECTORY] [--minutes 9]

Writes <date>-<gpu>.md and .json to the output directory (bench/results); a later run replaces the results of the
workloads that it measures. A failed measurement is listed with the reason, and the other measurements continue. The
script needs torch in the interpreter PEER_PYTHON (default: the interpreter of this script), and no network. `--smoke`
tests the script on a CPU with tiny sizes; the figures then have no meaning.
"""
import argparse
import array
import datetime
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import bounds
import report
from npy import npy_header

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from run import median_step  # noqa: E402  (bench/run.py)

PYTHON = os.environ.get("PEER_PYTHON", sys.executable)

# The values of each workload are: the number of samples in the file (where they are stored as bytes), the shape of a
# sample, the number of classes, the batch size, the epochs of the timed run, and its warm-up steps.
WORKLOADS = {
    "mnist-mlp": dict(samples=59968, shape=(784,), classes=10, batch=64, epochs=64, warmup=2000),
    "wide-mlp": dict(samples=131072, shape=(8000,), classes=2, batch=8192, epochs=60, warmup=64),
    "resnet50": dict(samples=4096, shape=(224, 224, 3), classes=1000, batch=256, epochs=6, warmup=20),
}
SMOKE = {
    "mnist-mlp": dict(WORKLOADS["mnist-mlp"], samples=640, epochs=3, warmup=5),
    "wide-mlp": dict(WORKLOADS["wide-mlp"], samples=16, batch=8, epochs=2, warmup=1),
    "resnet50": dict(WORKLOADS["resnet50"], samples=4, batch=2, epochs=1, warmup=0),
}
# Maximum relative difference between the first losses of dtrain and PyTorch.
TOLERANCE = {"float32": 1e-3, "tf32": 5e-3, "bf16": 2e-2}
PRECISION = {"float32": "float32", "tf32": "tf32", "bf16": "mixed_bfloat16"}


class NotMeasured(Exception):
    pass


class Bench:
    """The paths of the programs, and the time left to run them."""

    def __init__(self, arguments):
        self.dtrain = pathlib.Path(arguments.dtrain).resolve()
        self.gpu_bench, self.as_gpu_bench = find_gpu_bench(arguments)
        self.smoke = arguments.smoke
        self.workloads = SMOKE if arguments.smoke else WORKLOADS
        self.deadline = time.monotonic() + 60 * arguments.minutes
        self.rows = {}  # results of gpu_bench, by section
        # A description of the machine, and the versions that the programs report.
        self.found = {"dtrain": json.loads(self.run([self.dtrain, "gpus", "--json"]))["gpu"]}
        devices = self.found["dtrain"].pop("devices", [])
        self.found["gpu"] = devices[0]["name"] if devices else "no GPU"
        if self.smoke:
            self.found["gpu"] = "smoke test, meaningless figures"

    def run(self, command, limit=150, **environment):
        """Runs a command and returns its standard output."""
        left = self.deadline - time.monotonic()
        if left < 5:
            raise NotMeasured("the time limit of the whole run was reached")
        command, limit = [str(word) for word in command], min(limit, left)
        name = pathlib.Path(command[0]).name + " " + " ".join(command[1:3])
        try:
            # The command gets its own process group, so that its children are killed, too.
            process = subprocess.Popen(command, env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, start_new_session=True)
        except OSError as error:
            raise NotMeasured(str(error))
        with process:
            try:
                output, errors = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise NotMeasured(f"{name}: not done after {limit:.0f} s")
        if process.returncode != 0 and not output.strip().endswith("}"):
            last = " / ".join((errors or output).strip().splitlines()[-3:])
            raise NotMeasured(f"{name}: exit code {process.returncode}: {last}")
        return output

    def peer(self, workload, *options, limit=150):
        command = [PYTHON, HERE / "peer.py", workload, *options]
        if self.smoke:
            command += ["--device", "cpu", "--window", "0.01", "--windows", "1", "--warmup", "1", "--parameters", "100000"]
        result = json.loads(self.run(command, limit).splitlines()[-1])
        self.found["torch"] = result.pop("versions")
        return result

    def operations(self, section):
        """Returns the rows of a section of gpu_bench, by name."""
        if section not in self.rows:
            self.rows[section] = json.loads(self.run([self.gpu_bench, section], **self.as_gpu_bench))
        result = self.rows[section]
        if section in result["failed"]:
            raise NotMeasured(f"gpu_bench {section}: {result['failed'][section]}")
        return {row["name"]: row for row in result["sections"][section]}

    def rates(self, precision):
        """Returns the rates that the GPU reaches with dtrain's libraries: operations per second of large matrix
        products, and bytes per second of a copy."""
        products = self.operations("products")[f"{precision} all products"]
        return products["teraflops"] * 1e12, self.operations("optimizer")["copy"]["gigabytes_per_second"] * 1e9


class Workload:
    """One workload's data, initial weights and runs, in its own directory."""

    def __init__(self, bench, name, directory):
        self.bench, self.name, self.directory = bench, name, pathlib.Path(directory)
        self.spec = bench.workloads[name]
        write_data(self.directory, self.spec)
        self.fit("first", 0, "float32")
        checkpoint = self.directory / "first" / "checkpoints" / "ckpt-00000000.h5"
        described = bench.run([bench.gpu_bench, "weights", checkpoint, self.directory / "weights.bin"], **bench.as_gpu_bench)
        (self.directory / "weights.json").write_text(described)

    def fit(self, run, epochs, precision, *sets):
        """Trains with dtrain, and returns the end time and the loss of every step."""
        log = self.directory / "steps.jsonl"
        log.unlink(missing_ok=True)
        if self.name == "resnet50":
            # With a gamma of 0, each residual block starts as an identity. If gamma were 1, rounding alone would change
            # the first losses by several percent.
            sets = ["model.blocks.body.parameters.gamma=zeros", *sets]
        sets = [f"train.batch_size={self.spec['batch']}", "dataset.transforms=[{rescale: {scale: 0.00392156862745098}}]", *sets]
        if self.bench.smoke:
            sets += ["strategy=single"]
        else:
            sets += ["strategy={mirrored: {devices: [gpu:0]}}", "dataset.cache=device", f"train.precision={PRECISION[precision]}"]
        command = [self.bench.dtrain, "fit", HERE.parent / "workloads" / f"{self.name}.yaml", "--overwrite", "--quiet"]
        command += ["--output", self.directory / run, "--epochs", epochs, "--step-log", log]
        for one in sets:
            command += ["--set", one]
        self.bench.run(command, DTRAIN_BENCH=str(self.directory))
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return [line["seconds"] for line in lines], [float(line["loss"]) for line in lines]

    def peer(self, precision, modes, losses=0, limit=150):
        return self.bench.peer(self.name, self.directory, self.directory / "weights.json", "--batch", self.spec["batch"],
                               "--precision", precision, "--modes", modes, "--losses", losses, limit=limit)

    def compared_steps(self):
        return 2 if self.bench.smoke else 20

    def difference(self, precision, theirs):
        """Compares the first losses of dtrain and PyTorch. The largest relative difference must not exceed the
        tolerance of the precision."""
        if isinstance(theirs, dict):
            raise NotMeasured(f"PyTorch's losses: {theirs['error']}")
        # Keras adds Adam's epsilon to the root before the bias correction, and PyTorch adds it after the correction.
        # Without epsilon, the rules are equal.
        sets = [] if self.name == "resnet50" else ["train.optimizer.adam.epsilon=1e-30"]
        epochs = -(-len(theirs) * self.spec["batch"] // self.spec["samples"])
        _, ours = self.fit("losses", epochs, precision, "dataset.shuffle=false", *sets)
        differences = [abs(a - b) / abs(b) for a, b in zip(ours, theirs)]
        return {"steps": len(theirs), "difference": max(differences), "tolerance": TOLERANCE[precision],
                "agree": all(one <= TOLERANCE[precision] for one in differences),  # false if a difference is nan
                "dtrain": ours[: len(theirs)], "torch": theirs}

    def step_seconds(self, precision):
        ends, _ = self.fit("run", self.spec["epochs"], precision)
        return median_step(ends, self.spec["warmup"])


def default_dtrain():
    """Returns the dtrain of the bundle or of the build folder."""
    project = HERE.parent.parent
    return project / "dtrain" if (project / "dtrain").is_file() else project / "build" / "release" / "app" / "dtrain"


def find_gpu_bench(arguments):
    """Returns the path of gpu_bench (from the command line, or next to dtrain in its bundle or build folder) and the
    environment that it needs."""
    if arguments.gpu_bench:
        return pathlib.Path(arguments.gpu_bench).resolve(), {}
    dtrain = pathlib.Path(arguments.dtrain).resolve()
    if (dtrain.parent / "bin" / "gpu_bench").exists():  # dtrain is the bundle's launcher, which sets up the libraries for both
        return dtrain, {"DTRAIN_PROGRAM": "gpu_bench"}
    return dtrain.parent.parent / "bench" / "gpu_bench", {}


def write_data(directory, spec):
    def write(name, kind, shape, pieces):
        with open(directory / name, "wb") as file:
            file.write(npy_header(kind, shape))
            for piece in pieces:
                file.write(piece)

    source = random.Random(1)
    noise = source.randbytes(1 << 24)
    write("x.npy", "|u1", (spec["samples"], *spec["shape"]), (sample(source, noise, spec["shape"]) for _ in range(spec["samples"])))
    labels = array.array("i", (source.randrange(spec["classes"]) for _ in range(spec["samples"])))
    write("y.npy", "<i4", (spec["samples"],), [labels.tobytes()])


def sample(source, noise, shape):
    """Returns a random sample. Images consist of squares of one color. With a different color for each pixel, images
    would look uniform to a deep network, and its normalizations would mainly amplify rounding errors."""
    if len(shape) == 1:
        first = source.randrange(len(noise) - shape[0])
        return noise[first : first + shape[0]]
    height, width, channels = shape
    side = height // 7

    def line():
        return b"".join(source.randbytes(channels) * side for _ in range(width // side))

    return b"".join(line() * side for _ in range(height // side))


def seconds_or_reason(result, mode):
    """Returns (the seconds that were measured in this mode, None), or (None, the reason) if there was an error."""
    figures = result[mode]
    return (figures["seconds"], None) if "error" not in figures else (None, figures["error"])


def training(bench, name, precision, peers, measure):
    """Measures the training steps of dtrain and of each peer. `peers` has one entry for each process of a peer: the
    modes that the process measures, and its time limit in seconds."""
    with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as directory:
        workload = Workload(bench, name, directory)
        return measure_training(workload, precision, peers, measure)


def measure_training(workload, precision, peers, measure):
    theirs = {}
    result = {"precision": precision, "batch": workload.spec["batch"], "peers": theirs}
    for index, (modes, limit) in enumerate(peers):
        try:
            theirs.update(workload.peer(precision, modes, workload.compared_steps() if index == 0 else 0, limit))
        except NotMeasured as reason:
            theirs.update({mode: {"error": str(reason)} for mode in modes.split(",")})
    losses = theirs.pop("losses", {"error": "the process failed"})
    try:
        result["losses"] = workload.difference(precision, losses)
    except NotMeasured as reason:
        result["losses"] = {"error": str(reason)}
    try:
        result["seconds"] = workload.step_seconds(precision)
    except NotMeasured as reason:
        result["error"] = str(reason)
    result["rows"] = measure(workload, result)
    for row in result["rows"]:
        if row["met"] and not result["losses"].get("agree"):  # speed does not count if the losses are wrong
            row["met"] = False
    return result


def faster_than(mode, label, unit, amount, must=None):
    """Returns a function that makes a row of the report, which compares dtrain with PyTorch in this mode. `amount`
    is the number of units, such as samples, in one step."""
    def row(name, result):
        peer, reason = seconds_or_reason(result["peers"], mode)
        ours = result.get("seconds")
        return report.row(name, f"{unit} beside PyTorch {label}", peer and amount / peer, ours and amount / ours,
                          peer and ours and peer / ours, must, reason or result.get("error"))
    return row


def share_of_bound(workload, name, result, must=None):
    reason, rates = result.get("error"), None
    try:
        operations, copied = workload.bench.rates(result["precision"])
        peer = result["peers"].get("products", {})
        rates = max(operations, peer["operations"] / peer["seconds"] if "seconds" in peer else 0), copied
    except NotMeasured as not_measured:
        reason = reason or str(not_measured)
    passes = bounds.step(workload.name, workload.spec["batch"], result["precision"])
    return bounds.row(name, passes, result.get("seconds"), rates, reason, must)


def mnist_mlp(bench):
    def rows(workload, result):
        name = f"{workload.name}, batch {workload.spec['batch']}, float32"
        return [faster_than("eager", "eager", "steps/s", 1, 5.0)(name, result),
                faster_than("graph", "with a CUDA graph", "steps/s", 1, 1.0)(name, result),
                share_of_bound(workload, name, result)]
    return training(bench, "mnist-mlp", "float32", [("eager,graph", 150)], rows)


def wide_mlp(bench):
    results = {}
    with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as directory:
        workload = Workload(bench, "wide-mlp", directory)
        for precision in ["float32"] if bench.smoke else ["tf32", "bf16"]:
            results[precision] = measure_training(workload, precision, [("eager,products", 150)], wide_rows)
    return {"precisions": results, "rows": [row for result in results.values() for row in result["rows"]]}


def wide_rows(workload, result):
    name = f"wide-mlp, batch {workload.spec['batch']}, {result['precision']}"
    rows = [faster_than("eager", "eager", "steps/s", 1)(name, result)]
    alone, reason = seconds_or_reason(result["peers"], "products")
    rate = alone and result["peers"]["products"]["operations"] / alone * 1e-12
    ours = result.get("seconds")
    rows.append(report.row(name, "TFLOP/s of a whole step beside cuBLAS alone", rate, alone and ours and rate * alone / ours,
                           alone and ours and alone / ours, None, reason or result.get("error")))
    rows.append(share_of_bound(workload, name, result, 0.9))
    try:
        products = workload.bench.operations("products")
        result["products"] = {key: row for key, row in products.items() if key.startswith(result["precision"])}
        own, reason = products[f"{result['precision']} all products"]["seconds"], reason
    except NotMeasured as not_measured:
        own, reason = None, reason or str(not_measured)
    rows.append(report.row(name, "TFLOP/s of its products, biases and activations beside cuBLAS alone", rate,
                           alone and own and rate * alone / own, alone and own and alone / own, 0.9, reason))
    return rows


def resnet50(bench):
    def rows(workload, result):
        name, batch = f"ResNet-50, batch {workload.spec['batch']}, {result['precision']}", workload.spec["batch"]
        return [faster_than("eager", "eager", "samples/s", batch)(name, result),
                faster_than("compile", "torch.compile", "samples/s", batch, 1.0)(name, result),
                share_of_bound(workload, name, result)]
    return training(bench, "resnet50", "float32" if bench.smoke else "bf16", [("eager", 90), ("compile", 220)], rows)


def adam(bench):
    peer = bench.peer("adam", "--modes", "adam", limit=90)["adam"]
    theirs = None if "error" in peer else peer["bytes"] / peer["seconds"] / (peer["copy_bytes"] / peer["copy_seconds"])
    result = {"peers": {"adam": peer}, "rows": []}
    reason, rows = peer.get("error"), {}
    try:
        rows = result["operations"] = bench.operations("optimizer")
    except NotMeasured as not_measured:
        reason = str(not_measured)
    for name in ("adam", "adam with bf16 copy"):
        ours = rows and rows[name]["gigabytes_per_second"] / rows["copy"]["gigabytes_per_second"]
        result["rows"].append(report.row(f"{name}, 41 million parameters", "share of the copy bandwidth", theirs, ours or None,
                                         ours or None, 0.9, reason))
    return result


def nccl(bench):
    rows = bench.operations("collective")
    added = sorted(rows[f"step with NCCL, round {i}"]["seconds"] / rows[f"step without NCCL, round {i}"]["seconds"] - 1
                   for i in (1, 2, 3))[1]
    return {"operations": rows, "rows": [report.row("one-rank NCCL, wide-mlp's bf16 step replayed", "added to a step", None, added,
                                                    added, 0.02, None, at_most=True)]}


def images(bench):
    return {"operations": bench.operations("images"), "rows": []}


def convolutions(bench):
    return {"operations": bench.operations("convolutions"), "rows": []}


MEASURES = {"adam": adam, "nccl": nccl, "mnist-mlp": mnist_mlp, "wide-mlp": wide_mlp, "images": images,
            "resnet50": resnet50, "convolutions": convolutions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(MEASURES))
    parser.add_argument("--dtrain", default=default_dtrain(), help="the program dtrain (default: %(default)s)")
    parser.add_argument("--gpu-bench",
                        help="the program gpu_bench, which times operations (default: the one that was built with dtrain)")
    parser.add_argument("--output", default=HERE.parent / "results", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=9,
                        help="time limit of the whole run in minutes; measurements after this time are skipped (default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.workloads) - set(MEASURES)
    if unknown:
        parser.error(f"unknown workload {', '.join(sorted(unknown))}; available: {', '.join(MEASURES)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    try:
        bench = Bench(arguments)
    except NotMeasured as reason:
        parser.error(str(reason))
    measured = {}
    for name in arguments.workloads or MEASURES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            measured[name] = MEASURES[name](bench)
        except Exception as error:  # a failing workload becomes a line of the report
            measured[name] = {"error": str(error) if isinstance(error, NotMeasured) else f"{type(error).__name__}: {error}", "rows": []}
        measured[name].update(took=time.monotonic() - start, at=datetime.datetime.now().isoformat(timespec="seconds"))
        # Written after each workload, so that results survive an abort.
        text = report.write(arguments.output, bench.found, measured, list(MEASURES))
    print(text)
    return 0 if report.complete(measured) else 1


if __name__ == "__main__":
    sys.exit(main())
