#!/usr/bin/env python3
"""Random models (any graph: skips, branches, shared and frozen layers, several outputs), each trained on one device and
then on several devices: with layers placed at random, or cut into random pipeline stages, or with sharded state.

The losses of every step and the metrics of every epoch must equal those of one device within rounding, and every run
must end within seconds. Some runs are interrupted and resumed: with another strategy, which must give the same losses,
or with the same strategy, which must give identical bits. Findings are minimized and printed."""
import argparse
import copy
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from patience import shared

COUNT, LONG_COUNT = 12, 400
SECONDS = 60  # limit for a run; the longest takes one second
TOLERANCE = 2e-4
# All functions are smooth. At a kink, a difference in the last bit would cause large differences in any float32
# program.
ACTIVATIONS = ["tanh", "sigmoid", "silu", "gelu", "elu", "linear", "softmax"]
OPTIMIZERS = [{"sgd": {"learning_rate": 0.05}},
              {"sgd": {"learning_rate": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}},
              {"adam": {"learning_rate": 0.003, "epsilon": 0.001}},
              {"adamw": {"learning_rate": 0.003, "epsilon": 0.001, "weight_decay": 0.01}},
              {"adamax": {"learning_rate": 0.003, "epsilon": 0.001}},
              {"nadam": {"learning_rate": 0.003, "epsilon": 0.001}},
              {"adadelta": {"learning_rate": 0.5, "epsilon": 0.001}},
              {"rmsprop": {"learning_rate": 0.002, "epsilon": 0.001}},
              {"lamb": {"learning_rate": 0.005, "epsilon": 0.001, "weight_decay": 0.01}}]


class Found(Exception):
    pass


# In models of words with padding, these layers get the option ignore_mask: their inputs may have different masks, or
# the layer does not support masks.
IGNORING_MASKS = ["add", "multiply", "concatenate", "flatten"]


