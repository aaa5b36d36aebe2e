"""`dtrain new`: the configuration that it writes for what it looks at."""
import json
import random
import struct
import zlib

import support
from support import Case


def png(height, width, colour=(10, 200, 30)):
    """A picture of one colour; grey where that is one number."""
    colour = (colour,) if isinstance(colour, int) else colour
    rows = (b"\0" + bytes(colour) * width) * height
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if len(colour) == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class New(Case):
    def new(self, *arguments, **options):
        self.dtrain("new", *arguments, **options)
        return (self.dir / "data.yaml").read_text(encoding="utf-8")

    def fits(self):
        """What was written is what fit takes; room for the next."""
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")
        (self.dir / "data.yaml").unlink()

    def check_model(self, classes=3):
        """The model is one, whatever the data are; what its last layer gives."""
        target = f"target: {{classes: {classes}}}" if classes else "target: {shape: [1]}"
        split = f"{{synthetic: {{samples: 9, {target}}}}}"
        layers = self.json("summary", "data.yaml", "--set", f"dataset={{train: {split}, validation: {split}}}",
                           "--set", "train.metrics=[]")["layers"]
        return layers[-1]["output_shape"]

    def table(self, rows=60, name="data.csv", **texts):
        random.seed(1)
        lines = ['id,length,width,"colour, outside",note,when,same,species']
        for row in range(rows):
            species = ("setosa", "virginica", "versi\"color")[row % 3]
            quoted = '"' + species.replace('"', '""') + '"'
            lines.append(f"{row + 1},{random.random():.3f},{'' if row % 7 == 0 else row},{random.choice(['red', 'blue'])},"
                         f"text {row},2026-01-{row % 28 + 1:02},1,{quoted}")
        return self.write(name, "\ufeff" + "\r\n".join(lines) + "\r\n")

    def test_a_table_with_names_gaps_texts_dates_and_ids(self):
        self.table()
        text = self.new("data.csv")
        self.assertTrue(text.startswith("# yaml-language-server: $schema=dtrain.schema.json\n"))
        json.loads((self.dir / "dtrain.schema.json").read_text())
        for expected in ("file: data.csv", "header: true", "target: species ", "id: id ", "drop: [note, when, same]",
                         'categories: ["colour, outside"]', "fill: median", "features: [4]", "dense: {units: 3}",
                         "validation: {split: {of: train, fraction: 0.15, stratify: true}}", "- standardize ",
                         "sparse_categorical_crossentropy", 'versi"color (20)'):
            self.assertIn(expected, text)
        self.assertNotIn("class_weight", text)
        self.assertEqual(self.check_model(), [3])

    def test_classes_that_are_numbers(self):
        for labels, expected, units in (("123", "categories: [label]", 3), ("012", "target: label", 3), ("13", "categories: [label]", 2)):
            self.write("data.csv", "a,label\n" + "".join(f"{i}.5,{labels[i % len(labels)]}\n" for i in range(30)))
            text = self.new("data.csv")
            (self.dir / "data.yaml").unlink()
            self.assertIn(expected, text)
            self.assertEqual("categories" in text, "categories" in expected)
            self.assertIn(f"dense: {{units: {units}}}", text)

    def test_what_it_writes_is_what_fit_takes(self):
        random.seed(2)
        lines = ["name,colour,size,weight,kind"]
        for i in range(120):  # gaps of every spelling, among texts and among numbers
            lines.append(f"n{i},{('red', 'blue', '', '-', 'NA', 'nil')[i % 6]},{random.random():.3f},"
                         f"{'nil' if i % 9 == 0 else i},{'abc'[i % 3]}")
        self.write("data.csv", "\n".join(lines) + "\n")
        self.assertIn("features: [6]", self.new("data.csv"))  # red, blue, "-", nil; size; weight
        self.dtrain("fit", "data.yaml", "--epochs", "1")
        self.dtrain("predict", "runs/data", "-i", "data.csv", "-o", "out.csv")
        (self.dir / "data.yaml").unlink()
        self.new("data.csv", "--target", "size")
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")
        for kind in ("cat", "dog"):
            for i in range(10):
                path = self.dir / "pictures" / kind / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(30, 40))
        self.dtrain("new", "pictures")
        self.dtrain("fit", "pictures.yaml", "--epochs", "1")

    def test_what_it_writes_without_a_header_is_what_fit_takes(self):
        random.seed(3)
        lines = [f"{('red', 'blue')[i % 2]},{random.random():.3f},7,,{'' if i % 9 == 4 else i},{i % 3 + 1}" for i in range(120)]
        self.write("data.csv", "\n".join(lines) + "\n")
        text = self.new("data.csv")
        for expected in ("header: false", "target: -1 ", "drop: [2, 3]", "categories: [0, 5]", "features: [4]", "fill: median",
                         "dense: {units: 3}", "# column 2 is left out: all rows have the same value."):
            self.assertIn(expected, text)
        self.fits()
        self.dtrain("predict", "runs/data", "-i", "data.csv", "-o", "out.csv")
        self.assertEqual((self.dir / "out.csv").read_text().split("\n")[0], "row,class,1,2,3")
        self.assertIn("target: 0 ", self.new("data.csv", "--target", "0"))  # its texts are classes
        self.fits()
        self.write("data.csv", "".join(f"n{i},{line}\n" for i, line in enumerate(lines)))
        self.assertIn("id: 0 ", self.new("data.csv"))
        self.fits()

    def test_the_index_that_pandas_writes_is_no_feature(self):
        rows = [f"{i},c{i},{i * 7 % 11},{i % 5}.5,{'ab'[i % 2]}" for i in range(60)]
        for index, called in (("", "the column without a name"), ("Unnamed: 0", "'Unnamed: 0'")):
            self.write("data.csv", "\n".join([f"{index},customer_id,x,z,kind"] + rows) + "\n")
            text = self.new("data.csv")
            for expected in (f'drop: ["{index}"]', "id: customer_id ", "features: [2]", f"# {called} is left out: it numbers the rows"):
                self.assertIn(expected, text)
            self.fits()
        # What has no name and is no index stays; a second column that names the rows is no feature either.
        rows = [f"{i * 7 % 11},r{i},c{i},{'ab'[i % 2]}" for i in range(60)]
        self.write("data.csv", "\n".join([",id,customer_id,kind"] + rows) + "\n")
        text = self.new("data.csv")
        for expected in ("id: id ", "drop: [customer_id]", "features: [1]"):
            self.assertIn(expected, text)
        self.fits()

    def test_regression_and_another_target(self):
        self.table()
        text = self.new("data.csv", "--target", "length")
        for expected in ("target: length ", "dense: {units: 1, bias_initializer: {constant: {value: 0.", "mean_squared_error", "features: [6]"):
            self.assertIn(expected, text)
        self.assertNotIn("stratify", text)
        self.assertIn("the columns are id, length", self.dtrain("new", "data.csv", "--target", "x", "-o", "y.yaml", expect=2).err)

    def test_without_a_header_and_with_rare_classes(self):
        self.write("data.csv", "".join(f"{i};{i * 0.5};{1 if i % 10 == 0 else 0}\n" for i in range(100)))
        text = self.new("data.csv")
        for expected in ('delimiter: ";"', "header: false", "target: -1 ", "features: [2]", "dense: {units: 2}",
                         "class_weight: balanced"):
            self.assertIn(expected, text)

    def test_names_that_yaml_would_take_for_something_else(self):
        self.write("data.csv", "yes,a: b,'# c,no\n" + "".join(f"{i},{i},{i % 5}.5,{'ab'[i % 2]}\n" for i in range(20)))
        text = self.new("data.csv")
        self.assertIn('target: "no"', text)
        (self.dir / "data.yaml").unlink()
        self.write("data.csv", "./a,{b],${HOME},$$x,3rd,Null\n" + "".join(
            f"{'pq'[i % 2]},same,{'rst'[i % 3]},same,{i},{'ab'[i % 2]}\n" for i in range(60)))
        text = self.new("data.csv")
        for expected in ('target: "Null" ', 'categories: [./a, "$${HOME}"]', 'drop: ["{b]", $$$x]', "features: [6]"):
            self.assertIn(expected, text)
        self.fits()
        self.new("data.csv", "--target", "${HOME}")
        self.fits()
        self.dtrain("check", "runs/data/config.yaml")  # what a run says it was is the same once more

    def test_bytes_that_no_comment_can_hold(self):
        rows = "".join(f"{i}.5,{('one', chr(27) + 'two', 'caf' + chr(0xe9))[i % 3]}\n" for i in range(60))
        (self.dir / "data.csv").write_bytes(('x,"a\nb"\n' + rows).encode("latin-1"))
        self.assertIn("# 60 rows and 2 columns. Predicts 'a b': one of  two (20), caf\\udce9 (20), one (20).", self.new("data.csv"))
        self.fits()

    def test_mistakes(self):
        self.table()
        self.new("data.csv")
        self.write("empty.csv", "")
        self.write("header.csv", "a,b\n")
        self.write("ragged.csv", "a,b\n1,2\n1,2,3\n")
        self.write("binary.csv", "a\0b\n")
        (self.dir / "folder/only").mkdir(parents=True)
        for split in ("train", "test"):
            self.picture(f"flat/{split}/1.png")
        for arguments, message in ((["data.csv"], "data.yaml: is there already"), (["missing"], "there is nothing"),
                                   (["empty.csv"], "found an empty file"), (["header.csv"], "found a header only"),
                                   (["ragged.csv"], "ragged.csv:3: expected 2 columns"), (["binary.csv"], "binary"),
                                   (["folder"], "folder/only: expected pictures, found an empty folder"),
                                   (["folder", "--target", "x"], "--target: names a column of a CSV file; folder is a folder"),
                                   (["flat"], "flat: expected a folder of pictures for each class, found folders of splits")):
            with self.subTest(arguments):
                self.assertIn(message, self.dtrain("new", *arguments, expect=2).err)
        self.assertFalse((self.dir / "ragged.yaml").exists())

    def test_a_folder_of_pictures(self):
        for name, count in (("cat", 3), ("dog", 12)):
            for i in range(count):
                path = self.dir / "data" / name / f"{i}.PNG"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(40, 60))
        text = self.new("data")
        for expected in ("image: [64, 64, 3]", "directory: data,", "size: [64, 64]", "channels: 3", "dense: {units: 2}",
                         "cat (3), dog (12)", "class_weight: balanced", "random_flip"):
            self.assertIn(expected, text)
        (self.dir / "data.yaml").write_text(text.replace("  class_weight: balanced", "#"))
        self.assertEqual(self.check_model(2), [2])

    def picture(self, name):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(30, 40))

    def test_a_table_that_names_pictures(self):
        for i in range(24):
            path = self.dir / "shots" / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(30, 40, (i * 10, 0, 250 - i * 10)))
        rows = [f"{i:02},{'cat' if i < 10 else 'dog'},{i / 3:.2f}\n" for i in range(24)]
        self.write("data.csv", "id,animal,age\n" + "".join(rows))
        text = self.new("data.csv", "--target", "animal")
        for expected in ("csv: {file: data.csv, path: id, target: animal, extension: .png}", "directory: shots,",
                         "image: [32, 32, 3]", "24 pictures: cat (10), dog (14).", "dense: {units: 2}", "stratify"):
            self.assertIn(expected, text)
        self.dtrain("fit", "data.yaml", "--epochs", "1")
        (self.dir / "data.yaml").unlink()
        text = self.new("data.csv")  # the last column
        for expected in ("target: age", "mean_squared_error", "'age' is a number from 0 to 7.67"):
            self.assertIn(expected, text)
        self.assertNotIn("stratify", text)
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")
        # Whole paths, classes that are numbers and names of files with blanks; no header.
        (self.dir / "data.yaml").unlink()
        (self.dir / "shots/00.png").rename(self.dir / "shots/a b.png")
        self.write("data.csv", "shots/a b.png;3\n" + "".join(f"shots/{i:02}.png;{3 + i % 2}\n" for i in range(1, 24)))
        text = self.new("data.csv")
        for expected in ('path: 0, target: 1, delimiter: ";"', 'class_names: ["3", "4"]', "dense: {units: 2}"):
            self.assertIn(expected, text)
        self.assertNotIn("directory", text)
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")

    def test_folders_of_splits_and_grey_pictures(self):
        for split in ("train", "val"):
            for name in ("a", "b"):
                path = self.dir / "data" / split / name / "1.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(20, 28, 77))
        text = self.new("data")
        for expected in ("image: [28, 28, 1]", "directory: data/train,", "validation: {images: {directory: data/val,",
                         "test: {split:"):
            self.assertIn(expected, text)

    def test_a_class_that_is_called_like_a_split(self):
        for name in ("train", "bus", "car"):
            for i in range(4):
                self.picture(f"data/{name}/{i}.png")
        text = self.new("data")
        for expected in ("directory: data,", "dense: {units: 3}", "bus (4), car (4), train (4)"):
            self.assertIn(expected, text)
        # And a folder of classes beside a flat one, whose pictures nobody has sorted.
        for name in ("bus", "car"):
            self.picture(f"other/train/{name}/1.png")
        self.picture("other/test/1.png")
        self.dtrain("new", "other")
        text = (self.dir / "other.yaml").read_text()
        self.assertIn("directory: other/train,", text)
        self.assertIn("test: {split:", text)


if __name__ == "__main__":
    support.main()
