"""Typical tables, from the raw file to named predictions."""
import csv
import json
import math
import random
import re
import struct

import support
from support import Case

CONFIG = """\
seed: 5
model:
  inputs: {x: [5]}
  layers:
    - dense: {units: 16, activation: relu}
    - dense: {units: 3}
dataset:
  train: {csv: {file: flowers.csv, header: true, target: species, id: name, categories: [colour], fill: median, drop: [note]}}
  validation: {split: {of: train, fraction: 0.2, stratify: true}}
  test: {split: {of: train, fraction: 0.2, stratify: true}}
  transforms: [standardize]
strategy: {single: {device: cpu:0}}
train:
  epochs: 6
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.02}}
  metrics: [sparse_categorical_accuracy]
"""
SPECIES = ["iris", "rose, wild", "tulip"]


def flowers(count, seed=1):
    draw = random.Random(seed)
    for number in range(count):
        kind = 2 if number % 10 == 0 else number % 2
        length = f"{1000 + 10 * kind + draw.random():.3f}" if draw.random() > 0.05 else ""
        yield {"name": f"f{number}", "colour": ["red", "blue"][draw.randrange(2)], "length": length,
               "width": f"{draw.random() - kind:.4f}", "note": "as\nfound", "weight": f"{draw.random():.5f}",
               "species": SPECIES[kind]}


