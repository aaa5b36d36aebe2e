#!/usr/bin/env python3
"""Opens dtrain's checkpoints in Keras: the predictions must equal those of `dtrain predict` to 1e-5, and fit() must run
for an epoch.

    open_in_keras.py DTRAIN [--configs FOLDER]... [--graphs N] [--seed S]

Tests the configurations in `configs/` and in each FOLDER (shortened to two steps), N random graphs, a model with every
layer, and a model for every loss, optimizer and schedule. Uses every Keras that can be imported: `keras` (2 or 3, with
TensorFlow) and `tf_keras`. Exits with 77, which CTest treats as skipped, if there is no Keras; DTRAIN_KERAS_PYTHON
names an interpreter that has these packages. Skips configurations whose data is missing (DTRAIN_DATA), and
configurations of a FOLDER that this dtrain rejects.
"""
import argparse
import gc
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import models

SKIPPED = 77
SAMPLES = 6
TOLERANCE = 1e-5  # relative to the largest prediction, or to 1 if that is larger
PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent

# Assignments that make a run shorter. Each assignment is used only if the configuration accepts it.
SHORTER = ["train.epochs=1", "train.batch_size=8", "strategy=single", "train.precision=float32", "dataset.cache=none",
           "dataset.train.synthetic.samples=16", "dataset.validation.synthetic.samples=8", "dataset.train.rows=[0, 16]",
           "dataset.validation.rows=[0, 8]"]


class Mistake(Exception):
    """A failed check of a checkpoint."""


class Passed(Exception):
    """A configuration that cannot be tested here; the message is the reason."""


def go_to_named_python():
    """Restarts in the interpreter that DTRAIN_KERAS_PYTHON names, if it is set."""
    other = os.environ.pop("DTRAIN_KERAS_PYTHON", "")
    if other:
        os.execv(other, [other, *sys.argv])


def find_kerases():
    """Returns every installed Keras, by name and version."""
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    warnings.filterwarnings("ignore")
    try:
        importlib.import_module("tensorflow").get_logger().setLevel("ERROR")
    except ImportError:
        return {}
    kerases = {}
    for name in ("keras", "tf_keras"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        kerases[f"{name} {module.__version__}"] = module
    return kerases


class Dtrain:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL)

    def must(self, *arguments):
        result = self.run(*arguments)
        if result.returncode != 0:
            raise Mistake(f"dtrain {' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stderr}")
        return result.stdout

    def checkpoint(self, config, sets=()):
        """Runs a configuration and returns its last checkpoint."""
        options = [part for value in sets for part in ("--set", value)]
        self.must("fit", config, "--output", "run", "--overwrite", "--quiet", *options)
        return max((self.folder / "run/checkpoints").glob("ckpt-*.h5"))


def program_and_kerases():
    """Returns the path of the program, which is the script's argument, and every installed Keras. Exits if there is no
    Keras."""
    go_to_named_python()
    kerases = find_kerases()
    if not kerases:
        print("skipped: neither keras nor tf_keras is installed")
        sys.exit(SKIPPED)
    return pathlib.Path(sys.argv[1]).resolve(), kerases


def sets_for(dtrain, config):
    """Returns the assignments that make a run of a configuration short; raises Passed if it cannot run here."""
    def mistakes(sets):
        result = dtrain.run("check", config, *[part for value in sets for part in ("--set", value)])
        return {line for line in result.stderr.splitlines() if "error" in line} if result.returncode else set()

    sets, left = [], mistakes([])
    for value in SHORTER:
        found = mistakes(sets + [value])
        if found <= left:  # no new errors
            sets, left = sets + [value], found
    if not left:
        return sets
    if any("no such file" in line.lower() for line in left):
        raise Passed(f"its data is missing: {min(left)}")
    raise (Mistake if PROJECT in pathlib.Path(config).parents else Passed)(f"check rejects it: {min(left)}")


