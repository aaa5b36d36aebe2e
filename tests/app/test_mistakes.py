"""Invalid configurations: each is rejected with exit code 2 and a helpful message at the right line and column."""
import os
import re
import subprocess
import time
import unittest

import support
from support import Case

GOOD = """\
seed: 1
model:
  inputs: {image: [8, 8, 3]}
  blocks:
    pair:
      parameters: {units: 4}
      layers:
        - dense: {units: $units}
        - dense: {units: 4, activation: relu}
  layers:
    - conv2d: {filters: 4, kernel_size: 3, activation: relu}
    - max_pooling2d: {pool_size: 2}
    - flatten: {}
    - pair: {units: 4, repeat: 2}
    - dropout: {rate: 0.5}
    - dense: {name: last, units: 3}
dataset:
  train:      {synthetic: {samples: 64, target: {classes: 3}}, rows: [0, 48]}
  validation: {synthetic: {samples: 64, target: {classes: 3}}, rows: [48, 64]}
  transforms:
    - rescale: {scale: 0.5}
  cache: memory
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 1
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.001}}
  metrics: [sparse_categorical_accuracy]
  callbacks:
    - early_stopping: {monitor: val_loss, patience: 2}
checkpoint: {every: 1 epoch, keep: 2, best: {monitor: val_loss}}
"""

