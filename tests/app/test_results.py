"""evaluate, predict, check, summary, inspect, gpus, schema: their output, and its consistency."""
import csv
import gzip
import json
import math
import struct
import time

import support
from support import CONFIG, PROJECT, STEPS_PER_EPOCH, Case

BRANCHES = """\
model:
  inputs: {x: [6]}
  layers:
    - dense: {name: left, units: 8, activation: relu}
    - dense: {name: right, units: 8, inputs: x, trainable: false}
    - concatenate: {inputs: [left, right]}
    - dense: {name: kind, units: 3, activation: softmax}
    - dense: {name: size, units: 1, inputs: concatenate}
  outputs: [kind, size]
dataset:
  train: {synthetic: {samples: 20, targets: {kind: {classes: 3}, size: {shape: [1]}}}}
strategy: single
train:
  epochs: 1
  batch_size: 8
  loss: {kind: sparse_categorical_crossentropy, size: mean_squared_error}
  optimizer: sgd
"""


def read_npy(path):
    data = path.read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length])  # the format defines it as a Python literal
    assert header["descr"] == "<f4" and not header["fortran_order"] and (10 + length) % 64 == 0
    count = math.prod(header["shape"])
    values = struct.unpack(f"<{count}f", data[10 + length:])
    columns = count // header["shape"][0]
    return [list(values[i:i + columns]) for i in range(0, count, columns)]


def read_csv(path):
    return [[float(value) for value in line.split(",")] for line in path.read_text().splitlines()]


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def raw_scores(path):
    """Reads a file of `--outputs raw`: the row, then the model's outputs."""
    return [[float(value) for value in line.split(",")[1:]] for line in path.read_text().splitlines()[1:]]


