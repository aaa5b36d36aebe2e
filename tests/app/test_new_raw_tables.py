"""`dtrain new` for raw tables: dates, amounts, missing values, and formats other than plain CSV."""
import support
from new_case import NewCase


class NewRawTables(NewCase):
    def made(self, text, *arguments):
        """Returns the generated configuration, which fit must accept, and the uses of the columns by name."""
        self.write("data.csv", text)
        (self.dir / "data.yaml").unlink(missing_ok=True)
        self.output = self.json("new", "data.csv", *arguments)
        config = (self.dir / "data.yaml").read_text(encoding="utf-8")
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")
        return config, {column["column"]: f"{column['kind']}: {column['use']}" for column in self.output["columns"]}

    def table(self, header, row, rows=60, delimiter=","):
        return "\n".join([header] + [delimiter.join(str(value) for value in row(i)) for i in range(rows)]) + "\n"

    def test_dates_become_features(self):
        months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
        for value, parts in ((lambda i: f"2026-01-{i % 28 + 1:02}", "weekday, days"),
                             (lambda i: f"{i % 28 + 1:02}.{i % 12 + 1:02}.2026", "month, weekday, days"),
                             (lambda i: f"{i % 12 + 1}/{i % 28 + 1}/20{i % 7 + 10}", "year, month, weekday, days"),
                             (lambda i: f"{months[i % 12]} {i % 28 + 1} {2000 + i % 5}", "year, month, weekday, days"),
                             (lambda i: 20000101 + i % 28 + i % 12 * 100 + i % 5 * 10000, "year, month, weekday, days"),
                             (lambda i: f"2026-01-{i % 28 + 1:02} {i % 24:02}:30", "weekday, hour, days"),
                             (lambda i: months[i % 12], "month")):
            config, found = self.made(self.table("booked,size,kind", lambda i: (value(i), i * 7 % 59, "ab"[i % 3 > 0])))
            self.assertEqual(found["booked"], f"date: {parts}")
            self.assertIn(f"dates: {{booked: [{parts}]}}", config)
        # A column of Unix times is recognized only if its name suggests a time.
        for name, expected in (("created_at", "date: year, month, weekday, hour, days"), ("inhabitants", "number: feature")):
            text = self.table(f"{name},size,kind", lambda i: (1600000000 + i * 7654321, i * 7 % 59, "ab"[i % 3 > 0]))
            self.assertEqual(self.made(text)[1][name], expected)
        # A table without a header has numbers for column names.
        config, found = self.made(self.table("2026-02-03,5,a", lambda i: (f"2026-0{i % 9 + 1}-03", i * 7 % 59, "ab"[i % 3 > 0])))
        self.assertIn("dates: {0: [month, weekday, days]}", config)

    def test_rows_in_time_become_windows(self):
        hour = lambda i: f"2026-03-{i // 24 + 1:02} {i % 24:02}:00"
        row = lambda i: (hour(i // 2), "ab"[i % 2], f"{i * 7 % 59}.5", f"{(i // 2) % 24 + i % 2 * 30}.25")
        config, found = self.made(self.table("when,site,heat,load", row, rows=400))
        self.assertIn("windows: {length: 25, horizon: 12, by: site, time: when}", config)
        self.assertEqual((found["when"], found["heat"], found["load"]), ("date: time of the rows", "number: feature", "number: target: a number"))
        self.assertTrue(found["site"].endswith("name of one of 2 time series"))
        self.assertIn("The rows are 2 series ('site') in time, one row every hour.", " ".join(self.output["notes"]))
        # The table has one series and no further columns.
        config, found = self.made(self.table("day,load", lambda i: (f"2026-{i // 28 + 1:02}-{i % 28 + 1:02}", f"{i * 7 % 59}.5"), rows=100))
        self.assertIn("windows: {length: 12, horizon: 6, time: day}", config)
        # These tables get other networks, without windows: the first table has classes as its target, the second has
        # rows at irregular times, and the third has too few rows.
        for text in (self.table("when,heat,kind", lambda i: (hour(i), i * 7 % 59, "ab"[i % 3 > 0]), rows=200),
                     self.table("when,heat,load", lambda i: (hour(i * i % 541), i * 7 % 59, f"{i * 11 % 97}.5"), rows=100),
                     self.table("when,heat,load", lambda i: (hour(i), i * 7 % 59, f"{i * 11 % 97}.5"), rows=60)):
            self.assertNotIn("windows", self.made(text)[0])

    def test_a_few_repeated_times_are_reported(self):
        """When daylight saving time ends, an hour occurs twice in local time. Windows need different times."""
        hour = lambda i: f"2026-03-{i // 24 + 1:02} {i % 24:02}:00"
        config, _ = self.made(self.table("when,heat,load", lambda i: (hour(i - (i > 150)), i * 7 % 59, f"{i * 11 % 97}.5"), rows=300))
        self.assertNotIn("windows", config)
        warning = ("'when': the rows would be a time series, but one row has the same time as an earlier row (lines 152 and 153), "
                   "so the configuration does not forecast")
        for text in (" ".join(self.output["warnings"]), config):
            self.assertIn(warning, text)
            self.assertIn("if a clock was set back (daylight saving time), convert the times to UTC or remove the repeated rows", text)
        # The lines are right even if rows are not in order and the file has comments. At most three pairs are listed.
        # A column that could name two series (by day and by night) does not change the message.
        rows = [f"{hour(i)},{'day' if i % 24 < 12 else 'night'},{i * 11 % 97}.5" for i in range(600)]
        rows[200:200] = reversed(rows[:5])
        text = "\n".join(["# Power", "# in kW", "", "when,part,load", *rows])
        self.made(text)
        self.assertIn("the rows would be a time series, but 5 rows have the same time as an earlier row "
                      "(lines 5 and 209, 6 and 208, 7 and 207, and 2 more)", " ".join(self.output["warnings"]))
        # Several series
        row = lambda i: (hour(i // 2), "ab"[i % 2], f"{(i // 2) % 24 + i % 2 * 30}.25")
        lines = self.table("when,site,load", row, rows=400).splitlines()
        config, _ = self.made("\n".join([*lines, lines[1]]))
        self.assertNotIn("windows", config)
        self.assertIn("the rows would be 2 time series ('site'), but one row has the same time as an earlier row of the same series "
                      "(lines 2 and 402)", config)
        # A table with two rows for each time is no series.
        self.made(self.table("when,heat,load", lambda i: (hour(i // 2), i * 7 % 59, f"{i * 11 % 97}.5"), rows=300))
        self.assertNotIn("time series", " ".join(self.output["warnings"]))

    def test_amounts_become_numbers(self):
        config, found = self.made(self.table("rate,size,price", lambda i: (
            f"{i % 9}.{i % 7}%", i * 7 % 59, f'"${i * 13 % 60},{i * 37 % 900 + 100}"')))
        self.assertEqual(found["rate"], "amount: feature")
        self.assertEqual(found["price"], "amount: target: a number")
        self.assertIn("amounts: [rate, price]", config)
        self.assertIn("Predicts 'price': a number from 1", self.output["notes"][0])

    def test_names_of_missing_values_are_recognized(self):
        config, found = self.made(self.table("age,size,score,kind", lambda i: (
            "unknown" if i % 6 == 0 else i * 7 % 59, i * 11 % 53, "" if i == 9 else i * 13 % 47, "ab"[i % 3 > 0])))
        self.assertEqual(found["age"], "number: feature; missing values become the median, with an indicator")
        self.assertEqual(found["score"], "number: feature; missing values become the median")
        for expected in ("na_values: [unknown]", "indicators: [age]", "fill: median"):
            self.assertIn(expected, config)
        # If the same text occurs repeatedly in a column of numbers, the text is a marker for missing values.
        config, found = self.made(self.table("age,size,kind", lambda i: (
            "n/k" if i % 12 == 0 else i * 7 % 59, i * 11 % 53, "ab"[i % 3 > 0])))
        self.assertIn("na_values: [n/k]", config)
        self.assertTrue(found["age"].startswith("number: feature; missing values become the median"))
        # If several different texts occur in a column of numbers, the texts are ordinary values.
        self.assertNotIn("na_values", self.made(self.table("age,size,kind", lambda i: (
            ("old", "older")[i // 30 % 2] if i % 30 == 0 else i * 7 % 59, i * 11 % 53, "ab"[i % 3 > 0])))[0])

    def test_rows_without_a_target_are_skipped(self):
        config, found = self.made(self.table("age,size,kind", lambda i: (i * 7 % 59, i * 11 % 53, "" if i % 6 == 0 else "ab"[i % 3 > 0])))
        self.assertEqual(found["kind"], "categories: target: 2 classes; rows without a target are left out")
        self.assertIn("missing_target: skip", config)
        self.assertEqual(self.output["warnings"], [])

    def test_decimal_commas_are_recognized(self):
        config, found = self.made(self.table("age;cost;kind", lambda i: (i * 7 % 59, f"{i * 11 % 53},{i % 7}", "ab"[i % 3 > 0]), delimiter=";"))
        self.assertEqual(found["cost"], "number: feature")
        self.assertIn('decimal: ","', config)
        self.assertNotIn("thousands", config)
        config, found = self.made(self.table("kind;price", lambda i: ("ab"[i % 3 > 0], f"{i * 11 % 53}.{i % 7}50,{i % 9}"), delimiter=";"))
        self.assertIn('thousands: "."', config)
        self.assertIn("a number from 50 to 52350.6", self.output["notes"][0])

    def test_values_separated_by_blanks_are_read(self):
        lines = [f"  {i * 7 % 59}   {i * 11 % 53}\t {'ab'[i % 3 > 0]}" for i in range(60)]
        config, found = self.made("\n".join(["age size  kind"] + lines) + "\n")
        self.assertIn("delimiter: whitespace", config)
        self.assertEqual(found["size"], "number: feature")
        self.dtrain("predict", "runs/data", "-i", "data.csv", "-o", "out.csv")

    def test_tables_of_r_are_read(self):
        rows = "".join(f'"{i + 1}" {i * 7 % 59} "{["small car", "bus"][i % 2]}" "{"ab"[i % 3 > 0]}"\n' for i in range(60))
        config, found = self.made('"age" "size" "kind"\n' + rows)
        self.assertEqual(found["size"], "categories: 2 features of 0 and 1")
        self.assertEqual(found["kind"], "categories: target: 2 classes")
        self.assertEqual(self.widths(), (3, 2))
        rows = "".join(f'"row {i + 1}",{i * 7 % 59},{"ab"[i % 3 > 0]}\n' for i in range(60))
        self.made("age,kind\n" + rows)
        self.assertEqual(self.widths(), (1, 2))

    def test_comment_lines_are_skipped(self):
        rows = "".join(f"{i * 7 % 59},{i * 11 % 53},{'ab'[i % 3 > 0]}\n" for i in range(60))
        config, found = self.made("# measured in May, by hand\n#\nage,size,kind\n" + rows + "# the end\n")
        self.assertIn('comment: "#"', config)
        self.assertEqual(found["kind"], "categories: target: 2 classes")
        # A header may start with '#'.
        config, found = self.made("#age,size,kind\n" + rows)
        self.assertNotIn("comment", config)
        self.assertIn("#age", found)
        self.write("data.csv", "# colours\nage,colour,kind\n" + "".join(f"{i * 7 % 59},#ff{i % 10}000,{'ab'[i % 3 > 0]}\n" for i in range(60)))
        err = self.dtrain("new", "data.csv", "-o", "other.yaml", expect=2).err
        self.assertIn("data.csv:3:3: expected a value without '#', because other lines start with it and look like comments; "
                      "remove these lines: grep -v '^#' data.csv > rows.csv", err)


if __name__ == "__main__":
    support.main()
