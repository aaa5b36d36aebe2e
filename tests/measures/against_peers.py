"""against_peers.py DTRAIN: metrics and losses as dtrain evaluates them, against scikit-learn's and Keras's on the whole split.

Each is skipped where its package is missing (DTRAIN_PEERS_PYTHON may name an interpreter that has them); exits with 77 where both are."""
import csv
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

CLASSES, ROWS = 5, 407

CONFIG = """\
model:
  inputs: {x: [6]}
  layers: [dense: {units: %(units)d%(activation)s}]
dataset:
  train: {csv: {file: data.csv, target: 6%(header)s}}
strategy: {mirrored: {devices: [cpu:0, cpu:1], replicas: %(replicas)d}}
train: {epochs: 2, batch_size: %(batch)d, loss: %(loss)s, optimizer: {adam: {learning_rate: 0.02}}, metrics: %(metrics)s}
"""

CUTS = [(replicas, batch) for replicas in (1, 2, 3, 5) for batch in (7, 64, 100)]


def run(binary, directory, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], cwd=directory, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dtrain {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


def evaluate(binary, directory, rows, cut, **options):
    """The targets, the outputs, and what dtrain says of them."""
    with open(directory / "data.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    with open(directory / "inputs.csv", "w", newline="") as file:
        csv.writer(file).writerows(row[:6] for row in rows)
    replicas, batch = cut
    options = {"activation": "", "header": "", "units": 1, "metrics": "[]", **options}
    (directory / "run.yaml").write_text(CONFIG % {**options, "replicas": replicas, "batch": batch})
    run(binary, directory, "fit", "run.yaml", "--output", "run", "--overwrite", "--quiet")
    said = json.loads(run(binary, directory, "evaluate", "run", "--split", "train", "--json"))
    run(binary, directory, "predict", "run", "--input", "inputs.csv", "--output", "out.npy", "--quiet")
    import numpy
    return numpy.load(directory / "out.npy").astype(float), said


def close(name, found, expected, tolerance):
    import numpy
    difference = numpy.abs(numpy.asarray(found, float) - numpy.asarray(expected, float))
    if not numpy.all(difference <= tolerance * (1 + numpy.abs(expected))):
        sys.exit(f"{name}: expected {expected}, found {found}")


def table(target):
    draw = random.Random(7)
    rows = []
    for _ in range(ROWS):
        x = [round(draw.gauss(0, 1), 5) for _ in range(6)]
        rows.append([*x, target(x, draw)])
    return rows


def check_classes(binary, directory, cut):
    from sklearn import metrics as sk
    import numpy
    rows = table(lambda x, draw: max(range(CLASSES), key=x.__getitem__) if draw.random() < 0.6 else draw.randrange(CLASSES - 1))
    scores, said = evaluate(binary, directory, rows, cut, units=CLASSES,
                            loss="{sparse_categorical_crossentropy: {from_logits: true}}",
                            metrics="[accuracy, confusion_matrix, mean_iou, auc, {auc: {curve: PR, name: pr}}, " + ", ".join(
                                "{%s: {average: %s, name: %s_%s}}" % (kind, average, kind, average)
                                for kind in ("precision", "recall", "f1_score")
                                for average in ("micro", "macro", "weighted", "none")) + "]")
    y, predicted = numpy.array([row[-1] for row in rows]), scores.argmax(1)
    p = numpy.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    for kind, of in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1_score", sk.f1_score)):
        for average in ("micro", "macro", "weighted", None):
            close(f"{kind} {average}", said[f"{kind}_{average or 'none'}".lower()],
                  of(y, predicted, average=average, zero_division=0), 1e-6)
    close("confusion_matrix", said["confusion_matrix"], sk.confusion_matrix(y, predicted), 0)
    close("mean_iou", said["mean_iou"], sk.jaccard_score(y, predicted, average="macro"), 1e-6)
    close("auc", said["auc"], numpy.mean([sk.roc_auc_score(y == c, p[:, c]) for c in range(CLASSES)]), 5e-3)
    close("pr", said["pr"], numpy.mean([sk.average_precision_score(y == c, p[:, c]) for c in range(CLASSES)]), 5e-3)
    close("loss", said["loss"], sk.log_loss(y, p), 1e-5)


def check_binary(binary, directory, cut):
    from sklearn import metrics as sk
    import numpy
    rows = table(lambda x, draw: int(x[0] + x[1] + draw.gauss(0, 1) > 1.2))
    p, said = evaluate(binary, directory, rows, cut, activation=", activation: sigmoid", loss="binary_crossentropy",
                       metrics="[precision, recall, f1_score, auc, {auc: {curve: PR, name: pr}}, binary_accuracy]")
    y, p = numpy.array([row[-1] for row in rows]), p[:, 0]
    for name, expected, tolerance in (("precision", sk.precision_score(y, p > 0.5, zero_division=0), 1e-6),
                                      ("recall", sk.recall_score(y, p > 0.5), 1e-6),
                                      ("f1_score", sk.f1_score(y, p > 0.5), 1e-6),
                                      ("binary_accuracy", sk.accuracy_score(y, p > 0.5), 1e-6),
                                      ("auc", sk.roc_auc_score(y, p), 5e-3),
                                      ("pr", sk.average_precision_score(y, p), 5e-3)):
        close(name, said[name], expected, tolerance)


def check_regression(binary, directory, cut):
    from sklearn import metrics as sk
    import numpy
    rows = table(lambda x, draw: round(3 + x[0] - 2 * x[3] + draw.gauss(0, 0.5), 5))
    p, said = evaluate(binary, directory, rows, cut, loss="mean_squared_error",
                       metrics="[r2_score, root_mean_squared_error, mean_absolute_error, mean_squared_error, mean_absolute_percentage_error]")
    y, p = numpy.array([numpy.float32(row[-1]) for row in rows], float), p[:, 0]
    close("r2_score", said["r2_score"], sk.r2_score(y, p), 1e-6)
    close("root_mean_squared_error", said["root_mean_squared_error"], sk.mean_squared_error(y, p) ** 0.5, 1e-6)
    close("mean_absolute_error", said["mean_absolute_error"], sk.mean_absolute_error(y, p), 1e-6)
    close("mean_squared_error", said["mean_squared_error"], sk.mean_squared_error(y, p), 1e-6)
    close("mean_absolute_percentage_error", said["mean_absolute_percentage_error"],
          100 * sk.mean_absolute_percentage_error(y, p), 1e-6)


# A loss, its options, the activation before it, and what its targets are.
LOSSES = [("binary_crossentropy", {"label_smoothing": 0.2}, "sigmoid", "yes"),
          ("binary_crossentropy", {"from_logits": True, "label_smoothing": 0.1}, "linear", "yes"),
          ("binary_focal_crossentropy", {"gamma": 1.5}, "sigmoid", "yes"),
          ("binary_focal_crossentropy", {"from_logits": True, "apply_class_balancing": True, "alpha": 0.3}, "linear", "yes"),
          ("mean_squared_error", {}, "linear", "number"),
          ("mean_absolute_error", {}, "linear", "number"),
          ("mean_absolute_percentage_error", {}, "linear", "number"),
          ("mean_squared_logarithmic_error", {}, "sigmoid", "yes"),
          ("huber", {"delta": 0.7}, "linear", "number"),
          ("log_cosh", {}, "linear", "number"),
          ("hinge", {}, "tanh", "yes"),
          ("squared_hinge", {}, "tanh", "yes"),
          ("poisson", {}, "sigmoid", "yes"),
          ("kl_divergence", {}, "sigmoid", "yes"),
          ("cosine_similarity", {}, "linear", "number")]
KERAS_NAMES = {"kl_divergence": "KLDivergence"}


def check_losses(binary, directory):
    import keras
    import numpy
    for name, options, activation, target in LOSSES:
        rows = table(lambda x, draw: int(x[0] + draw.gauss(0, 1) > 0) if target == "yes" else round(2 + x[1] + draw.gauss(0, 1), 5))
        written = ", ".join(f"{key}: {str(value).lower()}" for key, value in options.items())
        p, said = evaluate(binary, directory, rows, (3, 64), activation=f", activation: {activation}", loss="{%s: {%s}}" % (name, written))
        y = numpy.array([[row[-1]] for row in rows], numpy.float32)
        keras_class = getattr(keras.losses, KERAS_NAMES.get(name, "".join(part.title() for part in name.split("_"))))
        close(f"{name} {options}", said["loss"], float(keras_class(**options)(y, p.astype(numpy.float32))), 1e-5)


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    python = os.environ.pop("DTRAIN_PEERS_PYTHON", None)
    if python:
        sys.exit(subprocess.run([python, __file__, str(binary)]).returncode)
    with tempfile.TemporaryDirectory() as folder:
        asked = 0
        for package, checks in (("sklearn", lambda d: [check(binary, d, cut) for cut in CUTS
                                                        for check in (check_classes, check_binary, check_regression)]),
                                ("keras", lambda d: check_losses(binary, d))):
            try:
                __import__(package)
            except ImportError:
                print(f"{package} is not installed")
                continue
            checks(pathlib.Path(folder))
            asked += 1
            print(f"{package} agrees")
    sys.exit(0 if asked else 77)


if __name__ == "__main__":
    main()
