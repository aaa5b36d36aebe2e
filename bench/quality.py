#!/usr/bin/env python3
"""Trains a model with dtrain and with Keras, from the same weights and on the same data, and prints the test scores of
each seed, their means and their standard deviations.

    quality.py DTRAIN segmentation|forecasting [--folder FOLDER] [--epochs N] [--seeds N]

segmentation: a small U-Net on drawn shapes over textures; the score is the mean intersection over union (IoU).
forecasting:  an LSTM on the weekly CO2 concentrations of Mauna Loa, which the Python package statsmodels contains; the
              score is the mean absolute error of the next 12 weeks, in standard deviations of the training data.

The script needs Keras 3 with TensorFlow, and statsmodels for forecasting. Keras opens the checkpoint that dtrain writes
before the first step, so that both programs train the same model. Each seed gives other initial weights. Each program
draws its own order of the samples, so the scores of one seed differ by chance: compare the means, with the standard
error of their difference.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy

SIZE, CLASSES = 64, 4  # background, disks, squares, triangles
LENGTH, HORIZON = 48, 12  # weeks

SEGMENTATION = """
seed: {seed}
model:
  inputs: {{image: [64, 64, 3]}}
  layers:
    - conv2d: {{name: a1, filters: 16, kernel_size: 3, padding: same, activation: relu}}
    - conv2d: {{name: a2, filters: 16, kernel_size: 3, padding: same, activation: relu}}
    - max_pooling2d: {{pool_size: 2}}
    - conv2d: {{name: b1, filters: 32, kernel_size: 3, padding: same, activation: relu}}
    - conv2d: {{name: b2, filters: 32, kernel_size: 3, padding: same, activation: relu}}
    - max_pooling2d: {{pool_size: 2}}
    - conv2d: {{name: c1, filters: 64, kernel_size: 3, padding: same, activation: relu}}
    - conv2d: {{name: c2, filters: 64, kernel_size: 3, padding: same, activation: relu}}
    - conv2d_transpose: {{name: up1, filters: 32, kernel_size: 2, strides: 2}}
    - concatenate: {{name: join1, inputs: [up1, b2]}}
    - conv2d: {{filters: 32, kernel_size: 3, padding: same, activation: relu}}
    - conv2d_transpose: {{name: up2, filters: 16, kernel_size: 2, strides: 2}}
    - concatenate: {{name: join2, inputs: [up2, a2]}}
    - conv2d: {{filters: 16, kernel_size: 3, padding: same, activation: relu}}
    - conv2d: {{filters: 4, kernel_size: 1}}
dataset:
  train: {{images: {{directory: train/images, target_images: {{directory: train/masks, classes: numbers}}}}}}
  test:  {{images: {{directory: test/images, target_images: {{directory: test/masks, classes: numbers}}}}}}
  transforms: [{{rescale: {{scale: 1/255}}}}]
  cache: memory
train:
  epochs: {epochs}
  batch_size: 16
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{adam: {{learning_rate: 0.001}}}}
"""

FORECASTING = """
seed: {seed}
model:
  inputs: {{features: [48, 1]}}
  layers:
    - lstm: {{units: 64}}
    - dense: {{units: 12}}
dataset:
  train:
    csv: {{file: co2.csv, header: true, target: co2}}
    windows: {{length: 48, horizon: 12, time: date}}
  test: {{split: {{of: train, fraction: 0.2}}}}
  transforms: [{{standardize: {{of: [features, target]}}}}]
train:
  epochs: {epochs}
  batch_size: 32
  loss: mean_squared_error
  metrics: [mean_absolute_error]
  optimizer: {{adam: {{learning_rate: 0.001}}}}
