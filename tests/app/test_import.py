"""`dtrain import`: an exported .keras file is imported as the same model. If a file cannot be imported, all reasons are
reported at once."""
import io
import json
import math
import random
import shutil
import struct
import sys
import zipfile

import support
from support import PROJECT, Case

sys.path.insert(0, str(PROJECT / "tests/keras"))
import models  # noqa: E402


class Import(Case):
    def trained(self, config, output="run"):
        self.write("run.json.yaml", json.dumps(config))
        self.dtrain("fit", "run.json.yaml", "--output", output, "--overwrite")
        self.dtrain("export", output, "--output", "model.keras")

    def entries(self):
        with zipfile.ZipFile(self.dir / "model.keras") as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def rewrite(self, name="model.keras", compression=zipfile.ZIP_STORED, **changed):
        """Rewrites the archive with replaced members (a_json for a.json)."""
        entries = self.entries()
        for key, value in changed.items():
            entries[key.replace("_json", ".json")] = value if isinstance(value, bytes) else json.dumps(value).encode()
        with zipfile.ZipFile(self.dir / name, "w", compression) as archive:
            for entry, content in entries.items():
                archive.writestr(entry, content)
        return name

    def config(self):
        return json.loads(self.entries()["config.json"])

    def samples(self, shape, seed=1):
        """Writes an .npy file with six samples, for models with one input."""
        draw = random.Random(seed)
        numbers = [draw.uniform(-1, 1) for _ in range(6 * math.prod(shape))]
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {(6, *shape)}, }}".ljust(117) + "\n"
        (self.dir / "samples.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                                               + struct.pack(f"<{len(numbers)}f", *numbers))

    def predictions(self, model):
        found = self.dtrain("predict", model, "--input", "samples.npy", "--output", "-", "--format", "jsonl", "--outputs", "raw")
        return [json.loads(line) for line in found.out.splitlines()]

    def flat(self, value):
        if isinstance(value, dict):
            return [number for key in sorted(value) if key != "row" for number in self.flat(value[key])]
        if isinstance(value, list):
            return [number for one in value for number in self.flat(one)]
        return [value]

    def assert_close(self, expected, found):
        expected, found = self.flat(expected), self.flat(found)
        self.assertEqual(len(expected), len(found))
        largest = max(1, max(map(abs, expected)))
        self.assertLess(max(abs(a - b) for a, b in zip(expected, found)), 1e-5 * largest)


class RoundTrips(Import):
    def round_trip(self, config):
        self.trained(config)
        report = self.json("import", "model.keras", "--output", "imported")
        weights = [sorted(array for (group, _), array in self.arrays(path).items() if group == "weight")
                   for path in (self.checkpoints()[-1], self.dir / "imported/weights.h5")]
        self.assertEqual(*weights)
        inputs = config["model"]["inputs"]
        if len(inputs) == 1:
            self.samples(*inputs.values())
            self.assert_close(*([sorted(self.flat(sample)) for sample in self.predictions(model)]
                                for model in ("run", "imported")))
        original, imported = self.json("summary", "run"), self.json("summary", "imported")
        self.assertEqual(original["parameters"], imported["parameters"])
        self.assertEqual(report["parameters"], original["parameters"]["total"])
        # A second round trip gives the same model, because the imported folder is an ordinary model.
        self.dtrain("export", "imported", "--output", "again.keras")
        self.dtrain("import", "again.keras", "--output", "twice")
        if len(inputs) == 1:
            self.assertEqual(self.predictions("imported"), self.predictions("twice"))
        self.assertEqual(self.json("summary", "imported")["layers"], self.json("summary", "twice")["layers"])

    def test_every_layer_is_imported(self):
        self.round_trip(models.every_layer())

    def test_rotary_attention_in_blocks_is_imported(self):
        block = {"layers": [{"multi_head_attention": {"num_heads": 2, "key_dim": 4, "causal": True, "rotary": {}}},
                            {"add": {"inputs": ["multi_head_attention", "input"]}}, {"layer_normalization": {}}]}
        model = {"inputs": {"x": [6, 8]}, "blocks": {"part": block},
                 "layers": [{"part": {"repeat": 4}}, "flatten", {"dense": {"units": 2}}]}
        self.round_trip(models.run_of(model, targets={"dense": {"shape": [2]}}))
        self.assertIn("multi_head_attention: {num_heads: 2, key_dim: 4, causal: true, rotary: {}",
                      (self.dir / "imported/model.yaml").read_text())

    def test_time_distributed_within_time_distributed_is_imported(self):
        inner = {"time_distributed": {"layer": {"dense": {"units": 5}}}}
        model = {"inputs": {"x": [2, 3, 4]}, "layers": [{"time_distributed": {"layer": inner}}, "flatten", {"dense": {"units": 2}}]}
        self.round_trip(models.run_of(model, targets={"dense": {"shape": [2]}}))
        self.assertEqual(self.json("diff", "run", "model.keras")["weights"]["same"], 4)

    def test_random_graphs_are_imported(self):
        for seed in range(12):
            with self.subTest(seed=seed):
                for folder in ("run", "imported", "twice"):
                    shutil.rmtree(self.dir / folder, ignore_errors=True)
                self.round_trip(models.random_graph(seed))

    def test_repeated_structure_becomes_blocks(self):
        block = {"layers": [{"dense": {"units": 6, "activation": "relu"}}, {"layer_normalization": {}},
                            {"dense": {"units": 6, "name": "out"}}, {"add": {"inputs": ["out", "input"]}}]}
        model = {"inputs": {"x": [6]}, "blocks": {"part": block}, "layers": [{"part": {"repeat": 4}}, {"dense": {"units": 3}}]}
        self.round_trip(models.run_of(model, targets={"dense": {"classes": 3}},
                                      loss={"sparse_categorical_crossentropy": {"from_logits": True}}))
        self.assertIn("part: {repeat: 4}", (self.dir / "imported/model.yaml").read_text())
        self.assertEqual([layer["name"] for layer in self.json("summary", "imported")["layers"]],
                         [layer["name"] for layer in self.json("summary", "run")["layers"]])
        self.assertIn("part: part.dense to part_3.add, 4 times 4 layers", (self.dir / "imported/report.txt").read_text())

    def test_model_yaml_is_included_in_a_configuration_with_the_weights(self):
        self.fit("--epochs", 1)
        self.dtrain("export", "run", "--output", "model.keras")
        self.dtrain("import", "model.keras")
        self.assertIn("dense: {units: 16, activation: relu", (self.dir / "model/model.yaml").read_text())
        tuned = support.CONFIG.replace("""model:
  inputs: {x: [12]}
  layers:
    - dense: {units: 16, activation: relu}
    - dropout: {rate: 0.2}
    - dense: {units: 3}
""", "model: model/model.yaml\n")
        self.assertNotEqual(tuned, support.CONFIG)
        self.fit("--set", "model.weights.from=model", "train.epochs=0", config=tuned, output="tuned")
        weights = {name: array for name, array in self.arrays(self.checkpoints("tuned")[-1]).items() if name[0] == "weight"}
        self.assertEqual(weights, {name: array for name, array in self.arrays(self.checkpoints("run")[-1]).items()
                                   if name[0] == "weight"})

    def test_a_run_can_begin_with_an_archives_weights(self):
        self.fit("--epochs", 1)
        self.dtrain("export", "run", "--output", "model.keras")
        self.fit("--set", "model.weights.from=model.keras", "train.epochs=0", output="tuned")
        weights = [self.arrays(self.checkpoints(run)[-1])[("weight", "dense_1/kernel")] for run in ("run", "tuned")]
        self.assertEqual(*weights)

    def test_an_imported_model_is_not_a_run(self):
        self.fit("--epochs", 1)
        self.dtrain("export", "run", "--output", "model.keras")
        self.dtrain("import", "model.keras")
        self.assertIn("has no `train`", self.dtrain("evaluate", "model", expect=2).err)
        self.assertIn("give a directory for the new run with --output DIR", self.dtrain("resume", "model", expect=2).err)
        self.assertIn("has no `train`", self.dtrain("resume", "model", "--output", "on", expect=2).err)
        self.assertFalse((self.dir / "on").exists())

    def test_compressed_archives_are_imported(self):
        self.fit("--epochs", 1)
        self.dtrain("export", "run", "--output", "model.keras")
        self.rewrite("packed.keras", zipfile.ZIP_DEFLATED)
        self.dtrain("import", "model.keras")
        self.dtrain("import", "packed.keras")
        arrays = [self.arrays(self.dir / folder / "weights.h5") for folder in ("model", "packed")]
        self.assertEqual(*arrays)


class JsonLines(Import):
    def test_json_arrays_are_samples_like_those_of_npy_files(self):
        model = {"inputs": {"image": [4, 5, 2]}, "layers": [{"conv2d": {"filters": 2, "kernel_size": 3}}, "flatten", {"dense": {"units": 2}}]}
        self.trained(models.run_of(model, targets={"dense": {"shape": [2]}}))
        self.samples([4, 5, 2])
        expected = self.flat(self.predictions("run"))
        values = struct.unpack("<240f", (self.dir / "samples.npy").read_bytes()[-960:])
        images = [[[list(values[at + 10 * row + 2 * column:][:2]) for column in range(5)] for row in range(4)]
                  for at in range(0, 240, 40)]
        for lines in (images, [{"image": image} for image in images]):
            (self.dir / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            found = self.dtrain("predict", "run", "--input", "samples.jsonl", "--output", "-", "--format", "jsonl", "--outputs", "raw")
            self.assert_close(expected, [self.flat(json.loads(line)) for line in found.out.splitlines()])


class Training(Import):
    """A run exported with its optimizer is imported with the same `train:` part, and continues like the run."""
    ONE = {"inputs": {"x": [4]}, "layers": [{"dense": {"units": 3, "name": "out", "activation": "softmax"}}]}
    YES_OR_NO = {"inputs": {"x": [4]}, "layers": [{"dense": {"units": 2, "name": "out", "activation": "sigmoid"}}]}
    TWO = {"inputs": {"x": [4]}, "outputs": ["kind", "size"],
           "layers": [{"dense": {"units": 3, "name": "kind", "inputs": "x"}}, {"dense": {"units": 1, "name": "size", "inputs": "x"}}]}
    KEPT = ("loss", "metrics", "weighted_metrics", "optimizer", "clip_norm", "clip_value")

    def kept(self, checkpoint):
        """Returns the training options in a checkpoint's configuration, including defaults."""
        lines = self.dtrain("inspect", str(checkpoint), "--config").out.splitlines()
        begin = lines.index("train:")
        found, key = {}, None
        for line in lines[begin + 1:]:
            if not line.startswith("  "):
                break
            if not line.startswith("   "):
                key = line.split(":")[0].strip()
            if key in self.KEPT:
                found.setdefault(key, []).append(line)
        return found

    def check(self, model, targets, metrics=(), **train):
        config = models.run_of(model, targets=targets, **train)
        config["train"]["metrics"] = metrics or []
        self.trained(config)
        shutil.rmtree(self.dir / "imported", ignore_errors=True)
        report = self.json("import", "model.keras", "--output", "imported", "--with-optimizer")
        self.assertEqual(report["left_out"], [])
        run = self.checkpoints()[-1]
        self.assertEqual(self.kept(run), self.kept(self.dir / "imported/weights.h5"))
        self.assertEqual(*({key: array for key, array in self.arrays(path).items() if key[0] != "state"}
                           for path in (run, self.dir / "imported/weights.h5")))

    def test_losses_and_metrics_are_imported(self):
        classes, numbers = {"out": {"classes": 3}}, {"out": {"shape": [3]}}
        self.check(self.ONE, classes, ["accuracy", {"sparse_top_k_categorical_accuracy": {"k": 2}}, "sparse_categorical_crossentropy"],
                   loss="sparse_categorical_crossentropy", clip_norm=0.5)
        self.check(self.ONE, numbers, ["categorical_accuracy", "auc", {"f1_score": {"average": "macro", "name": "mean_f1"}},
                                       "mean_iou", "mean_absolute_error"],
                   loss={"categorical_focal_crossentropy": {"gamma": 0, "alpha": 0.3, "label_smoothing": 0.1}}, clip_value=0.25)
        self.check(self.YES_OR_NO, {"out": {"shape": [2]}}, ["binary_accuracy", {"precision": {"thresholds": 0.75}}, "recall", "r2_score",
                                                           {"precision_at_recall": {"recall": 0.75, "class_id": 1, "num_thresholds": 100}},
                                                           {"auc": {"curve": "PR", "name": "pr", "multi_label": True}}],
                   loss={"binary_crossentropy": {"label_smoothing": 0.1}}, weighted_metrics=["binary_accuracy"])
        self.check(self.TWO, {"kind": {"classes": 3}, "size": {"shape": [1]}},
                   {"kind": ["accuracy"], "size": ["mean_absolute_error", {"r2_score": {"class_aggregation": "none"}}]},
                   loss={"kind": {"sparse_categorical_crossentropy": {"from_logits": True}}, "size": {"huber": {"weight": 0.3, "delta": 2}}})

    def test_optimizers_and_schedules_are_imported(self):
        cosine = {"cosine_decay": {"initial": 0.1, "steps": 20, "warmup_steps": 3, "warmup_initial": 0.01, "alpha": 0.1}}
        for optimizer in ("sgd", {"sgd": {"learning_rate": cosine, "momentum": 0.9, "nesterov": True}}, "adam",
                          {"adam": {"learning_rate": 0.01, "beta_1": 0.8, "epsilon": 1e-5, "weight_decay": 0.1}}, "adamw",
                          {"adamw": {"learning_rate": {"polynomial_decay": {"initial": 0.1, "steps": 9, "power": 2}}, "weight_decay": 0}},
                          {"rmsprop": {"centered": True, "momentum": 0.5, "rho": 0.8}}, "rmsprop",
                          {"adagrad": {"learning_rate": {"exponential_decay": {"initial": 0.1, "decay_steps": 3, "decay_rate": 0.5}}}},
                          {"lion": {"learning_rate": {"piecewise_constant": {"boundaries": [3], "values": [0.1, 0.01]}}}},
                          {"adamax": {"beta_1": 0.8}}, "nadam", {"adadelta": {"learning_rate": 1, "rho": 0.9}},
                          {"lamb": {"learning_rate": {"inverse_time_decay": {"initial": 0.1, "decay_steps": 3, "decay_rate": 0.5}}}}):
            with self.subTest(optimizer=optimizer):
                self.check(self.ONE, {"out": {"classes": 3}}, loss="sparse_categorical_crossentropy", optimizer=optimizer)

    def test_metrics_that_dtrain_lacks_are_named(self):
        self.trained(models.run_of(self.ONE, targets={"out": {"classes": 3}}, loss="sparse_categorical_crossentropy", metrics=["accuracy"]))
        config = self.config()
        config["compile_config"]["metrics"] += ["mine", {"class_name": "SpecificityAtSensitivity", "config": {"sensitivity": 0.5}}]
        config["compile_config"]["optimizer"]["config"]["momentum"] = 0.5  # the file has no momentum arrays
        report = self.json("import", self.rewrite(config_json=config), "--output", "imported", "--with-optimizer")
        self.assertEqual(report["left_out"],
                         ["the metric mine: dtrain has no metric of this name",
                          "the metric SpecificityAtSensitivity: dtrain has no metric of this name",
                          "the optimizer's state: the file has 2 arrays, but sgd needs a different number of arrays for 2 weights"])
        self.assertIn("accuracy", "".join(self.kept(self.dir / "imported/weights.h5")["metrics"]))


class ChannelsFirst(Import):
    MODEL = {"inputs": {"image": [5, 6, 2]},
             "layers": [{"conv2d": {"filters": 4, "kernel_size": 3, "padding": "same", "name": "conv"}},
                        {"batch_normalization": {"name": "norm"}}, {"activation": {"activation": "relu", "name": "relu"}},
                        {"depthwise_conv2d": {"kernel_size": 3, "padding": "same", "name": "depthwise"}},
                        {"add": {"inputs": ["relu", "depthwise"], "name": "sum"}},
                        {"concatenate": {"inputs": ["sum", "relu"], "name": "both"}},
                        {"max_pooling2d": {"pool_size": 2, "name": "pool"}},
                        {"global_average_pooling2d": {"inputs": "both", "name": "means"}},
                        {"flatten": {"inputs": "pool", "name": "flat"}},
                        {"concatenate": {"inputs": ["means", "flat"], "name": "all"}},
                        {"dense": {"units": 3, "name": "dense"}}]}

    def test_images_are_permuted_before_image_layers(self):
        target = {"train": {"synthetic": {"samples": 10, "target": {"classes": 3}}}}
        self.trained({"seed": 3, "model": self.MODEL, "dataset": target, "strategy": "single",
                      "train": {"epochs": 1, "batch_size": 5, "optimizer": "sgd",
                                "loss": {"sparse_categorical_crossentropy": {"from_logits": True}}}})
        self.samples([5, 6, 2])
        expected = self.predictions("run")
        self.rewrite(config_json=self.with_channels_first(self.config(), [2, 5, 6]))
        self.dtrain("import", "model.keras", "--output", "first")
        model = (self.dir / "first/model.yaml").read_text()
        self.assertEqual(model.count("permute"), 1, "the values stay as the layers of images have them")
        self.move_channels_of_samples([5, 6, 2])
        self.assert_close(expected, self.predictions("first"))

    @staticmethod
    def with_channels_first(config, shape):
        for layer in config["config"]["layers"]:
            options = layer["config"]
            if "data_format" in options:
                options["data_format"] = "channels_first"
            if layer["name"] == "image":
                options["batch_shape"] = [None, *shape]
            if layer["name"] in ("norm", "both"):
                options["axis"] = 1
        return config

    def move_channels_of_samples(self, shape):
        data = (self.dir / "samples.npy").read_bytes()
        begin = 10 + struct.unpack_from("<H", data, 8)[0]
        pixels, channels = math.prod(shape[:-1]), shape[-1]
        values = struct.unpack(f"<{6 * pixels * channels}f", data[begin:])
        moved = [values[(n * pixels + pixel) * channels + c] for n in range(6) for c in range(channels) for pixel in range(pixels)]
        header = data[:begin].replace(str((6, *shape)).encode(), str((6, channels, *shape[:-1])).encode())
        (self.dir / "samples.npy").write_bytes(header + struct.pack(f"<{len(moved)}f", *moved))

    VOLUMES = {"inputs": {"image": [5, 3, 2, 2]},
               "layers": [{"conv3d": {"filters": 4, "kernel_size": [3, 2, 1], "padding": "same", "name": "conv"}},
                          {"batch_normalization": {"name": "norm"}}, {"activation": {"activation": "relu", "name": "relu"}},
                          {"add": {"inputs": ["conv", "relu"], "name": "sum"}},
                          {"concatenate": {"inputs": ["sum", "relu"], "name": "both"}},
                          {"max_pooling3d": {"pool_size": [2, 1, 2], "name": "pool"}},
                          {"global_average_pooling3d": {"inputs": "both", "name": "means"}},
                          {"flatten": {"inputs": "pool", "name": "flat"}},
                          {"concatenate": {"inputs": ["means", "flat"], "name": "all"}},
                          {"dense": {"units": 3, "name": "dense"}}]}

    def test_volumes_are_permuted_before_volume_layers(self):
        target = {"train": {"synthetic": {"samples": 10, "target": {"classes": 3}}}}
        self.trained({"seed": 3, "model": self.VOLUMES, "dataset": target, "strategy": "single",
                      "train": {"epochs": 1, "batch_size": 5, "optimizer": "sgd",
                                "loss": {"sparse_categorical_crossentropy": {"from_logits": True}}}})
        self.samples([5, 3, 2, 2])
        expected = self.predictions("run")
        self.rewrite(config_json=self.with_channels_first(self.config(), [2, 5, 3, 2]))
        self.dtrain("import", "model.keras", "--output", "first")
        self.assertEqual((self.dir / "first/model.yaml").read_text().count("permute"), 1)
        self.move_channels_of_samples([5, 3, 2, 2])
        self.assert_close(expected, self.predictions("first"))

    def test_other_layers_read_images_in_the_files_order(self):
        self.trained({"seed": 3, "dataset": {"train": {"synthetic": {"samples": 10, "target": {"shape": [2, 3, 3]}}}},
                      "model": {"inputs": {"image": [3, 3, 2]},
                                "layers": [{"conv2d": {"filters": 2, "kernel_size": 1, "name": "conv"}},
                                           {"permute": {"dims": [3, 1, 2], "name": "first"}}]},
                      "strategy": "single", "train": {"epochs": 0, "batch_size": 5, "optimizer": "sgd", "loss": "mse"}})
        config = self.config()
        layers = {layer["name"]: layer for layer in config["config"]["layers"]}
        layers["image"]["config"]["batch_shape"] = [None, 2, 3, 3]
        layers["conv"]["config"]["data_format"] = "channels_first"
        config["config"]["layers"] = [layers["image"], layers["conv"]]
        config["config"]["output_layers"] = ["conv", 0, 0]
        self.rewrite(config_json=config)
        self.assertEqual(self.json("import", "model.keras", "--output", "first")["outputs"], {"conv_channels_first": "2x3x3"})


class Refusals(Import):
    def setUp(self):
        super().setUp()
        self.fit("--epochs", 1)
        self.dtrain("export", "run", "--output", "model.keras")

    def refused(self, name, *arguments):
        error = self.dtrain("import", name, "--output", "imported", *arguments, expect=2).err
        self.assertFalse((self.dir / "imported").exists(), "a refused import leaves nothing")
        return error

    def test_all_unsupported_parts_are_named_at_once(self):
        config = self.config()
        layers = config["config"]["layers"]
        layers[1]["class_name"] = "MyDense"
        layers[2] = {**layers[2], "class_name": "Lambda", "config": {"name": layers[2]["name"]}}
        layers[3]["config"]["activation"] = "my_function"
        error = self.refused(self.rewrite(config_json=config))
        self.assertIn("dense: dtrain has no layer MyDense", error)
        self.assertIn("dropout (Lambda): is Python code", error)
        self.assertIn("dense_1 (Dense): has the activation 'my_function'", error)

    def test_unsupported_options_are_errors_if_they_change_the_model_else_omitted(self):
        config = self.config()
        dense = config["config"]["layers"][1]["config"]
        dense["activity_regularizer"] = {"class_name": "MyRegularizer", "config": {"l2": 0.01}}
        self.rewrite(config_json=config)
        self.assertEqual(self.json("import", "model.keras", "--output", "regular")["left_out"][-1],
                         "dense: activity_regularizer: MyRegularizer")
        dense["activity_regularizer"] = {"class_name": "OrthogonalRegularizer", "config": {"factor": 0.01, "mode": "rows"}}
        self.rewrite(config_json=config)
        self.assertEqual(self.json("import", "model.keras", "--output", "orthogonal")["left_out"][-1],
                         "dense: activity_regularizer: OrthogonalRegularizer")
        dense["groups"] = 2
        self.assertIn("dense (Dense): has groups: 2", self.refused(self.rewrite(config_json=config)))

    def test_unsupported_training_options_are_named(self):
        config = self.config()
        optimizer = config["compile_config"]["optimizer"]["config"]
        optimizer.update(amsgrad=True, clipnorm=1.0)
        config["compile_config"]["loss"]["config"]["ignore_class"] = 2
        self.rewrite(config_json=config)
        error = self.refused("model.keras", "--with-optimizer")
        self.assertIn("the optimizer Adam has amsgrad: true", error)
        self.assertIn("the optimizer Adam has clipnorm: 1", error)
        self.assertIn("the loss SparseCategoricalCrossentropy has ignore_class: 2", error)
        for compiled in ({}, None):  # Keras 3.15 writes an empty object if a model was not compiled
            config["compile_config"] = compiled
            self.assertIn("was not compiled", self.refused(self.rewrite(config_json=config), "--with-optimizer"))
            self.assertEqual(self.json("import", "model.keras", "--output", f"model{compiled}")["left_out"], [])

    def test_a_model_as_the_layer_of_time_distributed_is_named(self):
        config = self.config()
        inner = {"class_name": "Functional", "config": self.config()["config"]}
        config["config"]["layers"][1].update(class_name="TimeDistributed", config={"name": "dense", "layer": inner})
        error = self.refused(self.rewrite(config_json=config))
        self.assertIn("dense (TimeDistributed): has the layer 'Functional'\n", error)
        self.assertNotIn("has layers", error)

    def test_names_begin_with_a_character_that_dtrain_allows(self):
        config = json.dumps(self.config()).replace('"dense"', '"-a"').replace('"dense_1"', '".b-c"')
        self.dtrain("import", self.rewrite(config_json=config.encode()), "--output", "imported")
        self.assertEqual([layer["name"] for layer in self.json("summary", "imported")["layers"] if layer["kind"] == "dense"],
                         ["_a", "_b-c"])

    def test_unknown_extents_must_be_given(self):
        config = self.config()
        config["config"]["layers"][0]["config"]["batch_shape"] = [None, None]
        self.rewrite(config_json=config)
        self.assertIn("with --set 'model.inputs.x=[", self.refused("model.keras"))
        self.dtrain("import", "model.keras", "--output", "imported", "--set", "model.inputs.x=[12]")

    def test_weights_of_other_shapes_are_errors(self):
        config = self.config()
        config["config"]["layers"][1]["config"]["units"] = 17
        error = self.refused(self.rewrite(config_json=config))
        self.assertIn("dense/kernel: expected 12x17 floats, found 12x16", error)
        self.assertIn("dense_1/kernel: expected 17x3 floats, found 16x3", error)

    def test_the_printed_path_has_no_dots(self):
        self.assertIn("written   other: model.yaml", self.dtrain("import", "model.keras", "--output", "./x/../other/.").out)
        self.assertIn("`model: other/model.yaml`", (self.dir / "other/model.yaml").read_text())

    def test_nonempty_folders_are_not_changed(self):
        self.write("imported/mine.txt", "mine")
        self.assertIn("found a folder with files", self.dtrain("import", "model.keras", "--output", "imported", expect=2).err)
        self.assertEqual([path.name for path in (self.dir / "imported").iterdir()], ["mine.txt"])

    def test_a_cycle_of_layers_is_an_error(self):
        config = self.config()
        first, last = config["config"]["layers"][1], config["config"]["layers"][3]
        first["inbound_nodes"][0]["args"][0]["config"]["keras_history"][0] = last["name"]
        self.assertIn("is read before it is computed", self.refused(self.rewrite(config_json=config)))

    def test_malicious_archives_are_errors(self):
        whole = (self.dir / "model.keras").read_bytes()
        (self.dir / "cut.keras").write_bytes(whole[:len(whole) // 2])
        self.assertIn("expected a complete zip archive", self.refused("cut.keras"))
        weights = self.entries()["model.weights.h5"]
        flipped = bytearray(whole)
        flipped[whole.index(weights) + len(weights) // 2] ^= 1
        (self.dir / "flipped.keras").write_bytes(flipped)
        self.assertIn("the file is damaged", self.refused("flipped.keras"))
        bomb = self.rewrite("bomb.keras", zipfile.ZIP_DEFLATED, extra=bytes(1 << 28))
        self.assertIn("3 times the file size plus 64 MiB", self.refused(bomb))
        self.assertIn("refers to a file outside it", self.refused(self.rewrite("out.keras", **{"../config.json": b"{}"})))
        twice = io.BytesIO(whole)
        with zipfile.ZipFile(twice, "a") as archive, self.assertWarns(UserWarning):
            archive.writestr("config.json", "{}")
        (self.dir / "twice.keras").write_bytes(twice.getvalue())
        self.assertIn("two called 'config.json'", self.refused("twice.keras"))
        offset = whole.index(b"PK\x01\x02")  # both directory entries point to the first member
        second = whole.index(b"PK\x01\x02", offset + 4)
        overlapping = bytearray(whole)
        extra = second + 46 + struct.unpack_from("<H", whole, second + 28)[0]
        struct.pack_into("<Q", overlapping, extra + 4 + 16, 0)
        (self.dir / "overlap.keras").write_bytes(overlapping)
        self.assertIn("overlapping ones", self.refused("overlap.keras"))

    def test_empty_and_invalid_weight_files_are_errors(self):
        for content in (b"", b"not HDF5"):
            name = self.rewrite("other.keras", **{"model.weights.h5": content})
            self.assertIn("expected an HDF5 file in model.weights.h5", self.refused(name))

    def test_deep_and_invalid_configurations_are_errors(self):
        self.assertIn("nesting", self.refused(self.rewrite("deep.keras", config_json=b"[" * 100000)))
        config = self.config()
        config["config"]["layers"][1]["config"]["units"] = 1 << 40
        self.assertIn("units", self.refused(self.rewrite("absurd.keras", config_json=config)))


if __name__ == "__main__":
    support.main()
