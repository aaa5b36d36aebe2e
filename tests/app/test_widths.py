"""The value `auto`: the data determine the shapes of inputs and the units of layers."""
import json
import struct
import unittest

import support
from support import Case

TABLE = "id,age,colour,income,species\n" + "".join(
    f"{i},{20 + i % 7},{('red', 'green', 'blue')[i % 3]},{i % 5}.5,{('cat', 'dog', 'owl', 'eel')[i % 4]}\n"
    for i in range(40))

CLASSIFIER = """\
model:
  inputs: {features: auto}
  layers:
    - dense: {units: 8, activation: relu}
    - dense: {units: auto}
dataset:
  train: {csv: {file: t.csv, header: true, target: species, id: id, categories: [colour]}}
  validation: {split: {of: train, fraction: 0.2}}
  transforms: [standardize]
strategy: {single: {device: cpu:0}}
train:
  epochs: 2
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: adam
"""


def npy(shape, values, code):
    """Returns the bytes of an .npy file."""
    kind = {"f": "<f4", "i": "<i4", "B": "|u1"}[code]
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


class Widths(Case):
    def layers(self, path):
        return {layer["name"]: layer["output_shape"] for layer in self.json("summary", path)["layers"]}

    def test_auto_takes_features_and_classes_from_a_table(self):
        self.write("t.csv", TABLE)
        self.write("c.yaml", CLASSIFIER)
        self.dtrain("check", "c.yaml")
        self.dtrain("fit", "c.yaml", "--output", "run")
        text = (self.dir / "run" / "config.yaml").read_text()
        self.assertNotIn("auto", text.split("dataset:")[0])
        self.assertRegex(text, r"features:.*\[5\]")  # age, income, and three features for three colors
        self.assertRegex(text, r"units: 4")
        # predict and summary do not need the training data.
        (self.dir / "t.csv").rename(self.dir / "moved.csv")
        self.dtrain("predict", "run", "--input", "moved.csv", "--output", "out.csv")
        self.assertEqual((self.dir / "out.csv").read_text().splitlines()[0].count(","), 5)  # id, class, four probabilities
        self.dtrain("summary", "run")
        (self.dir / "moved.csv").rename(self.dir / "t.csv")
        self.dtrain("resume", "run", "--epochs", 3)
        self.dtrain("evaluate", "run", "--split", "validation")

    def test_auto_takes_the_shape_of_arrays_after_the_transforms(self):
        (self.dir / "x.npy").write_bytes(npy([6, 4, 4], range(96), "B"))
        (self.dir / "y.npy").write_bytes(npy([6], [0, 1, 2, 6, 1, 0], "i"))
        self.write("c.yaml", """\
model:
  inputs: {image: auto}
  layers: [flatten, {dense: {units: auto, activation: softmax}}]
dataset:
  train: {npy: {input: x.npy, target: y.npy}, rows: [0, 3]}
  transforms: [{reshape: [4, 4, 1]}, {rescale: {scale: 1/255}}]
train: {loss: sparse_categorical_crossentropy, optimizer: sgd}
""")
        shapes = self.layers("c.yaml")
        self.assertEqual(shapes["image"], [4, 4, 1])
        self.assertEqual(shapes["dense"], [7])  # counts all rows of the reader, since other splits may be drawn from them

    def test_auto_takes_the_width_of_a_regressions_target(self):
        (self.dir / "x.npy").write_bytes(npy([4], [1, 2, 3, 4], "f"))
        (self.dir / "y.npy").write_bytes(npy([4, 3], range(12), "f"))
        config = """\
model: {inputs: {x: auto}, layers: [{dense: {units: auto}}]}
dataset: {train: {npy: {input: x.npy, TARGET}}}
train: {loss: mean_squared_error, optimizer: sgd}
"""
        self.write("c.yaml", config.replace("TARGET", "target: y.npy"))
        self.assertEqual(self.layers("c.yaml"), {"x": [1], "dense": [3]})
        # With binary_crossentropy and labels of two classes, the output has one column, too.
        self.write("c.yaml", config.replace("TARGET", "target: x.npy").replace(
            "mean_squared_error", "{binary_crossentropy: {from_logits: true}}"))
        self.assertEqual(self.layers("c.yaml"), {"x": [1], "dense": [1]})
        # The output of an autoencoder has the width of the input.
        self.write("c.yaml", config.replace("x.npy, TARGET", "y.npy, target: {input: x}"))
        self.assertEqual(self.layers("c.yaml"), {"x": [3], "dense": [3]})

    def test_unreadable_files_are_reported_at_the_split(self):
        self.write("c.yaml", CLASSIFIER)
        error = self.dtrain("check", "c.yaml", expect=2).err
        self.assertIn("c.yaml:7:10: error: ", error)
        self.assertIn("t.csv: there is no such file", error)
        self.write("t.csv", TABLE.replace("23,red", "young,red", 1))
        error = self.dtrain("check", "c.yaml", expect=2).err
        self.assertRegex(error, r"c.yaml:7:10: error: .*t.csv:\d+:\d+: expected a finite number in the column 'age'")

    def test_mistakes_are_reported_at_auto(self):
        self.write("c.yaml", CLASSIFIER)
        # Other errors are reported first, without reading data. Missing files are reported, too.
        self.write("c.yaml", CLASSIFIER.replace("epochs", "epoch"))
        error = self.dtrain("check", "c.yaml", expect=2).err
        self.assertIn("unknown key 'epoch'", error)
        self.assertIn("t.csv: there is no such file", error)
        self.write("t.csv", TABLE.replace("23,red", "young,red", 1))
        self.assertNotIn("t.csv", self.dtrain("check", "c.yaml", expect=2).err)
        self.write("t.csv", TABLE)
        self.write("c.yaml", CLASSIFIER.replace("units: 8", "units: auto"))
        self.assertIn("c.yaml:4:22: error: dense 'dense': ", self.dtrain("check", "c.yaml", expect=2).err)
        self.write("c.yaml", CLASSIFIER.replace("sparse_categorical", "categorical"))
        self.assertIn("c.yaml:5:22: error: auto: ", self.dtrain("check", "c.yaml", expect=2).err)
        self.write("c.yaml", CLASSIFIER.replace("csv: {", "synthetic: {samples: 8, target: {classes: 2}}}\n  test: {csv: {"))
        self.assertIn("c.yaml:2:22: error: auto: ", self.dtrain("check", "c.yaml", expect=2).err)
        self.write("c.yaml", CLASSIFIER.replace("train: {csv", "test: {csv").replace("of: train", "of: test"))
        self.assertIn("c.yaml:2:22: error: auto: ", self.dtrain("summary", "c.yaml", expect=2).err)


if __name__ == "__main__":
    support.main()