# Rows: (text of GOOD, its replacement, part of the expected message). An @ in the replacement marks the location that
# the message must name. If this location is elsewhere in GOOD, the row has another element before the message: the text
# of GOOD at this location, with the @.
MISTAKES = [
    # Keys.
    ("seed: 1", "@sead: 1", "unknown key 'sead' in the configuration; did you mean 'seed'?"),
    ("kernel_size: 3", "@kernal_size: 3", "unknown key 'kernal_size' in conv2d; did you mean 'kernel_size'?"),
    ("rate: 0.5", "@rates: 0.5", "unknown key 'rates' in dropout; did you mean 'rate'?"),
    ("batch_size: 16", "@batchsize: 16", "did you mean 'batch_size'?"),
    ("keep: 2", "@keeep: 2", "did you mean 'keep'?"),
    ("patience: 2", "@patiense: 2", "did you mean 'patience'?"),
    ("learning_rate: 0.001", "@learning_rat: 0.001", "did you mean 'learning_rate'?"),
    ("  cache: memory", "  @cach: memory", "did you mean 'cache'?"),
    ("  validation: {", "  @validate: {", "unknown key 'validate'"),
    ("devices: [cpu:0", "@device: [cpu:0", "did you mean 'devices'?"),
    ("samples: 64, target: {classes: 3}}, rows: [0", "samples: 64, target: {@clases: 3}}, rows: [0",
     "did you mean 'classes'?"),
    ("pair: {units: 4,", "pair: {@unit: 4,", "did you mean 'units'?"),
    ("filters: 4, ", "", "missing key 'filters' in conv2d"),
    ("samples: 64, target: {classes: 3}}, rows: [0", "target: {classes: 3}}, rows: [0", "missing key 'samples'"),
    ("seed: 1", "seed: 1\n@seed: 2", "duplicate key"),
    # Types.
    ("- conv2d:", "- @conv2: ", "unknown layer 'conv2'; did you mean 'conv2d'?"),
    ("- flatten: {}", "- @capsule: {units: 3}", "unknown layer 'capsule'"),
    ("optimizer: {adam:", "optimizer: {@adm:", "unknown optimizer 'adm'; did you mean 'adam'?"),
    ("loss: {sparse_categorical_crossentropy:", "loss: {@sparse_crossentropy:", "unknown loss 'sparse_crossentropy'"),
    ("metrics: [sparse_categorical_accuracy]", "metrics: [@sparse_categorical_acuracy]",
     "did you mean 'sparse_categorical_accuracy'?"),
    ("strategy: {mirrored:", "strategy: {@mirored:", "did you mean 'mirrored'?"),
    ("- rescale:", "- @reskale:", "did you mean 'rescale'?"),
    ("rescale: {scale: 0.5}", "rescale: {scale: 0.5, of: [@imagee]}", "no input or target with this name; did you mean 'image'?"),
    ("rescale: {scale: 0.5}", "rescale: {scale: 0.5, of: @image}", "rescale: of: expected a list"),
    ("train:      {synthetic:", "train:      {@sinthetic:", "did you mean 'synthetic'?"),
    ("cache: memory", "cache: @memry", "did you mean 'memory'?"),
    ("- early_stopping:", "- @early_stoping:", "did you mean 'early_stopping'?"),
    ("activation: relu}\n    - max", "activation: @rellu}\n    - max", "did you mean 'relu'?"),
    ("learning_rate: 0.001", "learning_rate: {@cosine_deca: {initial: 1, steps: 3}}", "did you mean 'cosine_decay'?"),
    ("- conv2d: {", "- conv2d: {kernel_initializer: @he_norml, ", "did you mean 'he_normal'?"),
    # Values.
    ("epochs: 1", "epochs: @many", "epochs: expected"),
    ("epochs: 1", "epochs: @-1", "from 0 to 1000000000"),
    ("epochs: 1", "epochs: @1.5", "epochs: expected"),
    ("batch_size: 16", "batch_size: @0", "a number from 1 to"),
    ("rate: 0.5", "rate: @1.5", "rate: expected a number"),
    ("filters: 4", "filters: @[4]", "filters: expected"),
    ("filters: 4", "filters: @99999999999999999999", "filters: expected"),
    ("kernel_size: 3", "kernel_size: @[3, 3, 3]", "expected [height, width]"),
    ("activation: relu}\n    - max", "padding: @sane}\n    - max", "did you mean 'same'?"),
    ("rows: [0, 48]", "rows: @[48, 0]", "rows: expected"),
    ("every: 1 epoch", "every: @1 fortnight", "an interval such as '1 epoch'"),
    ("keep: 2", "keep: @0", "at least 1"),
    ("devices: [cpu:0, cpu:1]", "devices: [cpu:0, @tpu:1]", "expected a device"),
    ("{mirrored: {devices: [cpu:0, cpu:1]}}", "{single: {device: @[cpu:0, cpu:7]}}", "expected one device, or auto"),
    ("from_logits: true", "from_logits: @maybe", "expected true or false"),
    ("learning_rate: 0.001", "learning_rate: @-1", "at least 0"),
    ("kernel_size: 3", "kernel_size: 3, dilation_rate: @4294967297", "an integer from 1 to 2147483647"),
    ("kernel_size: 3", "kernel_size: 1000001, padding: same", "- @conv2d", "the kernel of shape 1000001x1000001x3x4 has more"),
    ("kernel_size: 3", "kernel_size: 3, padding: same, dilation_rate: 2147483647", "- @conv2d", "spans 4294967295x4294967295 elements"),
    ("repeat: 2", "repeat: @2147483647", "a number from 1 to 10000"),
    ("batch_size: 16", "batch_size: @2147483647", "and an array may have at most 2147483647 elements"),
    ("learning_rate: 0.001", "learning_rate: @1e39", "(the range of float32)"),
    ("seed: 1", "seed: 1\nname: @a/b", "a valid folder name"),
    ("seed: 1", "seed: 1\nname: @..", "a valid folder name"),
    ("seed: 1", "seed: 1\nname: @''", "a valid folder name"),
    # Devices that this machine does not have.
    ("devices: [cpu:0, cpu:1]", "devices: [cpu:0, @gpu:9999]", "gpu:9999: "),
    ("  epochs: 1", "  precision: @mixed_bfloat16\n  epochs: 1", "cpu:0: precision mixed_bfloat16 is for GPUs"),
    ("  train:      {synthetic", "  test:      {synthetic", "dataset:\n  @test:", "has no 'train' split, which training requires"),
    # Placement of layers (more in tests/train/wrong_placements_test.cpp).
    ("{mirrored: {devices: [cpu:0, cpu:1]}}", "{placed: {layers: {@lst: cpu:0}}}", "did you mean 'last'?"),
    ("{mirrored: {devices: [cpu:0, cpu:1]}}", "{pipeline: {devices: [cpu:0, cpu:1], stages: [@lats]}}",
     "stages: 'lats' is not a layer of the model; did you mean 'last'?"),
    ("dense: {name: last, units: 3}", "dense: {name: last, units: 3, device: @cpu:0}",
     "the strategy 'mirrored' cannot assign devices to individual layers"),
    # Names from other frameworks.
    ("- conv2d:", "- @nn.Conv2d:", "did you mean 'conv2d'?"),
    ("- flatten: {}", "- @nn.ReLU: {}", "write activation: relu"),
    ("loss: {sparse_categorical_crossentropy: {from_logits: true}}", "loss: @CrossEntropyLoss", "{from_logits: true}"),
    ("loss: {sparse_categorical_crossentropy: {from_logits: true}}", "loss: @MSELoss", "did you mean 'mean_squared_error'?"),
    ("- early_stopping:", "- ReduceLROnPlateau:\n    - early_stopping:", "- @ReduceLROnPlateau", "{reduce_on_plateau:"),
    ("- early_stopping:", "- ModelCheckpoint:\n    - early_stopping:", "- @ModelCheckpoint", "under the top-level key checkpoint"),
    ("batch_size: 16", "batch_size: 16\n  @validation_split: 0.2", "validation: {split: {of: train"),
    ("batch_size: 16", "batch_size: 16\n  @scheduler: cosine", "set a schedule as the learning_rate of the optimizer"),
    ("learning_rate: 0.001", "@lr: 0.001", "did you mean 'learning_rate'?"),
    ("learning_rate: 0.001", "@clipnorm: 1", "clip_norm under train"),
    ("batch_size: 16", "@batchSize: 16", "did you mean 'batch_size'?"),
    ("filters: 4, ", "filters: 4, @in_channels: 3, ", "leave it out"),
    # Inconsistent settings.
    ("pool_size: 2", "pool_size: 7", "- @max_pooling2d", "pool_size 7x7 is larger than its input 6x6x4"),
    ("- flatten: {}", "- add: {inputs: [conv2d, @conv3d]}", "'conv3d'"),
    ("units: $units", "units: @$unit", "did you mean 'units'?"),
    ("- dropout: {rate: 0.5}", "- dropout: {rate: 0.5, name: last}", "- dense: {name: @last, units", "'last'"),
    ("best: {monitor: val_loss}", "best: @{monitor: val_los}", "did you mean 'val_loss'?"),
    ("dense: {name: last, units: 3}", "dense: {name: last, units: 3}\n  outputs: [@lost]", "did you mean 'last'?"),
    ("  metrics: [", "  metrics: [@binary_accuracy, ", "binary_accuracy"),
    # YAML syntax.
    ("seed: 1", "seed: {@1", "brackets opened at wrong.yaml:1:7"),
    ("  epochs: 1", "\t@epochs: 1", "tab"),
    ("seed: 1", "seed: @*anchor", "anchor"),
    ("model:\n", "model: @missing.yaml\nmodel_:\n", "missing.yaml"),
    ("seed: 1", "seed: @${DTRAIN_UNSET_VARIABLE}", "DTRAIN_UNSET_VARIABLE"),
    ("seed: 1", "@seed:1", "a space is missing after the colon: 'seed: 1'"),
    ("- dropout: {rate: 0.5}", "- @dropout:0.5", "a space is missing after the colon: 'dropout: 0.5'"),
    ("seed: 1", "seed: 1\nname: @\"run", "is not closed"),
    ("seed: 1", "seed: 1\nbase: @missing.yaml", "missing.yaml"),
]


