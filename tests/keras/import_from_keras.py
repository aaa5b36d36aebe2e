#!/usr/bin/env python3
"""Imports models that Keras saved: `dtrain predict` must return Keras's predictions to 1e-5.

    import_from_keras.py DTRAIN [--graphs N]

Uses every Keras that open_in_keras.py finds. Exits with 77, which CTest treats as skipped, if there is no Keras.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import models
import open_in_keras


def sequential(keras):
    layers = keras.layers
    return keras.Sequential([keras.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(),
                             layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.5),
                             layers.Dense(5, activation="softmax")])


def every_layer(keras):
    layers = keras.layers
    image = keras.Input((12, 12, 3), name="image")
    x = layers.ZeroPadding2D(((1, 2), (0, 3)))(image)
    x = layers.Conv2D(6, (3, 2), strides=2, padding="same", use_bias=False, kernel_initializer="he_normal")(x)
    x = layers.BatchNormalization(scale=False, momentum=0.9)(x)
    x = layers.LeakyReLU(name="leaky")(x)
    x = layers.DepthwiseConv2D(3, depth_multiplier=2, padding="same")(x)
    x = layers.Conv2D(6, 3, padding="same", groups=3)(x)
    x = layers.ELU(alpha=0.5)(x)
    x = layers.PReLU()(layers.Cropping2D(((1, 0), (0, 1)))(x))
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="tanh")(x)
    x = layers.ReLU(max_value=6.0, negative_slope=0.1)(x)
    x = layers.SeparableConv2D(4, 3, depth_multiplier=2, padding="same", activation="relu")(layers.UpSampling2D((1, 2))(x))
    x = layers.UpSampling2D((2, 3), interpolation="bilinear")(layers.PReLU(shared_axes=[1, 2])(x))
    x = layers.AveragePooling2D(2, strides=1, padding="same")(x)
    left, right = layers.GlobalAveragePooling2D()(x), layers.GlobalMaxPooling2D()(x)
    x = layers.Concatenate()([left, right])
    x = layers.LayerNormalization()(x)
    x = layers.Dense(8, activation="gelu", activity_regularizer=keras.regularizers.L1L2(0.01, 0.1), kernel_regularizer=keras.regularizers.L2(0.1), bias_regularizer=keras.regularizers.L1(0.1),
                     kernel_constraint=keras.constraints.MaxNorm(3), bias_constraint=keras.constraints.NonNeg())(x)
    x = layers.Add()([x, layers.Dense(8, activation="selu")(x)])
    x = layers.Multiply()([x, layers.Activation("sigmoid")(x)])
    x = layers.Subtract()([x, layers.Average()([x, layers.Maximum()([x, layers.Dense(8)(x)])])])
    x = layers.Minimum()([x, layers.Dense(8)(x)])
    x = layers.Permute((2, 1))(layers.RepeatVector(3)(x))
    x = layers.Reshape((4, 6))(x)
    x = layers.Flatten()(x)
    x = layers.Dense(3)(x)
    return keras.Model(image, layers.Softmax()(x))


def normalizations(keras):
    """Returns a model with normalization layers. RMSNormalization is new in Keras 3."""
    layers = keras.layers
    image = keras.Input((6, 5, 4), name="image")
    x = layers.Rescaling(0.5, offset=-0.25)(image)
    x = layers.GaussianNoise(0.5)(layers.Rescaling([1.0, 2.0, 0.5, -1.0], offset=[0.0, 1.0, 2.0, 3.0])(x))
    x = layers.GroupNormalization(2)(x)
    x = layers.SpatialDropout2D(0.5)(layers.GroupNormalization(-1, center=False, epsilon=0.01)(x))
    x = layers.Softmax()(layers.Conv2D(6, 3)(x))
    x = layers.SpatialDropout1D(0.5)(layers.UnitNormalization()(layers.Reshape((12, 6))(x)))
    if keras.__version__.startswith("3"):
        import numpy
        x = layers.RMSNormalization(epsilon=1e-3)(layers.Rescaling(numpy.array([1.0, 2, 3, 4, 5, 6]))(x))
    return keras.Model(image, layers.Dense(3)(layers.GaussianDropout(0.5)(layers.Flatten()(x))))


def residual(keras):
    """Returns a model whose layers were created in another order than the order in which Keras lists them."""
    layers = keras.layers
    image = keras.Input((8, 8, 4))
    x = image
    for _ in range(3):
        y = layers.Conv2D(4, 3, padding="same")(x)
        y = layers.Activation("relu")(layers.BatchNormalization()(y))
        y = layers.Conv2D(4, 3, padding="same")(y)
        x = layers.Activation("relu")(layers.Add()([layers.Conv2D(4, 1)(x), layers.BatchNormalization()(y)]))
    return keras.Model(image, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))


def several_ends(keras):
    layers = keras.layers
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    shared = layers.Dense(6, activation="tanh", name="shared")
    x = layers.Add()([shared(a), shared(b)])
    once_more = shared(x)
    return keras.Model([a, b], [layers.Dense(2, name="first")(once_more), layers.Dense(1, name="second")(x)])


def nested(keras):
    """Returns a model that contains a base model with frozen parts and calls the base model twice."""
    layers = keras.layers
    image = keras.Input((8, 8, 3))
    x = layers.Conv2D(4, 3, name="frozen")(image)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.Conv2D(4, 3, name="open")(x)
    inner = keras.Model(image, layers.GlobalAveragePooling2D()(x), name="inner")
    inner.get_layer("frozen").trainable = False
    base = keras.Sequential([inner, layers.Dense(6, activation="relu")], name="base")
    first, second = keras.Input((8, 8, 3)), keras.Input((8, 8, 3))
    x = layers.Concatenate()([base(first), base(second)])
    return keras.Model([first, second], layers.Dense(2)(x))


def frozen_base(keras):
    layers = keras.layers
    image = keras.Input((8, 8, 3))
    x = layers.BatchNormalization()(layers.Conv2D(4, 3)(image))
    base = keras.Model(image, layers.Conv2D(5, 3)(x), name="base")
    base.trainable = False
    return keras.Sequential([keras.Input((8, 8, 3)), base, layers.Flatten(), layers.Dense(3)])


def indices(keras):
    layers = keras.layers
    return keras.Sequential([keras.Input((7,)), layers.Embedding(20, 4), layers.Flatten(), layers.Dense(3)])


def tied(keras):
    """Returns a model whose embedding is also used as the output projection. If this Keras has no
    ReversibleEmbedding, returns a model with a plain embedding."""
    layers = keras.layers
    words = keras.Input((7,), dtype="int32")
    if not hasattr(layers, "ReversibleEmbedding"):
        return keras.Model(words, layers.Embedding(20, 4)(words))
    token = layers.ReversibleEmbedding(20, 4, name="token")
    return keras.Model(words, token(layers.Dense(4, activation="tanh")(token(words)), reverse=True))


def sequences(keras):
    layers = keras.layers
    row = keras.Input((16, 3))
    x = layers.Conv1D(6, 3, padding="same", activation="relu")(row)
    x = layers.ZeroPadding1D((1, 2))(layers.MaxPooling1D(2)(x))
    x = layers.Conv1D(4, 2, strides=2, use_bias=False)(layers.BatchNormalization()(x))
    x = layers.Conv1D(4, 3, dilation_rate=2, padding="causal", activation="tanh")(layers.PReLU(shared_axes=[1])(x))
    x = layers.Conv1D(4, 3, strides=2, padding="causal")(layers.PReLU()(layers.UpSampling1D(2)(x)))
    x = layers.AveragePooling1D(2, strides=1, padding="same")(layers.UpSampling1D(3)(x))
    x = layers.Cropping1D((2, 1))(layers.Conv1D(5, 3, dilation_rate=2)(x))
    x = layers.Concatenate()([layers.GlobalAveragePooling1D()(x), layers.GlobalMaxPooling1D()(x)])
    return keras.Model(row, layers.Dense(2)(x))


def positions(keras):
    """Returns a model with layers in TimeDistributed."""
    layers = keras.layers
    each = layers.TimeDistributed
    video = keras.Input((3, 6, 5, 2))
    x = each(layers.Conv2D(4, 3, activation="relu"))(video)
    x = each(layers.LayerNormalization())(each(layers.MaxPooling2D(2))(x))
    rows = each(layers.Dense(3, activation="tanh"))(each(layers.Flatten())(x))
    states = each(layers.LSTM(3))(layers.Reshape((3, 2, 4))(x))
    both = each(layers.Bidirectional(layers.GRU(2)))(layers.Reshape((3, 2, 4))(x))
    return keras.Model(video, layers.Dense(2)(layers.LSTM(3)(layers.Concatenate()([rows, states, both]))))


def resized(keras):
    layers = keras.layers
    image = keras.Input((7, 6, 3))
    x = layers.Resizing(5, 9)(image)
    x = layers.Resizing(8, 4, interpolation="nearest")(layers.Conv2D(2, 2)(x))
    return keras.Model(image, layers.Dense(2)(layers.Flatten()(x)))


def products(keras):
    layers = keras.layers
    a, b = keras.Input((4, 3)), keras.Input((3, 5))
    x = layers.Dot((2, 1))([a, b])
    y = layers.Dot(1, normalize=True)([layers.Flatten()(a), layers.Dense(12)(layers.Flatten()(b))])
    return keras.Model([a, b], layers.Dense(2)(layers.Concatenate()([layers.Flatten()(x), y])))


def channels_first(keras):
    """Returns a model with channels first, of layers that TensorFlow supports on a CPU. PReLU's axes refer to the
    file's layout."""
    layers = keras.layers
    first = {"data_format": "channels_first"}
    image = keras.Input((3, 5, 6))
    x = layers.PReLU()(layers.ZeroPadding2D(((1, 0), (0, 2)), **first)(image))
    x = layers.UpSampling2D((1, 2), **first)(layers.PReLU(shared_axes=[2, 3])(x))
    x = layers.SpatialDropout2D(0.5, **first)(layers.GaussianNoise(0.1)(layers.GroupNormalization(3, axis=1)(x)))
    x = layers.Cropping2D(((0, 2), (1, 1)), **first)(layers.PReLU(shared_axes=[1, 3])(x))
    shared = layers.PReLU(shared_axes=[2])
    x = layers.Concatenate(axis=1)([shared(x), shared(layers.ReLU()(x))])
    means = layers.GlobalAveragePooling2D(**first)(x)
    rows = layers.Permute((2, 1, 3))(x)  # not an image layer: it uses the file's order of axes
    return keras.Model(image, [layers.Dense(2)(means), layers.Dense(2)(layers.Flatten()(layers.PReLU()(rows)))])


