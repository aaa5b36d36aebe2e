"""`dtrain new` classifies the columns of a table: target, row numbers, ids, free text, leaks of the target."""
import support
from new_case import NewCase


class NewColumns(NewCase):
    def columns(self, header, row, rows=60, arguments=(), stem="data"):
        """Returns the use of each column by name. The attribute `output` keeps the program's full output."""
        lines = [",".join(str(value) for value in row(i)) for i in range(rows)]
        self.write(f"{stem}.csv", "\n".join(([header] if header else []) + lines) + "\n")
        (self.dir / f"{stem}.yaml").unlink(missing_ok=True)
        self.output = self.json("new", f"{stem}.csv", *arguments)
        return {column["column"]: f"{column['kind']}: {column['use']}" for column in self.output["columns"]}

    def assert_warns(self, *texts):
        self.assertEqual(len(self.output["warnings"]), len(texts), self.output["warnings"])
        for text, warning in zip(texts, self.output["warnings"]):
            self.assertIn(text, warning)

    def test_a_row_number_is_recognized_under_any_name(self):
        for start in (0, 1):
            found = self.columns("cars,speed,kind", lambda i: (i + start, i * 7 % 11, "ab"[i % 2]))
            self.assertEqual(found["cars"], "row number: left out: it contains the numbers of the rows")
        # A column is ordinary if its numbers do not start at 0 or 1, have gaps, are in another order, or if a value is
        # missing.
        for value in (lambda i: i + 2, lambda i: 2 * i, lambda i: i * 7 % 60, lambda i: "" if i == 5 else i):
            found = self.columns("cars,speed,kind", lambda i: (value(i), i * 7 % 11, "ab"[i % 2]))
            self.assertIn("number: feature", found["cars"])
        # A column that numbers the rows cannot be the target either. If a table has two such columns, neither of them
        # is a feature.
        found = self.columns("a,b,n,m", lambda i: (i * 7 % 11, i % 4 * 0.5, i, i + 1))
        self.assertEqual(found["b"], "number: target: a number")
        self.assertIn("'m' was not chosen as the target: it contains the numbers of the rows", self.output["notes"][1])

    def test_labels_of_minus_one_and_one_are_classes(self):
        for labels in ((-1, 1), (-1, 0, 1)):
            found = self.columns("a,label", lambda i: (i * 7 % 59 + 0.5, labels[i % len(labels)]))
            self.assertEqual(found["label"], f"number: target: {len(labels)} classes")
            self.fits()
        found = self.columns("a,label", lambda i: (i * 7 % 59 + 0.5, i % 4 - 2))
        self.assertEqual(found["label"], "number: target: a number")

    def test_y_next_to_x_is_not_a_target(self):
        found = self.columns("x,y,z,price,cut", lambda i: (i * 7 % 59 + 0.5, i % 13, i % 17, i * 11 % 53, "ab"[i % 2]))
        self.assertEqual(found["price"], "number: target: a number")
        found = self.columns("cut,size,x,y", lambda i: ("ab"[i % 2], i * 11 % 53, i * 7 % 59 + 0.5, i % 13))
        self.assertEqual(found["size"], "number: target: a number")
        self.assertIn("'y' was not chosen as the target: it is a coordinate", self.output["notes"][1])
        # A text column is not a coordinate.
        found = self.columns("x,y,z", lambda i: (i * 7 % 59 + 0.5, i % 13 + 0.5, "ab"[i % 2]))
        self.assertEqual(found["z"], "categories: target: 2 classes")
        # The last column of a table with only x, y and z may be the target. So may the column y of a table with only
        # two columns, and of a table without a column x.
        found = self.columns("x,y,z", lambda i: (i * 7 % 59 + 0.5, i % 13 + 0.5, i % 17 + 0.5))
        self.assertEqual(found["z"], "number: target: a number")
        for header in ("x,y", "x1,y", "y,x"):
            found = self.columns(header, lambda i: (i * 7 % 59 + 0.5, i % 13 + 0.5))
            self.assertEqual(found["y"], "number: target: a number")

    def test_consecutive_numbers_are_not_a_target(self):
        found = self.columns("x,y,customer", lambda i: (i * 7 % 59 + 0.5, i % 13 + 0.5, 4000 + i * 7 % 60))
        self.assertEqual(found["y"], "number: target: a number")
        self.assertIn("number: feature", found["customer"])
        found = self.columns("size,kind,customer", lambda i: (i * 7 % 59 + 0.5, "ab"[i % 2], 4000 + i))
        self.assertEqual(found["kind"], "categories: target: 2 classes")
        self.assertIn("'customer' was not chosen as the target: it contains each number of a range once", self.output["notes"][1])

    def test_the_previous_column_is_the_target_if_the_last_is_unsuitable(self):
        for name, value, why in (("note", lambda i: f"the note of row {i} here", "it has 60 different texts in 60 rows"),
                                 ("when", lambda i: f"2026-01-{i % 28 + 1:02}", "it contains dates"), ("none", lambda i: "", "it is empty"),
                                 ("code", lambda i: f"c{i}", "it identifies the rows"), ("same", lambda i: 5, "all rows have the same value"),
                                 ("city", lambda i: f"c{i % 25}", "it has 25 different texts in 60 rows, too many")):
            with self.subTest(name):
                found = self.columns(f"a,kind,{name}", lambda i: (i * 7 % 59 + 0.5, "ab"[i % 2], value(i)))
                self.assertEqual(found["kind"], "categories: target: 2 classes")
                self.assertIn(f"'{name}' was not chosen as the target: {why}", self.output["notes"][1])
        self.fits()
        # If the user names a column as the target, this column is used as the target, or it is rejected with an error.
        # Another column is never used instead.
        found = self.columns("a,kind,city", lambda i: (i * 7 % 59 + 0.5, "ab"[i % 2], f"c{i % 25}"), arguments=["--target", "city"])
        self.assertEqual(found["city"], "categories: target: 25 classes")
        self.write("none.csv", "a,b\n" + "2026-01-05,5\n" * 60)
        err = self.dtrain("new", "none.csv", expect=2).err
        self.assertIn("no column that can be predicted; 'b': all rows have the same value, '5', so there is nothing "
                      "to learn; 'a': it contains dates", err)

    def test_a_copy_of_the_target_is_left_out(self):
        for value in (lambda i: ("no", "yes")[i % 3 > 0], lambda i: 10 * (i % 3 > 0), lambda i: ("", "no", "yes")[0 if i % 7 == 0 else 1 + (i % 3 > 0)]):
            found = self.columns("age,alive,survived", lambda i: (i * 7 % 59, value(i), int(i % 3 > 0)))
            self.assertIn("left out: it is the target, 'survived', under another name", found["alive"])
            self.assert_warns("'alive' is left out, because it is the target, 'survived', under another name")
            self.fits()
        # The column euro has the values of the target in another unit.
        found = self.columns("age,euro,price", lambda i: (i * 7 % 59, round(i * 11 % 53 * 0.9 + 2, 2), i * 11 % 53))
        self.assertIn("left out: it is the target", found["euro"])
        # The feature is the target in another unit, but it is kept, because the table has no other feature.
        found = self.columns("celsius,fahrenheit", lambda i: (i * 7 % 59, i * 7 % 59 * 1.8 + 32))
        self.assertEqual(found["celsius"], "number: feature")
        self.assert_warns("'celsius' alone determines the target, 'fahrenheit'")

    def test_a_feature_that_determines_the_target_is_reported(self):
        found = self.columns("age,city,country", lambda i: (i * 7 % 59, f"city {i % 9}", "ABC"[i % 9 // 3]), rows=90)
        self.assertEqual(found["city"], "categories: 9 features of 0 and 1")
        self.assert_warns("'city' alone determines the target, 'country': each value corresponds to a single value of the target")
        found = self.columns("age,country,city", lambda i: (i * 7 % 59, "ABC"[i % 9 // 3], f"city {i % 9}"), rows=90)
        self.assert_warns("the target, 'city', alone determines 'country'")
        self.columns("age,logarithm,price", lambda i: (i * 7 % 13, (i * 11 % 53) ** 0.3, i * 11 % 53))
        self.assert_warns("'logarithm' alone determines the target, 'price'")
        # There is no warning if a feature may determine the target by coincidence: because its values differ in every
        # row, because a class is rare, or because the table has few rows.
        self.columns("age,size,kind", lambda i: (i * 7 % 60 + 0.5, i % 11, "rare" if i < 3 else "ab"[i % 2]))
        self.assert_warns()
        self.columns("age,size,kind", lambda i: (i * 7 % 12 + 0.5, "pq"[i % 2], "ab"[i % 2]), rows=12)
        self.assert_warns("the table has 12 rows")

    def test_texts_unique_to_each_row_are_not_features(self):
        words = ["red", "big", "old", "the", "of", "with", "a"]
        found = self.columns("size,code,review,name,kind", lambda i: (
            i * 7 % 11, f"K-{i * 17 % 40:03}", " ".join(words[(i * k) % 7] for k in range(1, 6)) + f" {i}", f"n{i}", "ab"[i % 2]), rows=40)
        self.assertEqual(found["code"], "id: id: written with predictions")
        self.assertEqual(found["name"], "id: left out: it identifies the rows")
        self.assertEqual(found["review"], "free text: left out: it is free text with 40 different values")
        self.fits()
        # The column is text because more than half of its values are different.
        found = self.columns("size,code,kind", lambda i: (i * 7 % 11, f"K{i % 25}", "ab"[i % 2]), rows=40)
        self.assertEqual(found["code"], "text: left out: it is text with 25 different values")
        found = self.columns("size,code,kind", lambda i: (i * 7 % 11, f"K{i % 19}", "ab"[i % 2]), rows=40)
        self.assertEqual(found["code"], "categories: 19 features of 0 and 1")

    def test_classes_are_weighted_from_a_ratio_of_ten_to_one(self):
        for every, weighted in ((4, False), (9, False), (12, True)):
            self.columns("a,b,kind", lambda i: (i * 7 % 59 + 0.5, i % 11, "ab"[i % every == 0]), rows=120)
            self.assertEqual("class_weight: balanced" in (self.dir / "data.yaml").read_text(), weighted)

    def test_a_header_is_recognized_by_its_difference_from_the_rows(self):
        # Some or all column names are years.
        self.assertIn("1990", self.columns("country,1990,1991,kind", lambda i: (f"c{i % 5}", i % 7, i * 7 % 11, "ab"[i % 2])))
        self.assertIn("1990", self.columns("1990,1991,1992", lambda i: (i % 7 + 0.5, i * 7 % 11, i % 5)))
        # The tables have no header: the first row has texts, numbers or dates that look like the values below.
        self.assertIn("0", self.columns("", lambda i: ("red blue".split()[i % 2], f"{i % 3} kg", "ab"[i % 5 > 2])))
        self.assertIn("0", self.columns("", lambda i: (i * 7 % 11, i % 5, i % 3)))
        self.assertIn("0", self.columns("", lambda i: (f"2026-01-{i % 28 + 1:02}", i % 5, i % 3)))
        self.assertIn("kind", self.columns("colour,weight,kind", lambda i: ("red blue".split()[i % 2], f"{i % 3} kg", "ab"[i % 5 > 2])))

    def test_too_few_rows_are_an_error(self):
        row = "1.5,a,x\n"
        self.write("data.csv", "size,colour,kind\n" + row * 4)
        err = self.dtrain("new", "data.csv", expect=2).err
        self.assertIn("the table has 4 rows, which is not enough for training, validation and test splits; at least 10 rows are needed", err)
        self.assertEqual(err.count("\n"), 1)
        self.columns("size,kind", lambda i: (i * 7 % 11, "ab"[i > 9]), rows=12)
        self.assert_warns("the table has 12 rows, and the test split has only 1 of them, so its results are not reliable")
        self.fits()


if __name__ == "__main__":
    support.main()
