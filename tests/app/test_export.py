"""`dtrain export`: files for other tools, the names of these files, and errors on the command line."""
import json
import os
import struct

import support
from support import CONFIG, Case


class Exported(Case):
    def setUp(self):
        super().setUp()
        self.fit("--epochs", 1)

    def folder(self):
        return sorted(path.name for path in self.dir.iterdir())


class Files(Exported):
    def test_the_extension_determines_the_format(self):
        out = self.dtrain("export", "run", "--output", "model.onnx").out
        self.assertIn("written: model.onnx\n", out)
        self.assertIn(b"dense_1", (self.dir / "model.onnx").read_bytes())

    def test_json_lists_files_inputs_and_outputs(self):
        found = self.json("export", "run", "--output", "model.onnx", "--external-data")
        self.assertEqual((found["format"], found["inputs"], found["outputs"]), ("onnx", ["x"], ["dense_1"]))
        self.assertEqual(found["files"], ["model.onnx", "model.onnx.data"])
        self.assertEqual((self.dir / "model.onnx.data").stat().st_size, 12 * 16 * 4)  # only the kernel is large

    def test_external_data_can_be_mapped(self):
        self.fit("--epochs", 1, config=CONFIG.replace("units: 16", "units: 30"), output="wide")
        self.dtrain("export", "wide", "--output", "model.onnx", "--external-data")
        self.assertEqual((self.dir / "model.onnx.data").stat().st_size, 4096 + 30 * 3 * 4)  # aligned, after a kernel
        self.assertIn(b"model.onnx.data", (self.dir / "model.onnx").read_bytes())

    def test_the_same_model_gives_the_same_bytes(self):
        files = []
        for name in ("a.onnx", "b.onnx"):
            self.dtrain("export", "run", "--output", name)
            files.append((self.dir / name).read_bytes())
        self.assertEqual(*files)

    def test_float16_is_smaller(self):
        self.dtrain("export", "run", "--output", "a.onnx")
        self.dtrain("export", "run", "--output", "b.onnx", "--float16")
        self.assertLess((self.dir / "b.onnx").stat().st_size, 0.8 * (self.dir / "a.onnx").stat().st_size)

    def test_a_single_checkpoint_can_be_exported(self):
        os.rename(self.checkpoints()[-1], self.dir / "alone.h5")
        self.dtrain("export", "alone.h5", "--output", "model.onnx", "--format", "onnx", "--quiet")
        self.assertTrue((self.dir / "model.onnx").exists())

    def test_classes_and_transforms_are_metadata(self):
        self.dtrain("export", "run", "--output", "model.onnx")
        self.assertIn(b'{"dense_1": {"numbers": "logits"}}', (self.dir / "model.onnx").read_bytes())
        self.dtrain("export", "run", "--output", "model.onnx", "--outputs", "probabilities")
        self.assertIn(b'{"dense_1": {"numbers": "probabilities"}}', (self.dir / "model.onnx").read_bytes())


class OnnxListing(Exported):
    def test_inspect_lists_initializers_and_summary_operators(self):
        self.dtrain("export", "run", "--output", "a.onnx")
        file = self.json("inspect", "a.onnx")
        self.assertEqual((file["opset"], file["producer"]), (17, "dtrain"))
        weights = {array["name"]: array for array in file["weights"]}
        self.assertTrue(all(array["dtype"] in ("float32", "int64") for array in weights.values()))
        self.assertEqual(file["inputs"][0]["shape"][0], "batch")
        operators = self.json("summary", "a.onnx")["operators"]
        self.assertIn("Gemm", [operator["op"] for operator in operators])
        self.assertIn("Gemm", self.dtrain("summary", "a.onnx").out)
        for name in weights:
            self.assertIn(name, self.dtrain("inspect", "a.onnx").out)

    def test_damaged_files_and_external_data_elsewhere_are_errors(self):
        self.dtrain("export", "run", "--output", "a.onnx", "--external-data")
        whole = (self.dir / "a.onnx").read_bytes()
        (self.dir / "short.onnx").write_bytes(whole[:-20])
        self.assertIn("short.onnx: expected", self.dtrain("inspect", "short.onnx", expect=2).err)
        (self.dir / "text.onnx").write_bytes(b"model: {}\n")
        self.assertIn("text.onnx: expected an ONNX", self.dtrain("inspect", "text.onnx", expect=2).err)
        (self.dir / "away.onnx").write_bytes(whole.replace(b"a.onnx.data", b"/etc/passwd"))
        self.assertIn("in a file in the same folder, found '/etc/passwd'", self.dtrain("inspect", "away.onnx", expect=2).err)
        (self.dir / "a.onnx.data").write_bytes(b"")
        self.assertIn("a.onnx: expected", self.dtrain("inspect", "a.onnx", expect=2).err)

    def test_an_onnx_file_cannot_initialize_weights(self):
        self.dtrain("export", "run", "--output", "a.onnx")
        self.assertIn("this is an ONNX model", self.dtrain("check", "config.yaml", "--set", "model.weights.from=a.onnx", expect=2).err)


