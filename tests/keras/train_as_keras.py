#!/usr/bin/env python3
"""Trains one model with every optimizer and schedule, and models with recurrent layers, in dtrain and in Keras, from the same
weights with the same batches: the predictions after 40 (recurrent: 104) steps must be equal to 1e-5 of the largest.

    train_as_keras.py DTRAIN

Uses every Keras that open_in_keras.py finds. Exits with 77, which CTest treats as skipped, if there is none.
"""
import pathlib
import subprocess
import sys
import tempfile

import open_in_keras

SAMPLES, BATCH, EPOCHS = 61, 8, 5  # the last batch of an epoch has 5 samples

CONFIG = """\
seed: 1
model: {{inputs: {{x: {shape}}}, layers: [{layers}dense: {{units: 3}}]}}
dataset: {{train: {{npy: {{input: x.npy, target: y.npy}}}}, shuffle: false}}
strategy: {{mirrored: {{devices: [cpu:0, cpu:1], replicas: {replicas}}}}}
train:
  epochs: {epochs}
  batch_size: 8
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  {train}
"""


DENSE = "dense: {units: 16, activation: tanh}, "
RECURRENT = {  # layers before the last
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


RULES = {  # layers before the last, with regularizers and constraints
    "regularizers": "dense: {units: 16, activation: tanh, kernel_regularizer: {l1_l2: {l1: 0.002, l2: 0.01}}, bias_regularizer: {l2: 0.1}}, "
                    "layer_normalization: {gamma_regularizer: {l1: 0.01}, beta_regularizer: {l2: 0.1}}, ",
    "constraints": "dense: {units: 16, activation: tanh, kernel_constraint: {max_norm: {max_value: 0.7}}, bias_constraint: non_neg}, "
                   "dense: {units: 9, activation: tanh, kernel_constraint: {unit_norm: {axis: 1}}}, "
                   "dense: {units: 9, activation: tanh, kernel_constraint: {min_max_norm: {min_value: 0.5, max_value: 0.8, rate: 0.3}}}, ",
}


def cases(keras):
    """Returns, by name, lines under `train:` and the Keras optimizer (None if this Keras lacks it)."""
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
        # Keras 2 multiplies the product of the momenta several times in a step unless it runs eagerly.
        "nadam": ("optimizer: {nadam: {learning_rate: 0.005}}", keras.__version__.startswith("3") and o.Nadam(0.005)),
        "lion": ("optimizer: {lion: {learning_rate: 0.003}}", o.Lion(0.003)),
        "lamb": ("optimizer: {lamb: {learning_rate: 0.02}}", lamb and lamb(0.02)),
        "lamb, decaying": ("optimizer: {lamb: {learning_rate: 0.02, weight_decay: 0.1, epsilon: 0.001}}",
                           lamb and lamb(0.02, weight_decay=0.1, epsilon=0.001)),
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
    (folder / "run.yaml").write_text(CONFIG.format(**options))
    run(program, folder, "fit", "run.yaml", "--output", "run", "--overwrite")
    return next((folder / "run").rglob("*.h5"))


def check(program, keras, folder, train, optimizer, layers=DENSE, shape=(6,), epochs=EPOCHS):
    """Returns the largest differences of predictions, with one replica and with three, relative to the largest prediction."""
    import numpy
    random = numpy.random.default_rng(7)
    x = random.normal(size=(SAMPLES, *shape)).astype("float32")
    y = random.integers(0, 3, SAMPLES).astype("int32")
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    options = {"train": train, "layers": layers, "shape": list(shape)}
    model = keras.models.load_model(fit(program, folder, **options, epochs=0, replicas=1), compile=False)
    before = model.predict(x, verbose=0)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0)
    expected = model.predict(x, verbose=0)
    if not abs(expected - before).max() > 0.01:
        raise open_in_keras.Mistake("nothing moved")
    differences = []
    for replicas in (1, 3):
        fit(program, folder, **options, epochs=epochs, replicas=replicas)
        run(program, folder, "predict", "run", "--input", "x.npy", "--output", "found.npy")
        differences.append(float(abs(numpy.load(folder / "found.npy") - expected).max() / abs(expected).max()))
    return max(differences)


def main():
    program, kerases = open_in_keras.program_and_kerases()
    failed = False
    for keras_name, keras in kerases.items():
        checks = {name: {"train": train, "optimizer": optimizer} for name, (train, optimizer) in cases(keras).items()}
        for name, layers in RECURRENT.items():
            checks[name] = {"train": "optimizer: {sgd: {learning_rate: 0.1}}", "optimizer": keras.optimizers.SGD(0.1),
                            "layers": layers, "shape": (9, 4), "epochs": 13}
        for name, layers in RULES.items():
            for clip, more in (("", {}), (", clip_norm", {"global_clipnorm": 0.3})):
                checks[name + clip] = {"train": f"{'clip_norm: 0.3' if clip else ''}\n  optimizer: {{sgd: {{learning_rate: 0.1}}}}",
                                       "optimizer": keras.optimizers.SGD(0.1, **more), "layers": layers}
        for name, options in checks.items():
            with tempfile.TemporaryDirectory() as folder:
                difference = check(program, keras, pathlib.Path(folder), **options)
            good = difference < open_in_keras.TOLERANCE
            failed = failed or not good
            print(f"{keras_name}, {name}: predictions differ by {difference:.1e}{'' if good else ', TOO MUCH'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
