"""Shared code of the tests of exported models: models, `dtrain export`, and predictions to compare with."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import models

BATCHES = (1, 7, 64)
TOLERANCE = 1e-4  # relative to the largest number of an output, or to 1 if that is larger
# Names of the small models (models.small_ones()) that are exported. Most of the other small models differ only in
# losses, metrics, optimizers and schedules, which have no effect on the exported model.
SMALL = ["sparse_categorical_crossentropy", "mean_squared_error", "ema", "shared weights", "gelu by tanh", "hard_sigmoid",
         "hard_sigmoid of Keras 2", "hard_silu", "exponential", "concatenate along another axis",
         "synchronized batch normalization", "masks", "masked outputs", "masked steps", "masked attention",
         "a name that TensorFlow refuses"]


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

    def export(self, file, *options):
        """Runs the command and returns its parsed JSON output."""
        return json.loads(self.must("export", "run", "--output", file, "--json", *options))


def windows(seed):
    """Returns a model of convolutions and pooling on an image and a volume. Their sizes, strides, dilations and
    borders are random."""
    draw = random.Random(seed)
    layers, rows = [], []
    for i in range(16):
        kind = draw.choice(["conv2d", "depthwise_conv2d", "conv2d_transpose", "max_pooling2d", "average_pooling2d", "conv3d",
                            "max_pooling3d", "average_pooling3d"])
        axes = 3 if "3d" in kind else 2
        size = lambda most: [draw.randint(1, most) for _ in range(axes)]
        options = {"strides": size(3), "padding": draw.choice(["same", "valid"]), "inputs": "image" if axes == 2 else "volume",
                   "name": f"n{i}"}
        options["pool_size" if "pooling" in kind else "kernel_size"] = size(4)
        if "pooling" not in kind:
            options["bias_initializer"] = "random_normal"
            if options["strides"] == [1] * axes or kind == "conv2d_transpose":
                options["dilation_rate"] = draw.choice([1, [2, 1, 1][:axes], 2])
        if kind in ("conv2d", "conv3d", "conv2d_transpose"):
            options["filters"] = draw.randint(1, 4)
        layers += [{kind: options}, {"flatten": {"name": f"row{i}"}}]
        rows.append(f"row{i}")
    layers += [{"flatten": {"inputs": "image", "name": "pixels"}}, {"flatten": {"inputs": "volume", "name": "voxels"}}]
    layers += [{"concatenate": {"inputs": [*rows, "pixels", "voxels"]}}, {"dense": {"units": 3, "name": "last"}}]
    return models.run_of({"inputs": {"image": [draw.randint(8, 12), draw.randint(8, 12), 3],
                                     "volume": [draw.randint(7, 9), draw.randint(7, 9), draw.randint(7, 9), 2]}, "layers": layers},
                         targets={"last": {"shape": [3]}}, low_high=(-1, 1))


def preprocessed():
    """Returns a run on a table of numbers far from 0, which transforms convert to inputs and a target."""
    run = models.run_of({"inputs": {"image": [2, 3, 2], "row": [4]},
                         "layers": [{"conv2d": {"filters": 2, "kernel_size": 2, "inputs": "image"}}, {"flatten": {}},
                                    {"concatenate": {"inputs": ["flatten", "row"]}}, {"dense": {"units": 2, "name": "last"}}]},
                        targets={"last": {"shape": [2]}}, low_high=(90, 110))
    run["dataset"]["transforms"] = [{"reshape": {"shape": [2, 3, 2], "of": ["image"]}}, {"standardize": {"of": ["image", "row", "target"]}},
                                    {"rescale": {"scale": 0.5, "offset": 3, "of": ["row"]}}]
    return run


def predictions(exporter, inputs, outputs, *options):
    import h5py
    with h5py.File(exporter.folder / "inputs.h5", "w") as file:
        for name, array in inputs.items():
            file[name] = array
    exporter.must("predict", "run", "--input", "inputs.h5", "--output", "outputs.h5", "--quiet", *options)
    with h5py.File(exporter.folder / "outputs.h5") as file:
        if len(outputs) == 1:
            found = []
            file.visititems(lambda _, item: found.append(item[()]) if isinstance(item, h5py.Dataset) else None)
            return found
        return [file[name][()] for name in outputs]


def compare(names, found, expected, batch, tolerance):
    """Compares arrays of a batch with the first `batch` samples of dtrain's arrays."""
    for name, a, b in zip(names, found, expected, strict=True):
        assert a.shape == b[:batch].shape, f"{name}: {a.shape}, not {b[:batch].shape}"
        off = float(abs(a - b[:batch]).max()) / max(1.0, float(abs(b).max()))
        assert off <= tolerance, f"{name}, batch of {batch}: off by {off:.2g}"


def models_of(graphs, seed):
    """Returns (name, run) for each model: a model with every layer, the small models, random graphs, and models with
    random windows."""
    small = models.small_ones()
    return ([("every layer", models.every_layer())] + [(name, small[name]) for name in SMALL]
            + [(f"graph {seed + i}", models.random_graph(seed + i)) for i in range(graphs)]
            + [(f"windows {seed + i}", windows(seed + i)) for i in range(graphs)])


def run_cases(program, check, cases):
    """Calls check(exporter, run, tolerance, *options) for each case, which has the form (name, run, tolerance,
    options). Then exits."""
    failed = []
    for name, run, tolerance, options in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(Exporter(program.resolve(), pathlib.Path(folder)), run, tolerance, *options)
                print(f"good         {name}", flush=True)
            except Exception as mistake:  # an error of dtrain or of the other program
                failed.append(name)
                print(f"FAILED       {name}: {type(mistake).__name__}: {mistake}", flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
