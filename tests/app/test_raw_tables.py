"""Raw exported tables: dates, amounts, missing values and targets, from the file to predictions."""
import random

import support
from support import Case

CONFIG = """\
seed: 5
model: {inputs: {x: [7]}, layers: [{dense: {units: 8, activation: relu}}, {dense: {units: 1}}]}
dataset:
  train:
    csv: {file: rooms.csv, header: true, target: price, amounts: price, dates: {booked: [month, weekday, days, hour]},
          na_values: unknown, indicators: true, fill: median, missing_target: skip, dayfirst: true}
  validation: {split: {of: train, fraction: 0.2}}
  transforms: [standardize, {standardize: {of: [target]}}]
strategy: {single: {device: cpu:0}}
train: {epochs: 8, batch_size: 16, loss: mean_squared_error, optimizer: {adam: {learning_rate: 0.02}}}
"""


def rooms(count):
    """Yields the rows of a table of rooms, whose price rises with the month and the size."""
    draw = random.Random(1)
    for number in range(count):
        month, size = draw.randrange(1, 13), draw.randrange(10, 60)
        price = "" if number % 10 == 3 else f'"${1000 * month + 100 * size:,}.00"'
        yield f"{draw.randrange(1, 13):02}/{month:02}/2026 {draw.randrange(24):02}:30,{'unknown' if number % 7 == 0 else size},{price},1\n"


class RawTables(Case):
    def setUp(self):
        super().setUp()
        self.rows = list(rooms(200))
        self.write("rooms.csv", "booked,size,price,n\n" + "".join(self.rows))

    def test_lines_that_end_with_carriage_returns_are_an_error(self):
        self.write("mac.csv", "a,b,c\r1,2,0\r3,4,1\r" * 50)
        error = self.dtrain("new", "mac.csv", "--output", "mac.yaml", expect=2).err
        self.assertIn(r"found lines that end with a carriage return; convert the file: sed 's/\r/\n/g' mac.csv > lines.csv", error)

    def test_a_number_has_one_sign(self):
        self.write("rooms.csv", "booked,size,price,n\n" + "".join(self.rows).replace(",1\n", ",+-1\n", 1))
        self.assertIn("'+-1'", self.fit(config=CONFIG, expect=2).err)

    def test_a_raw_table_gives_predictions(self):
        note = "rooms.csv: 20 of 200 rows have no target and are left out by `missing_target: skip`"
        fit = self.fit(config=CONFIG)
        self.assertEqual(fit.err.count(note), 1, fit.err)
        self.assertIn(note, self.dtrain("check", "config.yaml").err)
        self.assertEqual(self.json("evaluate", "run", "--split", "validation")["samples"], 36)
        # The file for predictions has other columns. Its dates are read as day first, although all of them are
        # ambiguous.
        self.write("new.csv", "n,booked,size\n1,03/01/2026 10:00,20\n1,03/11/2026 10:00,20\n1,,unknown\n")
        self.dtrain("predict", "run", "-i", "new.csv", "-o", "out.csv")
        lines = (self.dir / "out.csv").read_text().splitlines()
        self.assertEqual(len(lines), 4)
        january, november = (float(line.split(",")[-1]) for line in lines[1:3])
        self.assertLess(january + 3000, november)

    def test_errors_name_the_option_that_helps(self):
        self.write("config.yaml", CONFIG)
        for change, advice in (("dates={n: [days]}", "dates: {booked: [year, month, weekday, days]}"),
                               ("amounts=[]", "amounts: [price]"),
                               ("na_values=[]", 'na_values: ["unknown"]'),
                               ("missing_target=error", "missing_target: skip")):
            err = self.dtrain("check", "config.yaml", "--set", f"dataset.train.csv.{change}", expect=2).err
            self.assertIn(advice, err)
            self.assertRegex(err, r"rooms.csv:\d+:\d+: expected")


if __name__ == "__main__":
    support.main()
