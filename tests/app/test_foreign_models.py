"""Model files of other programs. dtrain recognizes them by their content, and lists the weights of Keras's .h5 files."""
import json
import math
import struct
import zipfile

import support
from support import CONFIG, Case


class Named(Case):
    def archive(self, name, *members):
        with zipfile.ZipFile(self.dir / name, "w") as file:
            for member in members:
                file.writestr(member, "{}")

    def test_an_unsupported_format_is_an_error_that_suggests_a_conversion(self):
        self.archive("b.pt", "archive/data.pkl", "archive/data/0")
        (self.dir / "old.pt").write_bytes(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.")
        expected = {"b.pt": ("a PyTorch file", "model.save('model.h5')"),
                    "old.pt": ("a PyTorch file", "model.save('model.h5')")}
        for name, words in expected.items():
            self.write("config.yaml", CONFIG.replace("model:\n", f"model:\n  weights: {{from: {name}}}\n"))
            for command in (["inspect", name], ["summary", name], ["evaluate", name], ["resume", name, "--output", "other"],
                            ["fit", "config.yaml"], ["check", "config.yaml"]):
                with self.subTest(command):
                    error = self.dtrain(*command, expect=2).err
                    for word in words:
                        self.assertIn(word, error)

    def test_a_keras_archive_is_read_or_import_is_suggested(self):
        self.archive("a.h5", "metadata.json", "config.json", "model.weights.h5")  # the content counts, not the name
        self.write("config.yaml", CONFIG.replace("model:\n", "model:\n  weights: {from: a.h5}\n"))
        for command in (["evaluate", "a.h5"], ["resume", "a.h5", "--output", "other"]):
            self.assertIn("a model that Keras saved as .keras; use `dtrain import FILE`", self.dtrain(*command, expect=2).err)
        for command in (["inspect", "a.h5"], ["summary", "a.h5"], ["import", "a.h5", "--output", "new"],
                        ["fit", "config.yaml"], ["check", "config.yaml"]):
            self.assertIn("expected an HDF5 file in model.weights.h5", self.dtrain(*command, expect=2).err)


def safetensors(header, data):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


class Safetensors(Case):
    def fit_from(self, content, expect=0, more=""):
        (self.dir / "c.safetensors").write_bytes(content)
        return self.fit("--epochs", 1, "--overwrite", expect=expect,
                        config=CONFIG.replace("model:\n", "model:\n  weights: {from: c.safetensors%s}\n" % more)).err

    def test_commands_for_runs_explain_the_use_of_a_weight_file(self):
        (self.dir / "c.safetensors").write_bytes(safetensors({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)))
        self.assertEqual(self.json("inspect", "c.safetensors")["weights"], [{"name": "w", "shape": [1], "is_float": True}])
        self.assertRegex(self.dtrain("inspect", "c.safetensors").out, r"\nw +1 +1\n")
        error = self.dtrain("evaluate", "c.safetensors", expect=2).err
        self.assertIn("a safetensors file; to start a new run with its weights", error)

    def test_summary_lists_the_layers_found_in_the_names(self):
        sizes = {"features.0.weight": [2, 3], "features.0.bias": [2], "head/kernel": [2, 1], "scale": []}
        header, at = {}, 0
        for name, shape in sizes.items():
            end = at + 4 * math.prod(shape)
            header[name], at = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}, end
        (self.dir / "c.safetensors").write_bytes(safetensors(header, bytes(at)))
        summary = self.json("summary", "c.safetensors")
        self.assertEqual([(layer["name"], layer["parameters"]) for layer in summary["layers"]],
                         [("features.0", 8), ("head", 2), ("", 1)])
        self.assertEqual(summary["parameters"], {"total": 11})
        self.assertRegex(self.dtrain("summary", "c.safetensors").out, r"\nfeatures.0 +weight 2x3, bias 2 +8\n")

    def test_long_metadata_are_cut_between_characters(self):
        header = {"__metadata__": {"note": "x" + 100 * "\u00e9"}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
        (self.dir / "c.safetensors").write_bytes(safetensors(header, bytes(4)))
        for command in ("inspect", "summary"):  # the name is cut at 80 bytes, of which the last is the first byte of a character
            self.assertIn("\nnote   x" + 39 * "\u00e9" + "...\n", self.dtrain(command, "c.safetensors").out)

    def test_linear_layers_of_pytorch_are_transposed(self):
        sizes = {"a.weight": [16, 12], "a.bias": [16], "b.weight": [3, 16], "b.bias": [3]}
        header, at, data = {}, 0, b""
        for name, shape in sizes.items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * count]}
            data += struct.pack(f"<{count}f", *(i / 100 for i in range(count)))
            at += 4 * count
        names = ", rename: {'a/*': 'dense/*', 'b/*': 'dense_1/*'}"
        self.assertIn("4 of 4 weights from", self.fit_from(safetensors(header, data), more=names))
        header["a.weight"]["shape"] = [12, 16]  # Keras's axis order, unlike PyTorch's
        error = self.fit_from(safetensors(header, data), expect=2, more=names)
        self.assertIn("expected the shape 12x16 for the weight 'dense/kernel', but found 16x12 in the file's 'a/weight'", error)
        self.assertIn("does not contain the model's 'dense/kernel', 'dense/bias'", self.fit_from(safetensors(header, data), expect=2))

    def test_exported_weights_are_read_back(self):
        self.fit("--epochs", 1, output="first")
        first = self.checkpoints("first")[-1]
        for layout in ("pytorch", "keras"):
            self.dtrain("export", "first", "--output", "w.safetensors", "--layout", layout)
            self.write("again.yaml", CONFIG.replace("model:\n", "model:\n  weights: {from: w.safetensors}\n"))
            output = self.dtrain("fit", "again.yaml", "--output", layout, "--epochs", 1, "--set",
                                 "train.optimizer={sgd: {learning_rate: 1e-30}}").err
            self.assertIn("4 of 4 weights from", output)
            before, after = (self.arrays(path) for path in (first, self.checkpoints(layout)[-1]))
            for name in ("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"):
                self.assertEqual(before["weight", name], after["weight", name])

    def test_damaged_files_are_errors_with_a_reason(self):
        good = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        damaged = {
            "unique keys in the object, but found the key 'w' again at offset": safetensors(b'{"w":%s,"w":%s}' % ((json.dumps(good).encode(),) * 2), bytes(4)),
            "contiguous arrays": safetensors({"a": good, "b": good}, bytes(4)),
            "'b' at byte 8, although the data before it end at byte 4": safetensors({"a": good, "b": {**good, "data_offsets": [8, 12]}}, bytes(12)),
            "arrays of 8 bytes in total, up to the end of the file": safetensors({"a": good}, bytes(8)),
            "data within the file": safetensors({"a": {**good, "data_offsets": [0, 4000]}}, bytes(4)),
            "the number of bytes that the shape 3 and the dtype F32 require": safetensors({"a": {**good, "shape": [3]}}, bytes(4)),
            "a shape whose size fits into 64 bits": safetensors({"a": {**good, "shape": [2**62, 4]}}, bytes(4)),
            "non-negative extents": safetensors({"a": {**good, "shape": [-1]}}, bytes(4)),
            "a safetensors dtype": safetensors({"a": {**good, "dtype": "F31"}}, bytes(4)),
            "dtype, shape and data_offsets": safetensors({"a": {"dtype": "F32"}}, bytes(4)),
            "at most 100000000 bytes": struct.pack("<Q", 100000001) + b"{}",
            "of the JSON text in the header": safetensors(b"{'a'}", b""),
            "c.safetensors: expected a complete file, found a truncated one": struct.pack("<Q", 1000) + b"{'a'}",
            "expected a string, found 5 in the header": safetensors({"a": {**good, "dtype": 5}}, bytes(4)),
        }
        for words, content in damaged.items():
            with self.subTest(words):
                error = self.fit_from(content, expect=2)
                self.assertIn(words, error)
                self.assertIn("c.safetensors: expected", error)