def volumes(keras):
    layers = keras.layers
    volume = keras.Input((8, 7, 6, 2))
    x = layers.Conv3D(4, 3, padding="same", activation="relu")(volume)
    x = layers.BatchNormalization()(layers.ZeroPadding3D(((1, 2), (0, 1), (1, 0)))(x))
    x = layers.MaxPooling3D(2, padding="same")(layers.Cropping3D(((0, 1), (1, 0), (0, 0)))(x))
    x = layers.Conv3D(5, (2, 1, 3), strides=(1, 2, 1), use_bias=False)(layers.UpSampling3D((1, 2, 1))(x))
    x = layers.AveragePooling3D((2, 1, 2), strides=1, padding="same")(layers.Conv3D(3, 2, dilation_rate=(2, 1, 1))(x))
    x = layers.Concatenate()([layers.GlobalAveragePooling3D()(x), layers.GlobalMaxPooling3D()(x), layers.Flatten()(x)])
    return keras.Model(volume, layers.Dense(2)(x))


def masks(keras):
    """Returns a model with masks that layers read, masks that layers drop, and masks that no layer reads."""
    layers = keras.layers
    words = keras.Input((7,), dtype="int32")
    embedded = layers.Embedding(20, 4, mask_zero=True)(words)
    x = layers.Dropout(0.5)(layers.Dense(4, activation="tanh")(embedded))
    sequence = layers.LSTM(3, return_sequences=True)(x)
    state = layers.GRU(3)(layers.Add()([sequence, layers.SimpleRNN(3, return_sequences=True)(x)]))
    both = layers.Bidirectional(layers.LSTM(2))(layers.Bidirectional(layers.GRU(3, return_sequences=True, recurrent_dropout=0.25), merge_mode="sum")(x))
    lost = layers.LSTM(3)(layers.Conv1D(3, 2)(sequence))
    unread = layers.Flatten()(layers.Embedding(20, 2, mask_zero=True)(words))
    masked = layers.LSTM(3)(layers.Masking(0.0)(layers.ReLU()(layers.Embedding(20, 1)(words))))
    ends = [state, both, lost, unread, masked, layers.GlobalMaxPooling1D()(sequence)]
    return keras.Model(words, layers.Dense(2)(layers.Concatenate()(ends)))