class Digits(Case):
    """Tests commands with a model of the digits and a file with the inputs of their test split."""

    def setUp(self):
        super().setUp()
        self.dtrain("fit", PROJECT / "configs/digits-mlp.yaml", "--output", "run", "--quiet", "--epochs", 3)
        rows = [line.split(",") for line in gzip.open(PROJECT / "datasets/digits.csv.gz", "rt")][1547:]
        self.labels = [int(row[-1]) for row in rows]
        self.write("inputs.csv", "".join(",".join(row[:-1]) + "\n" for row in rows))

    def test_predictions_agree_with_evaluate(self):
        result = self.json("evaluate", "run")
        self.dtrain("predict", "run", "--input", "inputs.csv", "--output", "out.csv", "--outputs", "raw")
        logits = raw_scores(self.dir / "out.csv")
        self.assertEqual([len(row) for row in logits], [10] * len(self.labels))
        hits = sum(row.index(max(row)) == label for row, label in zip(logits, self.labels))
        self.assertAlmostEqual(hits / len(self.labels), result["sparse_categorical_accuracy"], places=9)
        losses = [math.log(sum(map(math.exp, row))) - row[label] for row, label in zip(logits, self.labels)]
        self.assertAlmostEqual(sum(losses) / len(losses), result["loss"], places=4)
        self.assertEqual(result["samples"], len(self.labels))

    def test_every_format_has_the_same_numbers(self):
        document = self.json("predict", "run", "--input", "inputs.csv", "--output", "out.npy")
        self.assertEqual(document["samples"], len(self.labels))
        self.assertEqual(document["outputs"], "raw")
        self.dtrain("predict", "run", "--input", "inputs.csv", "--output", "out.csv", "--outputs", "raw", "--quiet")
        self.dtrain("predict", "run", "--input", "inputs.csv", "--output", "out.h5")
        numbers = read_npy(self.dir / "out.npy")
        self.assertEqual(numbers, [[struct.unpack("f", struct.pack("f", v))[0] for v in row]
                                   for row in raw_scores(self.dir / "out.csv")])
        raw = b"".join(struct.pack("<10f", *row) for row in numbers)
        self.assertIn(raw, (self.dir / "out.h5").read_bytes())  # stored contiguously; tests/data reads it as HDF5

    def test_any_format_has_probabilities_or_raw_outputs(self):
        predict = lambda output, *more: self.dtrain("predict", "run", "--input", "inputs.csv", "--output", output, *more).out
        self.assertIn("which are logits (--outputs probabilities", predict("raw.npy"))
        self.assertIn(": probabilities\n", predict("named.npy", "--outputs", "probabilities"))
        self.assertIn(": probabilities\n", predict("named.csv"))
        self.assertIn(": probabilities\n", predict("named.jsonl"))
        predict("raw.jsonl", "--outputs", "raw")
        raw, named = read_npy(self.dir / "raw.npy"), read_npy(self.dir / "named.npy")
        table = read_table(self.dir / "named.csv")
        lines = [json.loads(line) for line in (self.dir / "named.jsonl").read_text().splitlines()]
        raw_lines = [json.loads(line) for line in (self.dir / "raw.jsonl").read_text().splitlines()]
        self.assertEqual(list(table[0]), ["row", "class", *map(str, range(10))])
        self.assertEqual(list(lines[0]), list(table[0]))
        self.assertEqual(list(raw_lines[0]), ["row", *map(str, range(10))])
        for number, (logits, probabilities) in enumerate(zip(raw, named)):
            self.assertAlmostEqual(sum(probabilities), 1, places=5)
            for logit, probability in zip(logits, probabilities):
                self.assertAlmostEqual(math.exp(logit - max(logits)) / sum(math.exp(x - max(logits)) for x in logits),
                                       probability, places=5)
            line = lines[number]
            self.assertEqual((line["row"], line["class"]), (number, str(logits.index(max(logits)))))
            self.assertEqual((table[number]["row"], table[number]["class"]), (str(number), line["class"]))
            for c in range(10):
                self.assertAlmostEqual(line[str(c)], probabilities[c], places=6)
                self.assertAlmostEqual(float(table[number][str(c)]), probabilities[c], places=6)
                self.assertAlmostEqual(raw_lines[number][str(c)], logits[c], places=5)

    def test_inputs_may_be_arrays(self):
        rows = read_csv(self.dir / "inputs.csv")
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, 64), }}".ljust(117) + "\n"
        (self.dir / "inputs.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode()
                                              + b"".join(struct.pack("<64f", *row) for row in rows))
        for name in ("csv", "npy"):
            self.dtrain("predict", "run", "--input", f"inputs.{name}", "--output", f"of_{name}.csv")
        self.assertEqual((self.dir / "of_npy.csv").read_text(), (self.dir / "of_csv.csv").read_text())
        for option in ("--header", "--no-header"):
            refusal = self.dtrain("predict", "run", "--input", "inputs.npy", "--output", "out.csv", option, expect=2)
            self.assertIn("a header or a delimiter was given", refusal.err)

    def test_the_input_and_checkpoints_are_not_overwritten(self):
        checkpoint = self.checkpoints()[-1]
        kept = {path: path.read_bytes() for path in [checkpoint, self.dir / "inputs.csv"]}
        for output in [checkpoint, "inputs.csv", "./run/../inputs.csv", "run/checkpoints/ckpt-00000001.h5"]:
            self.assertIn("--output", self.dtrain("predict", "run", "--input", "inputs.csv", "--output", output, expect=2).err)
        self.assertEqual({path: path.read_bytes() for path in kept}, kept)

    def test_predictions_do_not_depend_on_the_batch_size(self):
        for size in (1, 7, 250):
            self.dtrain("predict", "run", "--input", "inputs.csv", "--output", f"{size}.npy", "--batch-size", size)
        for size in (7, 250):
            for row, other in zip(read_npy(self.dir / "1.npy"), read_npy(self.dir / f"{size}.npy")):
                for a, b in zip(row, other):
                    self.assertAlmostEqual(a, b, delta=1e-4)

    def test_wrong_arguments_of_predict_are_errors(self):
        before = sorted(self.dir.iterdir())
        for arguments in (["--input", "inputs.csv", "--output", "out.txt"],
                          ["--input", "missing.csv", "--output", "out.csv"],
                          ["--input", "inputs.csv", "--output", "nowhere/out.csv"],
                          ["--input", "inputs.csv"],
                          ["--input", "inputs.csv", "--output", "out.csv", "--batch-size", "0"],
                          ["--input", PROJECT / "datasets/digits.csv.gz", "--output", "out.csv", "--delimiter", ";"]):
            with self.subTest(arguments):
                self.assertIn("error: ", self.dtrain("predict", "run", *arguments, expect=2).err)
        self.assertEqual(sorted(self.dir.iterdir()), before)

    def test_evaluate_accepts_other_splits(self):
        self.assertEqual(self.json("evaluate", "run", "--split", "validation")["samples"], 250)
        self.assertEqual(self.json("evaluate", "run", "--split", "train")["samples"], 1297)
        self.assertEqual(self.json("evaluate", "run", "--set", "dataset.test.rows=[1547, 1557]")["samples"], 10)
        self.dtrain("evaluate", "run", "--split", "exam", expect=2)

    def test_evaluation_agrees_with_validation_in_training(self):
        last = json.loads((self.dir / "run/metrics.jsonl").read_text().splitlines()[-1])
        result = self.json("evaluate", "run", "--split", "validation")
        self.assertAlmostEqual(result["loss"], last["val_loss"], places=6)

    def test_any_number_of_replicas_evaluates_the_same(self):
        one = self.json("evaluate", "run", "--set", "strategy=single")
        for changes in (["strategy={mirrored: {devices: [cpu:0], replicas: 2}}"],
                        ["strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 5}}"],
                        ["strategy={mirrored: {devices: [cpu:0], replicas: 3}}", "train.batch_size=2"]):
            several = self.json("evaluate", "run", *[part for change in changes for part in ("--set", change)])
            self.assertAlmostEqual(one["loss"], several["loss"], delta=1e-4)
            self.assertEqual(one["samples"], several["samples"])