class Listed(Case):
    def test_an_h5_file_of_keras_is_listed(self):
        self.fit("--epochs", 1)
        # Without its header, a checkpoint looks like a Keras file.
        (self.dir / "model.h5").write_bytes(self.checkpoints()[-1].read_bytes()[512:])
        found = self.json("inspect", "model.h5")
        self.assertEqual([(array["layer"], array["name"], array["shape"]) for array in found["weights"]],
                         [("dense", "dense/kernel:0", [12, 16]), ("dense", "dense/bias:0", [16]),
                          ("dense_1", "dense_1/kernel:0", [16, 3]), ("dense_1", "dense_1/bias:0", [3])])
        self.assertEqual([array["weight"] for array in found["weights"]],
                         ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"])
        self.assertTrue(found["compiled"])
        summary = self.json("summary", "model.h5")
        self.assertEqual([(layer["kind"], layer["parameters"]) for layer in summary["layers"]],
                         [("InputLayer", 0), ("Dense", 208), ("Dropout", 0), ("Dense", 51)])
        self.assertEqual(summary["parameters"]["total"], 259)
        self.assertRegex(self.dtrain("summary", "model.h5").out, r"dense_1 +Dense +16x3, 3 +51\n")
        self.assertRegex(self.dtrain("inspect", "model.h5").out, r"dense +dense/kernel:0 +12x16 +float32 +192\n")
        self.assertIn("start a new run with its weights", self.dtrain("evaluate", "model.h5", expect=2).err)

    def test_a_keras_archive_is_listed_with_the_names_for_renaming(self):
        self.fit("--epochs", 1, "--set", "model.layers[0].dense.name=first")
        self.dtrain("export", "run", "--output", "model.keras")
        self.assertEqual([(array["weight"], array["layer"], array["name"]) for array in self.json("inspect", "model.keras")["weights"]],
                         [("first/kernel", "first", "dense/vars/0"), ("first/bias", "first", "dense/vars/1"),
                          ("dense/kernel", "dense", "dense_1/vars/0"), ("dense/bias", "dense", "dense_1/vars/1")])
        self.assertRegex(self.dtrain("inspect", "model.keras").out, r"first/kernel +first +dense/vars/0 +12x16 +float32 +192\n")
        self.assertEqual([(layer["kind"], layer["parameters"]) for layer in self.json("summary", "model.keras")["layers"]],
                         [("InputLayer", 0), ("Dense", 208), ("Dropout", 0), ("Dense", 51)])
        self.fit("--epochs", 1, "--set", "model.weights={from: model.keras, rename: {'first/*': 'trunk/*'}}",
                 "model.layers[0].dense.name=trunk", output="renamed")


if __name__ == "__main__":
    support.main()
