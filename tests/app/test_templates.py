"""Quality of the models that `dtrain new` proposes; bench/templates.py measures them on more data."""
import gzip
import random

from support import PROJECT, Case, main


class Templates(Case):
    def score(self, metric):
        """Trains the generated configuration for data.csv and returns a metric of its test split."""
        self.dtrain("new", "data.csv", "--output", "data.yaml")
        self.dtrain("fit", "data.yaml", "--output", "run", "--quiet")
        return self.json("evaluate", "run", "--split", "test")[metric]

    def test_new_gives_a_good_model_for_digits_in_a_table(self):
        with gzip.open(PROJECT / "datasets/digits.csv.gz", "rt") as file:
            self.write("data.csv", file.read())
        self.assertGreater(self.score("sparse_categorical_accuracy"), 0.95)  # 0.96 to 0.99, depending on the seed

    def test_new_gives_a_good_model_for_dates_amounts_and_gaps(self):
        draw = random.Random(1)
        lines = ["sold,area,size,price"]
        for _ in range(800):
            month, area, size = draw.randrange(12), draw.choice(["north", "south"]), draw.gauss(80, 20)
            price = 900 * size + 20000 * (area == "north") + 1500 * month + draw.gauss(0, 3000)
            lines.append(f'2025-{month + 1:02}-{draw.randrange(28) + 1:02},{area},{"n/k" if draw.random() < 0.02 else f"{size:.1f}"},'
                         f'{"" if draw.random() < 0.03 else f"${price:.0f}"}')
        self.write("data.csv", "\n".join(lines) + "\n")
        self.assertGreater(self.score("r2_score"), 0.85)


if __name__ == "__main__":
    main()