class SeveralOutputs(Case):
    def test_npy_cannot_store_several_outputs(self):
        self.fit(config=BRANCHES)
        self.write("inputs.csv", "1,2,3,4,5,6\n" * 20)
        refusal = self.dtrain("predict", "run", "--input", "inputs.csv", "--output", "out.npy", expect=2)
        self.assertIn("2 outputs", refusal.err)
        document = self.json("predict", "run", "--input", "inputs.csv", "--output", "out.h5")
        self.assertEqual(document["shapes"], {"kind": [20, 3], "size": [20, 1]})
        self.assertTrue((self.dir / "out.h5").read_bytes().startswith(b"\x89HDF"))
        self.dtrain("predict", "run", "--input", "inputs.csv", "--output", "out.csv")
        table = read_table(self.dir / "out.csv")
        self.assertEqual(list(table[0]), ["row", "kind", "kind.0", "kind.1", "kind.2", "size"])
        for row in table:
            scores = [float(row[f"kind.{c}"]) for c in range(3)]
            self.assertEqual(row["kind"], str(scores.index(max(scores))))
            self.assertAlmostEqual(sum(scores), 1, places=5)

    def test_the_loss_is_the_sum_of_the_outputs_losses(self):
        self.fit(config=BRANCHES)
        result = self.json("evaluate", "run", "--split", "train")
        self.assertAlmostEqual(result["loss"], result["kind_loss"] + result["size_loss"], places=6)
        self.assertIn("train", self.dtrain("evaluate", "run", expect=2).err)  # the run's only split

    def test_summary_shows_layers_as_written(self):
        self.write("config.yaml", BRANCHES)
        document = self.json("summary", "config.yaml")
        layers = {layer["name"]: layer for layer in document["layers"]}
        self.assertEqual(list(layers), ["x", "left", "right", "concatenate", "kind", "size"])
        self.assertEqual(layers["concatenate"]["inputs"], ["left", "right"])
        self.assertEqual(layers["concatenate"]["output_shape"], [16])
        self.assertEqual(layers["right"]["trainable"], False)
        self.assertEqual(layers["left"]["parameters"], 6 * 8 + 8)
        self.assertEqual(document["parameters"],
                         {"total": 56 + 56 + 51 + 17, "trainable": 56 + 51 + 17, "non_trainable": 56})
        text = self.dtrain("summary", "config.yaml").out
        self.assertEqual(len([line for line in text.splitlines() if line.startswith(("left ", "kind "))]), 2)

    def test_summary_shows_devices_shared_weights_and_recomputation(self):
        model = """\
model:
  inputs: {a: [8], b: [8]}
  blocks:
    pair: {layers: [dense: {units: 8, activation: tanh}, layer_normalization: {}]}
  layers:
    - dense: {units: 8, name: left, inputs: a, activation: relu}
    - dense: {name: right, shared_with: left, inputs: b, trainable: true}
    - add: {name: both, inputs: [left, right]}
    - pair: {repeat: 2, recompute: true}
    - dense: {units: 3, name: head}
dataset: {train: {synthetic: {samples: 64, target: {classes: 3}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
"""
        where = {
            "{placed: {layers: {right: cpu:1, head: cpu:2, left: cpu:0}}}":
                [["cpu:0"], ["cpu:1"], ["cpu:0"], ["cpu:1"], *[["cpu:0"]] * 5, ["cpu:2"]],
            "{pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], replicas: 2, stages: [pair_1]}}":
                [*[["cpu:0", "cpu:2"]] * 7, *[["cpu:1", "cpu:3"]] * 3],
            "{sharded: {devices: [cpu:0, cpu:1], level: optimizer}}": [["cpu:0", "cpu:1"]] * 10,
            "{mirrored: {devices: [cpu:0, cpu:1], replicas: 4}}": [["cpu:0", "cpu:1"]] * 10,
        }
        for strategy, devices in where.items():
            with self.subTest(strategy):
                self.write("config.yaml", model + f"strategy: {strategy}\n")
                document = self.json("summary", "config.yaml")
                layers = document["layers"]
                self.assertEqual([layer["devices"] for layer in layers], devices)
                self.assertEqual([layer.get("recompute") for layer in layers], [None] * 5 + [0, 0, 1, 1, None])
                self.assertEqual([layer.get("shared_with") for layer in layers],
                                 [None, None, None, "left"] + [None] * 6)
                self.assertEqual(sum(layer["parameters"] for layer in layers), document["parameters"]["total"])
                lines = self.dtrain("summary", "config.yaml").out.splitlines()
                right = next(line for line in lines if line.startswith("right "))
                self.assertRegex(right, r"^right +dense +8 +of left +" + " ".join(devices[3]) + " +b$")
                self.assertRegex(lines[0], r"parameters +device +recomputed +inputs")