class Model:
    """A random model of vectors, images or words. A layer may read the outputs of all earlier layers."""

    def __init__(self, draw):
        self.draw = draw
        self.layers = []  # (kind, options)
        self.values = []  # (name, shape, whether a layer produced it)
        self.dense = []   # (name, inputs, units) of layers whose weights others may share
        self.words = draw.random() < 0.2
        self.masked = self.words and draw.random() < 0.6
        self.pictures = not self.words and draw.random() < 0.3
        self.inputs = {}
        for name in ("x", "y")[:draw.choice([1, 1, 2])]:
            shape = [4, 4, draw.randint(1, 3)] if self.pictures else [3] if self.words else [draw.randint(1, 7)]
            self.inputs[name] = {"shape": shape, "dtype": "int32"} if self.words else shape
            if self.words:
                self.add("embedding", [(name, shape)], [3, 4], input_dim=10, output_dim=4, mask_zero=self.masked)
                if self.masked:
                    kind = draw.choice(["lstm", "gru", "simple_rnn", "multi_head_attention"])
                    units = {"num_heads": 2} if kind == "multi_head_attention" else {"units": 4, "return_sequences": True}
                    self.add(kind, [self.values[-1]], [3, 4], **units)
                    self.add("lstm", [self.values[-1]], [4], units=4)
                else:
                    self.add("flatten", [self.values[-1]], [12])
            else:
                self.values.append((name, shape))
        for _ in range(draw.randint(2, 9)):
            draw.choice([self.compute] * 4 + [self.merge] * 2 + [self.change] * 2 + [self.share])()
        self.heads()

    def add(self, kind, reads, shape, **options):
        name = options.pop("name", f"l{len(self.layers)}")
        if self.masked and kind in IGNORING_MASKS:
            options["ignore_mask"] = True
        inputs = [value[0] for value in reads]
        self.layers.append({kind: {"name": name, **options, "inputs": inputs if len(inputs) > 1 else inputs[0]}})
        self.values.append((name, shape))
        return name

    def pick(self):
        """Returns a randomly chosen value. Values near the end of the list are more likely to be chosen."""
        return self.values[max(self.draw.randrange(len(self.values)) for _ in range(2))]

    def compute(self):
        value = self.pick()
        options = {"activation": self.draw.choice(ACTIVATIONS)}
        if self.draw.random() < 0.15:
            options["trainable"] = False
        if len(value[1]) == 3:
            filters = self.draw.choice([2, 4])
            self.add("conv2d", [value], [4, 4, filters], filters=filters, kernel_size=3, padding="same", **options)
            return
        units = self.draw.choice([4, 4, 6])
        name = self.add("dense", [value], [*value[1][:-1], units], units=units, **options)
        self.dense.append((name, value[1], units))

    def share(self):
        for name, reads, units in self.draw.sample(self.dense, len(self.dense)):
            fitting = [value for value in self.values if value[1] == reads]
            self.add("dense", [self.draw.choice(fitting)], [*reads[:-1], units], shared_with=name)
            return

    def merge(self):
        first = self.pick()
        others = [value for value in self.values if value[1] == first[1] and value is not first]
        if others and self.draw.random() < 0.6:
            reads = [first, *self.draw.sample(others, min(len(others), self.draw.choice([1, 1, 2])))]
            self.add(self.draw.choice(["add", "add", "multiply"]), reads, first[1])
            return
        others = [value for value in self.values if value[1][:-1] == first[1][:-1] and value is not first]
        if others:
            second = self.draw.choice(others)
            self.add("concatenate", [first, second], [*first[1][:-1], first[1][-1] + second[1][-1]])

    def change(self):
        value = self.pick()
        kind = self.draw.choice(["activation", "dropout", "gaussian_noise", "gaussian_dropout", "layer_normalization",
                                 "rms_normalization", "turn"])
        if kind == "turn" and len(value[1]) == 1 and value[1][0] % 2 == 0:
            shape = [value[1][0] // 2, 2]
            self.add("reshape", [value], shape, target_shape=shape)
            self.add("flatten", [self.values[-1]], value[1])
            return
        options = {"activation": {"activation": self.draw.choice(ACTIVATIONS)}, "dropout": {"rate": 0.3},
                   "gaussian_noise": {"stddev": 0.1}, "gaussian_dropout": {"rate": 0.1}, "layer_normalization": {},
                   "rms_normalization": {}}
        if kind in options:
            self.add(kind, [value], value[1], **options[kind])

    def heads(self):
        """Adds outputs that read the values that no layer reads. Sometimes one of these values is left unread."""
        read = {name for layer in self.layers for options in layer.values()
                for name in ([options["inputs"]] if isinstance(options["inputs"], str) else options["inputs"])}
        ends = [value for value in self.values if value[0] not in read] or self.values[-1:]
        flat = []
        for value in ends:
            if len(value[1]) == 3:
                self.add("global_average_pooling2d", [value], value[1][-1:])
                value = self.values[-1]
            elif len(value[1]) == 2 and self.masked and self.draw.random() < 0.5:
                self.add("global_average_pooling1d", [value], value[1][-1:])
                value = self.values[-1]
            elif len(value[1]) == 2:
                self.add("flatten", [value], [value[1][0] * value[1][1]])
                value = self.values[-1]
            flat.append(value)
        whole = flat[0]
        if len(flat) > 1:
            self.add("concatenate", flat, [sum(value[1][0] for value in flat)])
            whole = self.values[-1]
        softmax = {"activation": "softmax"} if self.draw.random() < 0.5 else {}
        if softmax and self.draw.random() < 0.5:  # a separate layer, perhaps on another device
            self.add("dense", [whole], [3], name="scores", units=3)
            self.add("activation", [self.values[-1]], [3], name="kind", **softmax)
        else:
            self.add("dense", [whole], [3], name="kind", units=3, **softmax)
        self.loss = {"kind": {"sparse_categorical_crossentropy": {} if softmax else {"from_logits": True}}}
        self.metrics = {"kind": ["sparse_categorical_accuracy", "f1_score"]}
        self.targets = {"kind": {"classes": 3}}
        if self.draw.random() < 0.4:
            self.add("dense", [self.draw.choice([whole, flat[0], self.values[-1]])], [1], name="size", units=1)
            self.loss["size"] = {"mean_squared_error": {"weight": 0.5}}
            self.metrics["size"] = ["mean_absolute_error"]
            self.targets["size"] = {"shape": [1]}
        sequences = [value for value in self.values if len(value[1]) == 2]
        if self.masked and sequences and self.draw.random() < 0.4:  # a class for each position, some of which are masked
            value = self.draw.choice(sequences)
            self.add("dense", [value], [value[1][0], 3], name="tags", units=3)
            self.loss["tags"] = {"sparse_categorical_crossentropy": {"from_logits": True}}
            self.metrics["tags"] = ["sparse_categorical_accuracy"]
            self.targets["tags"] = {"classes": 3}

    def recompute(self):
        """Makes some layers recompute their outputs in the backward pass. This must not change any bit of the results."""
        for layer in self.layers:
            for options in layer.values():
                if self.draw.random() < 0.2:
                    options["recompute"] = True

    def names(self):
        return [options["name"] for layer in self.layers for options in layer.values()]

    def config(self):
        draw = self.draw
        several = len(self.targets) > 1
        targets = {"targets": self.targets} if several else {"target": self.targets["kind"]}
        synthetic = {**targets, "input": {"low": 0, "high": 10} if self.words else {"distribution": "normal"}}
        samples, batch = draw.randint(1, 40), draw.randint(1, 16)
        train = {"epochs": max(2, min(6, 12 * batch // samples)), "batch_size": batch, "loss": self.loss if several else self.loss["kind"],
                 "metrics": self.metrics if several else self.metrics["kind"],
                 "optimizer": draw.choice(OPTIMIZERS)}
        if draw.random() < 0.2:
            train["accumulate"] = draw.choice([2, 3, 7])
        if draw.random() < 0.3:
            train.update(draw.choice([{"clip_norm": 0.05}, {"clip_norm": 1.0}, {"clip_value": 0.01}]))
        if draw.random() < 0.2:
            train["callbacks"] = [{"ema": {"decay": 0.9}}]
        if draw.random() < 0.2 and not several:
            train["class_weight"] = {"0": 0.5, "2": 3}
        outputs = {"outputs": list(self.targets)} if several else {}
        return {"seed": draw.randrange(1000),
                "model": {"inputs": self.inputs, "layers": self.layers, **outputs},
                "dataset": {"train": {"synthetic": {"samples": samples, "seed": 1, **synthetic}},
                            "validation": {"synthetic": {"samples": draw.randint(1, 20), "seed": 2, **synthetic}}},
                "train": train,
                "checkpoint": {"every": "1 epoch", "keep": 2}}


def placed(draw, names):
    devices = [f"cpu:{i}" for i in range(draw.randint(2, 4))]
    return {"placed": {"layers": {name: draw.choice(devices) for name in names if draw.random() < 0.8} or {names[0]: "cpu:1"}}}


def pipeline(draw, names):
    stages = min(draw.randint(2, 4), len(names))
    replicas = draw.choice([1, 1, 1, 2])
    starts = sorted(draw.sample(range(1, len(names)), stages - 1))
    return {"pipeline": {"devices": [f"cpu:{i}" for i in range(stages * replicas)], "stages": [names[i] for i in starts],
                         "microbatches": draw.choice([1, 2, 3, 4, 8]), "schedule": draw.choice(["gpipe", "1f1b"]),
                         "replicas": replicas}}


def sharded(draw, _):
    return {"sharded": {"devices": [f"cpu:{i}" for i in range(draw.randint(2, 4))],
                        "level": draw.choice(["optimizer", "gradients", "parameters"])}}


def strategies(draw, names):
    return [draw.choice([placed, placed, pipeline, pipeline, pipeline, sharded])(draw, names) for _ in range(2)]


class Fuzzer:
    def __init__(self, program, folder):
        self.program = program
        self.dir = folder
        self.runs = 0

    def dtrain(self, *arguments):
        try:
            done = subprocess.run([self.program, *map(str, arguments)], cwd=self.dir, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=shared(SECONDS))
        except subprocess.TimeoutExpired:
            raise Found(f"dtrain {' '.join(map(str, arguments))}: hangs")
        if done.returncode != 0:
            raise Found(f"dtrain {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def fit(self, config, strategy, run, *arguments):
        """Runs `dtrain fit` and returns the losses of the steps of this process."""
        self.runs += 1
        (self.dir / "c.yaml").write_text(json.dumps({**config, "strategy": strategy}))
        log = self.dir / "steps.jsonl"
        log.unlink(missing_ok=True)
        self.dtrain("fit", "c.yaml", "--output", run, "--quiet", "--step-log", log, *arguments)
        return [json.loads(line)["loss"] for line in log.read_text().splitlines()]

    def metrics(self, run):
        lines = [json.loads(line) for line in (self.dir / run / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in line.items() if k not in ("seconds", "samples_per_second")} for line in lines]

    def arrays(self, run):
        newest = sorted((self.dir / run / "checkpoints").glob("ckpt-*.h5"))[-1]
        inspected = json.loads(self.dtrain("inspect", newest, "--json"))
        return newest.name, inspected["weights"], inspected["slots"]

    def compare(self, what, found, expected):
        if len(found) != len(expected):
            raise Found(f"{what}: {len(found)} values instead of {len(expected)}")
        for number, (one, other) in enumerate(zip(found, expected), 1):
            if not close(one, other):
                raise Found(f"{what} {number}: {one} instead of {other}")

    def try_config(self, config, chosen):
        """Checks a configuration with the two strategies `chosen`."""
        for run in self.dir.iterdir():
            shutil.rmtree(run) if run.is_dir() else run.unlink()
        single = self.fit(kept(config), "single", "single")
        expected = self.metrics("single")
        for number, strategy in enumerate(chosen):
            whole = f"whole{number}"
            self.compare("the loss of step", self.fit(config, strategy, whole), single)
            self.compare("the metrics of epoch", self.metrics(whole), expected)
        first, second = chosen
        half = config["train"]["epochs"] // 2
        self.fit(config, first, "stopped", "--epochs", half)
        shutil.copytree(self.dir / "stopped", self.dir / "other")
        self.fit(config, first, "stopped", "--resume")
        if self.arrays("stopped") != self.arrays("whole0"):
            raise Found("a run resumed under the same strategy ends with other bits")
        self.fit(config, second, "other", "--resume")
        self.compare("the metrics, under another strategy, of epoch", self.metrics("other"), expected)

    def finds(self, config, chosen):
        try:
            self.try_config(config, chosen)
        except Found as what:
            return str(what)
        return ""

    def shrink(self, config, chosen, what):
        """Shrinks the model as long as the finding remains and the run on a single device is valid."""
        def better():
            for key in list(config["train"]):
                if key not in ("epochs", "batch_size", "loss", "optimizer"):
                    yield lambda c, s, key=key: c["train"].pop(key)
            yield lambda c, s: c["train"].update(optimizer=OPTIMIZERS[0])
            yield lambda c, s: c.update(kept(c))
            for number in range(len(config["model"]["layers"])):
                yield lambda c, s, number=number: drop_layer(c, s, number)
            for number in (0, 1):
                yield lambda c, s, number=number: s.__setitem__(number, s[1 - number])
        tries = 60
        again = True
        while again and tries > 0:
            again = False
            for change in better():
                smaller, strategies_ = copy.deepcopy(config), copy.deepcopy(chosen)
                try:
                    change(smaller, strategies_)
                except (KeyError, IndexError):
                    continue
                if (smaller, strategies_) == (config, chosen):
                    continue
                tries -= 1
                found = self.finds(smaller, strategies_)
                if found and ": exit 2" not in found:
                    config, chosen, what, again = smaller, strategies_, found, True
                    break
                if tries == 0:
                    break
        return config, chosen, what


def kept(config):
    """Returns the configuration in which no layer is recomputed, so that all outputs are kept."""
    plain = copy.deepcopy(config)
    for layer in plain["model"]["layers"]:
        for options in layer.values():
            options.pop("recompute", None)
    return plain


def drop_layer(config, chosen, number):
    """Removes a layer. The layers that read its output read its input instead."""
    (options,) = config["model"]["layers"].pop(number).values()
    if options["name"] in ("kind", "size", "tags") or not isinstance(options["inputs"], str):
        raise KeyError
    for layer in config["model"]["layers"]:
        for other in layer.values():
            if other["inputs"] == options["name"]:
                other["inputs"] = options["inputs"]
            elif isinstance(other["inputs"], list):
                other["inputs"] = [options["inputs"] if name == options["name"] else name for name in other["inputs"]]
    for strategy in chosen:
        if "placed" in strategy:
            strategy["placed"]["layers"].pop(options["name"], None)


def close(one, other):
    if isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in other)
    if isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-5)
    return one == other


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, help=f"models to try ({COUNT})")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first model; the next models have the next seeds")
    parser.add_argument("--long", action="store_true", help=f"{LONG_COUNT} models")
    options = parser.parse_args()
    count = options.count or (LONG_COUNT if options.long else COUNT)
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(os.path.abspath(options.program), pathlib.Path(folder).resolve())
        for number, seed in enumerate(range(options.seed, options.seed + count)):
            if options.long and number % 50 == 0:
                print(f"{number} models", flush=True)
            draw = random.Random(seed)
            model = Model(draw)
            model.recompute()
            config, chosen = model.config(), strategies(draw, model.names())
            what = fuzzer.finds(config, chosen)
            if not what:
                continue
            found += 1
            config, chosen, what = fuzzer.shrink(config, chosen, what)
            print(f"{what}\nstrategies: {json.dumps(chosen)}\n{json.dumps(config)}\n"
                  f"again: {sys.argv[0]} --program {options.program} --count 1 --seed {seed}\n", flush=True)
            if found == 5:
                break
        print(f"{count} models, {fuzzer.runs} runs, {found} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
