#!/usr/bin/env python3
"""Exports models to ONNX and computes them in ONNX Runtime: the predictions are `dtrain predict`'s to 1e-4.

    open_in_onnxruntime.py DTRAIN [--graphs N] [--seed S]

Takes a model with every layer, the small models of models.py, N random graphs, and N models of random windows. onnx.checker looks at each file with full
checks, and batches of several sizes go through each. Exits with 77, which CTest takes for skipped, where onnx, onnxruntime,
numpy or h5py is missing; DTRAIN_KERAS_PYTHON names an interpreter that has them.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import models
from open_in_keras import SKIPPED, go_to_named_python

BATCHES = (1, 7, 64)
TOLERANCE = 1e-4  # of the largest number of an output, or of 1
HALF_TOLERANCE = 0.05
# Losses, optimizers and schedules do not change what is exported.
SMALL = ["sparse_categorical_crossentropy", "mean_squared_error", "ema", "shared weights", "gelu by tanh", "hard_sigmoid",
         "hard_sigmoid of Keras 2", "hard_silu", "exponential", "concatenate along another axis",
         "synchronized batch normalization", "a name that TensorFlow refuses"]


class Exporter:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def must(self, *arguments):
        result = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, text=True, capture_output=True,
                                stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            raise AssertionError(f"dtrain {' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stderr}")
        return result.stdout

    def train(self, run):
        (self.folder / "run.yaml").write_text(json.dumps(run), encoding="utf-8")
        self.must("fit", "run.yaml", "--output", "run", "--overwrite", "--quiet")

    def export(self, *options):
        """The parsed document that the command gives."""
        return json.loads(self.must("export", "run", "--output", "model.onnx", "--json", *options))


def windows(seed):
    """Convolutions and pooling of odd sizes, strides, dilations and borders over one image."""
    draw = random.Random(seed)
    size = lambda most: [draw.randint(1, most), draw.randint(1, most)]
    layers, rows = [], []
    for i in range(12):
        kind = draw.choice(["conv2d", "depthwise_conv2d", "conv2d_transpose", "max_pooling2d", "average_pooling2d"])
        options = {"strides": size(3), "padding": draw.choice(["same", "valid"]), "inputs": "image", "name": f"n{i}"}
        options["pool_size" if "pooling" in kind else "kernel_size"] = size(4)
        if "pooling" not in kind:
            options["bias_initializer"] = "random_normal"
            if options["strides"] == [1, 1] or kind == "conv2d_transpose":
                options["dilation_rate"] = draw.choice([1, [2, 1], 2])
        if kind in ("conv2d", "conv2d_transpose"):
            options["filters"] = draw.randint(1, 4)
        layers += [{kind: options}, {"flatten": {"name": f"row{i}"}}]
        rows.append(f"row{i}")
    layers += [{"concatenate": {"inputs": rows}}, {"dense": {"units": 3, "name": "last"}}]
    return models.run_of({"inputs": {"image": [draw.randint(8, 12), draw.randint(8, 12), 3]}, "layers": layers},
                         targets={"last": {"shape": [3]}}, low_high=(-1, 1))


def inputs_of(model, rows, np):
    """Random samples by the graph's inputs; whole numbers are below the number of rows of any embedding."""
    random = np.random.default_rng(5)
    arrays = {}
    for value in model.graph.input:
        shape = [BATCHES[-1]] + [axis.dim_value for axis in value.type.tensor_type.shape.dim[1:]]
        whole = value.type.tensor_type.elem_type == 6
        arrays[value.name] = (random.integers(0, rows, shape, dtype="int32") if whole
                              else random.random(shape, dtype="float32") * 2 - 1)
    return arrays


def predictions(exporter, inputs, outputs):
    import h5py
    with h5py.File(exporter.folder / "inputs.h5", "w") as file:
        for name, array in inputs.items():
            file[name] = array
    exporter.must("predict", "run", "--input", "inputs.h5", "--output", "outputs.h5", "--quiet")
    with h5py.File(exporter.folder / "outputs.h5") as file:
        if len(outputs) == 1:
            found = []
            file.visititems(lambda _, item: found.append(item[()]) if isinstance(item, h5py.Dataset) else None)
            return found
        return [file[name][()] for name in outputs]


def check(exporter, run, tolerance, *options):
    import numpy as np
    import onnx
    import onnxruntime
    exporter.train(run)
    report = exporter.export(*options)
    path = str(exporter.folder / "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    rows = min((layer["embedding"]["input_dim"] for layer in run["model"]["layers"] if "embedding" in layer), default=2)
    inputs = inputs_of(model, rows, np)
    assert [value.name for value in model.graph.output] == report["outputs"], report
    expected = predictions(exporter, inputs, report["outputs"])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for batch in BATCHES:
        found = session.run(None, {name: array[:batch] for name, array in inputs.items()})
        for name, a, b in zip(report["outputs"], found, expected, strict=True):
            assert a.shape == b[:batch].shape, f"{name}: {a.shape}, not {b[:batch].shape}"
            off = float(np.max(np.abs(a - b[:batch]))) / max(1.0, float(np.max(np.abs(b))))
            assert off <= tolerance, f"{name}, batch of {batch}: off by {off:.2g}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dtrain", type=pathlib.Path)
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    go_to_named_python()
    try:
        import h5py  # noqa: F401
        import numpy  # noqa: F401
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as missing:
        print(f"{missing}: skipped")
        sys.exit(SKIPPED)
    options = parser.parse_args()
    small = models.small_ones()
    cases = [("every layer", models.every_layer(), TOLERANCE, []),
             ("every layer, external data", models.every_layer(), TOLERANCE, ["--external-data"]),
             ("every layer, newest opset", models.every_layer(), TOLERANCE, ["--opset", 21]),
             ("every layer, float16", models.every_layer(), HALF_TOLERANCE, ["--float16"]),
             ("opset 13", small["mean_squared_error"], TOLERANCE, ["--opset", 13])]
    cases += [(name, small[name], TOLERANCE, []) for name in SMALL]
    cases += [(f"graph {options.seed + i}", models.random_graph(options.seed + i), TOLERANCE, [])
              for i in range(options.graphs)]
    cases += [(f"windows {options.seed + i}", windows(options.seed + i), TOLERANCE, []) for i in range(options.graphs)]
    failed = []
    for name, run, tolerance, export_options in cases:
        with tempfile.TemporaryDirectory() as folder:
            exporter = Exporter(options.dtrain.resolve(), pathlib.Path(folder))
            try:
                check(exporter, run, tolerance, *export_options)
                print(f"good         {name}", flush=True)
            except Exception as mistake:  # of dtrain, onnx and onnxruntime alike
                failed.append(name)
                print(f"FAILED       {name}: {type(mistake).__name__}: {mistake}", flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
