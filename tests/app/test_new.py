"""`dtrain new` for tables: the generated configuration, and rejected input."""
import json
import random

import support
from new_case import NewCase, png


class New(NewCase):
    def table(self, rows=60, name="data.csv", **texts):
        random.seed(1)
        lines = ['id,length,width,"colour, outside",note,when,same,species']
        for row in range(rows):
            species = ("setosa", "virginica", "versi\"color")[row % 3]
            quoted = '"' + species.replace('"', '""') + '"'
            lines.append(f"{row + 1},{random.random():.3f},{'' if row % 7 == 0 else row},{random.choice(['red', 'blue'])},"
                         f"text {row},2026-01-{row % 28 + 1:02},1,{quoted}")
        return self.write(name, "\ufeff" + "\r\n".join(lines) + "\r\n")

    def test_a_table_may_have_names_gaps_texts_dates_and_ids(self):
        self.table()
        text = self.new("data.csv")
        self.assertTrue(text.startswith("# yaml-language-server: $schema=dtrain.schema.json\n"))
        json.loads((self.dir / "dtrain.schema.json").read_text())
        for expected in ("file: data.csv", "header: true", "target: species ", "id: id ", "drop: [note, same]", "dates: {when: [weekday, days]}", "indicators: [width]",
                         'categories: ["colour, outside"]', "fill: median", "features: auto", "dense: {units: auto}",
                         "validation: {split: {of: train, fraction: 0.15, stratify: true, seed: 1}}", "- standardize ",
                         "sparse_categorical_crossentropy", "cosine_decay: {initial: 0.002, steps: auto}", 'versi"color (20)'):
            self.assertIn(expected, text)
        self.assertNotIn("class_weight", text)
        self.assertEqual(self.widths(), (7, 3))

    def test_classes_may_be_numbers(self):
        for labels, expected, units in (("123", "categories: [label]", 3), ("012", "target: label", 3), ("13", "categories: [label]", 2)):
            self.write("data.csv", "a,label\n" + "".join(f"{i}.5,{labels[i % len(labels)]}\n" for i in range(30)))
            text = self.new("data.csv")
            self.assertIn(expected, text)
            self.assertEqual("categories" in text, "categories" in expected)
            self.assertEqual(self.widths(), (1, units))
            (self.dir / "data.yaml").unlink()

    def test_fit_accepts_the_written_configuration(self):
        random.seed(2)
        lines = ["name,colour,size,weight,kind"]
        for i in range(120):  # missing values of every spelling, among texts and among numbers
            lines.append(f"n{i},{('red', 'blue', '', '-', 'NA', 'nil')[i % 6]},{random.random():.3f},"
                         f"{'nil' if i % 9 == 0 else i},{'abc'[i % 3]}")
        self.write("data.csv", "\n".join(lines) + "\n")
        self.new("data.csv")
        self.assertEqual(self.widths(), (7, 3))  # red, blue, "-", nil; size; weight and its missing indicator
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

    def test_fit_accepts_the_written_configuration_without_a_header(self):
        random.seed(3)
        lines = [f"{('red', 'blue')[i % 2]},{random.random():.3f},7,,{'' if i % 9 == 4 else i},{i % 3 + 1}" for i in range(120)]
        self.write("data.csv", "\n".join(lines) + "\n")
        text = self.new("data.csv")
        for expected in ("header: false", "target: -1 ", "drop: [2, 3]", "categories: [0, 5]", "fill: median",
                         "# 2       constant          0         1  left out: all rows have the same value"):
            self.assertIn(expected, text)
        self.fits()
        self.dtrain("predict", "runs/data", "-i", "data.csv", "-o", "out.csv")
        self.assertEqual((self.dir / "out.csv").read_text().split("\n")[0], "row,class,1,2,3")
        self.assertIn("target: 0 ", self.new("data.csv", "--target", "0"))  # the texts of the target become classes
        self.fits()
        self.write("data.csv", "".join(f"n{i},{line}\n" for i, line in enumerate(lines)))
        self.assertIn("id: 0 ", self.new("data.csv"))
        self.fits()

    def test_the_index_column_of_pandas_is_not_a_feature(self):
        rows = [f"{i},c{i},{i * 7 % 11},{i % 5}.5,{'ab'[i % 2]}" for i in range(60)]
        for index in ("", "Unnamed: 0"):
            self.write("data.csv", "\n".join([f"{index},customer_id,x,z,kind"] + rows) + "\n")
            text = self.new("data.csv")
            for expected in (f'drop: ["{index}"]', "id: customer_id ", "left out: it contains the numbers of the rows"):
                self.assertIn(expected, text)
            self.assertEqual(self.widths(), (2, 2))
            self.fits()
        # A column without a name is kept if it does not number the rows. If a table has two columns of row names, the
        # second one is not a feature either.
        rows = [f"{i * 7 % 11},r{i},c{i},{'ab'[i % 2]}" for i in range(60)]
        self.write("data.csv", "\n".join([",id,customer_id,kind"] + rows) + "\n")
        text = self.new("data.csv")
        for expected in ("id: id ", "drop: [customer_id]"):
            self.assertIn(expected, text)
        self.assertEqual(self.widths(), (1, 2))
        self.fits()

    def test_another_target_gives_a_regression(self):
        self.table()
        text = self.new("data.csv", "--target", "length")
        for expected in ("target: length ", "mean_squared_error"):
            self.assertIn(expected, text)
        self.assertEqual(self.widths(), (9, 1))
        self.assertNotIn("stratify", text)
        self.assertIn("no column 'lenght'; did you mean 'length'? The columns are id, length",
                      self.dtrain("new", "data.csv", "--target", "lenght", "-o", "y.yaml", expect=2).err)
        self.assertIn("the columns are id, length", self.dtrain("new", "data.csv", "--target", "x", "-o", "y.yaml", expect=2).err)

    def test_tables_may_have_no_header_and_rare_classes(self):
        self.write("data.csv", "".join(f"{i * 3};{i * 0.5};{1 if i % 20 == 0 else 0}\n" for i in range(100)))
        text = self.new("data.csv")
        for expected in ('delimiter: ";"', "header: false", "target: -1 ",
                         "class_weight: balanced"):
            self.assertIn(expected, text)

    def test_names_that_yaml_would_misread_are_quoted(self):
        self.write("data.csv", "yes,a: b,'# c,no\n" + "".join(f"{i},{i},{i % 5}.5,{'ab'[i % 2]}\n" for i in range(20)))
        text = self.new("data.csv")
        self.assertIn('target: "no"', text)
        (self.dir / "data.yaml").unlink()
        self.write("data.csv", "./a,{b],${HOME},$$x,3rd,Null\n" + "".join(
            f"{'pq'[i % 5 > 1]},same,{'rst'[i % 3]},same,{i * 7 % 60},{'ab'[i % 2]}\n" for i in range(60)))
        text = self.new("data.csv")
        for expected in ('target: "Null" ', 'categories: [./a, "$${HOME}"]', 'drop: ["{b]", $$$x]'):
            self.assertIn(expected, text)
        self.assertEqual(self.widths(), (6, 2))
        self.fits()
        self.new("data.csv", "--target", "${HOME}")
        self.fits()
        self.dtrain("check", "runs/data/config.yaml")  # a run's config.yaml is valid input again

    def test_control_bytes_are_escaped_in_comments(self):
        rows = "".join(f"{i}.5,{('one', chr(27) + 'two', 'caf' + chr(0xe9))[i % 3]}\n" for i in range(60))
        (self.dir / "data.csv").write_bytes(('x,"a\nb"\n' + rows).encode("latin-1"))
        self.assertIn("# 60 rows and 2 columns. Predicts 'a b': one of  two (20), caf\\udce9 (20), one (20).", self.new("data.csv"))
        self.fits()

    def test_a_regression_is_equally_good_in_any_unit(self):
        random.seed(4)
        points = [(random.random(), random.random()) for _ in range(400)]
        for scale, shift in ((1, 0), (1e9, 0), (1e-5, 0), (3, 1e6)):
            with self.subTest(scale=scale, shift=shift):
                lines = [f"{a},{b},{shift + scale * (a - 2 * b):.9g}" for a, b in points]
                self.write("data.csv", "\n".join(["a,b,price"] + lines) + "\n")
                text = self.new("data.csv")
                for expected in ("- standardize: {of: [features, target]}", "metrics: [mean_absolute_error, r2_score]",
                                 "in standard deviations of 'price' (one is about "):
                    self.assertIn(expected, text)
                self.dtrain("fit", "data.yaml", "--overwrite")
                (self.dir / "data.yaml").unlink()
                epochs = [line for line in self.metrics("runs/data") if "val_r2_score" in line]
                self.assertGreater(epochs[-1]["val_r2_score"], 0.9)
                # Predictions are in the target's original unit.
                self.dtrain("predict", "runs/data", "-i", "data.csv", "-o", "out.csv")
                wanted = [shift + scale * (a - 2 * b) for a, b in points]
                found = [float(line.split(",")[-1]) for line in (self.dir / "out.csv").read_text().split("\n")[1:-1]]
                worst = max(abs(one - other) for one, other in zip(wanted, found))
                self.assertLess(worst, scale)

    def test_a_duplicate_name_in_the_header_is_an_error(self):
        rows = "".join(f"{i},{i * 7 % 11},{'ab'[i % 2]}\n" for i in range(60))
        for header, message in (("age,age,label", "data.csv:1:5: the column 'age' appears twice in the first line"),
                                (",,label", "data.csv:1:2: a second column has no name in the first line")):
            self.write("data.csv", header + "\n" + rows)
            err = self.dtrain("new", "data.csv", expect=2).err
            self.assertIn(message, err)
            self.assertIn("give each column its own name", err)
        words = "".join(f"v{i % 9},w{i % 8},{'ab'[i % 2]}\n" for i in range(60))
        self.write("data.csv", "word,word,label\n" + words)  # the table has no columns besides the names
        self.assertIn("'word' appears twice", self.dtrain("new", "data.csv", expect=2).err)
        # The rows are categories and have no header, as in UCI's mushroom data.
        self.write("data.csv", "".join(f"{'xy'[i % 3 > 0]},{'xy'[i % 2]},{'ab'[i % 2]}\n" for i in range(60)))
        text = self.new("data.csv")
        for expected in ("header: false", "60 rows and 3 columns"):
            self.assertIn(expected, text)
        self.fits()

    def odd(self, different, **texts):
        """Runs `dtrain new` on a table of numbers in which some rows of column a hold text."""
        lines = [f"{texts.get(f'row{i}', i % different)},{i * 7 % 11},{'pq'[i % 2]}" for i in range(982)]
        self.write("data.csv", "\n".join(["a,b,kind"] + lines) + "\n")
        (self.dir / "data.yaml").unlink(missing_ok=True)
        return self.dtrain("new", "data.csv")

    def test_a_column_with_decimal_commas_and_points_is_left_out(self):
        rows = "".join(f"{'7.5' if i % 20 == 0 else f'{i % 9},{i % 7}'};{i % 11};{'pq'[i % 2]}\n" for i in range(60))
        self.write("data.csv", "a;b;kind\n" + rows)
        self.assertIn("'a' is left out: its numbers have decimal commas ('1,1' in line 3), but the table also has numbers "
                      "with decimal points", self.dtrain("new", "data.csv").err)

    def test_a_column_of_numbers_with_a_few_texts_is_left_out(self):
        found = "it has 981 numbers and 1 text ('old' in line 602)"
        err = self.odd(982, row600="old").err
        self.assertIn(f"warning: 'a' is left out: {found}", err)
        text = (self.dir / "data.yaml").read_text()
        self.assertIn(f"# 'a' is left out: {found}", text)
        self.assertIn("drop: [a]", text)
        # If a column has only few different values, it is a column of categories, even if most of its values are
        # numbers.
        err = self.odd(9, row600="old").err
        self.assertIn(f"warning: 'a' becomes 10 features with the values 0 and 1, although most of its values are numbers: {found}", err)
        self.assertIn("categories: [a]", (self.dir / "data.yaml").read_text())
        # A spreadsheet may have a row with totals below the numbers, whose label is in the first column. This label
        # does not make the column a column of row names.
        self.assertIn("1 text ('Total' in line 983)", self.odd(982, row981="Total").err)
        self.assertIn("2 texts (the first is 'n.d.' in line 4)", self.odd(982, row981="Total", row2="n.d.").err)
        self.assertEqual(self.odd(982, row600="", row3="NA").err, "")  # missing values are not texts
        # The row with the totals may have a label, but no target value.
        rows = "".join(f"{i},c{i},{i * 7 % 11},{i}.5\n" for i in range(60))
        self.write("data.csv", "id,customer_id,b,price\n" + rows + "Total,,330,\n")
        (self.dir / "data.yaml").unlink()
        err = self.dtrain("new", "data.csv").err
        self.assertIn("'id', which identifies the rows: it has 60 numbers and 1 text ('Total' in line 62)", err)
        self.assertIn("missing_target: skip", (self.dir / "data.yaml").read_text())
        # If a few values of a numeric column are texts, the column cannot be the target either.
        self.odd(982, row600="old")
        err = self.dtrain("new", "data.csv", "--target", "a", "-o", "a.yaml", expect=2).err
        self.assertIn(f"'a' cannot be predicted: {found}", err)

    def test_the_use_of_each_column_is_printed(self):
        lines = [f"{i},customer {i % 48},note {i},7,{i * 7 % 11},{'pq'[i % 7 > 2]}" for i in range(300)]
        self.write("data.csv", "\n".join(["id,customer,note,same,b,kind"] + lines) + "\n")
        output = self.dtrain("new", "data.csv")
        self.assertEqual(output.err, "")
        for expected in ("300 rows and 6 columns. Predicts 'kind': one of p (129), q (171)\n", "wrote data.yaml"):
            self.assertIn(expected, output.out)
        table = """
column    kind        missing  distinct  use
--------  ----------  -------  --------  --------------------------------------
id        id                0       all  id: written with predictions
customer  categories        0        48  48 features of 0 and 1
note      id                0       all  left out: it identifies the rows
same      constant          0         1  left out: all rows have the same value
b         number            0        11  feature
kind      categories        0         2  target: 2 classes
"""
        self.assertIn(table, output.out)
        self.assertIn("# " + table.strip().replace("\n", "\n# "), (self.dir / "data.yaml").read_text())
        self.assertEqual(self.dtrain("new", "data.csv", "-o", "b.yaml", "--quiet").out, "")
        output = self.json("new", "data.csv", "-o", "c.yaml")
        self.assertEqual(output["config"], "c.yaml")
        self.assertEqual(output["columns"][1], {"column": "customer", "kind": "categories", "missing": 0,
                                              "use": "48 features of 0 and 1", "distinct": 48})

    def test_lists_are_not_numbers(self):
        self.write("data.csv", "a;b;kind\n" + "".join(f"{['1,2,3', '2,4,5'][i % 2]};{i % 7};{'pq'[i % 3 > 0]}\n" for i in range(60)))
        self.assertIn("categories: [a]", self.new("data.csv"))
        self.assertEqual(self.widths(), (3, 2))

    def test_a_target_with_too_many_texts_is_an_error(self):
        self.write("data.csv", "a,b,name\n" + "".join(f"{i}.5,{i * 7 % 11},n{i}\n" for i in range(100)))
        err = self.dtrain("new", "data.csv", "--target", "name", expect=2).err
        self.assertIn("'name' cannot be predicted: it has 100 different texts in 100 rows, too many to be classes; use --target", err)
        self.assertFalse((self.dir / "data.yaml").exists())
        # If all values of a numeric column are different, the column cannot be a target with classes either.
        self.write("data.csv", "a,y\n" + "".join(f"{i * 7 % 19}.5,{i * 3}\n" for i in range(20)))
        self.assertIn("mean_squared_error", self.new("data.csv"))
        self.fits()
        for values, message in (("x", "all rows have the same value, 'x', so there is nothing to learn"),
                                ("5.5", "all rows have the same value, '5.5'"), ("1,", "all rows that have a value have the same value")):
            values = values.split(",")
            self.write("data.csv", "a,b,y\n" + "".join(f"{i}.5,{i * 3},{values[i % len(values)]}\n" for i in range(40)))
            self.assertIn(message, self.dtrain("new", "data.csv", "--target", "y", expect=2).err)

    def test_classes_with_fewer_rows_than_splits_disable_stratification(self):
        for rare, stratified in ((3, True), (2, False)):
            rows = "".join(f"{i}.5,{i * 7 % 11},{'rare' if i < rare else 'pq'[i % 2]}\n" for i in range(60))
            self.write("data.csv", "a,b,kind\n" + rows)
            output = self.dtrain("new", "data.csv")
            text = (self.dir / "data.yaml").read_text()
            self.assertEqual("stratify: true" in text, stratified)
            self.assertEqual("warning: the class 'rare' has only 2 rows, too few" in output.err, not stratified)
            self.fits()

    def test_a_new_category_in_prediction_is_accepted(self):
        rows = [f"{('red', 'blue')[i % 2]},{i},{'pq'[i % 3 > 0]}" for i in range(60)]
        self.write("data.csv", "\n".join(["colour,size,kind"] + rows) + "\n")
        self.assertIn("unknown: other ", self.new("data.csv"))
        self.dtrain("fit", "data.yaml", "--epochs", "1")
        self.write("more.csv", "colour,size\nred,1\ngreen,2\n")
        self.dtrain("predict", "runs/data", "-i", "more.csv", "-o", "out.csv")
        self.assertEqual(len((self.dir / "out.csv").read_text().split()), 3)

    def test_a_file_that_is_not_utf8_is_read(self):
        cities = ("K\u00f6ln", "Bonn")
        rows = "".join(f"{i}.5,{cities[i % 2]},{'pq'[i % 3 > 0]}\n" for i in range(60))
        (self.dir / "data.csv").write_bytes(("a,city,kind\n" + rows).encode("latin-1"))
        err = self.dtrain("new", "data.csv").err
        self.assertEqual(err, "warning: data.csv:2: this line is not UTF-8; if the file is Latin-1, convert it: "
                              "iconv -f latin1 -t utf8 data.csv > utf8.csv\n")
        self.fits()
        self.write("data.csv", "a,city,kind\n" + rows)
        self.assertEqual(self.dtrain("new", "data.csv").err, "")

    def test_files_that_are_not_tables_are_errors(self):
        for name, content, message in (
                ("iris.yaml", b"seed: 1\n", "iris.yaml: expected a CSV file, a text file (.txt), or a folder of images or texts, found a configuration"),
                ("book.csv", b"PK\x03\x04\x14\0\x06\0\n\0", "an Excel workbook (or another ZIP archive); save it as CSV"),
                ("old.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\n", "an Excel workbook; save it as CSV"),
                ("data.zip", b"PK\x03\x04\x14\0", "a ZIP archive; unpack it"),
                ("x.npy", b"\x93NUMPY\x01\0v\0", "found a NumPy array; use the reader 'npy' in a configuration"),
                ("x.h5", b"\x89HDF\r\n\x1a\n", "found an HDF5 file; use the reader 'hdf5' in a configuration"),
                ("cat.png", b"\x89PNG\r\n\x1a\n", "found an image; give a folder that contains a subfolder of images"),
                ("cat.jpg", b"\xff\xd8\xff\xe0\0", "found an image; give a folder that contains a subfolder of images"),
                ("wide.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16; convert it: iconv -f utf-16 -t utf-8 wide.csv > utf8.csv")):
            with self.subTest(name):
                (self.dir / name).write_bytes(content)
                self.assertIn(message, self.dtrain("new", name, expect=2).err)

    def test_wrong_arguments_are_errors(self):
        self.table()
        self.new("data.csv")
        self.write("empty.csv", "")
        self.write("header.csv", "a,b\n")
        self.write("ragged.csv", "a,b\n1,2\n1,2,3\n")
        self.write("binary.csv", "a\0b\n")
        (self.dir / "folder/only").mkdir(parents=True)
        for split in ("train", "test"):
            self.picture(f"flat/{split}/1.png")
        self.write("plain/1.txt", "a text")
        for name in ("a", "b"):
            self.write(f"few/{name}/1.txt", "a text")
            for number in range(2):
                self.write(f"empty/{name}/{number}.txt", "")
                self.write(f"latin/{name}/{number}.txt", "a text")
        (self.dir / "latin/b/1.txt").write_bytes(b"caf\xe9")
        for arguments, message in ((["plain"], "plain: this folder contains no subfolders; expected a subfolder of images or texts for each class"),
                                   (["few"], "few: expected at least 3 samples (they are divided into training, validation and test samples), found 2 texts"),
                                   (["empty"], "empty: expected texts with words, found only empty texts"),
                                   (["latin"], "latin/b/1.txt: expected text in UTF-8, found the byte 0xe9"),
                                   (["data.csv"], "data.yaml: this file exists"), (["missing"], "but there is no such file or folder"),
                                   (["empty.csv"], "found an empty file"), (["header.csv"], "found only a header"),
                                   (["ragged.csv"], "ragged.csv:3: expected 2 columns"), (["binary.csv"], "binary"),
                                   (["folder"], "folder/only: expected images, but this folder contains no files"),
                                   (["folder", "--target", "x"], "--target: this option selects a column of a CSV file, but folder is a folder"),
                                   (["flat"], "flat: expected a folder of images for each class, but the split folders (such as train) contain no class folders")):
            with self.subTest(arguments):
                self.assertIn(message, self.dtrain("new", *arguments, expect=2).err)
        self.assertFalse((self.dir / "ragged.yaml").exists())


if __name__ == "__main__":
    support.main()