class Opened:
    """The file of a checkpoint, with random inputs and targets that have the shapes and types of the model."""

    def __init__(self, path):
        import h5py
        import numpy
        self.path, self.random, self.np, self.h5py = str(path), numpy.random.default_rng(7), numpy, h5py
        with h5py.File(self.path) as file:
            names = lambda group: [n.decode() if isinstance(n, bytes) else n for n in self.attribute(group, "layer_names")]
            own = dict(zip(names(file["model_weights"]), names(file["dtrain"])))
            self.config = self.text(file.attrs["model_config"])
            config = json.loads(self.config)["config"]
            training = file.attrs.get("training_config")
            self.training = json.loads(self.text(training)) if training is not None else None
        layers = {layer["name"]: layer for layer in config["layers"]}
        rows = [l["config"]["input_dim"] for l in config["layers"] if l["class_name"].endswith("Embedding")]
        self.inputs = {}
        for name, _, _ in self.ends(config["input_layers"]):
            spec = layers[name]["config"]
            shape = [SAMPLES, *(spec.get("batch_input_shape") or spec["batch_shape"])[1:]]
            self.inputs[own[name]] = (
                self.random.random(shape, dtype="float32") if spec["dtype"] == "float32"
                else self.random.integers(0, min(rows, default=10), shape, dtype=spec["dtype"]))
        # Keras has some activations only as layers. In Keras, the output is then computed by a layer whose name ends in
        # "/activation". In dtrain, it is computed by the layer before it, whose option is this activation.
        self.axes = {l["name"]: l["config"]["axis"] for l in config["layers"] if l["class_name"] == "Concatenate"}
        self.outputs = [own[name].removesuffix("/activation") for name, _, _ in self.ends(config["output_layers"])]

    @staticmethod
    def ends(references):
        """Returns inputs or outputs as a list, because Keras 3 writes a single input or output without a list."""
        return [references] if isinstance(references[0], str) else references

    @staticmethod
    def text(value):
        return value.decode() if isinstance(value, bytes) else value

    @staticmethod
    def attribute(group, name):
        """Returns a list that is stored as an attribute. A long list is split into several attributes, which have
        numbered names."""
        if name in group.attrs:
            return list(group.attrs[name])
        pieces = []
        while f"{name}{len(pieces)}" in group.attrs:
            pieces.append(list(group.attrs[f"{name}{len(pieces)}"]))
        return sum(pieces, [])

    def predictions(self, dtrain):
        """Returns dtrain's predictions, one array per output."""
        with self.h5py.File(dtrain.folder / "inputs.h5", "w") as file:
            for name, array in self.inputs.items():
                file[name] = array
        dtrain.must("predict", self.path, "--input", "inputs.h5", "--output", "outputs.h5", "--set",
                    "dataset.transforms=[]", "--set", "strategy=single", "--quiet")
        with self.h5py.File(dtrain.folder / "outputs.h5") as file:
            if len(self.outputs) == 1:
                found = []
                file.visititems(lambda _, item: found.append(item[()]) if isinstance(item, self.h5py.Dataset) else None)
                return found
            return [file[name][()] for name in self.outputs]

    def targets(self, predictions):
        """Returns random targets in the form that the losses expect."""
        losses = listed(self.training["loss"] if self.training else {"class_name": ""})
        arrays = []
        for loss, prediction in zip(losses * (len(predictions) if len(losses) == 1 else 1), predictions):
            kind = loss["class_name"]
            if kind.startswith("Sparse"):
                arrays.append(self.random.integers(0, prediction.shape[-1], prediction.shape[:-1], dtype="int32"))
            else:
                arrays.append(self.random.random(prediction.shape, dtype="float32"))
        return arrays


def listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def lone(values):
    return values if len(values) > 1 else values[0]


def close(np, found, expected, what):
    for a, b in zip(found, expected, strict=True):
        a = np.asarray(a)
        if a.shape != b.shape:
            raise Mistake(f"{what}: shape {a.shape}, dtrain's is {b.shape}")
        off = float(np.max(np.abs(a - b), initial=0)) / max(1.0, float(np.max(np.abs(b), initial=0)))
        if not off <= TOLERANCE:
            raise Mistake(f"{what}: off by {off:.2g}")


def check_features(keras, config, training=None):
    """Raises Passed if this Keras lacks a feature of a model. `config`: model_config as text; `training`: parsed
    training_config, None for a model that is not compiled."""
    has_ops = hasattr(keras, "ops")  # Keras 3
    if not has_ops and '"hard_sigmoid"' in config:
        raise Passed("the hard_sigmoid of this Keras has another slope")
    if not has_ops and '"__keras_tensor__"' in config:
        raise Passed("it has calls that only Keras 3's form of a model can express")
    if not hasattr(keras.layers, "ReversibleEmbedding") and '"ReversibleEmbedding"' in config:
        raise Passed("this Keras has no ReversibleEmbedding")
    if not hasattr(keras.activations, "hard_silu") and '"hard_silu"' in config:
        raise Passed("this Keras has no hard_silu")
    losses = {loss["class_name"] for loss in listed(training["loss"])} if training else set()
    for loss in ("Dice", "Tversky"):
        if not hasattr(keras.losses, loss) and loss in losses:
            raise Passed(f"this Keras has no loss {loss}")


def open_in(keras, opened, expected, eager):
    """Loads the model and compares predictions, loads only the weights and compares again, and trains for an epoch."""
    def gelu_tanh(x):
        return keras.activations.gelu(x, approximate=True)

    def hard_sigmoid(x):
        return keras.ops.clip(0.2 * x + 0.5, 0, 1) if hasattr(keras, "ops") else keras.activations.hard_sigmoid(x)

    np = opened.np
    inputs = lone(list(opened.inputs.values()))
    check_features(keras, opened.config, opened.training)
    with keras.utils.custom_object_scope({"gelu_tanh": gelu_tanh, "hard_sigmoid_0.2": hard_sigmoid}):
        try:
            model = keras.models.load_model(opened.path)
        except TypeError as mistake:
            if "function is not JSON serializable" in str(mistake):
                raise Passed("this Keras cannot load activations that are functions") from None
            raise
    if any(model.get_layer(name).axis != axis for name, axis in opened.axes.items()):
        raise Passed("this Keras does not restore the axis of Concatenate")
    close(np, listed(model(inputs, training=False)), expected, "load_model")
    for by_name in (False, True):
        for weight in model.weights:
            weight.assign(np.full(weight.shape, 0.5))
        model.load_weights(opened.path, **({"by_name": True} if by_name else {}))
        close(np, listed(model(inputs, training=False)), expected, f"load_weights, by_name={by_name}")
    if opened.training is None:
        model.compile(keras.optimizers.SGD(0.001), lone(["mean_squared_error"] * len(expected)))
    else:
        check_training(keras, model, opened.training)
    if eager or len(model.layers) > 30:  # tracing would take far longer than the epoch
        model.run_eagerly = True
    before = [np.array(weight) for weight in model.trainable_weights]
    history = model.fit(inputs, lone(opened.targets(expected)), epochs=1, batch_size=4, verbose=0).history
    if not all(np.isfinite(value[-1]) for value in history.values()):
        raise Mistake(f"fit: {history}")
    if before and not any(np.any(a != np.array(b)) for a, b in zip(before, model.trainable_weights)):
        raise Mistake("fit changed no weight")


