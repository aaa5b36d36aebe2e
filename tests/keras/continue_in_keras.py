#!/usr/bin/env python3
"""Exports runs as .keras files and continues training in Keras 3: the predictions after 24 further steps must equal
dtrain's to 1e-5 of the largest prediction, for every optimizer and schedule. Also imports files that Keras 2 and 3
saved, with the state of their optimizers (including the optimizers of Keras 2.10), losses, loss weights and metrics,
and continues training in dtrain.

    continue_in_keras.py DTRAIN

Exits with 77, which CTest treats as skipped, if there is no Keras 3.
"""
import pathlib
import subprocess
import sys
import tempfile

import open_in_keras
import train_as_keras
from train_as_keras import BATCH, EPOCHS, SAMPLES, fit, run

EXPORTED = 2  # epochs before the export


def check(program, keras, folder, train):
    import numpy
    random = numpy.random.default_rng(7)
    x = random.normal(size=(SAMPLES, 6)).astype("float32")
    y = random.integers(0, 3, SAMPLES).astype("int32")
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    # Learning rate schedules depend on the length of the whole run. Therefore, `dtrain export` gets the number of
    # epochs of the whole run.
    fit(program, folder, train=train, epochs=EPOCHS, replicas=2)
    run(program, folder, "predict", "run", "--input", "x.npy", "--output", "end.npy")
    fit(program, folder, train=train, epochs=EXPORTED, replicas=1)
    run(program, folder, "predict", "run", "--input", "x.npy", "--output", "begin.npy")
    run(program, folder, "export", "run", "--output", "model.keras", "--set", f"train.epochs={EPOCHS}")
    begin, end = numpy.load(folder / "begin.npy"), numpy.load(folder / "end.npy")
    model = keras.models.load_model(folder / "model.keras")
    largest = abs(end).max()
    loaded = float(abs(model.predict(x, verbose=0) - begin).max() / largest)
    if not loaded < open_in_keras.TOLERANCE:
        raise open_in_keras.Mistake(f"the loaded model's predictions differ by {loaded:.1e}")
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS - EXPORTED, shuffle=False, verbose=0)
    found = model.predict(x, verbose=0)
    if not abs(found - begin).max() > 0.01:
        raise open_in_keras.Mistake("nothing moved")
    return float(abs(found - end).max() / largest)


DATA = """\
train: {npy: {input: x.npy, target: y.npy}}
shuffle: false
"""


def check_import(program, keras, folder, optimizer, ending):
    """Checks training that starts in Keras and continues in dtrain."""
    import numpy
    random = numpy.random.default_rng(7)
    x = random.normal(size=(SAMPLES, 6)).astype("float32")
    y = random.integers(0, 3, SAMPLES).astype("int32")
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    (folder / "data.yaml").write_text(DATA)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(3)])
    model.set_weights([random.normal(size=one.shape) * 0.4 for one in model.get_weights()])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=BATCH, epochs=EXPORTED, shuffle=False, verbose=0)
    begin = model.predict(x, verbose=0)
    try:
        model.save(folder / f"model{ending}")
    except ValueError as mistake:
        if "name already exists" in str(mistake):
            raise open_in_keras.Passed("this Keras cannot save the optimizer in such a file") from None
        raise
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS - EXPORTED, shuffle=False, verbose=0)
    end = model.predict(x, verbose=0)
    run(program, folder, "import", f"model{ending}", "--output", "imported", "--with-optimizer")
    run(program, folder, "resume", "imported", "--output", "run", "--set", "dataset=data.yaml",
        f"train.epochs={EPOCHS - EXPORTED}", f"train.batch_size={BATCH}", "strategy=single")
    run(program, folder, "predict", "run", "--input", "x.npy", "--output", "end.npy")
    found = numpy.load(folder / "end.npy")
    if not abs(found - begin).max() > 0.01:
        raise open_in_keras.Mistake("nothing moved")
    return float(abs(found - end).max() / abs(end).max())


def legacy_optimizers(keras):
    """Returns the optimizers of Keras 2.10 and earlier."""
    legacy = getattr(keras.optimizers, "legacy", None)
    if keras.__version__.startswith("3") or not legacy:
        return {}
    s = keras.optimizers.schedules
    return {
        "sgd": legacy.SGD(0.1), "momentum": legacy.SGD(0.05, momentum=0.9, nesterov=True, decay=0.05),
        "adam": legacy.Adam(0.01, decay=0.1), "adam with a schedule": legacy.Adam(s.InverseTimeDecay(0.02, 5, 0.5)),
        "rmsprop": legacy.RMSprop(0.003), "rmsprop with momentum": legacy.RMSprop(0.003, momentum=0.5, centered=True),
        "adagrad": legacy.Adagrad(0.1), "adamax": legacy.Adamax(0.01, decay=0.1), "adadelta": legacy.Adadelta(1.0),
        "clip_norm": legacy.SGD(0.5, global_clipnorm=0.1), "clip_value": legacy.SGD(0.5, clipvalue=0.01)}


