"""Folders of pictures, from files to named predictions."""
import csv
import io
import json
import random
import struct
import tarfile
import zlib

import support
from support import Case

CONFIG = """\
seed: 5
model:
  inputs: {image: [12, 12, 3]}
  layers:
    - conv2d: {filters: 4, kernel_size: 3, activation: relu}
    - flatten: {}
    - dense: {units: 3}
dataset:
  train:      {images: {directory: train, resize: crop, size: [14, 14]}}
  validation: {images: {directory: validation, resize: crop, size: [14, 14]}}
  augment:
    - random_flip: {mode: horizontal}
    - random_crop: {height: 12, width: 12}
    - random_rotation: {factor: 0.02}
    - random_brightness: {factor: 0.1}
  transforms: [{rescale: {scale: 1/255}}]
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 3
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
  metrics: [sparse_categorical_accuracy]
checkpoint: {every: 2 steps, keep: 100}
"""


def png(height, width, colour, draw):
    """A picture of one colour and some noise."""
    rows = b""
    for _ in range(height):
        rows += b"\0" + bytes(min(255, max(0, c + draw.randrange(-40, 41))) for _ in range(width) for c in colour)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Pictures(Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        for split, count in (("train", 20), ("validation", 4)):
            for name, colour in (("blue", (30, 30, 200)), ("green", (30, 200, 30)), ("red", (200, 30, 30))):
                (self.dir / split / name).mkdir(parents=True)
                for i in range(count):
                    path = self.dir / split / name / f"{i:02}.png"
                    path.write_bytes(png(draw.randrange(10, 40), draw.randrange(10, 40), colour, draw))

    def test_from_a_folder_to_predictions_with_paths(self):
        self.fit(config=CONFIG)
        self.assertGreater(self.metrics()[-1]["val_sparse_categorical_accuracy"], 0.9)
        self.dtrain("predict", "run", "--input", "validation", "--output", "out.csv")
        with open(self.dir / "out.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["path", "class", "blue", "green", "red"])
        self.assertEqual([row["path"] for row in rows],
                         [f"validation/{name}/{i:02}.png" for name in ("blue", "green", "red") for i in range(4)])
        self.assertGreater(sum(f"/{row['class']}/" in row["path"] for row in rows), 10)
        for row in rows:
            scores = {name: float(row[name]) for name in ("blue", "green", "red")}
            self.assertAlmostEqual(sum(scores.values()), 1, places=5)
            self.assertEqual(max(scores, key=scores.get), row["class"])
        self.dtrain("predict", "run", "--input", "validation/red/00.png", "--output", "one.npy")
        self.dtrain("evaluate", "run", "--split", "train")

    def test_where_the_time_of_reading_goes(self):
        self.fit(config=CONFIG)
        reading = json.loads((self.dir / "run/run.jsonl").read_text().splitlines()[-1])["seconds"]["reading"]
        self.assertEqual(set(reading), {"files", "decoding", "rest"})
        for seconds in reading.values():
            self.assertGreater(seconds, 0)

    def table(self, name, rows):
        with open(self.dir / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)

    def labels(self, split="train", every=1):
        """A table of the split's pictures, with a number for each that its colour tells."""
        paths = sorted(path.relative_to(self.dir / split) for path in (self.dir / split).glob("*/*.png"))
        return [("id", "file", "colour", "warmth")] + [
            (i, path, path.parts[0], {"blue": 0.1, "green": 0.5, "red": 0.9}[path.parts[0]])
            for i, path in enumerate(paths[::every])]

    def test_from_a_table_of_paths_to_predictions_by_path(self):
        self.table("labels.csv", self.labels())
        options = "csv: {file: labels.csv, path: file, target: colour}, directory: train, size: [14, 14], resize: crop"
        config = CONFIG.replace("images: {directory: train, resize: crop, size: [14, 14]}", f"images: {{{options}}}")
        self.assertNotEqual(config, CONFIG)
        config = config.replace("{images: {directory: validation, resize: crop, size: [14, 14]}}",
                                "{split: {of: train, fraction: 0.2, stratify: true}}")
        self.fit(config=config)
        self.assertGreater(self.metrics()[-1]["val_sparse_categorical_accuracy"], 0.9)
        self.assertIn("/0", self.dtrain("evaluate", "run", "--errors", "2").out)  # paths
        # Other pictures, beside a table that has no targets and another order of columns.
        rows = self.labels("validation")
        self.table("validation/new.csv", [(row[1], row[0]) for row in rows])
        self.dtrain("predict", "run", "--input", "validation/new.csv", "--output", "out.csv")
        with open(self.dir / "out.csv", encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        self.assertEqual([row["file"] for row in found], [str(row[1]) for row in rows[1:]])
        right = sum(row["colour"] == row["file"].split("/")[0] for row in found)
        self.assertGreater(right, 9)

    def test_numbers_that_a_table_has_for_pictures(self):
        self.table("labels.csv", self.labels())
        config = CONFIG.replace("images: {directory: train, ", "images: {csv: {file: labels.csv, path: file, target: warmth, weight: id}, directory: train, ")
        config = config.replace("  validation: {images: {directory: validation, resize: crop, size: [14, 14]}}\n", "")
        config = config.replace("dense: {units: 3}", "dense: {units: 1}").replace("[sparse_categorical_accuracy]", "[mean_absolute_error]")
        config = config.replace("{sparse_categorical_crossentropy: {from_logits: true}}", "mean_squared_error").replace("epochs: 3", "epochs: 8")
        self.fit(config=config)
        self.assertLess(self.metrics()[-1]["mean_absolute_error"], 0.25)

    def shards(self, split, form, count):
        """The split's pictures in tar archives, as Python's own module writes them."""
        paths = sorted((self.dir / split).glob("*/*.png"))
        random.Random(2).shuffle(paths)
        for number in range(count):
            with tarfile.open(self.dir / f"{split}-{number:02}.tar", "w", format=form) as archive:
                for path in paths[number::count]:
                    # Longer than a header has place for, so that each form says it in its own way.
                    key = f"{'long/' * 30}{path.parent.name}/{path.stem}"
                    for ending, data in (("png", path.read_bytes()), ("cls", path.parent.name.encode()), ("json", b"{}")):
                        member = tarfile.TarInfo(f"{key}.{ending}")
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))

    def test_shards_of_every_form_are_the_same_data(self):
        config = CONFIG.replace("{images: {directory: train, ", "{webdataset: {files: 'train-{00..02}.tar', ")
        config = config.replace("{images: {directory: validation, ", "{webdataset: {files: validation-*.tar, ")
        losses = []
        for form in (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            self.shards("train", form, 3)
            self.shards("validation", form, 1)
            self.fit("--overwrite", config=config)
            losses.append([one["loss"] for one in self.metrics()])
        self.assertGreater(self.metrics()[-1]["val_sparse_categorical_accuracy"], 0.9)
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])
        self.dtrain("predict", "run", "--input", "validation-00.tar", "--output", "out.csv")
        with open(self.dir / "out.csv", encoding="utf-8", newline="") as file:
            found = list(csv.reader(file))[1:]
        self.assertEqual(len(found), 12)
        self.assertGreater(sum(row[1] in row[0] for row in found), 9)  # the class is part of the name
        path = self.dir / "train-01.tar"
        path.write_bytes(path.read_bytes()[:5000])
        self.assertRegex(self.fit(config=config, output="cut", expect=2).err, r"config.yaml:9:15: error: .*train-01.tar: expected .* at byte \d+, found")

    def test_mistakes_of_a_table(self):
        rows = self.labels()
        rows[7] = (6, "blue/missing.png", "blue", 0.1)
        self.table("labels.csv", rows)
        config = CONFIG.replace("images: {directory: train, ", "images: {csv: {file: labels.csv, path: file, target: colour}, directory: train, ")
        message = self.fit(config=config, expect=2).err
        self.assertRegex(message, r"config.yaml:9:15: error: .*labels.csv:8:3: .*train/blue/missing.png: expected a file, found nothing")
        skip = config.replace("directory: train,", "directory: train, on_error: skip,")
        self.assertIn("1 of 60 files were left out", self.fit(config=skip, output="other").err)
        message = self.fit("--set", "dataset.train.images.csv.path=name", config=config, expect=2).err
        self.assertIn("expected a column named 'name', found the columns 'id', 'file', 'colour', 'warmth'", message)

    def test_killed_and_gone_on_with_gives_the_same_bits(self):
        self.fit("--epochs", 12, config=CONFIG, output="whole")
        self.kill_on_the_way("fit", "config.yaml", "--output", "run", "--epochs", 12, after=13)
        self.dtrain("resume", "run")
        self.assert_same_run("run", "whole")
        # On one replica the samples are the same ones.
        self.fit("--set", "strategy={single: {device: cpu:0}}", config=CONFIG, output="single")
        for mine, other in zip(self.metrics("single"), self.metrics("whole")):
            self.assertAlmostEqual(mine["loss"], other["loss"], places=3)

    def test_a_broken_picture_is_an_error_or_left_out(self):
        path = self.dir / "train/red/broken.png"
        path.write_bytes((self.dir / "train/red/00.png").read_bytes()[:200])
        message = self.fit(config=CONFIG, expect=1).err
        self.assertRegex(message, "train/red/broken.png: expected a whole PNG")
        skip = CONFIG.replace("directory: train,", "directory: train, on_error: skip,")
        self.assertIn("1 of 61 files were left out", self.fit(config=skip, output="other").err)
        path.write_text("no picture")
        message = self.fit(config=CONFIG, output="third", expect=2).err
        self.assertRegex(message, r"config.yaml:9:15: error: .*broken.png: expected a JPEG, PNG or BMP, found no picture")


if __name__ == "__main__":
    support.main()
