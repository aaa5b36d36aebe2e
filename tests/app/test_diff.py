"""`dtrain diff`: equal runs compare equal; differences are counted, sorted and reflected in the exit code."""
import json
import struct

import support
from support import CONFIG, Case


class Diff(Case):
    def diff(self, *arguments, expect):
        return json.loads(self.dtrain("diff", *arguments, "--json", expect=expect).out)


class Runs(Diff):
    def test_the_same_run_under_two_names_is_equal(self):
        self.fit("--epochs", 1)
        self.fit("--epochs", 1, "--set", "name=another", output="other")
        found = self.diff("run", "other", expect=0)
        self.assertTrue(found["equal"])
        self.assertEqual((found["weights"]["same"], found["slots"]["same"]), (4, 8))
        self.assertEqual(self.dtrain("diff", "run", "other").out, "equal: 4 weights, 8 optimizer slots\n")

    def test_another_strategy_gives_the_same_arrays_up_to_rounding(self):
        self.fit("--epochs", 1)
        self.fit("--epochs", 1, "--set", "strategy=single", output="other")
        found = self.diff("run", "other", expect=1)
        self.assertEqual({setting["name"].split(".")[0] for setting in found["config"]}, {"strategy"})
        self.assertTrue(self.diff("run", "other", "--arrays", "--tolerance", "1e-6", expect=0)["equal"])

    def test_integers_in_files_of_other_programs_are_compared(self):
        def safetensors(name, batches):
            arrays = {"bn.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "bn.num_batches_tracked": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}}
            header = json.dumps(arrays).encode()
            (self.dir / name).write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2fq", 1, 1, batches))

        def field(number, value):  # of a protocol buffer message
            return bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value

        def onnx(name, values):
            initializer = field(1, 2) + field(2, 3) + field(8, b"w_quantized") + values
            (self.dir / name).write_bytes(field(1, 8) + field(8, field(2, 17)) + field(7, field(2, b"graph") + field(5, initializer)))

        safetensors("a.safetensors", 5)
        safetensors("b.safetensors", 6)
        self.assertTrue(self.diff("a.safetensors", "a.safetensors", expect=0)["equal"])
        self.assertIn("bn/num_batches_tracked", self.dtrain("diff", "a.safetensors", "b.safetensors", expect=1).out)
        onnx("a.onnx", field(9, b"\x01\xff"))
        onnx("b.onnx", field(9, b"\x02\xff"))
        onnx("packed.onnx", field(5, b"\x01" + b"\xff" * 9 + b"\x01"))  # the same numbers as a.onnx, 1 and -1
        self.assertTrue(self.diff("a.onnx", "packed.onnx", expect=0)["equal"])
        self.assertIn("w_quantized", self.dtrain("diff", "a.onnx", "b.onnx", expect=1).out)

    def test_different_settings_counters_weights_and_slots_are_listed(self):
        self.fit("--epochs", 1)
        self.fit("--epochs", 2, "--set", "train.batch_size=8", "model.layers.1.dropout.rate=0.3", output="other")
        found = self.diff("run", "other", expect=1)
        self.assertIn({"name": "train.batch_size", "a": "16", "b": "8"}, found["config"])
        self.assertEqual([setting["name"] for setting in found["model"]], ["model.layers.1.dropout.rate"])
        self.assertIn({"name": "epoch", "a": "1", "b": "2"}, found["state"])
        largest = [array["largest"] for array in found["weights"]["changed"]]
        self.assertEqual(largest, sorted(largest, reverse=True))
        self.assertEqual(len(largest), 4)
        for array in found["weights"]["changed"]:
            self.assertEqual(sum(array["ulps"].values()), array["different"])
        text = self.dtrain("diff", "run", "other", expect=1).out
        self.assertTrue(text.startswith("different: 4 of 4 weights, 8 of 8 optimizer slots, 1 model setting"), text)
        self.assertIn("  train.batch_size: 16 -> 8\n", text)
        self.assertTrue(self.diff("run", "other", "--arrays", "--tolerance", "1e9", expect=0)["equal"])

    def test_layers_of_only_one_run_are_listed(self):
        self.fit("--epochs", 0)
        wider = CONFIG.replace("    - dense: {units: 3}", "    - dense: {units: 5}\n    - dense: {units: 3}")
        self.fit("--epochs", 0, config=wider, output="other")
        found = self.diff("run", "other", expect=1)
        self.assertEqual(found["weights"]["only_b"], ["dense_2/bias", "dense_2/kernel"])
        self.assertEqual([(shape["name"], shape["a"], shape["b"]) for shape in found["weights"]["shapes"]],
                         [("dense_1/bias", "3 float32", "5 float32"), ("dense_1/kernel", "16x3 float32", "16x5 float32")])

    def test_model_files_of_other_formats_are_compared(self):
        self.fit("--epochs", 1)
        self.dtrain("export", "run", "--output", "model.keras")
        self.dtrain("import", "model.keras")
        for other in ("model.keras", "model"):
            found = self.diff("run", other, *(["--arrays"] if other == "model" else []), expect=0 if other != "model" else 1)
            self.assertEqual((found["weights"]["same"], found["weights"]["changed"]), (4, []))
        self.assertEqual(len(self.diff("run", "model", "--arrays", expect=1)["slots"]["only_a"]), 8)

    def test_a_keras_model_is_compared_by_the_names_that_import_gives(self):
        layers = "    - dense: {units: 16, activation: relu}\n    - dropout: {rate: 0.2}\n"
        many = "".join(f"    - dense: {{units: 12, name: {name}}}\n    - layer_normalization: {{name: norm_{name}}}\n" for name in "abcd")
        self.fit("--epochs", 1, config=CONFIG.replace(layers, many))
        self.dtrain("export", "run", "--output", "model.keras")
        self.dtrain("import", "model.keras")
        self.assertIn("repeat: 4", (self.dir / "model/model.yaml").read_text())
        for a, b in (("model", "model.keras"), ("model.keras", "model"), ("run", "model.keras")):
            self.assertEqual(self.diff(a, b, expect=0)["weights"]["same"], 18)
        self.fit("--epochs", 2, config=CONFIG.replace(layers, many), output="other")
        self.dtrain("export", "other", "--output", "other.keras")
        self.assertEqual(len(self.diff("model", "other.keras", expect=1)["weights"]["changed"]), 18)

    def test_a_run_is_compared_with_files_with_other_names_and_axes(self):
        self.fit("--epochs", 1)
        self.fit("--epochs", 2, output="other")
        for name, options in {"a.onnx": (), "external.onnx": ("--external-data", "--opset", 13), "a.safetensors": ()}.items():
            self.dtrain("export", "run", "--output", name, *options)
            self.assertEqual(self.diff("run", name, expect=0)["weights"]["same"], 4)
            self.assertEqual(self.diff(name, "run", expect=0)["weights"]["same"], 4)
            self.assertEqual(len(self.diff(name, "other", expect=1)["weights"]["changed"]), 4)
        self.assertTrue(self.diff("a.onnx", "external.onnx", expect=0)["equal"])
        found = self.dtrain("diff", "a.onnx", "a.safetensors", expect=2).err
        self.assertIn("a.onnx: the names and the order of axes of the weights in this file differ from those in a.safetensors", found)

    def test_incomparable_files_are_errors(self):
        self.fit("--epochs", 0, "--step-log", "log")
        self.write("other", '{"step":1,"loss":0.5}\n')
        self.assertIn("but there is no such file", self.dtrain("diff", "run", "nowhere", expect=2).err)
        self.assertIn("compare two step logs", self.dtrain("diff", "run", "other", expect=2).err)
        self.assertIn("--tolerance: expected a number of at least 0", self.dtrain("diff", "run", "run", "--tolerance", "-1", expect=2).err)


class StepLogs(Diff):
    def log(self, name, losses):
        self.write(name, "".join(f'{{"step":{step},"loss":{loss},"seconds":{step / 7}}}\n' for step, loss in losses.items()))

    def test_the_first_different_step_is_named(self):
        self.log("a", {1: 0.5, 2: 0.25, 3: 0.125})
        self.log("b", {1: 0.5, 2: 0.26, 3: 0.5, 4: 1})
        found = self.diff("a", "b", expect=1)
        self.assertEqual((found["first"], found["a"], found["b"], found["different"], found["only_b"]), (2, 0.25, 0.26, 2, 1))
        self.assertIn("first    step 2: 0.25 -> 0.26\n", self.dtrain("diff", "a", "b", expect=1).out)

    def test_logs_are_equal_within_the_tolerance(self):
        self.log("a", {1: 0.5, 2: '"nan"'})
        self.log("b", {1: 0.5000001, 2: '"nan"'})
        self.assertEqual(self.diff("a", "b", expect=1)["first"], 1)
        self.assertTrue(self.diff("a", "b", "--tolerance", "1e-6", expect=0)["equal"])

    def test_step_logs_of_the_same_run_are_equal(self):
        for name in ("run", "other"):
            self.fit("--epochs", 1, "--step-log", f"{name}.log", output=name)
        self.assertEqual(self.diff("run.log", "other.log", expect=0)["steps"], support.STEPS_PER_EPOCH)

    def test_a_damaged_line_is_an_error_with_its_number(self):
        self.log("a", {1: 0.5})
        self.write("b", '{"step":1,"loss":0.5}\n{"step":2,\n')
        self.assertIn("b:2: this line is not a valid line of a step log", self.dtrain("diff", "a", "b", expect=2).err)


if __name__ == "__main__":
    support.main()
