"""metrics.csv and the files for TensorBoard have the numbers of metrics.jsonl. The tests read the files with Python's
standard library. If TensorBoard is installed, they also read the files with TensorBoard's reader. The environment
variable DTRAIN_TENSORBOARD_PYTHON may name a Python interpreter that has TensorBoard."""
import csv
import json
import math
import os
import struct
import subprocess
import sys
import unittest
import zlib

import support
from support import CONFIG, STEPS_PER_EPOCH, Case

LONG = CONFIG.replace("epochs: 4", "epochs: 40")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """Yields the data of a file's records. Raises if a record is damaged; skips a truncated last record."""
    data, at = path.read_bytes(), 0
    while at + 12 <= len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked(data[at:at + 8]), f"{path}: length's checksum at {at}"
        if at + 12 + length + 4 > len(data):
            return
        content = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(content), f"{path}: checksum at {at}"
        yield content
        at += 12 + length + 4


def fields(data):
    """Yields number and value of every field of a protocol buffer."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            length = varint()
            yield key >> 3, data[at:at + length]
            at += length
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[key & 7]
            yield key >> 3, struct.unpack_from(form, data, at)[0]
            at += size


def scalars(folder):
    """Returns {tag: [(step, value), ...]} of all files in a folder, in the order in which TensorBoard reads them."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        events = [dict(fields(record)) for record in records(path)]
        assert events[0][3] == b"brain.Event:2", path
        for event in events:
            if 5 not in event:
                continue
            for number, value in fields(event[5]):
                value = dict(fields(value))
                if 2 in value:
                    found.setdefault(value[1].decode(), []).append((event.get(2, 0), value[2]))
    return found


def summaries(folder, kind):
    """Returns {tag: [(step, fields of the value), ...]} of the summaries whose value is this field of Summary.Value."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in (dict(fields(record)) for record in records(path)):
            for _, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                if kind in value:
                    found.setdefault(value[1].decode(), []).append((event.get(2, 0), dict(fields(value[kind]))))
    return found


IMAGE, HISTOGRAM = 4, 5


def inflated_rows(png):
    """Decompresses a PNG's IDAT chunks: filter type and pixels of each row."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed = 8, b""
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        if kind == b"IDAT":
            packed += png[at + 8:at + 8 + length]
        at += 12 + length
    return zlib.decompress(packed)