class Safetensors(Exported):
    def read(self, name):
        content = (self.dir / name).read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:8 + length])
        return header.pop("__metadata__"), header, content[8 + length:]

    def test_pytorch_exports_have_a_script_and_probes(self):
        found = self.json("export", "run", "--output", "model.safetensors")
        self.assertEqual(found["files"], ["model.safetensors", "model_load.py", "model_probes.safetensors"])
        metadata, arrays, _ = self.read("model.safetensors")
        self.assertEqual({name: array["shape"] for name, array in arrays.items()},
                         {"dense.weight": [16, 12], "dense.bias": [16], "dense_1.weight": [3, 16], "dense_1.bias": [3]})
        self.assertEqual(metadata["layout"], "pytorch")
        self.assertEqual(json.loads(metadata["model"])["inputs"]["x"]["shape"], [12])
        script = (self.dir / "model_load.py").read_text()
        compile(script, "model_load.py", "exec")
        self.assertIn("self.dense = nn.Linear(12, 16)", script)
        _, probes, _ = self.read("model_probes.safetensors")
        self.assertEqual({name: array["shape"] for name, array in probes.items()}, {"inputs.x": [2, 12], "outputs.dense_1": [2, 3]})

    def test_python_can_import_the_script(self):
        found = self.json("export", "run", "--output", "1-my.model.safetensors")
        self.assertEqual(found["files"], ["1-my.model.safetensors", "_1_my_model_load.py", "1-my.model_probes.safetensors"])

    def test_layouts_only_reorder_the_numbers(self):
        kernels = []
        for layout in ("pytorch", "keras"):
            self.dtrain("export", "run", "--output", "model.safetensors", "--layout", layout)
            _, arrays, data = self.read("model.safetensors")
            first, last = arrays["dense.weight" if layout == "pytorch" else "dense/kernel"]["data_offsets"]
            kernels.append(struct.unpack("<192f", data[first:last]))
        turned = tuple(kernels[1][row * 16 + column] for column in range(16) for row in range(12))
        self.assertEqual(kernels[0], turned)

    def test_the_data_begin_at_a_multiple_of_eight(self):
        self.dtrain("export", "run", "--output", "model.safetensors")
        self.assertEqual(struct.unpack("<Q", (self.dir / "model.safetensors").read_bytes()[:8])[0] % 8, 0)

    def test_a_users_script_is_not_overwritten(self):
        self.write("model_load.py", "print('mine')\n")
        error = self.dtrain("export", "run", "--output", "model.safetensors", expect=2).err
        self.assertIn("model_load.py: the file exists and was not written by dtrain", error)
        self.assertEqual((self.dir / "model_load.py").read_text(), "print('mine')\n")
        self.assertFalse((self.dir / "model.safetensors").exists())


EVERY_WEIGHT = """\
seed: 5
model:
  inputs: {image: [6, 6, 3], words: {shape: [4], dtype: int32}, volume: [4, 3, 2, 2]}
  %s
  layers:
    - conv2d: {filters: 4, kernel_size: [3, 2], inputs: image, name: block/conv}
    - batch_normalization: {scale: false, name: plain}
    - depthwise_conv2d: {kernel_size: [2, 3], depth_multiplier: 2}
    - separable_conv2d: {filters: 4, kernel_size: [1, 2], depth_multiplier: 2}
    - conv2d: {filters: 6, kernel_size: 1, groups: 2, name: grouped}
    - conv2d_transpose: {filters: 3, kernel_size: [2, 3], strides: 2}
    - batch_normalization
    - flatten
    - dense: {units: 5, name: of_image}
    - embedding: {input_dim: 7, output_dim: 5, inputs: words}
    - layer_normalization: {center: false}
    - flatten: {name: rows}
    - conv3d: {filters: 3, kernel_size: [3, 2, 1], inputs: volume}
    - flatten: {name: voxels}
    - concatenate: {inputs: [of_image, rows, voxels]}
    - dense: {units: 2}
dataset: {train: {synthetic: {samples: 8, input: {low: 0, high: 7}, target: {shape: [2]}}}}
strategy: single
train: {epochs: 1, batch_size: 8, loss: mean_squared_error, optimizer: {sgd: {learning_rate: %s}}}
"""