class Mistakes(Case):
    def with_mistake(self, old, new, place):
        """Returns GOOD with the mistake, and the marker's line and column (from 1), or None without a marker."""
        self.assertEqual(GOOD.count(old), 1, f"'{old}' must be in GOOD once")
        text = GOOD.replace(old, new)
        if place:  # the marker is outside the replaced text
            text = text.replace(place.replace("@", ""), place)
        if "@" not in text:
            return text, None
        before, after = text.split("@")
        return before + after, (before.count("\n") + 1, len(before) - before.rfind("\n"))

    def test_the_configuration_without_mistakes_is_valid(self):
        self.write("good.yaml", GOOD)
        self.dtrain("check", "good.yaml")

    def test_each_mistake_is_an_error_at_its_location(self):
        self.assertGreaterEqual(len(MISTAKES), 50)
        for old, new, *place, message in MISTAKES:
            with self.subTest(f"{old} -> {new}"):
                text, at = self.with_mistake(old, new, *place or [""])
                self.write("wrong.yaml", text)
                process = self.dtrain("fit", "wrong.yaml", expect=2)
                self.assertEqual(process.out, "")
                self.assertIn(message, process.err)
                where = r"\d+:\d+" if at is None else f"{at[0]}:{at[1]}"
                line = next((l for l in process.err.splitlines() if message in l), "")
                self.assertRegex(line, rf"^wrong\.yaml:{where}: error: ", process.err)
                for noise in ("terminate called", "what():", "Aborted", "0x"):
                    self.assertNotIn(noise, process.err)
        self.assertFalse((self.dir / "runs").exists())

    def test_all_mistakes_are_reported_at_once(self):
        text = GOOD.replace("seed: 1", "sead: 1").replace("kernel_size", "kernal_size").replace("adam:", "adm:")
        self.write("wrong.yaml", text.replace("every: 1 epoch", "every: 1 aeon"))
        lines = self.dtrain("check", "wrong.yaml", expect=2).err.splitlines()
        places = [tuple(map(int, re.match(r"wrong\.yaml:(\d+):(\d+): error: ", line).groups())) for line in lines]
        self.assertGreaterEqual(len(places), 4)
        self.assertEqual(places, sorted(places))

    def test_one_mistake_does_not_hide_another(self):
        text = GOOD.replace("activation: relu}\n    - max", "foo: 3}\n    - max")          # an unknown key in a layer
        text = text.replace("sparse_categorical_crossentropy: {", "sparse_crossentropy: {")   # a wrong loss
        text = text.replace("{monitor: val_loss}", "{monitor: val_los}")                      # a wrong monitor
        text = text.replace("{monitor: val_loss, patience: 2}", "{monitor: val_acuracy}")
        text = text.replace("devices: [cpu:0, cpu:1]", "devices: [gpu:9999]")
        text = text.replace("rescale: {scale: 0.5}", "rescale: {scal: 0.5}")
        self.write("wrong.yaml", text)
        errors = self.dtrain("check", "wrong.yaml", expect=2).err
        for message in ("unknown key 'foo' in conv2d", "unknown loss 'sparse_crossentropy'", "monitor 'val_los' is no",
                        "monitor 'val_acuracy' is not a metric", "gpu:9999: ", "unknown key 'scal' in rescale"):
            self.assertIn(message, errors)
        # Names that are unknown only because of another mistake are not reported.
        text = GOOD.replace("[sparse_categorical_accuracy]", "[sparse_categorical_acuracy]")
        self.write("wrong.yaml", text.replace("{monitor: val_loss}", "{monitor: val_sparse_categorical_accuracy}"))
        errors = self.dtrain("check", "wrong.yaml", expect=2).err
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn("unknown metric 'sparse_categorical_acuracy'", errors)

    def test_shapes_are_checked_after_a_mistake_that_does_not_change_them(self):
        text = GOOD.replace("activation: relu}\n    - max", "activation: rellu}\n    - max").replace("pool_size: 2", "pool_size: 7")
        self.write("wrong.yaml", text)
        errors = self.dtrain("check", "wrong.yaml", expect=2).err
        self.assertIn("unknown activation 'rellu'", errors)
        self.assertIn("pool_size 7x7 is larger than its input 6x6x4", errors)

    def test_mismatched_logits_and_probabilities_are_a_warning(self):
        loss = "loss: {sparse_categorical_crossentropy: {from_logits: true}}"
        for old, new, message in (
                ("units: 3}\n", "units: 3, activation: softmax}\n", "has from_logits: true, but 'last' ends in a softmax"),
                (loss, "loss: sparse_categorical_crossentropy", "expects probabilities, but 'last' does not end in a softmax or sigmoid")):
            self.assertIn(old, GOOD)
            text = GOOD.replace(old, new)
            self.write("odd.yaml", text)
            line = text[:text.index("sparse_categorical_crossentropy")].count("\n") + 1
            for command in (("check", "odd.yaml"), ("fit", "odd.yaml", "--output", "r", "--overwrite", "--quiet")):
                errors = self.dtrain(*command).err
                self.assertIn(message, errors)
                self.assertRegex(errors, rf"(?m)^odd\.yaml:{line}:\d+: warning: ")
        self.write("both.yaml", GOOD.replace("units: 3}\n", "units: 3, activation: softmax}\n").replace(
            loss, "loss: sparse_categorical_crossentropy"))
        self.assertNotIn("warning", self.dtrain("check", "both.yaml").err)
        self.write("sigmoid.yaml", GOOD.replace("units: 3}\n", "units: 3, activation: sigmoid}\n").replace(
            loss, "loss: sparse_categorical_crossentropy"))
        self.assertIn("expects probabilities that sum to 1, but 'last' ends in a sigmoid",
                      self.dtrain("check", "sigmoid.yaml").err)

    def test_missing_files_and_wrong_assignments_are_reported_with_all_other_mistakes(self):
        text = GOOD.replace("train:      {synthetic: {samples: 64, target: {classes: 3}}, rows: [0, 48]}",
                            "train:      {csv: {file: missing.csv, target: -1}}").replace("epochs: 1", "epocs: 1")
        self.write("wrong.yaml", text)
        self.write("mising.csv", "")
        errors = self.dtrain("check", "wrong.yaml", "--set", "trian.batch_size=2", "--set", "seed.x=3", expect=2).err
        for message in ("missing.csv: there is no such file or folder; did you mean 'mising.csv'?", "unknown key 'epocs' in train; did you mean 'epochs'?",
                        "--set trian.batch_size=2: error: unknown key 'trian' in the configuration; did you mean 'train'?",
                        "--set seed.x=3: error: 'seed' is '1', not a mapping or a list"):
            self.assertIn(message, errors)
        self.assertEqual(len(errors.splitlines()), 4, errors)
        # The same if the training split determines a size, and if the dataset is in another file.
        text = text.replace("epocs", "epochs").replace("units: 3}", "units: auto}").replace(
            "validation: {synthetic: {samples: 64, target: {classes: 3}}, rows: [48, 64]}", "validation: {csv: {file: none.csv, target: -1}}")
        self.write("auto.yaml", text)
        errors = self.dtrain("check", "auto.yaml", expect=2).err
        self.assertIn("missing.csv: there is no such file", errors)
        self.assertIn("none.csv: there is no such file", errors)
        weights = text.replace("units: auto}", "units: 3}").replace("model:\n", "model:\n  weights: {from: none.h5}\n")
        self.write("weights.yaml", weights)
        errors = self.dtrain("check", "weights.yaml", expect=2).err
        self.assertRegex(errors, r"weights\.yaml:3:\d+: error: weights: .*none\.h5: ")
        self.assertIn("none.csv: there is no such file", errors)
        start, end = text.index("dataset:"), text.index("strategy:")
        self.write("digits.yaml", "{}")
        self.write("other.yaml", text[:start] + "dataset: digit.yaml\n" + text[end:].replace("epochs: 1", "epocs: 1"))
        errors = self.dtrain("check", "other.yaml", expect=2).err
        self.assertIn("there is no such file; did you mean 'digits.yaml'?", errors)
        self.assertIn("unknown key 'epocs' in train; did you mean 'epochs'?", errors)
        self.assertEqual(len(errors.splitlines()), 2, errors)

    def test_a_path_that_is_not_a_file_is_an_error_without_delay(self):
        os.mkfifo(self.dir / "pipe.yaml")
        start = time.monotonic()
        errors = self.dtrain("check", "pipe.yaml", expect=2).err
        self.assertIn("it is a pipe without a writer", errors)
        self.assertLess(time.monotonic() - start, 20)
        self.assertIn("it is a device", self.dtrain("check", "/dev/zero", expect=2).err)
        self.assertIn("it is a directory", self.dtrain("check", ".", expect=2).err)

    def test_a_configuration_may_come_through_a_pipe(self):
        process = subprocess.run([support.BINARY, "check", "/dev/stdin"], input=GOOD, text=True, cwd=self.dir,
                                 capture_output=True, timeout=60)
        self.assertEqual(process.returncode, 0, process.stderr)

    def test_excessive_numbers_are_errors_without_delay(self):
        for old, new in (("repeat: 2", "repeat: 2147483647"), ("batch_size: 16", "batch_size: 2147483647"),
                         ("kernel_size: 3", "kernel_size: 2147483647, padding: same"),
                         ("classes: 3}}, rows: [0", "shape: [2147483647, 2147483647]}}, rows: [0")):
            with self.subTest(new):
                self.write("hostile.yaml", GOOD.replace(old, new))
                start = time.monotonic()
                self.dtrain("check", "hostile.yaml", expect=2)
                self.assertLess(time.monotonic() - start, 20)
        # A pooling window that is larger than the image is clipped to the image, even if the window is extremely large.
        for layer in ("average_pooling2d", "max_pooling2d"):
            text = GOOD.replace("max_pooling2d: {pool_size: 2}", layer + ": {pool_size: 2147483647, padding: same}")
            self.write("wide.yaml", text)
            self.dtrain("fit", "wide.yaml", "--output", layer)

    def test_a_mistake_in_an_included_file_is_reported_there(self):
        self.write("parts/data.yaml", "train: {synthetic: {sample: 64, target: {classes: 3}}}\n")
        before, after = GOOD.split("dataset:\n")
        self.write("wrong.yaml", before + "dataset: parts/data.yaml\nstrategy:" + after.split("strategy:")[1])
        self.assertIn("parts/data.yaml:1:21: error: unknown key 'sample'",
                      self.dtrain("fit", "wrong.yaml", expect=2).err)

    def test_files_without_a_configuration_are_errors(self):
        deep = "a: " + "[" * 10000 + "]" * 10000
        bomb = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12))
        for name, data in (("empty", b""), ("binary", bytes(range(256)) * 16), ("deep", deep.encode()),
                           ("bomb", bomb.encode()), ("list", b"- 1\n- 2\n"), ("large", b"a: b\n" * 2000000),
                           ("latin-1", "name: \u00fc\n".encode("latin-1"))):
            with self.subTest(name):
                (self.dir / "wrong.yaml").write_bytes(data)
                process = self.dtrain("check", "wrong.yaml", expect=2)
                self.assertRegex(process.err, r"^wrong\.yaml:\d+:\d+: error: ")


if __name__ == "__main__":
    support.main()