def narrow(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Numbers(Case):
    def lines(self, run="run"):
        return [json.loads(line) for line in (self.dir / run / "metrics.jsonl").read_text().splitlines()]

    def table(self, run="run"):
        with open(self.dir / run / "metrics.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def check_table(self, run="run"):
        lines, table = self.lines(run), self.table(run)
        self.assertEqual(len(table), len(lines))
        for row, line in zip(table, lines):
            self.assertEqual({key: float(value) for key, value in row.items()}, {key: float(value) for key, value in line.items()})

    def check_epochs(self, run="run"):
        """Checks that every number of metrics.jsonl appears exactly once."""
        lines = self.lines(run)
        train, validation = (scalars(self.dir / run / "tensorboard" / part) for part in ("train", "validation"))
        for name in lines[0]:
            if name in ("epoch", "step"):
                continue
            tag, found = ("epoch_" + name[4:], validation) if name.startswith("val_") else ("epoch_" + name, train)
            self.assertEqual(found[tag], [(line["epoch"], narrow(line[name])) for line in lines], tag)

    def test_a_run_has_events_of_every_epoch(self):
        self.fit()
        self.check_table()
        self.check_epochs()
        self.assertFalse((self.dir / "run/tensorboard/steps").exists())

    def test_a_resumed_run_has_each_event_once(self):
        self.fit("--epochs", 2)
        self.dtrain("resume", "run", "--epochs", 4)
        self.fit(output="whole")
        for run in ("run", "whole"):
            self.check_table(run)
            self.check_epochs(run)
        self.assertEqual([(row["epoch"], row["loss"]) for row in self.table("run")], [(row["epoch"], row["loss"]) for row in self.table("whole")])

    def test_a_killed_and_resumed_run_has_each_event_once(self):
        config = LONG.replace("metrics: [sparse_categorical_accuracy]",
                              "metrics: [sparse_categorical_accuracy]\n  callbacks: [{tensorboard: {update_freq: 3}}]").replace(
                                  "every: 10 steps", "every: 45 steps")
        self.write("config.yaml", config)
        self.kill_on_the_way("fit", "config.yaml", "--output", "run", after=STEPS_PER_EPOCH * 5)
        self.dtrain("resume", "run")
        self.check_table()
        self.check_epochs()
        steps = scalars(self.dir / "run/tensorboard/steps")["batch_loss"]
        self.assertEqual([step for step, _ in steps], sorted({step for step, _ in steps}))  # no duplicates
        self.assertEqual(steps[-1][0], 40 * STEPS_PER_EPOCH // 3 * 3)
        self.assertTrue(all(step % 3 == 0 for step, _ in steps))

    def test_steps_and_histograms_are_written(self):
        self.write("config.yaml", CONFIG)
        self.dtrain("fit", "config.yaml", "--output", "run", "--step-log", "log",
                    "--set", "train.callbacks=[{tensorboard: {update_freq: batch, histogram_freq: 2}}]")
        log = [json.loads(line) for line in (self.dir / "log").read_text().splitlines()]
        steps = scalars(self.dir / "run/tensorboard/steps")
        self.assertEqual(steps["batch_loss"], [(line["step"], narrow(line["loss"])) for line in log])
        self.assertEqual(len(steps["batch_learning_rate"]), len(log))
        histograms = summaries(self.dir / "run/tensorboard/train", HISTOGRAM)
        self.assertEqual(set(histograms), {f"{layer}/{weight}" for layer in ("dense", "dense_1") for weight in ("kernel", "bias")})
        for (epoch, histogram), expected in zip(histograms["dense/kernel"], (2, 4)):
            self.assertEqual(epoch, expected)
            counts = struct.unpack(f"<{len(histogram[7]) // 8}d", histogram[7])
            self.assertEqual(sum(counts), 12 * 16)
            self.assertEqual(histogram[3], 12 * 16)

    def test_gradient_histograms_explain_the_change_of_the_weights(self):
        """With plain gradient descent and one step per epoch, the sum of a weight decreases by the learning rate times
        the sum of its gradient."""
        rate = 0.25
        config = CONFIG.replace("batch_size: 16", "batch_size: 500").replace(
            "adam: {learning_rate: {exponential_decay: {initial: 0.01, decay_steps: 50, decay_rate: 0.9}}}", "sgd: {learning_rate: 0.25}").replace(
            "metrics: [sparse_categorical_accuracy]", "callbacks: [{tensorboard: {histogram_freq: 1, write_grads: true}}]")
        strategies = ("{single: {device: cpu:0}}", "{mirrored: {devices: [cpu:0, cpu:1]}}", "{mirrored: {devices: [cpu:0], replicas: 3}}",
                      "{sharded: {devices: [cpu:0, cpu:1], level: gradients}}")
        for strategy in strategies:
            for clip in ("clip_norm=null", "clip_norm=0.1", "clip_value=0.0001"):
                with self.subTest(strategy=strategy, clip=clip):
                    self.fit("--overwrite", "--set", f"strategy={strategy}", "--set", f"train.{clip}", config=config)
                    found = summaries(self.dir / "run/tensorboard/train", HISTOGRAM)
                    self.assertEqual(len(found), 8)  # kernel and bias of two layers, and their gradients
                    for tag in ("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"):
                        weights, gradients = found[tag], found[tag + "_grad"]
                        self.assertEqual([epoch for epoch, _ in gradients], [1, 2, 3, 4])
                        self.assertEqual(gradients[0][1][3], weights[0][1][3])  # number of values
                        size = sum(abs(value[4]) for _, value in weights) + 1
                        for (_, before), (_, after), (_, gradient) in zip(weights, weights[1:], gradients[1:]):
                            self.assertAlmostEqual(before[4] - after[4], rate * gradient[4], delta=1e-6 * size)
                        for _, gradient in gradients:
                            self.assertGreater(gradient[5], 1e-8)  # sum of squares
                            if clip.startswith("clip_value"):
                                self.assertLessEqual(max(-gradient[1], gradient[2]), 0.0001 * 1.000001)

    def test_the_graph_is_written_once(self):
        self.fit("--epochs", 1)
        self.dtrain("resume", "run", "--epochs", 2)
        graphs = [event[4] for path in sorted((self.dir / "run/tensorboard/train").iterdir())
                  for event in (dict(fields(record)) for record in records(path)) if 4 in event]
        self.assertEqual(len(graphs), 1)
        nodes = {}
        for _, node in fields(graphs[0]):
            inputs = [value.decode() for number, value in fields(node) if number == 3]
            node = dict(fields(node))
            nodes[node[1].decode()] = (node[2].decode(), inputs)
        self.assertEqual(nodes["x"], ("input", []))
        self.assertEqual(nodes["dense"], ("dense", ["x"]))
        self.assertEqual(nodes["dense_1"], ("dense", ["dropout"]))
        for _, inputs in nodes.values():
            self.assertLessEqual(set(inputs), set(nodes))
        self.fit("--overwrite", "--epochs", 1, "--set", "train.callbacks=[{tensorboard: {write_graph: false}}]")
        self.assertFalse([event for path in (self.dir / "run/tensorboard/train").iterdir()
                          for event in (dict(fields(record)) for record in records(path)) if 4 in event])

    def test_input_images_are_shown_after_the_transforms(self):
        config = CONFIG.replace("x: [12]", "x: [4, 6, 3]").replace("  layers:\n", "  layers:\n    - flatten: {}\n").replace(
            "metrics: [sparse_categorical_accuracy]", "callbacks: [{tensorboard: {input_images: 3}}]")
        self.fit("--epochs", 1, config=config)
        images = summaries(self.dir / "run/tensorboard/train", IMAGE)
        self.assertEqual(set(images), {"x/0", "x/166", "x/333"})  # evenly spaced over 500 samples
        pictures = set()
        for [(step, image)] in images.values():
            self.assertEqual((step, image[1], image[2], image[3]), (0, 4, 6, 3))
            pictures.add(image[4])
            rows = inflated_rows(image[4])
            self.assertEqual(len(rows), 4 * (1 + 6 * 3))
        self.assertEqual(len(pictures), 3)

    def test_overwriting_removes_only_the_old_events(self):
        self.fit()
        self.write("run/tensorboard/train/mine.txt", "mine")
        self.fit("--overwrite", "--epochs", 1)
        self.check_table()
        self.check_epochs()
        self.assertTrue((self.dir / "run/tensorboard/train/mine.txt").exists())

    def test_a_nan_loss_is_written(self):
        config = CONFIG.replace("optimizer: {adam: {learning_rate: {exponential_decay: {initial: 0.01, decay_steps: 50, decay_rate: 0.9}}}}",
                                "optimizer: {sgd: {learning_rate: 1.0e+30}}\n  callbacks: [{terminate_on_nan: {enabled: false}}]")
        self.fit("--epochs", 1, config=config, expect=1)
        found = scalars(self.dir / "run/tensorboard/train")["epoch_loss"]
        self.assertFalse(math.isfinite(found[0][1]))
        self.assertIn(self.table()[0]["loss"], ("nan", "inf", "-inf")) if self.table() else None

    def test_an_unwritable_folder_is_a_warning(self):
        self.write("run/tensorboard", "a file is in the way")
        process = self.fit()
        self.assertEqual(process.err.count("TensorBoard's data will be incomplete"), 1)
        self.check_table()

    def test_tensorboard_reads_the_events(self):
        python = os.environ.get("DTRAIN_TENSORBOARD_PYTHON", sys.executable)
        probe = "from tensorboard.backend.event_processing import event_accumulator"
        if subprocess.run([python, "-c", probe], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("TensorBoard is not installed")
        self.write("config.yaml", LONG.replace("x: [12]", "x: [3, 4]").replace("dense: {units: 3}", "flatten: {}\n    - dense: {units: 3}").replace(
            "metrics: [sparse_categorical_accuracy]", "metrics: [sparse_categorical_accuracy]\n  callbacks: "
            "[{tensorboard: {update_freq: batch, histogram_freq: 10, write_grads: true, input_images: 2}}]"))
        self.kill_on_the_way("fit", "config.yaml", "--output", "run", after=STEPS_PER_EPOCH * 4)
        self.dtrain("resume", "run")
        script = probe + """
import json, sys
found = {}
for part in ("train", "validation", "steps"):
    reader = event_accumulator.EventAccumulator("run/tensorboard/" + part, {"scalars": 0, "histograms": 0, "images": 0})
    reader.Reload()
    if part == "train":
        found["graph"] = [[node.name, node.op, list(node.input)] for node in reader.Graph().node]
        found["images"] = {tag: [(e.step, e.height, e.width) for e in reader.Images(tag)] for tag in reader.Tags()["images"]}
    found[part] = {tag: [(e.step, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}
    found[part + " histograms"] = {tag: [(e.step, e.histogram_value.num) for e in reader.Histograms(tag)] for tag in reader.Tags()["histograms"]}
json.dump(found, sys.stdout)
"""
        run = subprocess.run([python, "-c", script], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        found = json.loads(run.stdout)
        lines = self.lines()
        self.assertEqual(found["graph"][1][:3], ["dense", "dense", ["x"]])
        self.assertEqual(found["images"]["x/0"], [[0, 3, 4]])
        self.assertEqual([step for step, _ in found["train histograms"]["dense/kernel_grad"]], [10, 20, 30, 40])
        self.assertEqual(found["train"]["epoch_loss"], [[line["epoch"], narrow(line["loss"])] for line in lines])
        self.assertEqual(found["validation"]["epoch_sparse_categorical_accuracy"],
                         [[line["epoch"], narrow(line["val_sparse_categorical_accuracy"])] for line in lines])
        self.assertEqual([step for step, _ in found["steps"]["batch_loss"]], list(range(1, 40 * STEPS_PER_EPOCH + 1)))
        self.assertEqual([step for step, _ in found["train histograms"]["dense/kernel"]], [10, 20, 30, 40])


if __name__ == "__main__":
    support.main()
