#!/usr/bin/env python3
"""Imports models that Keras 1 or Keras 2.2 saved: `dtrain predict` must return Keras's predictions to 1e-5.

    import_from_old_keras.py DTRAIN

DTRAIN_OLD_KERAS_PYTHON names the interpreters (separated by ':') that have such a Keras, such as Python 3.6 with
tensorflow 1.13.2, h5py 2.10 and keras 1.2.2 or 2.2.4; a later Keras 2 has no multi_gpu_model and saves one model less.
Exits with 77, which CTest treats as skipped, if this variable is not set.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def keras_1_images(keras, ordering):
    layers = keras.layers
    image = keras.layers.Input((3, 12, 12) if ordering == "th" else (12, 12, 3))
    channels = 1 if ordering == "th" else 3
    x = layers.ZeroPadding2D((1, 2), dim_ordering=ordering)(image)
    x = layers.Convolution2D(6, 3, 2, activation="relu", border_mode="same", dim_ordering=ordering, init="uniform")(x)
    x = layers.BatchNormalization(axis=channels)(x)
    x = layers.MaxPooling2D((2, 2), dim_ordering=ordering)(x)
    x = layers.AtrousConvolution2D(4, 2, 2, atrous_rate=(2, 2), dim_ordering=ordering, bias=False)(x)
    y = layers.LeakyReLU()(layers.Convolution2D(4, 1, 1, dim_ordering=ordering, W_regularizer="l2")(x))
    x = layers.merge([x, y], mode="concat", concat_axis=channels)
    x = layers.UpSampling2D((2, 1), dim_ordering=ordering)(x)
    x = layers.AveragePooling2D((2, 2), strides=(1, 1), border_mode="same", dim_ordering=ordering)(x)
    x = layers.Dropout(0.5)(layers.Flatten()(x))
    return keras.models.Model(image, layers.Dense(3, activation="softmax")(x))


def keras_1_transposed(keras):
    layers = keras.layers
    image = layers.Input((6, 5, 3))
    x = layers.Deconvolution2D(4, 3, 3, output_shape=(None, 12, 10, 4), subsample=(2, 2), border_mode="same",
                               dim_ordering="tf")(image)
    x = layers.SeparableConvolution2D(5, 3, 3, depth_multiplier=2, dim_ordering="tf")(x)
    return keras.models.Model(image, layers.GlobalAveragePooling2D(dim_ordering="tf")(x))


def keras_1_sequences(keras):
    layers = keras.layers
    row = layers.Input((16, 3))
    x = layers.Convolution1D(6, 3, border_mode="same", activation="hard_sigmoid")(row)
    x = layers.MaxPooling1D(2)(layers.ZeroPadding1D(1)(x))
    x = layers.Convolution1D(4, 2, subsample_length=2)(layers.UpSampling1D(2)(x))
    x = layers.Cropping1D((1, 2))(x)
    x = layers.merge([layers.GlobalAveragePooling1D()(x), layers.GlobalMaxPooling1D()(x)], mode="sum")
    y = layers.merge([layers.Dense(4)(x), layers.Dense(4)(x)], mode="mul")
    z = layers.merge([layers.merge([x, y], mode="ave"), layers.ELU(0.5)(y)], mode="max")
    return keras.models.Model(row, layers.Reshape((2, 2))(z))


def keras_1_table(keras):
    layers = keras.layers
    inner = keras.models.Sequential([layers.Dense(8, input_dim=6, activation="tanh"), layers.Dense(4)])
    outer = keras.models.Sequential()
    outer.add(inner)
    outer.add(layers.BatchNormalization())
    outer.add(layers.RepeatVector(3))
    outer.add(layers.Permute((2, 1)))
    outer.add(layers.Flatten())
    outer.add(layers.Dense(2, bias=False))
    return outer


def keras_1_nested(keras):
    layers = keras.layers
    image = layers.Input((8, 8, 2))
    inner = keras.models.Model(image, layers.Flatten()(layers.Convolution2D(3, 3, 3, dim_ordering="tf")(image)))
    a, b = layers.Input((8, 8, 2)), layers.Input((8, 8, 2))
    both = layers.merge([inner(a), inner(b)], mode="concat")
    return keras.models.Model([a, b], layers.Dense(2)(both))


def keras_2_images(keras):
    layers = keras.layers
    return keras.models.Sequential([
        layers.Conv2D(4, 3, activation="relu", input_shape=(10, 10, 3)), layers.BatchNormalization(),
        layers.Conv2DTranspose(5, 3, strides=2), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3)])


def keras_2_towers(keras):
    """Calls the real multi_gpu_model on a machine that pretends to have two GPUs."""
    inner = keras_2_images(keras)
    utils = keras.utils.multi_gpu_utils
    utils._get_available_devices = lambda: ["/cpu:0", "/gpu:0", "/gpu:1"]
    return keras.utils.multi_gpu_model(inner, 2), inner


def cases(keras):
    if keras.__version__.startswith("1."):
        return {"images_tf": keras_1_images(keras, "tf"), "images_th": keras_1_images(keras, "th"),
                "transposed": keras_1_transposed(keras), "sequences": keras_1_sequences(keras),
                "table": keras_1_table(keras), "nested": keras_1_nested(keras)}
    found = {"images": keras_2_images(keras)}
    if hasattr(keras.utils, "multi_gpu_utils"):  # Keras 2.4 and later have no multi_gpu_model
        found["towers"] = keras_2_towers(keras)
    return found


def write(folder):
    """Saves models, samples and predictions. Runs in the old interpreter."""
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import h5py
    import keras
    import keras.layers
    import keras.models
    import numpy
    draw = numpy.random.RandomState(1)
    for name, model in cases(keras).items():
        model, original = model if isinstance(model, tuple) else (model, model)
        original.set_weights([draw.uniform(0.1, 0.9, one.shape) * draw.choice([-1, 1] if one.ndim > 1 else [1], one.shape)
                              for one in original.get_weights()])
        shapes = [tuple(one.get_shape().as_list()[1:]) for one in original.inputs]
        samples = [draw.uniform(-1, 1, (5,) + shape).astype("float32") for shape in shapes]
        expected = original.predict(samples if len(samples) > 1 else samples[0])
        model.compile("sgd", "mse")
        model.save(os.path.join(folder, name + ".h5"))
        with h5py.File(os.path.join(folder, name + ".samples"), "w") as file:
            for i, one in enumerate(samples):
                file["samples/%d" % i] = one
            file["expected"] = expected
    print(keras.__version__)


def check(program, folder, samples_file):
    import h5py
    name = samples_file.stem

    def dtrain(*arguments):
        return subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE).stdout

    report = json.loads(dtrain("import", name + ".h5", "--output", name, "--json"))
    with h5py.File(samples_file, "r") as samples, h5py.File(folder / "in.h5", "w") as file:
        expected = samples["expected"][()]
        for i, key in enumerate(report["inputs"]):
            file[key] = samples["samples/%d" % i][()]
    dtrain("predict", name, "--input", "in.h5", "--output", "out.h5", "--quiet")
    with h5py.File(folder / "out.h5", "r") as file:
        found = file[list(file)[0]][()]
    difference = abs(found - expected).max()
    if not difference < 1e-5 * max(1, abs(expected).max()):
        sys.exit("{}: predictions differ by {}".format(name, difference))


def main():
    if sys.argv[1] == "--check":
        folder = pathlib.Path(sys.argv[3])
        for samples_file in sorted(folder.glob("*.samples")):
            check(sys.argv[2], folder, samples_file)
        return
    if sys.argv[1] == "--write":
        return write(sys.argv[2])
    pythons = os.environ.get("DTRAIN_OLD_KERAS_PYTHON", "")
    if not pythons:
        print("skipped: DTRAIN_OLD_KERAS_PYTHON names no interpreter with Keras 1 or 2.2")
        sys.exit(SKIPPED)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    for python in pythons.split(":"):
        with tempfile.TemporaryDirectory() as folder:
            version = subprocess.run([python, __file__, "--write", folder], check=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL).stdout.decode().strip()
            subprocess.run([python, __file__, "--check", program, folder], check=True)
            count = len(list(pathlib.Path(folder).glob("*.samples")))
            print("Keras {}: {} models".format(version, count))


if __name__ == "__main__":
    main()
