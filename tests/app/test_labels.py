"""Tables whose samples have several labels, from training to named predictions."""
import csv
import io
import random

import support
from support import Case

CONFIG = """\
seed: 2
model: {inputs: {x: [2]}, layers: [{dense: {units: auto, activation: sigmoid, name: shape}}]}
dataset:
  train: {csv: {file: shapes.csv, header: true, id: name, labels: {column: tags}}}
train: {epochs: 60, batch_size: 10, loss: binary_crossentropy, metrics: [accuracy], optimizer: {adam: {learning_rate: 0.1}}}
"""


class Labels(Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        rows = [(f"S{i}", draw.choice([-1, 1]), draw.choice([-1, 1])) for i in range(60)]
        tags = [";".join(name for name, value in (("red", a), ("tall", b)) if value > 0) for _, a, b in rows]
        self.expected = {name: text for (name, _, _), text in zip(rows, tags)}
        self.write("shapes.csv", "name,a,b,tags\n" + "".join(f"{n},{a},{b},{t}\n" for (n, a, b), t in zip(rows, tags)))
        self.write("columns.csv", "name,a,b,red,tall\n" + "".join(
            f"{n},{a},{b},{int('red' in t)},{int('tall' in t)}\n" for (n, a, b), t in zip(rows, tags)))

    def predicted(self):
        """Returns the rows of the predictions."""
        text = self.dtrain("predict", "run", "--input", "shapes.csv", "--output", "-").out
        return list(csv.DictReader(io.StringIO(text)))

    def test_labels_of_a_text_are_learned_and_predicted(self):
        self.fit(config=CONFIG)
        rows = self.predicted()
        self.assertEqual({row["name"]: row["tags"] for row in rows}, self.expected)
        self.assertEqual(set(rows[0]), {"name", "tags", "red", "tall"})

    def test_columns_of_0_and_1_are_labels(self):
        self.fit(config=CONFIG.replace("shapes.csv", "columns.csv").replace("{column: tags}", "[red, tall]"))
        rows = self.predicted()
        self.assertEqual({row["name"]: row["class"] for row in rows}, self.expected)


if __name__ == "__main__":
    support.main()