def imports(keras):
    """Returns optimizers by name, with the extension of a file that contains their state."""
    for ending in (".keras", ".h5"):
        for name, (_, optimizer) in train_as_keras.cases(keras).items():
            yield name, optimizer, ending
    for name, optimizer in legacy_optimizers(keras).items():
        yield f"legacy {name}", optimizer, ".h5"


def check_outputs(program, keras, folder, ending):
    """Checks a model with two outputs, different loss weights, and metrics, some of which dtrain lacks."""
    layers, metrics = keras.layers, keras.metrics
    x = keras.Input((6,), name="x")
    model = keras.Model(x, [layers.Dense(3, activation="softmax", name="kind")(x), layers.Dense(1, name="size")(x)])

    def mine(y_true, y_pred):
        return y_pred

    model.compile(
        "adam", {"kind": "sparse_categorical_crossentropy", "size": keras.losses.Huber(delta=2.0)},
        loss_weights={"size": 0.25, "kind": 2.0},
        metrics={"kind": ["accuracy", metrics.SparseTopKCategoricalAccuracy(k=2, name="top2")],
                 "size": ["mae", metrics.RootMeanSquaredError(), metrics.FalsePositives(), mine]}, weighted_metrics={"size": ["mse"]})
    model.fit(*zeros(), verbose=0)
    model.save(folder / f"outputs{ending}")
    run(program, folder, "import", f"outputs{ending}", "--output", "imported", "--with-optimizer")
    config = subprocess.run([program, "inspect", "imported/weights.h5", "--config"], cwd=folder, check=True,
                            capture_output=True, text=True).stdout
    report = (folder / "imported/report.txt").read_text()
    # Keras 3 does not save the delta of Huber. The report of the import says this.
    saves_delta = "delta" in keras.losses.Huber(delta=2.0).get_config()
    for expected in ("weight: 2", "delta: 2" if saves_delta else "delta: 1", "weight: 0.25",
                     "kind: [accuracy, {sparse_top_k_categorical_accuracy: {k: 2}}]",
                     "size: [mean_absolute_error, root_mean_squared_error]", "size: [mean_squared_error]"):
        if expected not in config:
            raise open_in_keras.Mistake(f"outputs{ending}: '{expected}' is not in\n{config}")
    for expected in ("size: the metric FalsePositives: ", "size: the metric mine: dtrain has no metric of this name",
                     "" if saves_delta else "the delta of Huber, because this version of Keras does not save it"):
        if expected not in report:
            raise open_in_keras.Mistake(f"outputs{ending}: '{expected}' is not in\n{report}")
    if "state" in report:
        raise open_in_keras.Mistake(f"outputs{ending}: {report}")


def zeros():
    import numpy
    return numpy.zeros((4, 6), "float32"), [numpy.zeros((4,), "int32"), numpy.zeros((4, 1), "float32")]


def main():
    program, kerases = open_in_keras.program_and_kerases()
    failed = False
    for keras_name, keras in kerases.items():
        for name, optimizer, ending in imports(keras):
            try:
                with tempfile.TemporaryDirectory() as folder:
                    difference = check_import(program, keras, pathlib.Path(folder), optimizer, ending)
            except open_in_keras.Passed as reason:
                print(f"{keras_name}, {name} from a {ending} file: skipped: {reason}", flush=True)
                continue
            good = difference < open_in_keras.TOLERANCE
            failed = failed or not good
            print(f"{keras_name}, {name} from a {ending} file: predictions differ by {difference:.1e}"
                  f"{'' if good else ', TOO MUCH'}", flush=True)
        for ending in (".keras", ".h5"):
            with tempfile.TemporaryDirectory() as folder:
                check_outputs(program, keras, pathlib.Path(folder), ending)
            print(f"{keras_name}, two outputs from a {ending} file: losses, weights and metrics")
    for keras_name, keras in kerases.items():
        if not keras.__version__.startswith("3"):
            continue
        for name, (train, _) in train_as_keras.cases(keras).items():
            with tempfile.TemporaryDirectory() as folder:
                difference = check(program, keras, pathlib.Path(folder), train)
            good = difference < open_in_keras.TOLERANCE
            failed = failed or not good
            print(f"{keras_name}, {name}: predictions differ by {difference:.1e}{'' if good else ', TOO MUCH'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
