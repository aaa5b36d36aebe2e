"""Text: language models, classifiers for folders of texts and for text columns of tables, vocabularies in checkpoints,
and raw text as the input of `dtrain predict`."""
import csv
import os
import random
import subprocess

import support
from support import Case

MODEL = """\
seed: 5
model:
  inputs: {tokens: {shape: [8], dtype: int32}}
  layers:
    - embedding: {input_dim: 300, output_dim: 8}
"""
TRAIN = """\
strategy: single
train:
  epochs: 12
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.05}}
  metrics: [sparse_categorical_accuracy]
checkpoint: {every: 5 steps, keep: 100}
"""
CLASSIFIER = MODEL + "    - global_average_pooling1d\n    - dense: {units: 2}\n"
LANGUAGE = MODEL + "    - dense: {units: 300}\n"
GOOD, BAD = ["good", "great", "fine"], ["bad", "awful", "poor"]


def review(draw, good):
    return f"The {draw.choice(['film', 'plot'])} is {draw.choice(GOOD if good else BAD)}, and {draw.choice(GOOD if good else BAD)}!"


class Text(Case):
    def write_reviews(self):
        draw = random.Random(1)
        for number in range(40):
            name = "good" if number % 2 else "bad"
            self.write(f"reviews/{name}/{number:02}.txt", review(draw, number % 2))

    def write_table(self):
        draw = random.Random(2)
        with open(self.dir / "reviews.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "review", "label"])
            rows.writerows([number, f"{review(draw, number % 2)} {number}", ["bad", "good"][number % 2]] for number in range(40))

    def predicted(self, name, column):
        with open(self.dir / name, newline="") as file:
            return [row[column] for row in csv.DictReader(file)]

    def check(self, config, expect=0):
        self.write("config.yaml", config)
        return self.dtrain("check", "config.yaml", expect=expect)

    def test_folder_of_classes(self):
        self.write_reviews()
        self.fit(config=CLASSIFIER + "dataset: {train: {text: {directory: reviews, tokens: words, vocabulary: 100}}}\n" + TRAIN)
        self.write("new.txt", "This is great!\nAwful, just awful\n\nfine\n")
        self.dtrain("predict", "run", "--input", "new.txt", "--output", "out.csv")
        found = self.predicted("out.csv", "class")
        self.assertEqual((len(found), found[:2]), (4, ["good", "bad"]))
        self.dtrain("predict", "run", "--input", "reviews", "--output", "folder.csv")
        self.assertEqual(self.predicted("folder.csv", "path")[0], "bad/00.txt")
        scores = self.json("evaluate", "run", "--input", "reviews")
        self.assertEqual((scores["samples"], scores["sparse_categorical_accuracy"]), (40, 1))
        # Predictions do not need the training data.
        (self.dir / "reviews").rename(self.dir / "elsewhere")
        self.dtrain("predict", "run", "--input", "new.txt", "--output", "again.csv")
        self.assertEqual((self.dir / "again.csv").read_bytes(), (self.dir / "out.csv").read_bytes())
        self.write("table.csv", "a,b\n1,2\n")
        error = self.dtrain("predict", "run", "--input", "table.csv", "--output", "x.csv", "--delimiter", ";", expect=2).err
        self.assertIn("the run reads plain text, not tables or JSON lines", error)
        # A plain text may begin with a bracket.
        self.write("verse.txt", "[verse 1] This is great!\n{Awful}, just awful\n\nfine\n")
        self.dtrain("predict", "run", "--input", "verse.txt", "--output", "verse.csv")
        self.assertEqual(self.predicted("verse.csv", "class")[:2], ["good", "bad"])
        self.write("lines.jsonl", '{"text": "great"}\n')
        error = self.dtrain("predict", "run", "--input", "lines.jsonl", "--output", "x.csv", expect=2).err
        self.assertIn("the run reads plain text, not tables or JSON lines", error)

    def test_weights_of_another_vocabulary_are_reported(self):
        """The rows of a loaded embedding belong to the tokens of the run that trained it."""
        words = "dataset: {train: {text: {file: FILE, sequence_length: 8, tokens: words, vocabulary: 20}}}\n"
        self.write("a.txt", "one two three four five six seven eight. " * 40)
        self.write("b.txt", "eight seven six five four three two one one one. " * 40)
        self.fit("--epochs", "1", config=LANGUAGE + words.replace("FILE", "a.txt") + TRAIN, output="first")
        begin = LANGUAGE + "  weights: {from: first}\n"
        for file, differs in (("a.txt", False), ("b.txt", True)):
            err = self.fit("--epochs", "1", config=begin + words.replace("FILE", file) + TRAIN, output=f"run-{file}").err
            self.assertEqual("weights: 'tokens' has a different vocabulary than in the run that wrote" in err, differs, err)
        skipped = begin.replace("from: first", 'from: first, skip: ["embedding/*"]')
        err = self.fit("--epochs", "1", config=skipped + words.replace("FILE", "b.txt") + TRAIN, output="skipped").err
        self.assertNotIn("vocabulary", err)

    def test_vocabulary_of_another_run(self):
        self.write("a.txt", "one two three four five six seven eight. " * 40)
        self.write("b.txt", "eight seven six five four three two one one one. " * 40)
        data = "dataset: {train: {text: {file: FILE, sequence_length: 8, tokens: words, vocabulary: 20}}}\n"
        self.fit("--epochs", "1", config=LANGUAGE + data.replace("FILE", "a.txt") + TRAIN, output="first")
        taken = data.replace("FILE", "b.txt").replace("{train", "{vocabulary_from: first, train")
        config = LANGUAGE + "  weights: {from: first}\n" + taken + TRAIN
        self.assertNotIn("vocabulary", self.check(config).err)
        self.assertNotIn("vocabulary", self.fit("--epochs", "1", config=config, output="second").err)
        # The new run stores the vocabulary, so it does not need the first run any more.
        (self.dir / "first").rename(self.dir / "elsewhere")
        self.dtrain("resume", "second", "--epochs", "2")
        self.dtrain("evaluate", "second", "--input", "a.txt")
        error = self.check(LANGUAGE + taken + TRAIN, expect=2).err
        self.assertRegex(error, r"config.yaml:\d+:\d+: error: vocabulary_from: .*first: ")
        (self.dir / "elsewhere").rename(self.dir / "first")
        for old, new, expected in (
            ("vocabulary: 20", "vocabulary: 5", "the checkpoint stores a vocabulary for 'tokens' with 10 tokens (words, standardize: "),
            ("tokens:", "words:", "the checkpoint stores vocabularies for 'tokens', but this data set has text only in 'words'"),
        ):
            model = (LANGUAGE + taken + TRAIN).replace(old, new, 1)
            self.assertIn(expected, self.check(model, expect=2).err)

    def test_vocabularies_of_another_table(self):
        self.write_table()
        data = "dataset: {train: {csv: {file: reviews.csv, header: true, target: label, text: {review: {tokens: words, vocabulary: 30}}}}}\n"
        self.fit("--epochs", "1", config=CLASSIFIER + data + TRAIN, output="first")
        self.write("other.csv", "opinion,label,review\n" + "5,good,the plot is great\n2,bad,the plot is awful\n" * 10)
        taken = data.replace("{train", "{vocabulary_from: first, train").replace("reviews.csv", "other.csv").replace("target", "drop: [opinion], target")
        begin = CLASSIFIER + "  weights: {from: first}\n"
        self.assertIn("weights: 'review' has a different vocabulary", self.fit("--epochs", "1", config=begin + taken.replace("vocabulary_from: first, ", "") + TRAIN, output="learned").err)
        self.assertNotIn("vocabulary", self.fit("--epochs", "1", config=begin + taken + TRAIN, output="second").err)
        renamed = taken.replace("{review:", "{opinion:").replace("[opinion]", "[review]")
        self.assertIn("but this data set has text only in 'opinion'", self.check(CLASSIFIER + renamed + TRAIN, expect=2).err)

    def test_many_small_files_need_little_memory(self):
        def peak_mib(files):
            for number in range(files):
                self.write(f"texts{files}/{number}.txt", f"This is text {number}")
            data = f"dataset: {{train: {{text: {{directory: texts{files}, sequence_length: 4}}}}}}\n"
            self.write("config.yaml", LANGUAGE.replace("[8]", "[4]") + data + TRAIN)
            process = self.start("check", "config.yaml", stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            self.assertEqual(status, 0, process.stderr.read())
            return usage.ru_maxrss / 1024
        self.assertLess(peak_mib(600), peak_mib(6) + 100)  # a buffer of 1 MiB for each file would need 600 MiB

    def test_column_of_a_table(self):
        self.write_table()
        data = "dataset:\n  train: {csv: {file: reviews.csv, header: true, target: label, text: {review: {tokens: bpe, vocabulary: 300}}}}\n"
        data += "  validation: {split: {of: train, fraction: 0.2, stratify: true}}\n"
        self.fit(config=CLASSIFIER + data + TRAIN)
        self.write("new.csv", "label,review\n,the plot is great\n,the plot is awful\n")
        self.dtrain("predict", "run", "--input", "new.csv", "--output", "out.csv")
        self.write("new.txt", "the plot is great\nthe plot is awful\n")
        self.dtrain("predict", "run", "--input", "new.txt", "--output", "lines.csv")
        self.assertEqual((self.dir / "out.csv").read_bytes(), (self.dir / "lines.csv").read_bytes())
        self.write("new.jsonl", '{"review": "the plot is great"}\n{"review": "the plot is awful"}\n')
        self.dtrain("predict", "run", "--input", "new.jsonl", "--output", "json.csv")
        self.assertEqual((self.dir / "out.csv").read_bytes(), (self.dir / "json.csv").read_bytes())

    def test_a_killed_run_goes_on_with_its_vocabulary(self):
        self.write("corpus.txt", "".join(review(random.Random(i), i % 2) + "\n" for i in range(200)))
        data = "dataset:\n  train: {text: {file: corpus.txt, sequence_length: 8, tokens: bpe, vocabulary: 300}}\n"
        data += "  validation: {split: {of: train, fraction: 0.1}}\n"
        config = LANGUAGE + data + TRAIN
        self.fit(config=config, output="whole")
        self.kill_on_the_way("fit", "config.yaml", "--output", "killed")
        self.dtrain("resume", "killed")
        self.assert_same_run("killed", "whole")
        first, last = self.metrics("whole")[0], self.metrics("whole")[-1]
        self.assertLess(last["val_loss"], first["val_loss"])
        error = self.dtrain("resume", "whole", "--epochs", "9", "--set", "dataset.train={text: {file: corpus.txt, sequence_length: 8}}",
                            expect=2).err
        self.assertIn("the checkpoint stores a vocabulary for", error)
        self.dtrain("predict", "whole", "--input", "corpus.txt", "--output", "out.npy")

    def test_batches_of_similar_lengths(self):
        draw = random.Random(3)
        for number in range(45):
            name = "good" if number % 2 else "bad"
            self.write(f"reviews/{name}/{number:02}.txt", " ".join(review(draw, number % 2) for _ in range(1 + number % 7)))
        model = CLASSIFIER.replace("[8]", "[48]").replace("output_dim: 8", "output_dim: 8, mask_zero: true")
        data = "dataset:\n  train: {text: {directory: reviews, tokens: words, vocabulary: 100, length: 48}}\n"
        data += "  validation: {split: {of: train, fraction: 0.2}}\n  batches: {bucket_by_length: true}\n"
        config = model + data + TRAIN.replace("batch_size: 8", "batch_size: 5")
        self.write("config.yaml", config)
        found = self.json("check", "config.yaml")
        self.assertEqual(found["lengths"], [8, 16, 24, 32, 40, 48])
        self.assertLess(found["computed_positions"], 0.8)
        self.assertIn("lengths   8, 16, 24, 32, 40, 48; truncated batches have ", self.dtrain("check", "config.yaml").out)
        self.fit(config=config, output="whole")
        self.kill_on_the_way("fit", "config.yaml", "--output", "killed")
        self.dtrain("resume", "killed")
        self.assert_same_run("killed", "whole")
        # Evaluation with whole sequences gives the same loss.
        scores = self.json("evaluate", "whole", "--split", "validation", "--newest")
        self.assertAlmostEqual(scores["loss"], self.metrics("whole")[-1]["val_loss"], places=5)
        for output, cut in [("cut", "true"), ("uncut", "false")]:
            self.fit("--set", "dataset.shuffle=false", "--set", f"dataset.batches.bucket_by_length={cut}", "--epochs", "2",
                     config=config, output=output)
        for cut, uncut in zip(self.metrics("cut"), self.metrics("uncut")):
            self.assertAlmostEqual(cut["loss"], uncut["loss"], places=4)
        error = self.dtrain("check", "config.yaml", "--set", "model.layers.0.embedding.mask_zero=false", expect=2).err
        self.assertIn("config.yaml:", error)
        self.assertIn("bucket_by_length needs a mask of the padding, which gives the lengths of the sequences", error)

    def test_new_proposes_models(self):
        self.write_reviews()
        self.assertIn("40 texts: bad (20), good (20)", self.dtrain("new", "reviews").out)
        self.assertIn("text: {directory: reviews, tokens: words, vocabulary: 8192}", (self.dir / "reviews.yaml").read_text())
        self.dtrain("fit", "reviews.yaml", "--epochs", "1")
        self.write_table()
        self.dtrain("new", "reviews.csv", "--output", "table.yaml")
        self.assertIn("text: {review: {tokens: words, vocabulary: 8192}}", (self.dir / "table.yaml").read_text())
        self.dtrain("fit", "table.yaml", "--epochs", "1")
        self.write("story.txt", "".join(review(random.Random(i), i % 2) + " Yes,\n" * (i % 3) for i in range(200)))
        self.assertIn("a language model, which predicts the next byte", self.dtrain("new", "story.txt").out)
        self.dtrain("check", "story.yaml")
        self.write("table.txt", "".join(f"{i * 7 % 11},{i % 3}\n" for i in range(40)))  # a table under any name
        self.dtrain("new", "table.txt", "--output", "numbers.yaml")
        self.assertIn("csv:", (self.dir / "numbers.yaml").read_text())
        self.write("short.txt", "A sentence.\nAnd another one, which is longer.\n")
        self.assertIn("expected at least 2,561 bytes of text", self.dtrain("new", "short.txt", expect=2).err)

    def test_new_tells_prose_from_tables(self):
        draw = random.Random(3)
        words = "the a cat dog sat ran on under mat tree and then slept barked big small".split()
        lines = [" ".join(draw.choice(words) for _ in range(8)) for _ in range(1500)]
        commas = "Hello there, my friend\nThe cat, big and red\nA dog ran, then sat\n" * 300
        for number, prose in enumerate(("\n".join(lines) + "\n", commas, "\tAn indented line of text\n" * 200,
                                        "One sentence here.  Another one there.\n" * 200, commas.replace(",", ";"))):
            with self.subTest(prose[:30]):
                self.write("data.txt", prose)
                out = self.dtrain("new", "data.txt", "--output", f"prose{number}.yaml").out
                self.assertIn("data.txt is read as a text; `--as table` reads it as a table\n", out)
                self.assertIn("a language model, which predicts the next byte", out)
        kinds = ("red", "green", "blue")
        for number, table in enumerate((
                "".join(f"{i * 7 % 11} {i % 3}\n" for i in range(40)),                            # numbers
                "".join(f"word{i}; 5,{i % 9}; {kinds[i % 3]}\n" for i in range(40)),              # decimal commas
                "day kind\n" + "".join(f"2026-01-{i % 28 + 1:02} {kinds[i % 3]}\n" for i in range(40)),
                "".join(f"{kinds[i % 3]},{'pq'[i % 2]},text {i}\n" for i in range(40)),           # no blanks after commas
                "outlook, play\n" + "".join(f"{kinds[i % 3]}, {'pq'[i % 2]}\n" for i in range(40)),
                "".join(f"{kinds[i % 3]:8}{kinds[i % 2]:8}{'pq'[i % 2]}\n" for i in range(40)),   # aligned
                "color_name kind_2\n" + "".join(f"{kinds[i % 3]} {'pq'[i % 2]}\n" for i in range(40)),
                "".join(f"{'pq'[i % 2]}\tThe text has number {i}\n" for i in range(40)))):
            with self.subTest(table[:30]):
                self.write("data.txt", table)
                out = self.dtrain("new", "data.txt", "--output", f"table{number}.yaml").out
                self.assertIn("data.txt is read as a table; `--as text` reads it as a text\n", out)
                self.assertIn("csv:", (self.dir / f"table{number}.yaml").read_text())

    def test_new_reads_a_file_as_the_user_wants(self):
        self.write("data.txt", "".join(f"{i * 7 % 11} {i % 3} and some more words\n" for i in range(200)))
        out = self.dtrain("new", "data.txt", "--as", "text", "--output", "text.yaml").out
        self.assertIn("a language model", out)
        self.assertNotIn("--as", out)
        self.write("data.csv", "".join(f"{i * 7 % 11},{i % 3} words\n" for i in range(400)))
        self.assertIn("a language model", self.dtrain("new", "data.csv", "--as", "text", "--output", "csv.yaml").out)
        self.write("prose.txt", "".join(f"{'red green blue'.split()[i % 3]} word and {'pq'[i % 2]}\n" for i in range(60)))
        self.assertIn("read as a text", self.dtrain("new", "prose.txt", "--output", "p.yaml", expect=2).err)
        self.assertIn("Predicts column 3", self.dtrain("new", "prose.txt", "--as", "table").out)
        self.write_reviews()
        for arguments, message in ((["reviews", "--as", "text"], "--as: this option is for a file, but reviews is a folder"),
                                   (["data.csv", "--as", "text", "--target", "1"], "--target: this option selects a column of a table"),
                                   (["data.csv", "--as", "prose"], "--as: expected one of text, table, found 'prose'")):
            with self.subTest(arguments):
                self.assertIn(message, self.dtrain("new", *arguments, expect=2).err)

    def test_mistakes_in_the_configuration(self):
        self.write("corpus.txt", "some text, again and again")
        data = "dataset: {train: {text: {file: corpus.txt, sequence_length: 8, tokens: words, vocabulary: 301}}}\n"
        self.write("config.yaml", LANGUAGE + data + TRAIN)
        error = self.dtrain("check", "config.yaml", expect=2).err
        self.assertIn("config.yaml:7:18: error: train: the text of this split has up to 301 different tokens, but 'embedding' takes only 300", error)
        self.write("config.yaml", LANGUAGE + data.replace("301", "30") + TRAIN)
        error = self.dtrain("check", "config.yaml", expect=2).err
        self.assertIn("corpus.txt: expected at least 9 tokens", error)
        self.write("config.yaml", LANGUAGE + data.replace("301", "30").replace("corpus", "none") + TRAIN)
        self.assertIn("none.txt", self.dtrain("check", "config.yaml", expect=2).err)


if __name__ == "__main__":
    support.main()
