"""Folders of images, from files to named predictions."""
import csv
import io
import json
import random
import re
import resource
import shutil
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
    """Returns a PNG image of a single color with some noise."""
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

    def test_a_folder_of_images_gives_predictions_with_paths(self):
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
        known, given = (self.json("evaluate", "run", *data) for data in (["--split", "validation"], ["--input", "validation"]))
        for key in ("loss", "sparse_categorical_accuracy", "samples", "classes"):
            self.assertEqual(given[key], known[key])
        self.dtrain("predict", "run", "--input", "validation/red/*.png", "validation/blue", "--output", "some.csv")
        with open(self.dir / "some.csv", encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        # On some processors a row's sums depend on the size of its batch.
        self.assertEqual([(row["path"], row["class"]) for row in found], [(row["path"], row["class"]) for row in rows[8:] + rows[:4]])
        for one, other in zip(found, rows[8:] + rows[:4]):
            for name in ("blue", "green", "red"):
                self.assertAlmostEqual(float(one[name]), float(other[name]), delta=1e-6)
        self.assertIn("the run's reader images can read",
                      self.dtrain("evaluate", "run", "--input", "validation/red/00.png", expect=2).err)
        self.dtrain("evaluate", "run", "--split", "train")

    def test_the_time_of_reading_is_recorded_by_part(self):
        self.fit(config=CONFIG)
        reading = json.loads((self.dir / "run/run.jsonl").read_text().splitlines()[-1])["seconds"]["reading"]
        self.assertEqual(set(reading), {"files", "decoding", "rest"})
        for seconds in reading.values():
            self.assertGreater(seconds, 0)

    def table(self, name, rows):
        with open(self.dir / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)

    def labels(self, split="train", every=1):
        """Writes a table that lists the split's images, with a number for each image that depends on its color."""
        paths = sorted(path.relative_to(self.dir / split) for path in (self.dir / split).glob("*/*.png"))
        return [("id", "file", "colour", "warmth")] + [
            (i, path, path.parts[0], {"blue": 0.1, "green": 0.5, "red": 0.9}[path.parts[0]])
            for i, path in enumerate(paths[::every])]

    def test_a_table_of_paths_gives_predictions_by_path(self):
        self.table("labels.csv", self.labels())
        options = "csv: {file: labels.csv, path: file, target: colour}, directory: train, size: [14, 14], resize: crop"
        config = CONFIG.replace("images: {directory: train, resize: crop, size: [14, 14]}", f"images: {{{options}}}")
        self.assertNotEqual(config, CONFIG)
        config = config.replace("{images: {directory: validation, resize: crop, size: [14, 14]}}",
                                "{split: {of: train, fraction: 0.2, stratify: true}}")
        self.fit(config=config)
        self.assertGreater(self.metrics()[-1]["val_sparse_categorical_accuracy"], 0.9)
        self.assertIn("/0", self.dtrain("evaluate", "run", "--errors", "2").out)  # paths
        # The new table lists other images, has no targets, has its columns in another order, and is inside the folder
        # of the images.
        rows = self.labels("validation")
        self.table("validation/new.csv", [(row[1], row[0]) for row in rows])
        self.dtrain("predict", "run", "--input", "validation/new.csv", "--output", "out.csv")
        with open(self.dir / "out.csv", encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        self.assertEqual([row["file"] for row in found], [str(row[1]) for row in rows[1:]])
        right = sum(row["colour"] == row["file"].split("/")[0] for row in found)
        self.assertGreater(right, 9)
        self.assertIn("expected the target in a column named 'colour'",
                      self.dtrain("evaluate", "run", "--input", "validation/new.csv", expect=2).err)
        self.table("validation/labeled.csv", [(row[2], row[1]) for row in rows])
        accuracy = self.json("evaluate", "run", "--input", "validation/labeled.csv")["sparse_categorical_accuracy"]
        self.assertAlmostEqual(accuracy, right / len(found))
        # Paths are relative to the table, although images of the same names exist below `directory`.
        self.dtrain("predict", "run", "--input", "validation", "--output", "folder.csv")
        with open(self.dir / "folder.csv", encoding="utf-8", newline="") as file:
            reds = {row["path"].removeprefix("validation/"): row["red"] for row in csv.DictReader(file)}
        self.assertEqual({row["file"]: row["red"] for row in found}, reds)
        # The following commands do not need the training data.
        (self.dir / "labels.csv").unlink()
        shutil.rmtree(self.dir / "train")
        self.dtrain("predict", "run", "--input", "validation/new.csv", "--output", "again.csv")
        self.assertEqual((self.dir / "again.csv").read_text(), (self.dir / "out.csv").read_text())

    def test_a_table_gives_regression_targets_for_images(self):
        self.table("labels.csv", self.labels())
        config = CONFIG.replace("images: {directory: train, ", "images: {csv: {file: labels.csv, path: file, target: warmth, weight: id}, directory: train, ")
        config = config.replace("  validation: {images: {directory: validation, resize: crop, size: [14, 14]}}\n", "")
        config = config.replace("dense: {units: 3}", "dense: {units: 1}").replace("[sparse_categorical_accuracy]", "[mean_absolute_error]")
        config = config.replace("{sparse_categorical_crossentropy: {from_logits: true}}", "mean_squared_error").replace("epochs: 3", "epochs: 8")
        self.fit(config=config)
        self.assertLess(self.metrics()[-1]["mean_absolute_error"], 0.25)

    def shards(self, split, form, count):
        """Writes the split's images to tar archives with Python's tarfile."""
        paths = sorted((self.dir / split).glob("*/*.png"))
        random.Random(2).shuffle(paths)
        for number in range(count):
            with tarfile.open(self.dir / f"{split}-{number:02}.tar", "w", format=form) as archive:
                for path in paths[number::count]:
                    # The name is longer than the name field of a tar header. Each tar format stores long names in a
                    # different way.
                    key = f"{'long/' * 30}{path.parent.name}/{path.stem}"
                    for ending, data in (("png", path.read_bytes()), ("cls", path.parent.name.encode()), ("json", b"{}")):
                        member = tarfile.TarInfo(f"{key}.{ending}")
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))

    def test_shards_of_every_form_are_the_same_data(self):
        config = CONFIG.replace("{images: {directory: train, ", "{webdataset: {target: CLS, files: 'train-{00..02}.tar', ")
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
        right = sum(row[1] in row[0] for row in found)  # the class is part of the name
        self.assertGreater(right, 9)
        given = self.json("evaluate", "run", "--input", "validation-00.tar")
        self.assertAlmostEqual(given["sparse_categorical_accuracy"], right / 12)
        path = self.dir / "train-01.tar"
        path.write_bytes(path.read_bytes()[:5000])
        self.assertRegex(self.fit(config=config, output="cut", expect=2).err, r"config.yaml:9:15: error: .*train-01.tar: expected .* at byte \d+, found")

    def test_more_shards_than_files_may_be_open(self):
        for i in range(100):
            with tarfile.open(self.dir / f"many-{i:03}.tar", "w") as archive:
                name = ("blue", "green", "red")[i % 3]
                archive.add(self.dir / "train" / name / "00.png", f"{i}.png")
                label = tarfile.TarInfo(f"{i}.cls")
                label.size = 1
                archive.addfile(label, io.BytesIO(str(i % 3).encode()))
        config = CONFIG.replace("images: {directory: train", "webdataset: {files: 'many-*.tar'")
        config = re.sub(r"  validation: .*\n", "", config)
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        self.fit("--epochs", 1, config=config, preexec_fn=limit)

    def test_mistakes_in_a_table_are_errors_with_their_location(self):
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

    def new(self, *arguments):
        """Returns the written configuration and the output of `dtrain new`."""
        (self.dir / "new.yaml").unlink(missing_ok=True)
        messages = self.dtrain("new", *arguments, "--output", "new.yaml").err
        return (self.dir / "new.yaml").read_text(encoding="utf-8"), messages

    def test_new_counts_the_images_among_the_files(self):
        text, messages = self.new("train")
        self.assertIn("# 60 images: blue (20), green (20), red (20).", text)
        self.assertNotIn("on_error", text)
        self.assertEqual(messages, "")
        self.assertIn("batch_normalization: {momentum: 0.9}", text)
        self.write("train/blue/Thumbs.db", "no picture")
        self.write("train/green/a.gif", "GIF89a")
        self.write("train/red/notes.txt", "no picture")
        self.write("train/red/z\n: {.txt", "no picture")
        text, messages = self.new("train")
        self.assertIn("# 60 images: blue (20), green (20), red (20).", text)
        for place in (text, messages):
            self.assertIn("4 of 64 files in train are not images that can be read: train/blue/Thumbs.db, "
                          "train/green/a.gif, train/red/notes.txt, ...", place)
        self.assertIn("channels: 3, on_error: skip}}", text)
        self.assertIn("4 of 64 files were left out", self.dtrain("fit", "new.yaml", "--epochs", "1").err)
        # A folder without images is not a class. It is rejected like an empty folder.
        self.write("train/black/notes.txt", "no picture")
        self.assertIn("train/black: expected images (JPEG, PNG, BMP), found none in 1 file",
                      self.dtrain("new", "train", "--output", "other.yaml", expect=2).err)

    def test_new_samples_very_many_files(self):
        for name in ("blue", "red"):
            folder = self.dir / "many" / name
            folder.mkdir(parents=True)
            for i in range(5_001):
                (folder / f"{i}.png").hardlink_to(self.dir / "train" / name / "00.png")
                (folder / f"{i}.txt").symlink_to("nowhere")
        text, messages = self.new("many")
        self.assertIn("20,004 files, of which 10,002 were examined: blue (", text)
        bad = int(re.search(r"([0-9,]+) of 10,002 files that were examined \(of 20,004\) in many", messages).group(1).replace(",", ""))
        self.assertTrue(4_000 < bad < 6_000, bad)

    def test_new_looks_at_each_split(self):
        self.write("validation/blue/notes.txt", "no picture")
        text, messages = self.new(".")
        self.assertRegex(messages, "1 of 13 files in .*validation is not an image that can be read: .*blue/notes.txt;")
        self.assertEqual([line.split(":")[0].strip() for line in text.splitlines() if "{images:" in line and "on_error: skip" in line],
                         ["validation"])

    def test_new_warns_about_class_folders_named_like_splits(self):
        for name in ("Train", "Val"):
            (self.dir / "all" / name).mkdir(parents=True)
            for path in sorted((self.dir / "validation/red").glob("*.png")):
                (self.dir / "all" / name / path.name).write_bytes(path.read_bytes())
        text, messages = self.new("all")
        for place in (text, messages):
            self.assertIn("the folders 'Train' and 'Val' are used as classes", place)

    def test_new_reports_missing_images_of_a_table(self):
        rows = self.labels()
        self.table("labels.csv", [(row[1], row[2]) for row in rows])
        text, messages = self.new("labels.csv")
        self.assertIn("directory: train", text)
        self.assertEqual(messages, "")
        # Some files are missing.
        for number in (51, 52, 53, 54):
            (self.dir / "train" / rows[number][1]).unlink()
        text, messages = self.new("labels.csv")
        for place in (text, messages):
            self.assertIn("4 of 60 files that 'file' names are not images that can be read: train/red/10.png, "
                          "train/red/11.png, train/red/12.png, ...", place)
        self.assertIn("on_error: skip", text)
        self.dtrain("fit", "new.yaml", "--epochs", "1")
        # All files are missing.
        (self.dir / "train").rename(self.dir / "elsewhere")
        (self.dir / "validation").rename(self.dir / "nowhere")
        for folder in ("elsewhere", "nowhere"):
            for path in list((self.dir / folder).iterdir()):
                path.rename(self.dir / folder / f"other-{path.name}")
        text, messages = self.new("labels.csv")
        for place in (text, messages):
            self.assertIn("none of the 60 files named in 'file' is an existing image (JPEG, PNG, BMP): the "
                          "first one was expected at blue/00.png. If the images are in another folder", place)
        self.assertIn("csv: {file: labels.csv, path: file, target: colour}, size: [128, 128]", text)
        self.assertIn("channels: 3}", text)
        # If a table has numeric features, a column with names of image files identifies the rows. The images are not
        # read.
        self.table("numbers.csv", [("file", "a", "b", "kind")] + [(f"{i}.png", i % 7, i % 5, "xy"[i % 2]) for i in range(60)])
        text = self.new("numbers.csv")[0]
        self.assertIn("id: file", text)
        self.assertIn("features: auto", text)

    def test_new_refuses_a_table_of_one_class(self):
        self.table("labels.csv", [(row[1], row[2]) for row in self.labels()[:20]])
        self.assertIn("all rows have the same value, 'blue'",
                      self.dtrain("new", "labels.csv", "--output", "new.yaml", expect=2).err)

    def test_a_warning_of_two_splits_is_printed_once(self):
        self.write("train/red/notes.txt", "no picture")
        config = CONFIG.replace("directory: train,", "directory: train, on_error: skip,")
        drawn = config.replace("{images: {directory: validation, resize: crop, size: [14, 14]}}",
                               "{split: {of: train, fraction: 0.2, stratify: true}}")
        self.assertEqual(self.fit("--epochs", 1, config=drawn).err.count("1 of 61 files were left out"), 1)
        self.assertEqual(self.dtrain("check", "config.yaml").err.count("1 of 61 files were left out"), 1)
        self.write("config.yaml", config.replace("{height: 12, width: 12}", "{height: 15, width: 12}"))
        self.assertEqual(self.dtrain("check", "config.yaml", expect=2).err.count("images must have at least 15x12"), 1)

    def test_new_suggests_a_reader_for_an_archive(self):
        self.shards("train", tarfile.PAX_FORMAT, 1)
        self.assertIn("found a tar archive, which `dtrain new` cannot read. Unpack some of its images into one subfolder per class, "
                      "run `dtrain new` on their folder, and then replace the reader of 'train' in the configuration with "
                      "`webdataset: {files: train-00.tar, resize: crop}`",
                      self.dtrain("new", "train-00.tar", expect=2).err)

    def test_the_same_folder_for_two_splits_is_a_warning(self):
        message = self.fit("--epochs", 1, config=CONFIG.replace("{directory: validation,", "{directory: train,")).err
        self.assertIn("config.yaml:10:15: warning: validation: this split has samples in common with the training split", message)

    def test_a_killed_and_resumed_run_has_the_same_bits(self):
        self.fit("--epochs", 12, config=CONFIG, output="whole")
        self.kill_on_the_way("fit", "config.yaml", "--output", "run", "--epochs", 12, after=13)
        self.dtrain("resume", "run")
        self.assert_same_run("run", "whole")
        # With one replica, the samples are the same as with several.
        self.fit("--set", "strategy={single: {device: cpu:0}}", config=CONFIG, output="single")
        for mine, other in zip(self.metrics("single"), self.metrics("whole")):
            self.assertAlmostEqual(mine["loss"], other["loss"], places=3)

    def test_a_broken_image_is_an_error_or_skipped(self):
        path = self.dir / "train/red/broken.png"
        path.write_bytes((self.dir / "train/red/00.png").read_bytes()[:200])
        message = self.fit(config=CONFIG, expect=2).err
        self.assertRegex(message, "train/red/broken.png: expected an intact PNG")
        skip = CONFIG.replace("directory: train,", "directory: train, on_error: skip,")
        self.assertIn("1 of 61 files were left out", self.fit(config=skip, output="other").err)
        path.write_text("no picture")
        message = self.fit(config=CONFIG, output="third", expect=2).err
        self.assertRegex(message, r"config.yaml:9:15: error: .*broken.png: expected a JPEG, PNG or BMP, found a file that is not an image")


if __name__ == "__main__":
    support.main()
