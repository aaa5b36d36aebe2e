#!/usr/bin/env python3
"""Trains one model with every optimizer and schedule, models with recurrent layers, models of padded tokens, and models
whose outputs have different masks, in dtrain and in Keras, from the same weights with the same batches: the predictions
after 32 to 104 steps must be equal to 1e-5 of the largest prediction. If each token has a class, the accuracies must be
equal, too.

    train_as_keras.py DTRAIN

Uses every Keras that open_in_keras.py finds. Exits with 77, which CTest treats as skipped, if there is no Keras.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import open_in_keras

SAMPLES, BATCH, EPOCHS = 61, 8, 5  # the last batch of an epoch has 5 samples

CONFIG = """\
seed: 1
model: {{inputs: {{x: {{shape: {shape}, dtype: {dtype}}}}}, layers: [{layers}dense: {{units: 3}}]}}
dataset: {{train: {{npy: {{input: x.npy, target: y.npy}}}}, shuffle: false}}
strategy: {{mirrored: {{devices: [cpu:0, cpu:1], replicas: {replicas}}}}}
train:
  epochs: {epochs}
  batch_size: 8
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  {train}
"""


DENSE = "dense: {units: 16, activation: tanh}, "
RECURRENT = {  # layers before the last layer of the model
    "lstm": "lstm: {units: 7}, ",
    "lstm, sequences": "lstm: {units: 5, return_sequences: true, unit_forget_bias: false}, lstm: {units: 4, use_bias: false}, ",
    "lstm, backwards": "lstm: {units: 5, return_sequences: true, go_backwards: true, activation: softsign}, flatten: {}, ",
    "gru": "gru: {units: 7}, ",
    "gru, sequences": "gru: {units: 5, return_sequences: true, go_backwards: true}, gru: {units: 4, use_bias: false}, ",
    "gru, reset before": "gru: {units: 5, reset_after: false, return_sequences: true}, gru: {units: 4, reset_after: false, "
                         "recurrent_activation: hard_sigmoid}, ",
    "simple_rnn": "simple_rnn: {units: 7, return_sequences: true}, simple_rnn: {units: 5, activation: relu}, ",
    "shared lstm": "lstm: {units: 5, name: a}, lstm: {shared_with: a, inputs: x, name: b}, multiply: {inputs: [a, b]}, ",
}


EMBEDDING = "embedding: {input_dim: 9, output_dim: 4, mask_zero: true}, "
# Layers before the last layer of the model. The inputs are tokens. Padding has the value 0, and is at the end, at the
# beginning or in between.
MASKED = {
    "masked lstm": EMBEDDING + "lstm: {units: 5}, ",
    "masked lstm, classes of tokens": EMBEDDING + "dropout: 0, lstm: {units: 5, return_sequences: true}, ",
    "masked lstm with activity_regularizer, classes of tokens": EMBEDDING + "lstm: {units: 5, return_sequences: true, "
                                                               "activity_regularizer: {l1_l2: {l1: 0.01, l2: 0.05}}}, ",
    "masked gru": EMBEDDING + "gru: {units: 5, return_sequences: true}, gru: {units: 4, reset_after: false}, ",
    "masked gru, backwards": EMBEDDING + "gru: {units: 5, go_backwards: true, reset_after: false}, ",
    "masked simple_rnn": EMBEDDING + "dense: {units: 5}, simple_rnn: {units: 5, return_sequences: true}, "
                         "simple_rnn: {units: 4, go_backwards: true}, ",
    "masked bidirectional": EMBEDDING + "bidirectional: {layer: {lstm: {units: 4, return_sequences: true}}}, "
                            "bidirectional: {layer: {gru: {units: 3}}, merge_mode: sum}, ",
    "masked bidirectional, classes of tokens": EMBEDDING + "bidirectional: {layer: {gru: {units: 4, return_sequences: true}}, merge_mode: mul}, ",
    "masked batch normalization": EMBEDDING + "batch_normalization: {synchronized: true}, lstm: {units: 5}, ",
    "masked average": EMBEDDING + "dense: {units: 6, activation: tanh}, global_average_pooling1d: {}, ",
    "masked attention": EMBEDDING + "multi_head_attention: {num_heads: 2, key_dim: 3, causal: true}, global_average_pooling1d: {}, ",
    "masked keys": EMBEDDING + "embedding: {input_dim: 9, output_dim: 4, inputs: x, name: query}, "
                   "multi_head_attention: {num_heads: 2, key_dim: 3, inputs: [query, embedding]}, global_average_pooling1d: {}, ",
    "merged masks": EMBEDDING + "lstm: {units: 4, return_sequences: true, name: a}, "
                    "gru: {units: 4, return_sequences: true, inputs: embedding, name: b}, add: {inputs: [a, b]}, "
                    "concatenate: {inputs: [add, a]}, lstm: {units: 3}, ",
    "ignored mask": EMBEDDING + "lstm: {units: 4, return_sequences: true}, global_max_pooling1d: {ignore_mask: true}, ",
    "masking": "masking: {mask_value: 0}, lstm: {units: 5}, ",
    "masking, classes of steps": "masking: {}, simple_rnn: {units: 5, return_sequences: true}, ",
}


# Models with two inputs of padded tokens and two outputs. The first output has a class for each token; the second
# output has a class for each token or for each sample.
OUTPUTS_CONFIG = """\
seed: 1
model:
  inputs: {{x: {{shape: [9], dtype: int32}}, y: {{shape: [7], dtype: int32}}}}
  layers: [{layers}]
  outputs: [first, second]
