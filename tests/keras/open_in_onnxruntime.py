#!/usr/bin/env python3
"""Exports models to ONNX and runs them in ONNX Runtime: the predictions must equal those of `dtrain predict` to 1e-4.

    open_in_onnxruntime.py DTRAIN [--graphs N] [--seed S]

Tests a model with every layer, the small models of models.py, N random graphs, and N models of random windows.
onnx.checker checks each file with full checks, and ONNX Runtime runs it with batches of several sizes. Exits with 77,
which CTest treats as skipped, if onnx, onnxruntime, numpy or h5py is missing; DTRAIN_KERAS_PYTHON names an interpreter
that has these packages.
"""
import argparse
import pathlib
import sys

import models
from exporting import BATCHES, TOLERANCE, compare, models_of, predictions, preprocessed, run_cases
from open_in_keras import SKIPPED, go_to_named_python

HALF_TOLERANCE = 0.05


def inputs_of(model, rows, np):
    """Returns random samples for the graph's inputs; integers are smaller than the number of rows of every
    embedding."""
    random = np.random.default_rng(5)
    arrays = {}
    for value in model.graph.input:
        shape = [BATCHES[-1]] + [axis.dim_value for axis in value.type.tensor_type.shape.dim[1:]]
        whole = value.type.tensor_type.elem_type == 6
        arrays[value.name] = (random.integers(0, rows, shape, dtype="int32") if whole
                              else random.random(shape, dtype="float32") * 2 - 1)
    return arrays


def check(exporter, run, tolerance, *options):
    import numpy as np
    import onnx
    import onnxruntime
    exporter.train(run)
    report = exporter.export("model.onnx", *options)
    path = str(exporter.folder / "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    rows = min((layer["embedding"]["input_dim"] for layer in run["model"]["layers"] if "embedding" in layer), default=2)
    inputs = inputs_of(model, rows, np)
    assert [value.name for value in model.graph.output] == report["outputs"], report
    expected = predictions(exporter, inputs, report["outputs"], *(options if "--outputs" in options else ()))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for batch in BATCHES:
        found = session.run(None, {name: array[:batch] for name, array in inputs.items()})
        compare(report["outputs"], found, expected, batch, tolerance)


def large_norms():
    """Returns a run of a model in which the squares of the values are too large for float16."""
    layers = [{"rescaling": {"scale": 3000.0}}, {"rms_normalization": {"name": "norm"}}]
    return models.run_of({"inputs": {"row": [4]}, "layers": layers}, targets={"norm": {"shape": [4]}})


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
    every = models.every_layer()
    cases = [("every layer, external data", every, TOLERANCE, ["--external-data"]),
             ("every layer, opset 21", every, TOLERANCE, ["--opset", 21]),
             ("every layer, newest opset", every, TOLERANCE, ["--opset", 23]),
             ("masked attention, newest opset", models.small_ones()["masked attention"], TOLERANCE, ["--opset", 23]),
             ("attention in float16, newest opset", models.small_ones()["masked attention"], HALF_TOLERANCE, ["--opset", 23, "--float16"]),
             ("every layer, float16", every, HALF_TOLERANCE, ["--float16"]),
             ("norms of large numbers, float16", large_norms(), HALF_TOLERANCE, ["--float16"]),
             ("opset 13", models.small_ones()["mean_squared_error"], TOLERANCE, ["--opset", 13])]
    cases += [("preprocessing", preprocessed(), TOLERANCE, ["--with-preprocessing"])]
    cases += [(f"probabilities, {name}", models.small_ones()[name], TOLERANCE, ["--outputs", "probabilities"])
              for name in ("sparse_categorical_crossentropy of logits", "binary_crossentropy of logits")]
    cases += [(name, run, TOLERANCE, []) for name, run in models_of(options.graphs, options.seed)]
    run_cases(options.dtrain, check, cases)


if __name__ == "__main__":
    main()
