"""Files given on the command line: evaluate --input, predict from pipes, patterns and JSON lines, --layer."""
import csv
import io
import json
import math
import os
import random
import subprocess

import support
from support import Case
from test_results import BRANCHES

FLOWERS = """\
seed: 5
model:
  inputs: {x: [4]}
  layers:
    - dense: {name: hidden, units: 6, activation: relu}
    - dense: {name: scores, units: 3}
dataset:
  train: {csv: {file: flowers.csv, header: true, target: species, id: name, categories: [colour], fill: mean, weight: count}}
  test: {split: {of: train, fraction: 0.3}}
  transforms: [standardize]
strategy: single
train:
  epochs: 5
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.03}}
  metrics: [accuracy]
  weighted_metrics: [accuracy]
"""
SPECIES = ["iris", "rose", "tulip"]


def flowers(count, seed=1):
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        kind = draw.randrange(3)
        rows.append({"name": f"f{number}", "colour": ["red", "blue"][draw.randrange(2)],
                     "length": f"{100 + 10 * kind + draw.random():.3f}" if number % 9 else "",
                     "width": f"{draw.random() - kind:.4f}", "count": str(1 + number % 3), "species": SPECIES[kind]})
    return rows


class Tables(Case):
    def table(self, name, rows, fields=None):
        text = io.StringIO()
        writer = csv.DictWriter(text, fields or list(rows[0]), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        if name:
            self.write(name, text.getvalue())
        return text.getvalue()

    def read(self, name):
        with open(self.dir / name, newline="") as file:
            return list(csv.DictReader(file))

    def pipe(self, text, *arguments, expect=0):
        process = subprocess.run([support.BINARY, *map(str, arguments)], cwd=self.dir, input=text, capture_output=True,
                                 text=True, timeout=120, check=False)
        self.assertEqual(process.returncode, expect, process.stderr)
        return process

    def setUp(self):
        super().setUp()
        self.rows = flowers(120)
        self.table("flowers.csv", self.rows)
        self.fit(config=FLOWERS)

    # evaluate --input

    def test_a_labeled_file_is_evaluated(self):
        others = flowers(50, seed=2)
        self.table("others.csv", [dict(row, note="new") for row in others], ["species", "note", "width", "length", "colour"])
        found = self.json("evaluate", "run", "--input", "others.csv", "--per-class", "--errors", 2)
        self.assertEqual((found["samples"], found["inputs"], found["classes"]), (50, ["others.csv"], SPECIES))
        self.assertNotIn("split", found)
        self.dtrain("predict", "run", "--input", "others.csv", "--output", "out.csv")
        right = [a["species"] == b["species"] for a, b in zip(self.read("out.csv"), others)]
        self.assertAlmostEqual(found["accuracy"], sum(right) / 50)
        loss = sum(-math.log(float(a[b["species"]])) for a, b in zip(self.read("out.csv"), others)) / 50
        self.assertAlmostEqual(found["loss"], loss, places=4)  # without a weight column all rows have equal weight
        self.assertAlmostEqual(found["weighted_accuracy"], found["accuracy"])
        self.table("weighted.csv", others)
        weighted = self.json("evaluate", "run", "-i", "weighted.csv")
        total = sum(int(row["count"]) for row in others)
        self.assertAlmostEqual(weighted["weighted_accuracy"],
                               sum(hit * int(row["count"]) for hit, row in zip(right, others)) / total)
        self.assertIn("others.csv, 50 samples:", self.dtrain("evaluate", "run", "--input", "others.csv").out)
        both = self.json("evaluate", "run", "--input", "others.csv", "weighted.csv")
        self.assertEqual(both["samples"], 100)
        piped = self.pipe((self.dir / "others.csv").read_text(), "evaluate", "run", "--input", "-", "--json")
        self.assertEqual(json.loads(piped.stdout)["loss"], found["loss"])

    def test_a_file_used_in_training_is_a_warning(self):
        warning = "the model was trained on samples of this file (flowers.csv)"
        self.write("copy.csv", (self.dir / "flowers.csv").read_text())
        for name in ("flowers.csv", "copy.csv"):
            self.assertIn(f"{name}: {warning}", self.dtrain("evaluate", "run", "--input", name).err)
        piped = self.pipe((self.dir / "flowers.csv").read_text(), "evaluate", "run", "--input", "-")
        self.assertIn(f"standard input: {warning}", piped.stderr)
        self.assertIn("\nstandard input, 120 samples:", piped.stdout)
        self.table("others.csv", flowers(50, seed=2))
        self.assertNotIn("trained on", self.dtrain("evaluate", "run", "--input", "others.csv").err)

    def test_missing_names_are_errors(self):
        self.table("others.csv", [dict(row, species=row["species"].title()) for row in flowers(3)])
        self.assertIn("found 'Iris'; did you mean 'iris'?", self.dtrain("evaluate", "run", "--input", "others.csv", expect=2).err)
        predict = ("predict", "run", "--input", "flowers.csv", "--output", "out.csv")
        self.assertIn("expected a column named 'nam'; did you mean 'name'? found the columns",
                      self.dtrain(*predict, "--set", "dataset.train.csv.id=nam", expect=2).err)
        self.dtrain(*predict, "--set", "dataset.train.csv.id=species")
        self.assertEqual(list(self.read("out.csv")[0])[0], "species")
        self.table("capital.csv", [{name.title(): value for name, value in row.items()} for row in self.rows])
        self.assertIn("expected columns named 'colour' (did you mean 'Colour'?), 'length' (did you mean 'Length'?), "
                      "'width' (did you mean 'Width'?), found the columns 'Name'",
                      self.dtrain("predict", "run", "-i", "capital.csv", "-o", "out.csv", expect=2).err)
        self.table("bare.csv", self.rows, ["colour", "length", "width"])  # files without ids are accepted
        self.dtrain("predict", "run", "--input", "bare.csv", "--output", "out.csv")
        self.write("empty.csv", "")
        self.assertIn("empty.csv: no data found", self.dtrain("predict", "run", "-i", "empty.csv", "-o", "out.csv", expect=2).err)

    def test_files_with_missing_or_unknown_targets_are_errors(self):
        self.table("bare.csv", self.rows, ["name", "colour", "length", "width"])
        error = self.dtrain("evaluate", "run", "--input", "bare.csv", expect=2).err
        self.assertIn("bare.csv: expected the target in a column named 'species', found the columns 'name'", error)
        self.table("lily.csv", [dict(self.rows[0], species="lily")])
        self.assertIn("lily.csv:2:18: expected one of", self.dtrain("evaluate", "run", "--input", "lily.csv", expect=2).err)
        self.dtrain("evaluate", "run", "--input", "flowers.csv", "--split", "test", expect=2)
        self.assertIn("--input", self.dtrain("evaluate", "run", "--no-header", expect=2).err)
        self.write("config.yaml", support.CONFIG)
        self.dtrain("fit", "config.yaml", "--output", "plain", "--epochs", 1)
        self.write("x.csv", "1,2,3,4,5,6,7,8,9,10,11,12\n")
        self.assertIn("the run's reader synthetic can read", self.dtrain("evaluate", "plain", "--input", "x.csv", expect=2).err)

    def test_a_file_without_a_header_is_read_by_position(self):
        lines = [f"{i % 7},{i % 5},{i % 2}\n" for i in range(40)]
        self.write("plain.csv", "".join(lines))
        self.fit("--overwrite", config="""\
model: {inputs: {x: [2]}, layers: [{dense: {units: 2}}]}
dataset: {train: {csv: {file: plain.csv, target: -1}}}
strategy: single
train: {epochs: 1, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd, metrics: [accuracy]}
""")
        expected = self.json("evaluate", "run", "--split", "train")
        found = self.json("evaluate", "run", "--input", "plain.csv")
        self.assertEqual(found["accuracy"], expected["accuracy"])
        self.write("inputs.csv", "1,2\n3,4\n")
        self.assertIn("expected 3 values per line, including the target, found 2",
                      self.dtrain("evaluate", "run", "--input", "inputs.csv", expect=2).err)
        self.assertEqual(self.json("predict", "run", "--input", "inputs.csv", "--output", "out.csv")["samples"], 2)

    # predict

    def assert_same_rows(self, found, expected):
        """Checks that the texts of the rows are equal, and that the numbers are equal up to rounding. Numbers may
        differ because on some processors the sums of a row depend on the size of its batch."""
        self.assertEqual([list(row) for row in found], [list(row) for row in expected])
        for one, other in zip(found, expected):
            for key in one:
                if key in SPECIES:
                    self.assertAlmostEqual(float(one[key]), float(other[key]), delta=1e-6)
                else:
                    self.assertEqual(one[key], other[key])

    def test_predict_reads_and_writes_pipes(self):
        text = self.table("", self.rows[:7])
        self.dtrain("predict", "run", "--input", "flowers.csv", "--output", "all.csv")
        expected = self.read("all.csv")[:7]
        process = self.pipe(text, "predict", "run", "--input", "-", "--output", "-")
        self.assert_same_rows(list(csv.DictReader(io.StringIO(process.stdout))), expected)
        lines = "".join(json.dumps({key: float(row[key]) if key == "width" else row[key] or None
                                    for key in ("width", "colour", "name", "length")}) + "\n" for row in self.rows[:7])
        process = self.pipe(lines, "predict", "run", "--input", "-", "--output", "-")
        found = [json.loads(line) for line in process.stdout.splitlines()]
        self.assertEqual([(row["name"], row["species"]) for row in found], [(row["name"], row["species"]) for row in expected])
        for one, other in zip(found, expected):
            for name in SPECIES:
                self.assertAlmostEqual(one[name], float(other[name]), places=5)
        process = self.pipe(lines, "predict", "run", "--input", "-", "--output", "-", "--format", "csv")
        self.assert_same_rows(list(csv.DictReader(io.StringIO(process.stdout))), expected)
        self.write("lines.jsonl", lines)
        self.dtrain("predict", "run", "--input", "lines.jsonl", "--output", "of-lines.txt", "--format", "csv")
        self.assert_same_rows(self.read("of-lines.txt"), expected)

    def test_messages_name_standard_input(self):
        predict = lambda text, *more: self.pipe(text, "predict", "run", "--input", "-", "--output", "-", *more, expect=2).stderr
        rows = [dict(row, width="wide" if number == 1 else row["width"]) for number, row in enumerate(self.rows[:3])]
        self.assertIn("standard input:3:17: expected a finite number in the column 'width'", predict(self.table("", rows)))
        self.assertRegex(predict("".join(json.dumps(row) + "\n" for row in rows)), r"standard input:2: expected a finite number in the column 'width'")
        self.assertIn("standard input:2: the line cannot be read as JSON", predict('{"width": 1}\n{"width": \n'))
        self.assertIn("standard input:1: the line cannot be read as JSON; expected unique keys in the object, but found the key 'width' again at offset", predict('{"width": 1, "width": 2}\n'))
        self.assertIn("standard input:2: expected an object as in the first line, found an array", predict('{"width": 1}\n[1]\n'))
        self.assertIn("standard input:2: expected a number or a string for 'width', found an array",
                      predict('{"width": 1}\n{"width": [1]}\n'))
        self.assertIn("standard input:1: expected a number in 'colour', found the string \"red\" (JSON lines with arrays must not contain strings)",
                      predict('{"width": [1], "colour": "red"}\n'))
        self.assertRegex(predict('{"width": [1]}\n'), r"standard input: expected '\w+' in each line, found the unknown key 'width'")
        self.assertIn("standard output", predict(self.table("", rows[:1]), "--json"))
        self.assertIn("standard input: no data found", predict(""))
        self.assertIn("--format", self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "o.npy", "--format", "csv", expect=2).err)

    def test_outputs_do_not_replace_files_of_a_run(self):
        before = (self.dir / "run/metrics.csv").read_text(), (self.dir / "run/config.yaml").read_text()
        for output, *more in (("run/metrics.csv",), ("run/metrics.jsonl",), ("run/config.yaml", "--format", "csv")):
            self.assertIn(f"{output}: this file belongs to a run and would be overwritten; give another --output",
                          self.dtrain("predict", "run", "-i", "flowers.csv", "-o", output, *more, expect=2).err)
        self.assertIn("run/config.yaml: this file belongs to a run",
                      self.dtrain("export", "run", "--format", "keras", "--output", "run/config.yaml", expect=2).err)
        self.assertEqual(((self.dir / "run/metrics.csv").read_text(), (self.dir / "run/config.yaml").read_text()), before)
        self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "run/predicted.csv")

    def test_a_gap_in_the_only_column_is_not_lost(self):
        config = FLOWERS.replace("[4]", "[1]").replace("id: name, categories: [colour], fill: mean", "inputs: {x: width}FILL")
        for fill, expect in ((", fill: mean", 0), ("", 2)):
            self.fit("--overwrite", config=config.replace("FILL", fill))
            self.write("gap.jsonl", '{"width": 1}\n{"width": null}\n{}\n{"width": 3}\n')
            done = self.dtrain("predict", "run", "-i", "gap.jsonl", "-o", "-", expect=expect)
            if expect == 0:
                self.assertEqual([json.loads(line)["row"] for line in done.out.splitlines()], [0, 1, 2, 3])
            else:
                self.assertIn("gap.jsonl:2: expected a finite number in the column 'width', found ''", done.err)

    def test_messages_about_wrong_inputs(self):
        def error(name):
            return self.dtrain("predict", "run", "-i", name, "-o", "out.csv", expect=2).err
        (self.dir / "folder").mkdir()
        self.write("header.csv", "name,colour,length,width\n")
        (self.dir / "utf16.csv").write_bytes("name,colour\na,red\n".encode("utf-16"))
        os.mkfifo(self.dir / "pipe")
        self.assertIn("folder: expected a file that the run's reader csv can read, but found a directory", error("folder"))
        (self.dir / "image.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
        self.assertIn("image.csv: expected a file that the run's reader csv can read, but found an image", error("image.csv"))
        self.assertIn("header.csv: expected rows of values below the header, found none; if the first line contains data", error("header.csv"))
        self.assertIn("utf16.csv: expected text in UTF-8, found UTF-16; convert it: iconv -f utf-16 -t utf-8 utf16.csv > utf8.csv", error("utf16.csv"))
        self.assertIn("pipe: expected a file, found a pipe", error("pipe"))
        self.assertIn("--input: expected the name of a file or a folder, found an empty name", error(""))
        self.assertIn("out: expected a name that ends in .h5, .npy, .csv or .jsonl, or in / for a folder of images, found no extension",
                      self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "out", expect=2).err)

    def test_several_inputs_and_patterns_are_read(self):
        for part in range(3):
            self.table(f"part-{part}.csv", self.rows[part * 40:(part + 1) * 40])
        self.dtrain("predict", "run", "--input", "flowers.csv", "--output", "all.csv")
        self.dtrain("predict", "run", "--input", "part-2.csv", "part-0.csv", "--output", "some.csv")
        everything = self.read("all.csv")
        self.assert_same_rows(self.read("some.csv"), everything[80:] + everything[:40])
        for pattern in ("part-*.csv", "part-{0..2}.csv"):
            self.dtrain("predict", "run", "--input", pattern, "--output", "parts.csv")
            self.assert_same_rows(self.read("parts.csv"), everything)
        self.assertIn("parts-*: expected files that match this pattern", self.dtrain("predict", "run", "-i", "parts-*", "-o", "o.csv", expect=2).err)
        self.assertIn("is an input", self.dtrain("predict", "run", "-i", "part-*.csv", "-o", "part-1.csv", expect=2).err)

    def test_predict_writes_the_output_of_an_inner_layer(self):
        document = self.json("predict", "run", "--input", "flowers.csv", "--output", "hidden.jsonl", "--layer", "hidden")
        self.assertEqual(document["shapes"], {"hidden": [120, 6]})
        lines = [json.loads(line) for line in (self.dir / "hidden.jsonl").read_text().splitlines()]
        self.assertEqual(list(lines[0]), ["name", "hidden"])
        values = [value for line in lines for value in line["hidden"]]
        self.assertEqual(len(values), 720)
        self.assertTrue(min(values) == 0 < max(values))  # values after the layer's relu
        self.dtrain("predict", "run", "--input", "flowers.csv", "--output", "scores.csv", "--layer", "scores")
        self.dtrain("predict", "run", "--input", "flowers.csv", "--output", "raw.csv", "--outputs", "raw")
        raw = [[row[name] for name in SPECIES] for row in self.read("raw.csv")]
        self.assertEqual([[row[f"scores.{c}"] for c in range(3)] for row in self.read("scores.csv")], raw)
        error = self.dtrain("predict", "run", "-i", "flowers.csv", "-o", "o.csv", "--layer", "hiden", expect=2).err
        self.assertIn("the model has no layer 'hiden'; did you mean 'hidden'?", error)


class Layers(Case):
    def test_inner_layers_are_the_same_with_any_strategy(self):
        self.fit(config=BRANCHES)
        self.write("inputs.csv", "".join(",".join(str((i * j) % 5) for j in range(1, 7)) + "\n" for i in range(9)))
        texts = []
        for strategy in ("single", "{mirrored: {devices: [cpu:0, cpu:1]}}",
                         "{pipeline: {devices: [cpu:0, cpu:1], stages: [concatenate]}}"):
            self.dtrain("predict", "run", "-i", "inputs.csv", "-o", "out.csv", "--layer", "left", "--layer", "concatenate",
                        "--set", f"strategy={strategy}")
            texts.append((self.dir / "out.csv").read_text())
        self.assertTrue(texts[0].startswith("row,left.0,left.1,"))
        for text in texts[1:]:
            for one, other in zip(texts[0].split()[1:], text.split()[1:]):
                for a, b in zip(one.split(","), other.split(",")):
                    self.assertAlmostEqual(float(a), float(b), places=5)


if __name__ == "__main__":
    support.main()