dataset: {{train: {{npy: {{inputs: {{x: x.npy, y: y.npy}}, targets: {{first: first.npy, second: second.npy}}}}}}, shuffle: false}}
strategy: {{mirrored: {{devices: [cpu:0, cpu:1], replicas: {replicas}}}}}
train:
  epochs: {epochs}
  batch_size: 8
  loss:
    first: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
    second: {{sparse_categorical_crossentropy: {{from_logits: true, weight: 0.5}}}}
  optimizer: {{sgd: {{learning_rate: 0.1}}}}
"""
ENCODER = "embedding: {inputs: x, input_dim: 9, output_dim: 4, mask_zero: true}, gru: {name: encoder, units: 5, return_sequences: true}, "
# Keras's attention removes the masks of its inputs, also for other layers that read the same inputs. Therefore the
# attention here reads `keys`, not `encoder`.
DECODER = "dense: {name: keys, inputs: encoder, units: 5}, " \
          "embedding: {name: tokens, inputs: y, input_dim: 9, output_dim: 5, mask_zero: true}, " \
          "multi_head_attention: {name: read, inputs: [tokens, keys], num_heads: 2, key_dim: 3}, "
OUTPUTS = {
    "encoder and decoder": ENCODER + "dense: {name: second, units: 3}, " + DECODER + "dense: {name: first, units: 3}",
    "tags and a class": ENCODER + DECODER + "lstm: {name: states, units: 5, return_sequences: true}, dense: {name: first, units: 3}, "
                        "global_average_pooling1d: {inputs: states}, dense: {name: second, units: 3}",
    "tags and a class, activity_regularizer": ENCODER + DECODER + "lstm: {name: states, units: 5, return_sequences: true, "
                                              "activity_regularizer: {l2: 0.02}}, dense: {name: first, units: 3}, "
                                              "global_average_pooling1d: {inputs: states}, dense: {name: second, units: 3}",
}


RULES = {  # layers with regularizers and constraints, before the last layer of the model
    "regularizers": "dense: {units: 16, activation: tanh, kernel_regularizer: {l1_l2: {l1: 0.002, l2: 0.01}}, bias_regularizer: {l2: 0.1}}, "
                    "layer_normalization: {gamma_regularizer: {l1: 0.01}, beta_regularizer: {l2: 0.1}}, ",
    "orthogonal_regularizer": "dense: {units: 16, activation: tanh, kernel_regularizer: {orthogonal_regularizer: {factor: 0.3}}}, "
                              "dense: {units: 9, activation: tanh, kernel_regularizer: {orthogonal_regularizer: {factor: 0.4, mode: columns}}}, ",
    "regularizers of attention": "reshape: [2, 3], multi_head_attention: {num_heads: 2, key_dim: 3, kernel_regularizer: {l2: 0.02}, "
                                 "bias_regularizer: {l1: 0.01}, kernel_constraint: {max_norm: {max_value: 0.8, axis: 0}}}, flatten: {}, ",
    "activity_regularizers": "dense: {units: 16, activation: tanh, activity_regularizer: {l1_l2: {l1: 0.002, l2: 0.01}}}, "
                             "layer_normalization: {activity_regularizer: {l2: 0.01}}, "
                             "dense: {units: 9, activation: {leaky_relu: {negative_slope: 0.3}}, activity_regularizer: {l1: 0.01}}, ",
    "constraints": "dense: {units: 16, activation: tanh, kernel_constraint: {max_norm: {max_value: 0.7}}, bias_constraint: non_neg}, "
                   "dense: {units: 9, activation: tanh, kernel_constraint: {unit_norm: {axis: 1}}}, "
                   "dense: {units: 9, activation: tanh, kernel_constraint: {min_max_norm: {min_value: 0.5, max_value: 0.8, rate: 0.3}}}, ",
}


# The optimizers that Keras lacks. cases() therefore has no case for them.
NOT_IN_KERAS = set()


def cases(keras):
    """Returns a dict from the name of each case to a pair: the lines under `train:` in dtrain's configuration, and
    the Keras optimizer. The optimizer is None if this Keras does not have it."""
    o, s = keras.optimizers, keras.optimizers.schedules
    lamb = getattr(o, "Lamb", None)
    sgd = "optimizer: {sgd: {learning_rate: %s}}"
    made = {
        "sgd": (sgd % 0.1, o.SGD(0.1)),
        "momentum": ("optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}", o.SGD(0.05, momentum=0.9)),
        "nesterov": ("optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9, nesterov: true}}",
                     o.SGD(0.05, momentum=0.9, nesterov=True)),
        "rmsprop": ("optimizer: {rmsprop: {learning_rate: 0.003}}", o.RMSprop(0.003)),
        "centered rmsprop": ("optimizer: {rmsprop: {learning_rate: 0.003, rho: 0.8, momentum: 0.5, centered: true, epsilon: 0.001}}",
                             o.RMSprop(0.003, rho=0.8, momentum=0.5, centered=True, epsilon=0.001)),
        "adagrad": ("optimizer: {adagrad: {learning_rate: 0.1}}", o.Adagrad(0.1)),
        "adam": ("optimizer: {adam: {learning_rate: 0.01}}", o.Adam(0.01)),
        "adamw": ("optimizer: {adamw: {learning_rate: 0.01, weight_decay: 0.1}}", o.AdamW(0.01, weight_decay=0.1)),
        "adamax": ("optimizer: {adamax: {learning_rate: 0.01}}", o.Adamax(0.01)),
        "adadelta": ("optimizer: {adadelta: {learning_rate: 1, rho: 0.9, epsilon: 0.00001}}", o.Adadelta(1.0, rho=0.9, epsilon=1e-5)),
        # If Keras 2 does not run eagerly, it updates the product of the momenta several times in a step. Its results
        # are therefore not compared.
        "nadam": ("optimizer: {nadam: {learning_rate: 0.005}}", keras.__version__.startswith("3") and o.Nadam(0.005)),
        "lion": ("optimizer: {lion: {learning_rate: 0.003}}", o.Lion(0.003)),
        "lamb": ("optimizer: {lamb: {learning_rate: 0.02}}", lamb and lamb(0.02)),
        "lamb, decaying": ("optimizer: {lamb: {learning_rate: 0.02, weight_decay: 0.1, epsilon: 0.001}}",
                           lamb and lamb(0.02, weight_decay=0.1, epsilon=0.001)),
        # Keras 2 handles the state of weights with one axis differently. Its results are therefore not compared.
        "adafactor": ("optimizer: {adafactor: {learning_rate: 0.03}}",
                      keras.__version__.startswith("3") and o.Adafactor(0.03)),
        "adafactor, decaying": ("optimizer: {adafactor: {learning_rate: 0.03, weight_decay: 0.1, clip_threshold: 0.8}}",
                                keras.__version__.startswith("3") and o.Adafactor(0.03, weight_decay=0.1, clip_threshold=0.8)),
        "clip_norm": ("clip_norm: 0.1\n  " + sgd % 0.5, o.SGD(0.5, global_clipnorm=0.1)),
        "clip_value": ("clip_value: 0.01\n  " + sgd % 0.5, o.SGD(0.5, clipvalue=0.01)),
        "exponential_decay": (sgd % "{exponential_decay: {initial: 0.2, decay_steps: 10, decay_rate: 0.5, staircase: true}}",
                              o.SGD(s.ExponentialDecay(0.2, 10, 0.5, staircase=True))),
        "inverse_time_decay": (sgd % "{inverse_time_decay: {initial: 0.2, decay_steps: 10, decay_rate: 0.5, staircase: true}}",
                               o.SGD(s.InverseTimeDecay(0.2, 10, 0.5, staircase=True))),
        "polynomial_decay": (sgd % "{polynomial_decay: {initial: 0.2, steps: 15, end: 0.01, power: 2, cycle: true}}",
                             o.SGD(s.PolynomialDecay(0.2, 15, 0.01, power=2, cycle=True))),
        "cosine_decay": (sgd % "{cosine_decay: {initial: 0.2, steps: 20, alpha: 0.1, warmup_steps: 10, warmup_initial: 0.01}}",
                         o.SGD(s.CosineDecay(0.01, 20, alpha=0.1, warmup_target=0.2, warmup_steps=10))),
        "piecewise_constant": (sgd % "{piecewise_constant: {boundaries: [10, 20], values: [0.2, 0.1, 0.05]}}",
                               o.SGD(s.PiecewiseConstantDecay([10, 20], [0.2, 0.1, 0.05]))),
    }
    return {name: case for name, case in made.items() if case[1]}


def run(program, folder, *arguments):
    done = subprocess.run([program, *arguments, "--quiet"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise open_in_keras.Mistake(f"dtrain {arguments[0]}: {done.stderr}")


def fit(program, folder, **options):
    (folder / "run.yaml").write_text(CONFIG.format(**{"layers": DENSE, "shape": [6], "dtype": "float32", **options}))
    run(program, folder, "fit", "run.yaml", "--output", "run", "--overwrite")
    return next((folder / "run").rglob("*.h5"))


def padding(random, steps, may_be_empty):
    """Returns an array [samples, steps] that is true for padding."""
    import numpy
    masks = numpy.zeros((SAMPLES, steps), bool)
    for row in range(SAMPLES):
        count = random.integers(0, steps)
        masks[row, :count] = True
        if row % 3 == 1:
            masks[row] = masks[row, ::-1]
        if row % 3 == 2:
            random.shuffle(masks[row])
    if may_be_empty:
        masks[::7] = True
    return masks


def samples(random, shape, tokens, masked, of_steps, may_be_empty):
    """Returns inputs, and a class for each sample or for each of its steps."""
    x = random.integers(1, 9, (SAMPLES, *shape)).astype("int32") if tokens else random.normal(size=(SAMPLES, *shape)).astype("float32")
    if masked:
        x[padding(random, shape[0], may_be_empty)] = 0
    return x, random.integers(0, 3, (SAMPLES, shape[0]) if of_steps else SAMPLES).astype("int32")


def check(program, keras, folder, train, optimizer, layers=DENSE, shape=(6,), epochs=EPOCHS, tokens=False, masked=False,
          of_steps=False):
    """Returns the largest difference of predictions, with one replica or with three, relative to the largest
    prediction. Raises Passed if this Keras lacks a feature of the model."""
    import h5py
    import numpy
    # If a sample has no valid steps, Keras's mean over the steps is NaN. Therefore, empty samples are used only if the
    # model has no pooling layer.
    x, y = samples(numpy.random.default_rng(7), shape, tokens, masked, of_steps, "pooling" not in layers)
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    options = {"train": train, "layers": layers, "shape": list(shape), "dtype": str(x.dtype)}
    checkpoint = fit(program, folder, **options, epochs=0, replicas=1)
    with h5py.File(checkpoint) as file:
        open_in_keras.check_features(keras, open_in_keras.Opened.text(file.attrs["model_config"]))
    model = keras.models.load_model(checkpoint, compile=False)
    before = model.predict(x, verbose=0)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"] if of_steps else None)
    history = model.fit(x, y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0).history
    expected = model.predict(x, verbose=0)
    if not abs(expected - before).max() > 0.01:
        raise open_in_keras.Mistake("nothing moved")
    differences = []
    for replicas in (1, 3):
        fit(program, folder, **options, epochs=epochs, replicas=replicas)
        run(program, folder, "predict", "run", "--input", "x.npy", "--output", "found.npy")
        if of_steps:
            found = [json.loads(line)["accuracy"] for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
            if not numpy.allclose(found, history["accuracy"], atol=1e-5):
                raise open_in_keras.Mistake(f"accuracies {found} instead of {history['accuracy']}")
        differences.append(float(abs(numpy.load(folder / "found.npy") - expected).max() / abs(expected).max()))
    return max(differences)


def check_outputs(program, keras, folder, layers):
    """Returns the largest difference of a model of OUTPUTS, like check()."""
    import h5py
    import numpy
    random = numpy.random.default_rng(7)
    x, _ = samples(random, (9,), True, True, False, False)
    y, first = samples(random, (7,), True, True, True, False)
    _, second = samples(random, (9,), True, False, "pooling" not in layers, False)
    for name, array in (("x", x), ("y", y), ("first", first), ("second", second)):
        numpy.save(folder / f"{name}.npy", array)

    def train(epochs, replicas):
        (folder / "run.yaml").write_text(OUTPUTS_CONFIG.format(layers=layers, epochs=epochs, replicas=replicas))
        run(program, folder, "fit", "run.yaml", "--output", "run", "--overwrite")
        return max((folder / "run").rglob("*.h5"), key=lambda file: file.stat().st_mtime_ns)

    def outputs_of(model):
        return numpy.concatenate([output.ravel() for output in model.predict([x, y], verbose=0)])

    checkpoint = train(0, 1)
    with h5py.File(checkpoint) as file:
        open_in_keras.check_features(keras, open_in_keras.Opened.text(file.attrs["model_config"]))
    model = keras.models.load_model(checkpoint, compile=False)
    before = outputs_of(model)
    losses = [keras.losses.SparseCategoricalCrossentropy(from_logits=True) for _ in range(2)]
    model.compile(keras.optimizers.SGD(0.1), losses, loss_weights=[1, 0.5])
    model.fit([x, y], [first, second], batch_size=BATCH, epochs=4, shuffle=False, verbose=0)
    expected = outputs_of(model)
    if not abs(expected - before).max() > 0.01:
        raise open_in_keras.Mistake("nothing moved")
    found = [outputs_of(keras.models.load_model(train(4, replicas), compile=False)) for replicas in (1, 3)]
    return max(float(abs(one - expected).max() / abs(expected).max()) for one in found)


def main():
    program, kerases = open_in_keras.program_and_kerases()
    failed = False
    for keras_name, keras in kerases.items():
        checks = {name: {"train": train, "optimizer": optimizer} for name, (train, optimizer) in cases(keras).items()}
        for name, layers in RECURRENT.items():
            checks[name] = {"train": "optimizer: {sgd: {learning_rate: 0.1}}", "optimizer": keras.optimizers.SGD(0.1),
                            "layers": layers, "shape": (9, 4), "epochs": 13}
        for name, layers in MASKED.items():
            of_steps = "classes of" in name
            checks[name] = {"train": f"{'metrics: [accuracy]' if of_steps else ''}\n  optimizer: {{sgd: {{learning_rate: 0.1}}}}",
                            "optimizer": keras.optimizers.SGD(0.1), "layers": layers, "epochs": 4, "masked": True,
                            "tokens": "embedding" in layers, "shape": (9,) if "embedding" in layers else (9, 4),
                            "of_steps": of_steps}
        for name, layers in RULES.items():
            for clip, more in (("", {}), (", clip_norm", {"global_clipnorm": 0.3})):
                checks[name + clip] = {"train": f"{'clip_norm: 0.3' if clip else ''}\n  optimizer: {{sgd: {{learning_rate: 0.1}}}}",
                                       "optimizer": keras.optimizers.SGD(0.1, **more), "layers": layers}
        for name, layers in OUTPUTS.items():
            checks[name] = layers
        for name, options in checks.items():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    if isinstance(options, str):
                        difference = check_outputs(program, keras, pathlib.Path(folder), options)
                    else:
                        difference = check(program, keras, pathlib.Path(folder), **options)
                except open_in_keras.Passed as reason:
                    print(f"skipped      {keras_name}, {name}: {reason}", flush=True)
                    continue
            good = difference < open_in_keras.TOLERANCE
            failed = failed or not good
            print(f"{keras_name}, {name}: predictions differ by {difference:.1e}{'' if good else ', TOO MUCH'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
