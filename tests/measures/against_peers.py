"""against_peers.py DTRAIN: compares dtrain's metrics and losses to scikit-learn's and Keras's on a whole split.

Each comparison is skipped if its package is missing (DTRAIN_PEERS_PYTHON may name an interpreter that has the
packages). Exits with 77 if both packages are missing."""
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
  train: {npy: {input: input.npy, target: target.npy}}
%(transforms)sstrategy: {mirrored: {devices: [cpu:0, cpu:1], replicas: %(replicas)d}}
train: {epochs: 2, batch_size: %(batch)d, loss: %(loss)s, optimizer: {adam: {learning_rate: 0.02}}, metrics: %(metrics)s}
"""

CUTS = [(replicas, batch) for replicas in (1, 2, 3, 5) for batch in (7, 64, 100)]


def run(binary, directory, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], cwd=directory, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dtrain {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


def evaluate(binary, directory, rows, cut, **options):
    """Trains and evaluates a model. Returns the outputs of the model, and dtrain's losses and metrics for these
    outputs. If there are more `units` than target columns, the first target column is used as integer classes."""
    import numpy
    y = numpy.array([row[6:] for row in rows], numpy.float32)
    if options.get("units", 1) > y.shape[1]:
        y = y[:, 0].astype(numpy.int32)
    numpy.save(directory / "input.npy", numpy.array([row[:6] for row in rows], numpy.float32))
    numpy.save(directory / "target.npy", y)
    replicas, batch = cut
    options = {"activation": "", "transforms": "", "units": 1, "metrics": "[]", **options}
    (directory / "run.yaml").write_text(CONFIG % {**options, "replicas": replicas, "batch": batch})
    run(binary, directory, "fit", "run.yaml", "--output", "run", "--overwrite", "--quiet")
    reported = json.loads(run(binary, directory, "evaluate", "run", "--split", "train", "--json"))
    run(binary, directory, "predict", "run", "--input", "input.npy", "--output", "out.npy", "--quiet")
    return numpy.load(directory / "out.npy").astype(float), reported


def close(name, found, expected, tolerance):
    import numpy
    difference = numpy.abs(numpy.asarray(found, float) - numpy.asarray(expected, float))
    if not numpy.all(difference <= tolerance * numpy.maximum(1, numpy.abs(expected))):
        sys.exit(f"{name}: expected {expected}, found {found}")


def table(*targets):
    draw = random.Random(7)
    rows = []
    for _ in range(ROWS):
        x = [round(draw.gauss(0, 1), 5) for _ in range(6)]
        rows.append([*x, *(target(x, draw) for target in targets)])
    return rows


def best_class(x, draw):
    return max(range(CLASSES), key=x.__getitem__) if draw.random() < 0.6 else draw.randrange(CLASSES - 1)


def check_classes(binary, directory, cut):
    from sklearn import metrics as sk
    import numpy
    rows = table(best_class)
    scores, reported = evaluate(binary, directory, rows, cut, units=CLASSES,
                            loss="{sparse_categorical_crossentropy: {from_logits: true}}",
                            metrics="[accuracy, confusion_matrix, mean_iou, dice, cohen_kappa, matthews_correlation, perplexity, "
                            "auc, {auc: {curve: PR, name: pr}}, " + ", ".join(
                                "{%s: {average: %s, name: %s_%s}}" % (kind, average, kind, average)
                                for kind in ("precision", "recall", "f1_score")
                                for average in ("micro", "macro", "weighted", "none")) + "]")
    y, predicted = numpy.array([row[-1] for row in rows]), scores.argmax(1)
    p = numpy.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    for kind, of in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1_score", sk.f1_score)):
        for average in ("micro", "macro", "weighted", None):
            close(f"{kind} {average}", reported[f"{kind}_{average or 'none'}".lower()],
                  of(y, predicted, average=average, zero_division=0), 1e-6)
    close("confusion_matrix", reported["confusion_matrix"], sk.confusion_matrix(y, predicted), 0)
    close("mean_iou", reported["mean_iou"], sk.jaccard_score(y, predicted, average="macro"), 1e-6)
    close("dice", reported["dice"], sk.f1_score(y, predicted, average="macro"), 1e-6)
    close("cohen_kappa", reported["cohen_kappa"], sk.cohen_kappa_score(y, predicted), 1e-6)
    close("matthews_correlation", reported["matthews_correlation"], sk.matthews_corrcoef(y, predicted), 1e-6)
    close("perplexity", reported["perplexity"], numpy.exp(sk.log_loss(y, p)), 1e-4)
    close("auc", reported["auc"], numpy.mean([sk.roc_auc_score(y == c, p[:, c]) for c in range(CLASSES)]), 5e-3)
    close("pr", reported["pr"], numpy.mean([sk.average_precision_score(y == c, p[:, c]) for c in range(CLASSES)]), 5e-3)
    close("loss", reported["loss"], sk.log_loss(y, p), 1e-5)


def check_binary(binary, directory, cut):
    from sklearn import metrics as sk
    import numpy
    rows = table(lambda x, draw: int(x[0] + x[1] + draw.gauss(0, 1) > 1.2))
    p, reported = evaluate(binary, directory, rows, cut, activation=", activation: sigmoid", loss="binary_crossentropy",
                       metrics="[precision, recall, f1_score, auc, {auc: {curve: PR, name: pr}}, binary_accuracy]")
    y, p = numpy.array([row[-1] for row in rows]), p[:, 0]
    for name, expected, tolerance in (("precision", sk.precision_score(y, p > 0.5, zero_division=0), 1e-6),
                                      ("recall", sk.recall_score(y, p > 0.5), 1e-6),
                                      ("f1_score", sk.f1_score(y, p > 0.5), 1e-6),
                                      ("binary_accuracy", sk.accuracy_score(y, p > 0.5), 1e-6),
                                      ("auc", sk.roc_auc_score(y, p), 5e-3),
                                      ("pr", sk.average_precision_score(y, p), 5e-3)):
        close(name, reported[name], expected, tolerance)


def check_one_hot(binary, directory, cut):
    """Checks that softmax probabilities and logits (from_logits) give the same results."""
    from sklearn import metrics as sk
    import numpy
    rows = table(best_class)
    y = numpy.eye(CLASSES)[[row[-1] for row in rows]]
    for activation, loss in ((", activation: softmax", "categorical_crossentropy"),
                             ("", "{categorical_crossentropy: {from_logits: true}}")):
        p, reported = evaluate(binary, directory, rows, cut, units=CLASSES, activation=activation, loss=loss,
                           transforms="  transforms: [{one_hot: %d}]\n" % CLASSES,
                           metrics="[precision, recall, auc, {auc: {curve: PR, name: pr}}, binary_accuracy, {f1_score: {average: macro}}]")
        if not activation:
            p = numpy.exp(p - p.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
        for name, expected, tolerance in (("precision", sk.precision_score(y, p > 0.5, average="micro", zero_division=0), 1e-6),
                                          ("recall", sk.recall_score(y, p > 0.5, average="micro"), 1e-6),
                                          ("binary_accuracy", numpy.mean((p > 0.5) == y), 1e-6),
                                          ("f1_score", sk.f1_score(y.argmax(1), p.argmax(1), average="macro"), 1e-6),
                                          ("auc", sk.roc_auc_score(y.ravel(), p.ravel()), 5e-3),
                                          ("pr", sk.average_precision_score(y.ravel(), p.ravel()), 5e-3)):
            close(f"{loss} {name}", reported[name], expected, tolerance)


def check_columns(binary, directory, cut):
    """Checks columns of independent binary labels, as probabilities and as logits."""
    from sklearn import metrics as sk
    import numpy
    rows = table(*(lambda x, draw, i=i: int(x[i] + draw.gauss(0, 1) > 0.4 * i) for i in range(3)))
    y = numpy.array([row[6:] for row in rows])
    for activation, loss in ((", activation: sigmoid", "binary_crossentropy"), ("", "{binary_crossentropy: {from_logits: true}}")):
        p, reported = evaluate(binary, directory, rows, cut, units=3, activation=activation, loss=loss,
                           metrics="[precision, {f1_score: {average: macro}}, binary_accuracy, {auc: {multi_label: true}}, confusion_matrix]")
        if not activation:
            p = 1 / (1 + numpy.exp(-p))
        for name, expected, tolerance in (("precision", sk.precision_score(y, p > 0.5, average="micro", zero_division=0), 1e-6),
                                          ("f1_score", sk.f1_score(y, p > 0.5, average="macro", zero_division=0), 1e-6),
                                          ("binary_accuracy", numpy.mean((p > 0.5) == y), 1e-6),
                                          ("auc", numpy.mean([sk.roc_auc_score(y[:, c], p[:, c]) for c in range(3)]), 5e-3)):
            close(f"{loss} {name}", reported[name], expected, tolerance)


def check_regression(binary, directory, cut):
    from sklearn import metrics as sk
    import numpy
    rows = table(lambda x, draw: round(3 + x[0] - 2 * x[3] + draw.gauss(0, 0.5), 5))
    p, reported = evaluate(binary, directory, rows, cut, loss="mean_squared_error",
                       metrics="[r2_score, root_mean_squared_error, mean_absolute_error, mean_squared_error, mean_absolute_percentage_error]")
    y, p = numpy.array([numpy.float32(row[-1]) for row in rows], float), p[:, 0]
    close("r2_score", reported["r2_score"], sk.r2_score(y, p), 1e-6)
    close("root_mean_squared_error", reported["root_mean_squared_error"], sk.mean_squared_error(y, p) ** 0.5, 1e-6)
    close("mean_absolute_error", reported["mean_absolute_error"], sk.mean_absolute_error(y, p), 1e-6)
    close("mean_squared_error", reported["mean_squared_error"], sk.mean_squared_error(y, p), 1e-6)
    close("mean_absolute_percentage_error", reported["mean_absolute_percentage_error"],
          100 * sk.mean_absolute_percentage_error(y, p), 1e-6)


# (loss, options, activation before the loss, kind of targets).
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
          ("cosine_similarity", {}, "linear", "number"),
          ("sparse_categorical_crossentropy", {}, "softmax", "class"),
          ("sparse_categorical_crossentropy", {"from_logits": True}, "linear", "class"),
          ("categorical_crossentropy", {}, "softmax", "one_hot"),
          ("categorical_crossentropy", {"from_logits": True, "label_smoothing": 0.2}, "linear", "one_hot"),
          ("categorical_focal_crossentropy", {"alpha": 0.5, "gamma": 1.5}, "softmax", "one_hot"),
          ("categorical_focal_crossentropy", {"from_logits": True, "label_smoothing": 0.1}, "linear", "one_hot")]
KERAS_NAMES = {"kl_divergence": "KLDivergence"}
COLUMNS = 3  # columns of targets that are neither classes nor one-hot


def check_losses(binary, directory):
    import keras
    import numpy
    for name, options, activation, target in LOSSES:
        written = ", ".join(f"{key}: {str(value).lower()}" for key, value in options.items())
        of_run = dict(activation=f", activation: {activation}", loss="{%s: {%s}}" % (name, written))
        if target in ("class", "one_hot"):
            rows = table(best_class)
            of_run["units"] = CLASSES
        else:
            one = {"yes": lambda x, draw: int(x[0] + draw.gauss(0, 1) > 0), "number": lambda x, draw: round(2 + x[1] + draw.gauss(0, 1), 5)}[target]
            rows = table(*[one] * COLUMNS)
            of_run.update(units=COLUMNS)
        y = numpy.array([row[6:] for row in rows], numpy.float32)
        if target == "one_hot":
            of_run["transforms"] = "  transforms: [{one_hot: %d}]\n" % CLASSES
            y = numpy.eye(CLASSES, dtype=numpy.float32)[y[:, 0].astype(int)]
        if target == "class":
            y = y[:, 0].astype(numpy.int32)
        p, reported = evaluate(binary, directory, rows, (3, 64), **of_run)
        keras_class = getattr(keras.losses, KERAS_NAMES.get(name, "".join(part.title() for part in name.split("_"))))
        close(f"{name} {options}", reported["loss"], float(keras_class(**options)(y, p.astype(numpy.float32))), 1e-5)


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    python = os.environ.pop("DTRAIN_PEERS_PYTHON", None)
    if python:
        sys.exit(subprocess.run([python, __file__, str(binary)]).returncode)
    with tempfile.TemporaryDirectory() as folder:
        asked = 0
        for package, checks in (("sklearn", lambda d: [check(binary, d, cut) for cut in CUTS
                                                        for check in (check_classes, check_binary, check_one_hot, check_columns, check_regression)]),
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
