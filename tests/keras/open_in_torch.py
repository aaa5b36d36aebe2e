#!/usr/bin/env python3
"""Exports models to safetensors and runs them in PyTorch with the script that dtrain writes next to the file: the
predictions must equal those of `dtrain predict` to 1e-4.

    open_in_torch.py DTRAIN [--graphs N] [--seed S]

Tests the models of open_in_onnxruntime.py. Exits with 77, which CTest treats as skipped, if torch, safetensors, numpy
or h5py is missing; DTRAIN_TORCH_PYTHON names an interpreter that has these packages.
"""
import argparse
import contextlib
import importlib.util
import io
import os
import pathlib
import sys

import models
from exporting import BATCHES, TOLERANCE, compare, models_of, predictions, preprocessed, run_cases
from open_in_keras import SKIPPED


def go_to_torch():
    other = os.environ.pop("DTRAIN_TORCH_PYTHON", "")
    if other:
        os.execv(other, [other, *sys.argv])


def check(exporter, run, tolerance, *options):
    import safetensors.torch
    import torch
    exporter.train(run)
    report = exporter.export("model.safetensors", *options)
    spec = importlib.util.spec_from_file_location("model_load", exporter.folder / "model_load.py")
    script = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(script)
    with contextlib.redirect_stdout(io.StringIO()):
        script.check(tolerance)
    model = script.load()
    torch.manual_seed(5)
    probes = safetensors.torch.load_file(exporter.folder / "model_probes.safetensors")
    inputs = {}
    for name in report["inputs"]:
        probe = probes["inputs." + name]
        shape = (BATCHES[-1], *probe.shape[1:])
        inputs[name] = (torch.rand(shape) * 2 - 1 if probe.dtype.is_floating_point
                        else torch.randint(0, 2, shape, dtype=probe.dtype))
    expected = predictions(exporter, {name: array.numpy() for name, array in inputs.items()}, report["outputs"],
                           *(options if "--outputs" in options else ()))
    for batch in BATCHES:
        with torch.no_grad():
            found = model(*(array[:batch] for array in inputs.values()))
        found = found if isinstance(found, tuple) else (found,)
        compare(report["outputs"], [array.numpy() for array in found], expected, batch, tolerance)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dtrain", type=pathlib.Path)
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    go_to_torch()
    try:
        import h5py  # noqa: F401
        import numpy  # noqa: F401
        import safetensors.torch  # noqa: F401
    except ImportError as missing:
        print(f"{missing}: skipped")
        sys.exit(SKIPPED)
    options = parser.parse_args()
    cases = [("preprocessing", preprocessed(), TOLERANCE, ["--with-preprocessing"])]
    cases += [(f"probabilities, {name}", models.small_ones()[name], TOLERANCE, ["--outputs", "probabilities"])
              for name in ("sparse_categorical_crossentropy of logits", "binary_crossentropy of logits")]
    cases += [(name, run, TOLERANCE, []) for name, run in models_of(options.graphs, options.seed)]
    run_cases(options.dtrain, check, cases)


if __name__ == "__main__":
    main()