"""


def draw_sample(random):
    """Returns an image with one to three shapes, uint8 [SIZE, SIZE, 3], and its mask, uint8 [SIZE, SIZE]."""
    y, x = numpy.mgrid[0:SIZE, 0:SIZE]

    def texture():
        angle, period = random.uniform(0, numpy.pi), random.uniform(3, 12)
        waves = numpy.sin((x * numpy.cos(angle) + y * numpy.sin(angle)) * 2 * numpy.pi / period)
        color, contrast = random.uniform(40, 215, 3), random.uniform(10, 40)
        return color + contrast * waves[..., None] + random.normal(0, 12, (SIZE, SIZE, 3))

    image, mask = texture(), numpy.zeros((SIZE, SIZE), "uint8")
    for _ in range(random.integers(1, 4)):
        kind, radius = random.integers(1, CLASSES), random.uniform(7, 15)
        cx, cy = random.uniform(radius, SIZE - radius, 2)
        angle = random.uniform(0, 2 * numpy.pi)
        u = (x - cx) * numpy.cos(angle) + (y - cy) * numpy.sin(angle)
        v = (y - cy) * numpy.cos(angle) - (x - cx) * numpy.sin(angle)
        if kind == 1:
            inside = u**2 + v**2 <= radius**2
        elif kind == 2:
            inside = numpy.maximum(abs(u), abs(v)) <= 0.8 * radius
        else:
            inside = (v <= radius / 2) & (v >= numpy.sqrt(3) * abs(u) - radius)
        image[inside], mask[inside] = texture()[inside], kind
    return image.clip(0, 255).astype("uint8"), mask


def draw_shapes(folder):
    import tensorflow as tf

    random = numpy.random.default_rng(1)
    arrays = {}
    for split, count in (("train", 800), ("test", 200)):
        images, masks = zip(*(draw_sample(random) for _ in range(count)))
        for name, pictures in (("images", images), ("masks", masks)):
            (folder / split / name).mkdir(parents=True, exist_ok=True)
            for i, picture in enumerate(pictures):
                pixels = picture if picture.ndim == 3 else picture[..., None]
                tf.io.write_file(str(folder / split / name / f"{i:04}.png"), tf.io.encode_png(pixels))
        arrays[split] = numpy.stack(images).astype("float32") / 255, numpy.stack(masks).astype("int32")
    return arrays


def mean_iou(predicted, masks):
    """Returns the mean IoU over the classes. The IoU of a class covers the pixels of all images."""
    ious = []
    for kind in range(CLASSES):
        a, b = predicted == kind, masks == kind
        ious.append((a & b).sum() / (a | b).sum())
    return float(numpy.mean(ious))


class Segmentation:
    config, epochs, score_name = SEGMENTATION, 30, "mean IoU"

    def __init__(self, folder):
        self.folder, self.arrays = folder, draw_shapes(folder)

    def loss(self, keras):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def score_of_dtrain(self, program, run):
        output = self.folder / "predicted.npy"
        subprocess.run([program, "predict", run, "--input", self.folder / "test/images", "--output", output, "--outputs", "raw",
                        "--newest", "--quiet"], check=True, cwd=self.folder)
        return self.score(numpy.load(output))

    def score(self, logits):
        return mean_iou(logits.argmax(-1), self.arrays["test"][1])


class Forecasting:
    config, epochs, score_name = FORECASTING, 40, "mean absolute error"

    def __init__(self, folder):
        from statsmodels.datasets import co2

        self.folder = folder
        series = co2.load_pandas().data["co2"].dropna()
        lines = [f"{day:%Y-%m-%d},{value}\n" for day, value in series.items()]
        (folder / "co2.csv").write_text("date,co2\n" + "".join(lines))
        # As in dtrain, the test split is the last fifth of the rows. The inputs of the first test sample are before the
        # border, but its targets are after the border. The numbers are standardized with the mean and the standard
        # deviation of the training rows.
        values = series.to_numpy()
        border = len(values) - round(len(values) * 0.2)
        train, test = values[:border], values[border - LENGTH:]
        scaled = lambda rows: ((rows - train.mean()) / train.std()).astype("float32")
        self.arrays = {"train": self.windows(scaled(train)), "test": self.windows(scaled(test))}

    @staticmethod
    def windows(rows):
        count = len(rows) - LENGTH - HORIZON + 1
        at = numpy.arange(count)[:, None]
        return rows[at + numpy.arange(LENGTH)][..., None], rows[at + LENGTH + numpy.arange(HORIZON)]

    def loss(self, keras):
        return keras.losses.MeanSquaredError()

    def score_of_dtrain(self, program, run):
        result = subprocess.run([program, "evaluate", run, "--split", "test", "--newest", "--json"], check=True, cwd=self.folder,
                                capture_output=True, text=True)
        document = json.loads(result.stdout)
        self.samples = document["samples"]
        return document["mean_absolute_error"]

    def score(self, predicted):
        targets = self.arrays["test"][1]
        assert self.samples == len(targets), (self.samples, len(targets))
        return float(abs(predicted - targets).mean())


def train(task, program, folder, epochs, seed):
    """Returns the scores of dtrain and Keras."""
    import keras

    (folder / "config.yaml").write_text(task.config.format(seed=seed, epochs=epochs))
    begun, run = folder / f"begun-{seed}", folder / f"run-{seed}"
    subprocess.run([program, "fit", "config.yaml", "--epochs", "0", "--output", begun, "--quiet"], check=True, cwd=folder)
    subprocess.run([program, "fit", "config.yaml", "--output", run, "--quiet"], check=True, cwd=folder)
    ours = task.score_of_dtrain(program, run)
    model = keras.models.load_model(next((begun / "checkpoints").glob("*.h5")), compile=False)
    model.compile(keras.optimizers.Adam(0.001), task.loss(keras))
    x, y = task.arrays["train"]
    random = numpy.random.default_rng(seed)
    for _ in range(epochs):
        order = random.permutation(len(x))  # Keras's shuffle repeats the same order in all epochs after set_random_seed()
        model.fit(x[order], y[order], batch_size=16 if isinstance(task, Segmentation) else 32, shuffle=False, verbose=0)
    return ours, task.score(model.predict(task.arrays["test"][0], verbose=0))


def summary(scores):
    """Returns the means and standard deviations of scores [seeds, 2], and the mean of the differences with its standard
    error."""
    means, deviations = scores.mean(0), scores.std(0, ddof=1)
    differences = scores[:, 0] - scores[:, 1]
    error = differences.std(ddof=1) / len(differences) ** 0.5
    return (f"mean: dtrain {means[0]:.4f} (standard deviation {deviations[0]:.4f}), Keras {means[1]:.4f} ({deviations[1]:.4f}); "
            f"difference {differences.mean():+.4f}, standard error {error:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("task", choices=["segmentation", "forecasting"])
    parser.add_argument("--folder", help="folder for data and runs (default: a temporary folder)")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds: expected at least 2, because one score shows no spread")
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.folder or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        task = (Segmentation if options.task == "segmentation" else Forecasting)(folder)
        epochs = options.epochs or task.epochs
        print(f"{options.task}, {epochs} epochs: {task.score_name}", flush=True)
        scores = []
        for seed in range(1, options.seeds + 1):
            scores.append(train(task, program, folder, epochs, seed))
            print("seed {}: dtrain {:.4f}, Keras {:.4f}".format(seed, *scores[-1]), flush=True)
        print(summary(numpy.array(scores)))


if __name__ == "__main__":
    main()