def arguments(keras):
    """Returns a model whose layers get inputs as keyword arguments, states, and masks that Keras 3 passes as
    arguments."""
    layers = keras.layers
    words = keras.Input((7,), dtype="int32")
    embedded = layers.Embedding(20, 4, mask_zero=True)(words)
    attended = layers.MultiHeadAttention(2, 3, output_shape=4)(query=embedded, value=layers.Dense(4)(embedded))
    means = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(layers.Add()([embedded, attended])))
    _, state, cell = layers.LSTM(3, return_state=True)(embedded)
    last = layers.LSTM(3)(layers.Embedding(20, 2)(words), initial_state=[state, cell])
    _, forward, backward = layers.Bidirectional(layers.GRU(2, return_state=True))(embedded)
    joined = layers.LSTM(2)(layers.Concatenate()([embedded, layers.Dense(2)(embedded)]))
    return keras.Model(words, layers.Dense(2)(layers.Concatenate()([means, last, forward, backward, joined])))


MODELS = [sequential, every_layer, normalizations, residual, several_ends, nested, frozen_base, indices, tied, sequences, positions, products, resized, channels_first, volumes, masks, arguments]


def towers(keras, model, count):
    """Returns a model that is wrapped like the models of Keras's multi_gpu_model."""
    layers = keras.layers

    def part(data, i, parts):
        import tensorflow
        size = tensorflow.shape(data)[:1] // parts
        stride = tensorflow.concat([size, tensorflow.zeros_like(tensorflow.shape(data)[1:])], 0)
        rest = tensorflow.shape(data)[:1] - size * i if i == parts - 1 else size
        return tensorflow.slice(data, stride * i, tensorflow.concat([rest, tensorflow.shape(data)[1:]], 0))

    outputs = [[] for _ in model.outputs]
    for i in range(count):
        inputs = [layers.Lambda(part, output_shape=tuple(x.shape[1:]), arguments={"i": i, "parts": count})(x)
                  for x in model.inputs]
        found = model(inputs if len(inputs) > 1 else inputs[0])
        for all_of, one in zip(outputs, found if isinstance(found, (list, tuple)) else [found]):
            all_of.append(one)
    return keras.Model(model.inputs, [layers.Concatenate(axis=0, name=f"merged_{j}_{count}")(of)
                                      for j, of in enumerate(outputs)])