class Facts(Case):
    def test_check_prints_the_plan_and_writes_no_files(self):
        self.write("config.yaml", CONFIG.replace("strategy:", "# strategy:") +
                   "strategy: {mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}\n")
        before = sorted(self.dir.rglob("*"))
        plan = self.json("check", "config.yaml", "--set", "dataset.cache={file: cache}")
        self.assertEqual(plan["steps_per_epoch"], STEPS_PER_EPOCH)
        self.assertEqual(plan["steps"], 4 * STEPS_PER_EPOCH)
        self.assertEqual(plan["last_batch"], 4)
        self.assertEqual(plan["parameters"], 12 * 16 + 16 + 16 * 3 + 3)
        self.assertEqual([replica["device"] for replica in plan["replicas"]], ["cpu:0", "cpu:1", "cpu:0"])
        self.assertEqual(sum(replica["share"] for replica in plan["replicas"]), 16)
        self.assertEqual(sum(replica["last_share"] for replica in plan["replicas"]), 4)
        self.assertGreater(plan["replicas"][2]["memory"]["activations"], 0)
        self.assertIn("3 replicas", self.dtrain("check", "config.yaml").out)
        self.assertEqual(self.dtrain("check", "config.yaml", "--quiet").out, "")
        self.assertEqual(sorted(self.dir.rglob("*")), before)

    def test_check_reads_all_labels(self):
        self.write("config.yaml", CONFIG)
        error = self.dtrain("check", "config.yaml", "--set", "dataset.train.synthetic.target.classes=4", expect=2).err
        self.assertRegex(error, "sample .* of the split 'train' has the value 3 for 'dense.*', which takes values from 0 to 2")

    def test_indices_outside_an_embedding_are_errors(self):
        config = """
model:
  inputs: {word: {shape: [2], dtype: int32}}
  layers:
    - embedding: {input_dim: 5, output_dim: 3}
    - flatten
    - dense: {units: 1}
dataset:
  train: {csv: {file: words.csv, target: -1}}
train: {loss: mean_squared_error, optimizer: sgd, epochs: 1}
"""
        self.write("words.csv", "".join(f"{i % 5},4,1\n" for i in range(40)))
        self.fit(config=config)
        self.write("words.csv", "".join(f"{i % 5},{4 + (i == 7)},1\n" for i in range(40)))
        for command in (["check", "config.yaml"], ["fit", "config.yaml", "--output", "other"]):
            self.assertIn("sample 7 (counted from 0)", self.dtrain(*command, expect=2).err)
        self.write("inputs.csv", "0,1\n7,0\n")
        self.assertIn("has the value 7 for 'embedding', which takes values from 0 to 4",
                      self.dtrain("predict", "run", "--input", "inputs.csv", "--output", "out.csv", expect=2).err)

    def test_check_measures_a_step_on_request_and_writes_no_files(self):
        self.write("config.yaml", CONFIG)
        before = sorted(self.dir.rglob("*"))
        self.assertIsNone(self.json("check", "config.yaml")["time"])
        for strategy in ["single", "{mirrored: {devices: [cpu:0], replicas: 2}}"]:
            plan = self.json("check", "config.yaml", "--measure", "--set", f"strategy={strategy}")
            self.assertGreater(plan["time"]["step_seconds"], 0)
            self.assertGreaterEqual(plan["time"]["measured_steps"], 1)
            self.assertAlmostEqual(plan["time"]["seconds"], plan["time"]["step_seconds"] * plan["steps"])
        self.assertIn(" per step ", self.dtrain("check", "config.yaml", "--measure").out)
        self.assertEqual(sorted(self.dir.rglob("*")), before)

    def test_check_and_fit_reject_the_same_configurations(self):
        idx = "{idx: {input: nowhere-images, target: nowhere-labels}}"
        self.write("config.yaml", CONFIG)
        process = self.dtrain("check", "config.yaml", "--set", f"dataset.train={idx}",
                              "--set", f"dataset.validation={idx}", expect=2)
        self.assertEqual(len([line for line in process.err.splitlines() if "/nowhere-images: there is no such file" in line]), 2)
        self.dtrain("check", "config.yaml", "--set", "strategy={single: {device: gpu:77}}", expect=2)
        self.dtrain("check", "missing.yaml", expect=2)

    def test_summary_is_the_same_for_a_run_and_its_configuration(self):
        self.fit("--epochs", 1)
        layers = self.json("summary", "config.yaml")["layers"]
        self.assertEqual([layer["kind"] for layer in layers], ["input", "dense", "dropout", "dense"])
        for path in ("run", "run/checkpoints", self.checkpoints()[-1]):
            self.assertEqual(self.json("summary", path)["layers"], layers)

    def test_inspect_lists_a_checkpoints_arrays(self):
        self.fit("--epochs", 1)
        path = self.checkpoints()[-1]
        document = self.json("inspect", path)
        self.assertEqual((document["step"], document["epoch"], document["seed"]), (STEPS_PER_EPOCH, 1, 3))
        self.assertEqual([(w["name"], w["shape"]) for w in document["weights"]],
                         [("dense/kernel", [12, 16]), ("dense/bias", [16]), ("dense_1/kernel", [16, 3]),
                          ("dense_1/bias", [3])])
        self.assertEqual(len(document["slots"]), 2)
        self.assertNotIn("config", document)
        self.assertEqual(self.dtrain("inspect", path, "--config").out, (self.dir / "run/config.yaml").read_text())
        self.assertEqual(self.json("inspect", path, "--config")["config"], (self.dir / "run/config.yaml").read_text())
        text = self.dtrain("inspect", path).out
        for expected in ("dense/kernel", "12x16", "seed   3"):
            self.assertIn(expected, text)

    def test_inspect_takes_a_run(self):
        self.fit("--epochs", 2)
        path = self.checkpoints()[-1]
        for run in ("run", "run/checkpoints"):
            self.assertTrue(path.samefile(self.dir / self.json("inspect", run)["path"]))
        self.assertIn("found a configuration; use `dtrain fit config.yaml` to train it",
                      self.dtrain("inspect", "config.yaml", expect=2).err)

    def test_inspect_finds_damage(self):
        self.fit("--epochs", 1)
        path = self.checkpoints()[-1]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        self.assertIn(path.name, self.dtrain("inspect", path, expect=2).err)

    def test_gpus_describes_the_cpu_and_gpus(self):
        document = self.json("gpus")
        self.assertGreaterEqual(document["cpu"]["cores"], 1)
        self.assertGreater(document["cpu"]["memory_total"], document["cpu"]["memory_available"])
        self.assertTrue(document["cpu"]["instruction_set"])
        gpu = document["gpu"]
        text = self.dtrain("gpus").out
        if gpu["count"] == 0:
            self.assertTrue(gpu["reason"])
            self.assertIn(f"no GPU ({gpu['reason']})", text)
            self.assertEqual(self.json("gpus", "--measure")["gpu"], gpu)
            return
        self.assertEqual([device["index"] for device in gpu["devices"]], list(range(gpu["count"])))
        for device in gpu["devices"]:
            self.assertIn(f"gpu:{device['index']}  {device['name']}", text)
            self.assertLessEqual(device["memory_free"], device["memory_total"])

    def test_hidden_gpus_are_not_listed(self):
        gpu = self.json("gpus", env={"CUDA_VISIBLE_DEVICES": ""})["gpu"]
        self.assertEqual(gpu["count"], 0)
        self.assertTrue(gpu["reason"])

    def test_the_schema_describes_a_configuration(self):
        schema = json.loads(self.dtrain("schema").out)
        self.assertLessEqual({"model", "dataset", "strategy", "train", "checkpoint"}, set(schema["properties"]))
        dataset = next(part for part in schema["properties"]["dataset"]["anyOf"] if "properties" in part)
        for cache in ("none", "memory", "file", "device"):
            self.assertIn(cache, dataset["properties"]["cache"]["description"])


if __name__ == "__main__":
    support.main()