def check_training(keras, model, training):
    """Checks that the compiled model has the optimizer, losses and metrics of the checkpoint."""
    wanted = training["optimizer_config"]
    if type(model.optimizer).__name__ != wanted["class_name"]:
        raise Mistake(f"the optimizer is {type(model.optimizer).__name__}")
    found = model.optimizer.get_config()
    for key, value in wanted["config"].items():
        if key == "learning_rate" and isinstance(value, dict):
            rate = found[key]
            same = rate["class_name"] == value["class_name"] and all(
                rate["config"][k] == v for k, v in value["config"].items())
        elif isinstance(value, float):
            same = abs(found[key] - value) <= 1e-6 * abs(value)
        else:
            same = found[key] == value
        if not same:
            raise Mistake(f"optimizer: {key} is {found[key]}, not {value}")


class Tally:
    def __init__(self, dtrain, kerases):
        self.dtrain, self.kerases, self.failed, self.done, self.passed = dtrain, kerases, [], 0, 0

    def case(self, name, checkpoint, eager=True):
        """Runs one case; `checkpoint` is a function that creates the checkpoint."""
        start = time.monotonic()
        try:
            opened = Opened(checkpoint())
            expected = opened.predictions(self.dtrain)
        except Passed as reason:
            self.passed += 1
            print(f"skipped      {name}: {reason}", flush=True)
            return
        except Mistake as mistake:
            self.failed.append(name)
            print(f"FAILED       {name}: {mistake}", flush=True)
            return
        for which, keras in self.kerases.items():
            try:
                open_in(keras, opened, expected, eager)
                self.done += 1
            except Passed as reason:
                self.passed += 1
                print(f"skipped      {name}, {which}: {reason}", flush=True)
            except Exception as mistake:  # users would see any exception of Keras
                self.failed.append(name)
                message = mistake if isinstance(mistake, Mistake) else f"{type(mistake).__name__}: {mistake}"
                print(f"FAILED       {name}, {which}: {message}", flush=True)
            keras.backend.clear_session()
            gc.collect()
        print(f"{time.monotonic() - start:7.1f} s    {name}", flush=True)

    def written(self, name, run, eager=True):
        def checkpoint():
            path = self.dtrain.folder / "run.yaml"
            path.write_text(json.dumps(run), encoding="utf-8")
            return self.dtrain.checkpoint(path)
        self.case(name, checkpoint, eager)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="DTRAIN")
    parser.add_argument("--configs", action="append", default=[], metavar="FOLDER", help="folder with more configurations")
    parser.add_argument("--graphs", type=int, default=5, metavar="N", help="number of random graphs (5)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the first random graph (0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only cases whose names contain this text")
    options = parser.parse_args()
    go_to_named_python()
    kerases = find_kerases()
    if not kerases:
        print("skipped: neither keras nor tf_keras is installed")
        return SKIPPED
    print(", ".join(kerases), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        dtrain = Dtrain(str(pathlib.Path(options.program).resolve()), pathlib.Path(folder))
        tally = Tally(dtrain, kerases)
        every_layer = models.every_layer()
        cases = {"every layer": lambda name: tally.written(name, every_layer)}
        for name, run in models.small_ones().items():
            cases[f"small: {name}"] = lambda name, run=run: tally.written(name, run, eager=False)
        for place in [PROJECT / "configs", *map(pathlib.Path, options.configs)]:
            for path in sorted(place.resolve().rglob("*.yaml")):
                if path.parent.name == "models":
                    continue
                cases[str(path)] = lambda name: tally.case(
                    name, lambda: dtrain.checkpoint(name, sets_for(dtrain, name)), eager=False)
        for seed in range(options.seed, options.seed + options.graphs):
            cases[f"graph {seed}"] = lambda name, seed=seed: tally.written(name, models.random_graph(seed))
        for name, case in cases.items():
            if options.only in name:
                case(name)
        print(f"{tally.done} opened, {tally.passed} skipped, {len(tally.failed)} failed")
        return 1 if tally.failed or not tally.done else 0


if __name__ == "__main__":
    sys.exit(main())