class ComesBack(Case):
    def test_every_weight_of_a_pytorch_file_is_read_back(self):
        self.fit(config=EVERY_WEIGHT % ("", 0.01), output="first")
        self.dtrain("export", "first", "--output", "w.safetensors")
        output = self.fit(config=EVERY_WEIGHT % ("weights: {from: w.safetensors}", 0), output="again").err
        self.assertIn("26 of 26 weights from", output)
        before, after = (self.arrays(self.checkpoints(run)[-1]) for run in ("first", "again"))
        trained = [key for key in before if key[0] == "weight" and "moving" not in key[1]]
        self.assertEqual(len(trained), 22)
        for key in trained:
            self.assertEqual(before[key], after[key], key)


class Mistakes(Exported):
    def refused(self, *arguments):
        before = self.folder()
        error = self.dtrain("export", *arguments, expect=2).err
        self.assertEqual(self.folder(), before)  # no leftover files
        return error

    def test_an_unknown_extension_is_an_error_that_lists_the_formats(self):
        error = self.refused("run", "--output", "model.bin")
        self.assertIn(".onnx", error)
        self.assertIn("--format", error)

    def test_an_unknown_format_is_an_error(self):
        self.assertIn("onnx", self.refused("run", "--output", "model.onnx", "--format", "onxx"))

    def test_options_of_another_format_are_errors(self):
        self.assertIn("--opset: this option applies only to ONNX, but the format is safetensors", self.refused("run", "--output", "m.safetensors", "--opset", 17))
        self.assertIn("--layout: this option applies only to safetensors, but the format is onnx", self.refused("run", "--output", "m.onnx", "--layout", "keras"))
        for output in (["m.keras"], ["m.safetensors", "--layout", "keras"]):
            self.assertIn("--with-preprocessing: this option applies only to", self.refused("run", "--with-preprocessing", "--output", *output))
            self.assertIn("--outputs probabilities: this option applies only to", self.refused("run", "--outputs", "probabilities", "--output", *output))

    def test_an_opset_out_of_range_is_an_error(self):
        self.assertIn("13", self.refused("run", "--output", "model.onnx", "--opset", 12))
        self.assertIn("expected a number from 13 to", self.refused("run", "--output", "model.onnx", "--opset", 99))

    def test_a_layer_that_needs_a_later_opset_is_an_error(self):
        self.write("rows.yaml", CONFIG.replace("    - dropout: {rate: 0.2}\n", "    - layer_normalization\n"))
        self.dtrain("fit", "rows.yaml", "--epochs", 1, "--output", "rows", "--quiet")
        error = self.refused("rows", "--output", "model.onnx", "--opset", 16)
        self.assertIn("layer_normalization", error)
        self.assertIn("--opset 17", error)

    def test_numbers_beyond_float16_are_errors(self):
        self.write("large.yaml", CONFIG.replace("dense: {units: 3}", "dense: {units: 3, bias_initializer: {constant: 1e6}}"))
        self.dtrain("fit", "large.yaml", "--epochs", 1, "--output", "large", "--quiet")
        error = self.refused("large", "--output", "model.onnx", "--float16")
        self.assertIn("dense_1/bias", error)
        self.assertIn("65504", error)

    def test_a_checkpoint_is_not_overwritten(self):
        checkpoint = self.checkpoints()[-1]
        before = checkpoint.read_bytes()
        self.assertIn("is a checkpoint", self.refused("run", "--output", checkpoint, "--format", "onnx"))
        self.assertEqual(checkpoint.read_bytes(), before)

    def test_a_folder_as_output_is_an_error(self):
        self.assertIn("found a directory", self.refused("run", "--output", "run", "--format", "onnx"))

    def test_a_configuration_cannot_be_exported(self):
        self.assertIn("expected a run, but found a configuration", self.refused("config.yaml", "--output", "model.onnx"))

    def test_a_missing_folder_is_an_error(self):
        self.dtrain("export", "run", "--output", "nowhere/model.onnx", expect=2)

    def test_help_lists_the_formats(self):
        self.assertIn("onnx", self.dtrain("export", "--help").out)


if __name__ == "__main__":
    support.main()