class Case:
    def __init__(self, program, keras, folder):
        self.program, self.keras, self.folder = program, keras, folder

    def dtrain(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise open_in_keras.Mistake(f"dtrain {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def samples(self, model):
        import numpy
        draw = numpy.random.default_rng(1)
        has_indices = any(type(layer).__name__.endswith("Embedding") for layer in model.layers)
        if has_indices:
            return [draw.integers(0, 20, (9, *model.inputs[0].shape[1:])).astype("int32")]
        return [draw.uniform(-1, 1, (9, *one.shape[1:])).astype("float32") for one in model.inputs]

    def check(self, name, model, file, original=None):
        """Compares the predictions of a saved model after its import. `original`: the model whose predictions are
        compared if the saved model is a wrapper of another model."""
        import h5py
        import numpy
        model.save(self.folder / file)
        original = original or model
        samples = self.samples(original)
        expected = original.predict(samples if len(samples) > 1 else samples[0], verbose=0)
        expected = expected if isinstance(expected, (list, tuple)) else [expected]
        out = f"{file}-imported"
        report = json.loads(self.dtrain("import", file, "--output", out, "--json"))
        with h5py.File(self.folder / "samples.h5", "w") as samples_file:
            for key, array in zip(report["inputs"], samples):
                samples_file[key] = array
        self.dtrain("predict", out, "--input", "samples.h5", "--output", "found.h5", "--quiet")
        with h5py.File(self.folder / "found.h5") as found:
            names = list(found) if len(found) == 1 else report["outputs"]  # a single output is named "output"
            differences = [float(abs(found[key][()] - one).max() / max(1, abs(one).max())) for key, one in zip(names, expected)]
        if not max(differences) < 1e-5:
            raise open_in_keras.Mistake(f"{name} as {file}: predictions differ by {differences} of the largest")
        return report


def check_random_graphs(case, count):
    """Exports dtrain's own models as .keras files and imports them again."""
    import h5py
    import numpy
    for seed in range(count):
        config = models.random_graph(seed)
        (case.folder / "run.yaml").write_text(json.dumps(config))
        case.dtrain("fit", "run.yaml", "--output", "run", "--overwrite", "--quiet")
        case.dtrain("export", "run", "--output", "run.keras", "--quiet")
        shutil.rmtree(case.folder / "back", ignore_errors=True)
        report = json.loads(case.dtrain("import", "run.keras", "--output", "back", "--json"))
        draw = numpy.random.default_rng(seed)
        with h5py.File(case.folder / "samples.h5", "w") as samples:
            for name, shape in config["model"]["inputs"].items():
                samples[name] = draw.uniform(-1, 1, (5, *shape)).astype("float32")
        found = []
        for model in ("run", "back"):
            case.dtrain("predict", model, "--input", "samples.h5", "--output", f"{model}.h5", "--quiet")
            with h5py.File(case.folder / f"{model}.h5") as file:
                found.append({name.replace("/", "."): file[name][()] for name in
                              (list(file) if len(report["outputs"]) == 1 else config["model"]["outputs"]
                               if model == "run" else report["outputs"])})
        for (name, expected), back in zip(found[0].items(), found[1].values()):
            if not abs(expected - back).max() <= open_in_keras.TOLERANCE * max(1, abs(expected).max()):
                raise open_in_keras.Mistake(f"random graph {seed}: '{name}' differs by {abs(expected - back).max()}")


def check_saved_again(case):
    """Exports a model with a kind of attention for which Keras has no layer. Keras 3 loads and saves the exported
    model, and dtrain imports the saved file."""
    common = {"num_heads": 4, "key_dim": 4, "kernel_regularizer": {"l2": 0.01}, "bias_initializer": "random_normal"}
    options = [{"rotary": {"base": 50.0}, "causal": True}, {"rotary": {}, "num_key_value_heads": 2, "causal": True},
               {"rotary": {}, "value_dim": 3, "dropout": 0.5}, {"value_dim": 3, "num_key_value_heads": 1}]
    layers = [{"multi_head_attention": {**common, **own}} for own in options]
    config = models.run_of({"inputs": {"x": [6, 8]}, "layers": [*layers, {"flatten": {}}, {"dense": {"units": 2, "name": "last"}}]},
                           targets={"last": {"shape": [2]}})
    (case.folder / "run.yaml").write_text(json.dumps(config))
    case.dtrain("fit", "run.yaml", "--output", "run", "--overwrite", "--quiet")
    case.dtrain("export", "run", "--output", "attention.keras", "--quiet")
    model = case.keras.models.load_model(case.folder / "attention.keras")
    for ending in (".keras", ".h5"):
        case.check("attention", model, "again" + ending)
        found = (case.folder / f"again{ending}-imported/model.yaml").read_text()
        for wanted, count in [("multi_head_attention:", 4), ("rotary: {base: 50", 1), ("rotary: {}", 2), ("value_dim: 3", 2),
                              ("dropout: 0.5", 1), ("num_key_value_heads", 2), ("kernel_regularizer", 4)]:
            if found.count(wanted) != count:
                raise open_in_keras.Mistake(f"again{ending}: expected {count} times '{wanted}':\n{found}")


def randomize(model):
    import numpy
    draw = numpy.random.default_rng(3)
    model.set_weights([draw.uniform(0.1, 0.9, one.shape) * draw.choice([-1, 1] if one.ndim > 1 else [1], one.shape)
                       for one in model.get_weights()])
    return model


def main():
    program, kerases = open_in_keras.program_and_kerases()
    with tempfile.TemporaryDirectory() as folder:
        count = int(sys.argv[sys.argv.index("--graphs") + 1]) if "--graphs" in sys.argv else 20
        check_random_graphs(Case(program, None, pathlib.Path(folder)), count)
        print(f"{count} random graphs, exported as .keras and imported again")
    for name, keras in kerases.items():
        with tempfile.TemporaryDirectory() as folder:
            case = Case(program, keras, pathlib.Path(folder))
            endings = [".h5", ".keras"]
            for make in MODELS:
                for ending in endings:
                    case.check(make.__name__, randomize(make(keras)), make.__name__ + ending)
            print(f"{name}: {len(MODELS)} models, as {' and '.join(endings)}")
            if keras.__version__.startswith("3"):
                check_saved_again(case)
                print(f"{name}: attention that Keras lacks, as {' and '.join(endings)}")
            for count, times in [(2, 1), (4, 1), (8, 1), (2, 2), (2, 3), (4, 2)]:
                for make in [sequential, several_ends]:
                    model = original = randomize(make(keras))
                    for _ in range(times):
                        model = towers(keras, model, count)
                    for ending in endings:
                        report = case.check(make.__name__, model, f"{make.__name__}-{count}-{times}{ending}", original)
                        saved = {1: "", 2: ", saved twice", 3: ", saved 3 times"}[times]
                        if report["removed"] != f"multi_gpu_model: {count} towers{saved}":
                            raise open_in_keras.Mistake(f"removed: {report['removed']}")
            print(f"{name}: models of 2 to 8 towers, saved 1 to 3 times")


if __name__ == "__main__":
    main()