class Tables(Case):
    def table(self, name, rows, fields):
        with open(self.dir / name, "w", newline="") as file:
            writer = csv.DictWriter(file, fields, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    def read(self, name):
        with open(self.dir / name, newline="") as file:
            return list(csv.DictReader(file))

    def setUp(self):
        super().setUp()
        self.rows = list(flowers(300))
        self.table("flowers.csv", self.rows, list(self.rows[0]))

    def test_predict_does_not_need_the_training_files(self):
        self.fit(config=CONFIG)
        self.table("new.csv", self.rows[:20], list(self.rows[0]))
        self.dtrain("predict", "run", "-i", "new.csv", "-o", "before.csv")
        (self.dir / "flowers.csv").unlink()
        self.dtrain("predict", "run", "-i", "new.csv", "-o", "after.csv")
        self.assertEqual(self.read("after.csv"), self.read("before.csv"))

    def test_predict_does_not_overwrite_training_files(self):
        config = CONFIG.replace("  validation: {split: {of: train, fraction: 0.2, stratify: true}}\n", "").replace(
            "  test: {split: {of: train, fraction: 0.2, stratify: true}}\n", "").replace(
            "{csv: {file: flowers.csv, header: true, target: species, id: name, categories: [colour], fill: median, drop: [note]}}",
            "{npy: {input: x.npy, target: y.npy}}").replace("x: [5]", "x: [2]").replace("epochs: 6", "epochs: 1")
        def npy(name, kind, shape, values):
            head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
            (self.dir / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values)
        npy("x.npy", "<f4", "(8, 2)", struct.pack("<16f", *range(16)))
        npy("y.npy", "<i4", "(8,)", struct.pack("<8i", *[0, 1, 2, 0, 1, 2, 0, 1]))
        self.fit(config=config)
        npy("new.npy", "<f4", "(8, 2)", struct.pack("<16f", *range(16)))
        refused = "is a file of the run's data set"
        self.assertIn(refused, self.dtrain("predict", "run", "-i", "new.npy", "-o", "y.npy", expect=2).err)
        (self.dir / "x.npy").unlink()  # a missing second file of the split changes nothing
        self.assertIn(refused, self.dtrain("predict", "run", "-i", "new.npy", "-o", "y.npy", expect=2).err)

    def test_evaluate_warns_about_changed_data(self):
        self.fit(config=CONFIG)
        splits = ("train", "validation", "test")
        for split in splits:
            self.assertNotIn("have changed", self.dtrain("evaluate", "run", "--split", split).err)
        self.write("of-test.yaml", CONFIG.replace("of: train", "of: test", 1).replace(
            "  test: {split: {of: train, fraction: 0.2, stratify: true}}\n", "").replace("  train: {csv:", "  train: {csv:", 1).replace(
            "  validation:", "  test: {csv: {file: flowers.csv, header: true, target: species, id: name, categories: [colour], "
            "fill: median, drop: [note]}}\n  validation:"))
        self.dtrain("fit", "of-test.yaml", "--output", "of-test")
        self.assertNotIn("have changed", self.dtrain("evaluate", "of-test", "--split", "test").err)
        self.table("flowers.csv", self.rows[::-1], list(self.rows[0]))
        self.assertIn("the data of the split 'test' have changed", self.dtrain("evaluate", "of-test", "--split", "test").err)
        for split in splits:
            self.assertIn(f"the data of the split '{split}' have changed since the training: flowers.csv has different content",
                          self.dtrain("evaluate", "run", "--split", split).err)

    def test_all_columns_that_do_not_exist_are_reported_at_once_where_they_are_named(self):
        reader = "{csv: {file: flowers.csv, header: true, target: species, id: name, categories: [colour], fill: median, drop: [note]}}"
        self.assertIn(reader, CONFIG)
        names = ("specie", "nam", "color", "noted", "wt", "dai")
        config = CONFIG.replace(reader, """
    csv:
      file: flowers.csv
      header: true
      target: specie
      id: nam
      categories: [color]
      drop: [noted]
      weight: wt
      dates: {dai: [year]}""")
        lines = config.splitlines()
        for text in (config, config.replace("x: [5]", "x: auto")):  # with `auto`, the file is read earlier
            self.write("config.yaml", text)
            errors = self.dtrain("check", "config.yaml", expect=2).err.splitlines()
            self.assertEqual(len(errors), len(names), errors)
            for error, name in zip(errors, names):
                line = next(number for number, line in enumerate(lines, 1) if re.search(rf"\b{name}\b", line))
                column = re.search(rf"\b{name}\b", lines[line - 1]).start() + 1
                self.assertRegex(error, rf"^config\.yaml:{line}:{column}: error: \S*flowers\.csv: expected a column named '{name}'")

    def test_rows_with_weight_0_have_no_effect(self):
        config = CONFIG.replace("batch_size: 16", "batch_size: 1000").replace(", id: name", ", WEIGHTid: name").replace(
            "drop: [note]", "DROP").replace("  validation: {split: {of: train, fraction: 0.2, stratify: true}}\n", "").replace(
            "  test: {split: {of: train, fraction: 0.2, stratify: true}}\n", "").replace("  transforms: [standardize]\n", "").replace(
            ", fill: median", "").replace("x: [5]", "x: [4]")
        rows = [dict(row, counts=str(int(number % 4 < 2))) for number, row in enumerate(self.rows)]
        fields = list(rows[0])
        self.table("flowers.csv", rows, fields)
        self.table("half.csv", [row for row in rows if row["counts"] == "1"], fields)
        # Both splits contain every colour and species.
        weighted = config.replace("WEIGHT", "weight: counts, ").replace("DROP", "drop: [note, length]")
        plain = config.replace("WEIGHT", "").replace("DROP", "drop: [note, length, counts]")
        for strategy in ("single: {device: cpu:0}", "mirrored: {devices: [cpu:0, cpu:1]}"):
            for name, text in {"weighted": weighted, "half": plain.replace("flowers.csv", "half.csv"), "all": plain}.items():
                self.fit("--overwrite", config=text.replace("single: {device: cpu:0}", strategy), output=name)
            for one, other, unweighted in zip(*map(self.metrics, ("weighted", "half", "all"))):
                self.assertAlmostEqual(one["loss"], other["loss"], places=4)
                self.assertNotAlmostEqual(one["loss"], unweighted["loss"], places=3)

    def test_a_raw_table_gives_predictions_with_names(self):
        self.fit(config=CONFIG)
        measured = self.json("evaluate", "run")
        self.assertGreater(measured["sparse_categorical_accuracy"], 0.9)
        self.assertEqual((measured["split"], measured["classes"]), ("test", SPECIES))
        self.assertEqual(self.json("evaluate", "run", "--split", "validation")["samples"], 60)
        self.assertEqual(self.json("evaluate", "run", "--split", "train")["samples"], 180)
        # The table has additional columns, its columns are in another order, and it has no target.
        self.table("new.csv", self.rows, ["width", "colour", "more", "name", "weight", "length"])
        self.dtrain("predict", "run", "-i", "new.csv", "-o", "named.csv")
        named = self.read("named.csv")
        self.assertEqual(list(named[0]), ["name", "species"] + SPECIES)
        self.assertEqual([row["name"] for row in named], [row["name"] for row in self.rows])
        right = sum(a["species"] == b["species"] for a, b in zip(named, self.rows))
        self.assertGreater(right, 270)
        for row in named:
            values = [float(row[name]) for name in SPECIES]
            self.assertAlmostEqual(sum(values), 1, places=5)
            self.assertEqual(row["species"], SPECIES[values.index(max(values))])
        # Without a column of ids, the table of predictions has row numbers. If the output is an .npy file, it contains
        # only an array of numbers.
        self.table("few.csv", self.rows[:3], ["width", "colour", "weight", "length", "species"])
        self.dtrain("predict", "run", "-i", "few.csv", "-o", "few-named.csv")
        self.assertEqual([row["row"] for row in self.read("few-named.csv")], ["0", "1", "2"])
        self.dtrain("predict", "run", "-i", "few.csv", "-o", "few.npy")
        self.table("odd.csv", [dict(self.rows[0], colour="green")], list(self.rows[0]))
        refusal = self.dtrain("predict", "run", "-i", "odd.csv", "-o", "odd-named.csv", expect=2).err
        self.assertIn("odd.csv:2:4: expected one of the training file's values in the column 'colour' ('blue', 'red')", refusal)

    def test_a_resumed_run_on_a_table_has_the_same_bits(self):
        self.fit(config=CONFIG)
        self.fit("--epochs", "2", config=CONFIG, output="part")
        # Neither the seed nor the column order changes the drawn splits and fitted transforms.
        self.dtrain("resume", "part", "--epochs", "6")
        whole, part = (self.metrics(run) for run in ("run", "part"))
        for key in ("loss", "val_loss", "val_sparse_categorical_accuracy"):
            self.assertEqual([record[key] for record in whole], [record[key] for record in part])
        for run in ("run", "part"):
            self.dtrain("predict", run, "-i", "flowers.csv", "-o", f"{run}.csv")
        self.assertEqual((self.dir / "run.csv").read_bytes(), (self.dir / "part.csv").read_bytes())
        seed = self.json("evaluate", "part", "--set", "seed=99", "--split", "test")
        whole = self.json("evaluate", "run", "--split", "test")
        self.assertNotEqual(seed.pop("checkpoint"), whole.pop("checkpoint"))
        self.assertEqual(seed, whole)

    def test_a_predicted_number_has_the_name_of_its_column(self):
        config = CONFIG.replace("target: species", "target: weight").replace(", stratify: true", "").replace(
            "drop: [note]", "drop: [note, species]").replace("inputs: {x: [5]}", "inputs: {x: [4]}").replace(
            "units: 3", "units: 1").replace("{sparse_categorical_crossentropy: {from_logits: true}}", "mean_squared_error").replace(
            "sparse_categorical_accuracy", "mean_absolute_error, root_mean_squared_error, r2_score").replace(
            "[standardize]", "[standardize: {of: [x, target]}]")
        self.rows = [dict(row, weight=f"{5000 + 10 * float(row['width']):.3f}") for row in self.rows]
        self.table("flowers.csv", self.rows, list(self.rows[0]))
        self.fit(config=config)
        self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "out.csv")
        out = self.read("out.csv")
        self.assertEqual(list(out[0]), ["name", "weight"])
        errors = [float(row["weight"]) - float(true["weight"]) for row, true in zip(out, self.rows)]
        self.assertLess(max(map(math.fabs, errors)), 10)  # errors are in the target's original scale
        # Metrics with a unit are also given in that unit. Losses and metrics that were used for training are in
        # transformed units.
        self.table("all.csv", self.rows, list(self.rows[0]))
        measured = self.json("evaluate", "run", "--split", "validation", "--set", "dataset.validation={csv: {file: all.csv, header: true, "
                             "target: weight, id: name, categories: [colour], fill: median, drop: [note, species]}}")
        own = measured["in_units_of_data"]
        self.assertEqual(set(own), {"mean_absolute_error", "root_mean_squared_error"})
        self.assertAlmostEqual(own["mean_absolute_error"], sum(map(math.fabs, errors)) / len(errors), delta=1e-2)
        self.assertAlmostEqual(own["root_mean_squared_error"], math.sqrt(sum(e * e for e in errors) / len(errors)), delta=1e-2)
        self.assertGreater(own["mean_absolute_error"], 2 * measured["mean_absolute_error"])
        self.assertRegex(self.dtrain("evaluate", "run", "--split", "validation").out,
                         r"\nvalidation, \d+ samples, in the units of 'weight':  mean_absolute_error .*\n"
                         r"computed on the transformed target, as in training:  loss ")
        self.assertIn(": predictions, in the units of 'weight'", self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "out.csv").out)

    def test_different_numbers_of_units_and_classes_are_reported(self):
        self.write("config.yaml", CONFIG.replace("units: 3", "units: 5"))
        warning = "'dense_1' has 5 units, but its target has 3 classes ('iris', 'rose, wild', 'tulip')"
        self.assertIn(warning, self.dtrain("check", "config.yaml").err)
        self.assertEqual(self.dtrain("fit", "config.yaml", "--output", "run").err.count(warning), 1)
        self.write("config.yaml", CONFIG.replace("units: 3", "units: 2"))
        self.assertIn("; class 2 needs an output of at least 3 units", self.dtrain("fit", "config.yaml", "--output", "two", expect=2).err)
        self.write("config.yaml", CONFIG)
        self.assertNotIn("classes (", self.dtrain("check", "config.yaml").err)
        self.table("flowers.csv", [dict(row, species="iris") for row in self.rows], list(self.rows[0]))
        self.assertIn("only one class, 'iris'", self.dtrain("check", "config.yaml").err)

    def test_two_classes_may_be_one_probability(self):
        rows = [dict(row, species="yes" if row["species"] == "iris" else "no") for row in self.rows]
        self.table("flowers.csv", rows, list(rows[0]))
        config = CONFIG.replace("units: 3", "units: 1").replace(
            "sparse_categorical_crossentropy", "binary_crossentropy").replace("sparse_categorical", "binary")
        self.fit(config=config)
        self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "out.csv")
        out = self.read("out.csv")
        self.assertEqual(list(out[0]), ["name", "species", "no", "yes"])
        self.assertGreater(sum(a["species"] == b["species"] for a, b in zip(out, rows)), 280)
        # The decision threshold of hinge is 0, not 0.5.
        config = config.replace("{binary_crossentropy: {from_logits: true}}", "hinge").replace("  metrics: [binary_accuracy]\n", "")
        self.assertIn("loss: hinge", config)
        self.fit("--overwrite", "--epochs", "1", config=config)
        self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "out.csv")
        self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "out.npy")
        scores = struct.unpack("<300f", (self.dir / "out.npy").read_bytes()[-1200:])
        self.assertTrue(any(0 < score < 0.5 for score in scores))
        for row, score in zip(self.read("out.csv"), scores):
            self.assertEqual(row["species"], "yes" if score > 0 else "no")
            self.assertAlmostEqual(float(row["yes"]), score, places=6)
            self.assertAlmostEqual(float(row["no"]), -score, places=6)

    def numbers(self):
        """Trains on two tables, with and without a header, whose targets are scaled."""
        draw = random.Random(7)
        rows = [[f"{draw.random():.4f}" for _ in range(2)] for _ in range(64)]
        rows = [[a, b, f"{1000 + 50 * float(a) - 20 * float(b):.3f}"] for a, b in rows]
        lines = "".join(",".join(row) + "\n" for row in rows)
        self.write("headed.csv", "a,b,price\n" + lines)
        self.write("plain.csv", lines)
        for name in ("headed", "plain"):
            self.fit(config=f"""\
model: {{inputs: {{x: [2]}}, layers: [{{dense: {{units: 1}}}}]}}
dataset:
  train: {{csv: {{file: {name}.csv, header: {str(name == "headed").lower()}, target: 2}}}}
  transforms: [standardize: {{of: [x, target]}}]
strategy: {{single: {{device: cpu:0}}}}
train: {{epochs: 30, batch_size: 16, loss: mean_squared_error, optimizer: {{adam: {{learning_rate: 0.05}}}}}}
""", output=name)
        return [float(row[2]) for row in rows]

    def test_predictions_are_in_the_units_of_the_data_in_every_format(self):
        prices = self.numbers()
        for name in ("headed", "plain"):
            self.dtrain("predict", name, "-i", f"{name}.csv", "-o", f"{name}-out.csv")
            self.dtrain("predict", name, "-i", f"{name}.csv", "-o", f"{name}-out.npy")
        headed = [float(row["price"]) for row in self.read("headed-out.csv")]
        plain = [float(row["output"]) for row in self.read("plain-out.csv")]
        self.assertEqual(headed, plain)
        for price, found in zip(prices, headed):
            self.assertLess(abs(price - found), 5)
        for name in ("headed", "plain"):
            numbers = (self.dir / f"{name}-out.npy").read_bytes()[-4 * len(prices):]
            for one, other in zip(struct.unpack(f"<{len(prices)}f", numbers), headed):
                self.assertAlmostEqual(one, other, delta=1e-3)
            for error in self.json("evaluate", name, "--split", "train", "--errors", 3)["errors"]:
                self.assertAlmostEqual(error["target"], prices[error["row"]], places=2)
                self.assertAlmostEqual(error["prediction"], headed[error["row"]], places=2)

    def test_metrics_of_several_columns_are_in_each_columns_unit(self):
        """Each target column has its own unit, also in a metric that was not requested."""
        draw = random.Random(3)
        rows = [[draw.random() for _ in range(3)] for _ in range(60)]
        targets = [[a + 2 * b, 100 * b, 3000 - 1000 * c] for a, b, c in rows]
        def npy(name, values):
            head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (60, 3), }}".ljust(117) + "\n"
            (self.dir / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                                          + struct.pack("<180f", *sum(values, [])))
        npy("x.npy", rows)
        npy("y.npy", targets)
        config = """\
model: {inputs: {x: [3]}, layers: [{dense: {units: 3}}]}
dataset:
  train: {npy: {input: x.npy, target: y.npy}}
  transforms: [standardize: {of: [x, target]}]
strategy: single
train: {epochs: 5, batch_size: 16, loss: mean_squared_error, METRICS optimizer: {adam: {learning_rate: 0.05}}}
"""
        for metrics in ("", "metrics: [mean_absolute_error, root_mean_squared_error, r2_score],"):
            self.fit("--overwrite", config=config.replace("METRICS", metrics))
            self.dtrain("predict", "run", "-i", "x.npy", "-o", "out.csv")
            out = [[float(row[f"output.{c}"]) for c in range(3)] for row in self.read("out.csv")]
            errors = [a - b for one, other in zip(out, targets) for a, b in zip(one, other)]
            own = self.json("evaluate", "run", "--split", "train")["in_units_of_data"]
            self.assertEqual(set(own), {"mean_absolute_error", "root_mean_squared_error"})
            self.assertAlmostEqual(own["mean_absolute_error"], sum(map(math.fabs, errors)) / 180, delta=0.1)
            self.assertAlmostEqual(own["root_mean_squared_error"], math.sqrt(sum(e * e for e in errors) / 180), delta=0.1)
            self.assertGreater(own["mean_absolute_error"], 5)

    def test_reconstructions_are_in_the_units_of_the_input(self):
        draw = random.Random(4)
        rows = [[100 + 10 * draw.random(), 5 * draw.random(), ""] for _ in range(80)]
        for number, row in enumerate(rows):
            row[2] = "" if number % 9 == 0 else f"{2000 + 3 * row[0]:.2f}"
        self.write("cars.csv", "a,b,c\n" + "".join(f"{a:.4f},{b:.4f},{c}\n" for a, b, c in rows))
        self.fit(config="""\
model: {inputs: {x: [3]}, layers: [{dense: {units: 3}}]}
dataset:
  train: {csv: {file: cars.csv, header: true, fill: mean, target: {input: x}}}
  transforms: [standardize]
strategy: single
train: {epochs: 200, batch_size: 16, loss: mean_squared_error, optimizer: {adam: {learning_rate: 0.05}}}
""")
        for name in ("out.csv", "out.jsonl"):
            self.assertIn("in the units of the data", self.dtrain("predict", "run", "-i", "cars.csv", "-o", name).out)
        out = [[float(row[f"output.{c}"]) for c in range(3)] for row in self.read("out.csv")]
        lines = [json.loads(line) for line in (self.dir / "out.jsonl").read_text().splitlines()]
        self.assertEqual(out, [line["output"] for line in lines])
        for found, (a, b, c) in zip(out, rows):
            self.assertLess(abs(found[0] - a), 1)
            self.assertLess(abs(found[1] - b), 1)
            if c:
                self.assertLess(abs(found[2] - float(c)), 3)
        own = self.json("evaluate", "run", "--split", "train", "--errors", 1)
        self.assertLess(own["in_units_of_data"]["mean_absolute_error"], 1)
        self.assertGreater(own["errors"][0]["target"][0], 99)

    def test_an_image_is_reconstructed_from_logits(self):
        """The model is an autoencoder as in Keras's examples, with pixels between 0 and 1 and binary
        cross-entropy."""
        pixels = [(i * 37 + j * 91) % 256 for i in range(12) for j in range(4)]
        head = "{'descr': '|u1', 'fortran_order': False, 'shape': (12, 4), }".ljust(117) + "\n"
        (self.dir / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(pixels))
        self.fit(config="""\
model: {inputs: {image: [4]}, layers: [{dense: {units: 4}}]}
dataset:
  train: {npy: {input: x.npy, target: {input: image}}}
  transforms: [rescale: 1/255]
strategy: single
train: {epochs: 3, loss: {binary_crossentropy: {from_logits: true}}, optimizer: sgd}
""".replace("rescale: 1/255", "rescale: {scale: 1/255}"))
        self.dtrain("predict", "run", "-i", "x.npy", "-o", "out.npy")
        self.dtrain("predict", "run", "-i", "x.npy", "-o", "pixels.npy", "--outputs", "probabilities")
        raw, found = (struct.unpack("<48f", (self.dir / name).read_bytes()[-192:]) for name in ("out.npy", "pixels.npy"))
        for logit, pixel in zip(raw, found):
            self.assertAlmostEqual(pixel, 255 / (1 + math.exp(-logit)), delta=0.01)
        own = self.json("evaluate", "run", "--split", "train")["in_units_of_data"]
        self.assertAlmostEqual(own["mean_absolute_error"], sum(abs(a - b) for a, b in zip(found, pixels)) / 48, delta=0.01)

    def test_a_target_that_is_an_input_has_no_column(self):
        self.write("house.csv", "a,b,price\n1,2,3\n2,3,4\n3,5,6\n")
        self.fit(config="""\
model:
  inputs: {x: [2]}
  layers:
    - dense: {name: back, units: 2, inputs: x}
    - dense: {name: value, units: 1, inputs: x}
  outputs: [back, value]
dataset: {train: {csv: {file: house.csv, header: true, targets: {back: {input: x}, value: price}}}}
strategy: {single: {device: cpu:0}}
train: {epochs: 1, batch_size: 3, loss: mean_squared_error, optimizer: sgd}
""")
        self.dtrain("predict", "run", "-i", "house.csv", "-o", "out.csv")
        self.assertEqual(list(self.read("out.csv")[0]), ["row", "back.0", "back.1", "price"])

    def test_a_column_of_ids_may_have_any_name(self):
        for title in ("row", "loss"):
            rows = [dict(row, **{title: row["name"]}) for row in self.rows]
            self.table("flowers.csv", rows, [title] + [field for field in self.rows[0] if field != "name"])
            self.fit("--overwrite", config=CONFIG.replace("id: name", f"id: {title}").replace("epochs: 6", "epochs: 1"))
            names = {row["name"] for row in self.rows}
            for error in self.json("evaluate", "run", "--errors", 2)["errors"]:
                self.assertIn(error["id"], names)
                self.assertEqual(error["id_title"], title)
                self.assertIsInstance(error["loss"], float)
            self.assertIn(f"\nlargest losses\n{title:>8}  ", self.dtrain("evaluate", "run", "--errors", 2).out)

    def test_an_autoencoder_learns_its_input(self):
        config = """\
model: {inputs: {image: [4]}, layers: [{dense: {units: 4}}]}
dataset: {train: {synthetic: {samples: 64, target: {input: image}}}}
strategy: {single: {device: cpu:0}}
train: {epochs: 40, batch_size: 8, loss: mean_squared_error, optimizer: {adam: {learning_rate: 0.05}}}
"""
        self.fit(config=config)
        self.assertLess(self.metrics()[-1]["loss"], 0.01)
        self.write("config.yaml", config.replace("{input: image}", "{input: picture}"))
        self.assertRegex(self.dtrain("check", "config.yaml", expect=2).err, r"config.yaml:2:\d+: error: target: the model has no input named 'picture'; expected one of image")
        self.write("config.yaml", config.replace("{input: image}", "{input: imgae}"))
        self.assertIn("no input named 'imgae'; did you mean 'image'?", self.dtrain("check", "config.yaml", expect=2).err)

    def test_large_targets_are_predicted_with_all_digits(self):
        self.write("times.csv", "x,y\n" + "".join(f"{i},{1700000000 + i}\n" for i in range(100)))
        self.fit(config="""\
seed: 1
model: {inputs: {x: [1]}, layers: [{dense: {units: 1}}]}
dataset:
  train: {csv: {file: times.csv, header: true, target: y}}
  transforms: [standardize, {standardize: {of: [target]}}]
strategy: {single: {device: cpu:0}}
train: {epochs: 60, batch_size: 100, loss: mean_squared_error, metrics: [mean_absolute_error],
        optimizer: {sgd: {learning_rate: 0.3}}}
""")
        self.dtrain("predict", "run", "--input", "times.csv", "--output", "out.csv")
        lines = (self.dir / "out.csv").read_text().split()[1:]
        for i, line in enumerate(lines):
            self.assertAlmostEqual(float(line.split(",")[1]), 1700000000 + i, delta=0.01)
        for error in self.json("evaluate", "run", "--split", "train", "--errors", "3")["errors"]:
            for what in ("target", "prediction"):
                self.assertAlmostEqual(error[what], 1700000000 + error["row"], delta=0.01)


if __name__ == "__main__":
    support.main()
