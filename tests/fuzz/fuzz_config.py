#!/usr/bin/env python3
"""Random configurations: mutations of the files in configs/ and of EVERYTHING, which has every layer, and
configurations generated from the JSON schema. `dtrain check` reads each configuration; accepted ones are trained for an
epoch and evaluated.

A finding is a signal, a hang, an exit code of check other than 0 and 2, a message without a source location or with a
library's text, and a configuration that check accepts but fit rejects. Findings are minimized and printed."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from patience import patiently

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONG = {"mutated": 20000, "generated": 10000}
SHORT = {"mutated": 60, "generated": 40}
HANG_SECONDS = 5
MEMORY = 6 << 30
LIBRARIES_WORDS = re.compile(
    r"what\(\)|std::|vector::|basic_string|HDF5-DIAG|dnnl|could not create|terminate called|filesystem error|Assertion")
PLACED = re.compile(r"^[^\n]*?:\d+:\d+: (error|warning): |^\.\.\. and \d+ more$")
# Errors that may end a valid run, because its numbers exceeded the range of float32.
RAN_AWAY = re.compile(r"the loss is (nan|infinite)|are not finite")

EVERYTHING = ["""\
seed: 3
model:
  inputs: {image: [6, 6, 2]}
  blocks:
    body:
      parameters: {filters: 4}
      layers:
        - conv2d: {filters: $filters, kernel_size: 3, padding: same, groups: 2, use_bias: false, kernel_initializer: he_normal}
        - batch_normalization: {name: normal, momentum: 0.9, epsilon: 0.01}
        - add: {inputs: [normal, input]}
  layers:
    - conv2d: {name: first, filters: 4, kernel_size: [3, 3], strides: 1, padding: same, dilation_rate: 2, activation: relu}
    - body: {filters: 4, repeat: 2}
    - depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2, activation: {leaky_relu: {negative_slope: 0.1}}}
    - conv2d_transpose: {filters: 3, kernel_size: 2, strides: 2, padding: valid, output_padding: 1}
    - max_pooling2d: {pool_size: 2, strides: 2, padding: same}
    - zero_padding2d: {padding: [[1, 0], [0, 1]]}
    - cropping2d: {cropping: [[0, 1], [0, 0]]}
    - upsampling2d: {size: [2, 1], interpolation: nearest}
    - upsampling2d: {size: [1, 2], interpolation: bilinear}
    - prelu: {shared_axes: [1, 2], alpha_initializer: {constant: {value: 0.25}}}
    - separable_conv2d: {filters: 3, kernel_size: 2, padding: same, depth_multiplier: 2, strides: [2, 1]}
    - permute: {dims: [2, 1, 3]}
    - average_pooling2d: {pool_size: [2, 2], strides: 1}
    - layer_normalization: {epsilon: 0.001}
    - rescaling: {scale: 1/2, offset: [0.5, 0, -1]}
    - resizing: {height: 5, width: 4, interpolation: bilinear}
    - group_normalization: {groups: 3, epsilon: 0.01, center: true}
    - spatial_dropout2d: {rate: 0.25}
    - gaussian_noise: {stddev: 0.1}
    - activation: {elu: {alpha: 0.5}}
    - activation: {relu: {max_value: 6, negative_slope: 0.1, threshold: 0.25}}
    - activation: {hard_sigmoid: {slope: 0.2}}
    - global_average_pooling2d: {keepdims: false}
    - dropout: {rate: 0.25}
    - dense: {units: 6, activation: {gelu: {approximate: true}}, kernel_initializer: {variance_scaling: {scale: 2, mode: fan_in}}, kernel_regularizer: {l1_l2: {l1: 0.001, l2: 0.01}}, kernel_constraint: {max_norm: {max_value: 3, axis: 0}}, bias_constraint: non_neg}
    - reshape: [2, 3]
    - conv1d: {filters: 3, kernel_size: 2, strides: 1, padding: causal, dilation_rate: 1, activation: relu}
    - conv1d_transpose: {filters: 3, kernel_size: 2, strides: 1, padding: same, use_bias: false}
    - spatial_dropout1d: {rate: 0.25}
    - prelu: {shared_axes: 1}
    - flatten: {}
    - gaussian_dropout: {rate: 0.25}
    - rms_normalization: {epsilon: 0.0001}
    - unit_normalization: {}
    - softmax: {}
    - dense: {units: 3, activation: softmax, trainable: true}
dataset:
  train:      {synthetic: {samples: 40, target: {classes: 3}, seed: 1}, rows: [0, 30]}
  validation: {synthetic: {samples: 40, target: {classes: 3}, seed: 1}, rows: [30, 40]}
  transforms: [{rescale: {scale: 1/255, offset: 0.5}}, {normalize: {mean: 0.5, std: [0.5, 2]}}]
  shuffle: true
  cache: memory
  prefetch: 1
strategy: {mirrored: {devices: [cpu:0, cpu:1], replicas: 3, bucket_megabytes: 1}}
train:
  epochs: 1
  batch_size: 8
  loss: sparse_categorical_crossentropy
  optimizer: {rmsprop: {learning_rate: {cosine_decay: {initial: 0.01, steps: 1 epoch, warmup_steps: 2}}, momentum: 0.5, centered: true}}
  metrics: [accuracy, {sparse_top_k_categorical_accuracy: {k: 2}}]
  clip_norm: 1.0
  accumulate: 2
  callbacks: [{early_stopping: {monitor: val_loss, patience: 1, mode: min}}, terminate_on_nan]
checkpoint: {every: 2 steps, keep: 2, best: {monitor: val_accuracy, mode: max}}
""", """\
name: two
model:
  inputs: {left: [4], word: {shape: [3], dtype: int32}}
  layers:
    - embedding: {name: words, inputs: word, input_dim: 10, output_dim: 4, mask_zero: true}
    - lstm: {name: read, inputs: words, units: 3, return_sequences: true, dropout: 0.1, recurrent_dropout: 0.2, unit_forget_bias: false}
    - bidirectional: {layer: {gru: {units: 2, return_sequences: true}}, merge_mode: sum}
    - gru: {units: 3, return_sequences: true, reset_after: false, go_backwards: true, ignore_mask: true}
    - time_distributed: {layer: {dense: {units: 3, activation: relu}}}
    - masking: {mask_value: 0.5}
    - simple_rnn: {units: 2, activation: relu, return_sequences: true, use_bias: false}
    - position_embedding: {sequence_length: 4}
    - sinusoidal_position_encoding: {max_wavelength: 100}
    - multi_head_attention: {num_heads: 2, key_dim: 2, num_key_value_heads: 1, causal: true, dropout: 0.1, rotary: {base: 100}}
    - flatten: {name: flat, ignore_mask: true}
    - dense: {name: numbers, inputs: left, units: 6, activation: {silu: {}}, bias_initializer: {constant: {value: 0.1}}}
    - multiply: {name: product, inputs: [flat, numbers]}
    - dot: {name: likeness, inputs: [flat, product], axes: 1, normalize: true}
    - concatenate: {inputs: [product, numbers, likeness], axis: -1}
    - dense: {name: yes_no, units: 1, activation: sigmoid}
    - dense: {name: size, inputs: product, units: 2, activity_regularizer: {l1: 0.01}}
  outputs: [yes_no, size]
dataset:
  train: {synthetic: {samples: 20, input: {low: 0, high: 10}, targets: {yes_no: {classes: 2}, size: {shape: [2]}}}}
strategy: {single: {device: cpu:0}}
train:
  epochs: 1
  batch_size: 6
  loss: {yes_no: binary_crossentropy, size: {huber: {delta: 0.5}}}
  optimizer: {adamw: {learning_rate: {piecewise_constant: {boundaries: [1, 3], values: [0.1, 0.01, 0.001]}}, weight_decay: 0.01}}
  metrics: [mean_absolute_error]
checkpoint: {every: 1 epoch}
""", """\
model:
  inputs: {x: [5]}
  layers: [{dense: {units: 4, activation: tanh}}, {dense: {units: 1}}]
dataset:
  train: {synthetic: {samples: 16, input: {distribution: normal, mean: 1, stddev: 2}, target: {shape: [1]}}}
  validation: {synthetic: {samples: 8, target: {shape: [1]}, seed: 5}}
strategy: {mirrored: {devices: auto}}
train:
  epochs: 2
  batch_size: 5
  loss: mean_squared_error
  optimizer: {sgd: {learning_rate: {reduce_on_plateau: {initial: 0.1, factor: 0.5, patience: 1}}, momentum: 0.9, nesterov: true}}
""", """\
model:
  inputs: {x: [5], y: [5]}
  blocks:
    pair: {layers: [dense: {units: 4, activation: tanh}, dropout: {rate: 0.2}, dense: {units: 4}]}
  layers:
    - dense: {units: 4, name: left/first, inputs: x, device: "cpu:1"}
    - dense: {name: right/first, inputs: y, shared_with: left/first}
    - pair: {name: right/pair, recompute: true}
    - layer_normalization: {name: left/normal, inputs: left/first, recompute: {segment: rest}}
    - pair: {repeat: 2, recompute: {segment: rest}}
    - add: {inputs: [pair_1, right/pair], name: sum}
    - dense: {units: 3, name: head, device: "cpu:0"}
dataset:
  train: {synthetic: {samples: 24, target: {classes: 3}}}
  validation: {synthetic: {samples: 8, target: {classes: 3}, seed: 5}}
strategy: {placed: {layers: {"left/*": cpu:0, "right/*": cpu:2, "pair*/*": cpu:1}}}
train:
  epochs: 1
  batch_size: 5
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {lamb: {learning_rate: 0.01}}
  clip_norm: 0.1
"""]


EVERYTHING += ["""\
model:
  inputs: {volume: [4, 5, 3, 2]}
  layers:
    - zero_padding3d: {padding: [[1, 0], [0, 1], [2, 1]]}
    - conv3d: {filters: 4, kernel_size: [2, 3, 1], strides: [1, 2, 1], padding: same, activation: relu}
    - batch_normalization: {}
    - upsampling3d: {size: [1, 2, 1]}
    - cropping3d: {cropping: [[0, 1], [1, 0], [0, 0]]}
    - max_pooling3d: {pool_size: 2, strides: 1, padding: same}
    - conv3d: {filters: 3, kernel_size: 2, dilation_rate: [2, 1, 1], use_bias: false}
    - average_pooling3d: {pool_size: [1, 2, 2]}
    - global_max_pooling3d: {keepdims: true}
    - global_average_pooling3d: {keepdims: false}
    - dense: {units: 2}
dataset:
  train: {synthetic: {samples: 12, target: {shape: [2]}}}
strategy: {single: {device: cpu:0}}
train:
  epochs: 1
  batch_size: 4
  loss: mean_squared_error
  optimizer: {sgd: {learning_rate: 0.01}}
""", """\
model:
  inputs: {series: [8, 3], image: [4, 4, 2]}
  layers:
    - zero_padding1d: {inputs: series, padding: [1, 2]}
    - cropping1d: {cropping: [1, 0]}
    - upsampling1d: {size: 2}
    - max_pooling1d: {pool_size: 2, strides: 1, padding: same}
    - average_pooling1d: {name: means, pool_size: 2}
    - global_max_pooling1d: {name: most, keepdims: false}
    - global_average_pooling1d: {name: mean, inputs: means}
    - subtract: {name: range, inputs: [most, mean]}
    - average: {name: middle, inputs: [most, mean, range]}
    - maximum: {name: upper, inputs: [middle, range]}
    - minimum: {name: lower, inputs: [middle, range]}
    - global_max_pooling2d: {name: brightest, inputs: image}
    - concatenate: {inputs: [upper, lower, brightest]}
    - repeat_vector: {n: 3}
    - flatten: {}
    - dense: {units: 2}
dataset:
  train: {synthetic: {samples: 12, target: {shape: [2]}}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 1
  batch_size: 4
  loss: mean_absolute_error
  optimizer: {adam: {learning_rate: 0.01}}
"""]

EVERYTHING += ["""\
model:
  inputs: {image: [6, 6, 3]}
  layers:
    - conv2d: {filters: 4, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: mask, filters: 2, kernel_size: 1, activation: softmax}
dataset:
  train: {synthetic: {samples: 12, target: {shape: [6, 6, 2]}}}
  augment: [{random_flip: {mode: vertical}}]
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 1
  batch_size: 4
  loss: {tversky: {alpha: 0.7, beta: 0.3, axis: [1, 2], weight: 0.5}}
  metrics: [accuracy, mean_iou]
  optimizer: {adam: {learning_rate: 0.01}}
"""]

# The content of the file base.yaml. The following configurations use this file as their base.
BASE = EVERYTHING[2]
EVERYTHING += ["""\
base: base.yaml
seed: ${SEED:-4}
model:
  inputs: {x: [5]}
  layers: [{Dense: &wide {units: 4, activation: swish}}, {dense: {<<: *wide, units: "${UNITS:-3}"}}, {dropout: 0.5}, {dense: 1}]
dataset:
  validation: {split: {of: train, fraction: 0.25}}
train: {loss: mse, metrics: mae, optimizer: {SGD: {learning_rate: 1/8}}, callbacks: [EarlyStopping]}
""", """\
base: base.yaml
strategy: {pipeline: {devices: [cpu:0, cpu:1]}}
train: {optimizer: {sgd: {<<: [{momentum: 0.5}, {momentum: 0.25, nesterov: TRUE}]}}, clip_norm: 0.5}
"""]


def with_strategy(text, strategy):
    """Returns the configuration with another strategy and without the layers' devices."""
    return re.sub(r", device: \"cpu:\d\"", "", re.sub(r"(?m)^strategy: .*$", lambda _: f"strategy: {strategy}", text))


EVERYTHING += [
    with_strategy(EVERYTHING[0], "{pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: auto, microbatches: 3, schedule: gpipe}}"),
    with_strategy(EVERYTHING[1], "{placed: {layers: {words: cpu:1, 'n*': cpu:0, product: cpu:2, size: cpu:1}}}"),
    with_strategy(EVERYTHING[2], "{sharded: {devices: [cpu:0, cpu:1, cpu:2], level: gradients}}"),
    with_strategy(EVERYTHING[3], "{pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [sum], microbatches: 2, replicas: 2}}"),
    with_strategy(EVERYTHING[3], "{sharded: {devices: [cpu:0, cpu:1], level: parameters}}"),
]

EXTREMES = ["0", "-1", "1", "2", "3", "7", "255", "65536", "2147483647", "2147483648", "4294967295", "4294967297", "-2147483648",
            "1000001", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e308", "1e-308", "1e39", "-1e30",
            "1.5", "0.5", "1/3", "1/0", "nan", ".inf", "null", "true", "''", "'1'", "[]", "{}", "[1, 2]", "x", "auto", "cpu:0",
            "gpu:99", "1 epoch", "0.5 epochs", "1 step", "2 minutes", "$x", "${HOME:-x}", "~", "on", "08"]
DAMAGE = "\n\t :-?[]{},&*!|>'\"%@`#~<=0a\\\x00\x80"


class Program:
    """Runs the program in a separate folder, with limits."""

    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())
        self.memory = MEMORY
        self.trained = 0  # number of configurations that were trained
        with tempfile.TemporaryDirectory() as folder:
            text = EVERYTHING[2]
            if self.run(folder, "check", text)[0] != 0:
                self.memory = None  # sanitizers reserve more address space than the limit
            start = time.monotonic()
            code, _, err = self.run(folder, "check", text)
            if code != 0:
                sys.exit(f"a valid configuration fails: exit {code}\n{err}")
            self.hang_seconds = max(HANG_SECONDS, 30 * (time.monotonic() - start))

    def limit(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.memory:
            resource.setrlimit(resource.RLIMIT_AS, (self.memory, self.memory))

    def run(self, folder, command, text, *arguments, seconds=60):
        """Returns exit code, standard output and standard error; raises subprocess.TimeoutExpired."""
        path = pathlib.Path(folder) / "configs" / "c.yaml"
        path.parent.mkdir(exist_ok=True)
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
        target = ["configs/c.yaml"] if text is not None else []
        process = subprocess.Popen([self.path, command, *target, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=self.limit)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def run_patiently(program, folder, command, text, *arguments):
    """Calls program.run(). If the program hangs, returns the exit code None instead of raising an exception."""
    try:
        return patiently(lambda seconds: program.run(folder, command, text, *arguments, seconds=seconds), program.hang_seconds)
    except subprocess.TimeoutExpired:
        return None, "", ""


def is_cheap(plan):
    """Returns whether training for an epoch takes only little time and memory."""
    memory = sum(replica["memory"]["total"] for replica in plan["replicas"])
    return memory < (256 << 20) and memory * max(plan["steps_per_epoch"], 1) < (2 << 30) and \
        plan["steps_per_epoch"] * plan["epochs"] < 400 and sum(plan["samples"].values()) < 100_000


def find_fault(program, text):
    """Returns a one-line description of the program's failure with this configuration; None if it did not fail."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("datasets", "configs/models"):
            target = pathlib.Path(folder) / name
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(ROOT / name)
        (pathlib.Path(folder) / "configs" / "base.yaml").write_text(BASE)
        code, out, err = run_patiently(program, folder, "check", text, "--json")
        if code is None:
            return "check hangs"
        if code not in (0, 2):
            return f"check exits with {code}: {err.strip()[-300:]}"
        if LIBRARIES_WORDS.search(err):
            return f"check prints a library's text: {err.strip()[:300]}"
        if code == 2:
            unplaced = [line for line in err.splitlines() if not PLACED.match(line)]
            return f"a message without a location: {unplaced[0][:300]}" if unplaced else None
        if not is_cheap(json.loads(out)):
            return None
        # The option --overwrite is needed because a run that hung and was killed may have left checkpoints.
        code, out, err = run_patiently(program, folder, "fit", text, "--output", "r", "--overwrite", "--quiet", "--epochs", "1")
        if code is None:
            return "fit hangs"
        if code == 1 and RAN_AWAY.search(err):
            return None
        if code != 0:
            return f"check accepts it, fit exits with {code}: {err.strip()[-300:]}"
        program.trained += 1
        code, out, err = run_patiently(program, folder, "evaluate", None, "r", "--split", "train", "--quiet")
        if code is None:
            return "evaluate hangs"
        if code != 0:
            return f"evaluate exits with {code}: {err.strip()[-300:]}"
    return None


# Mutations of a text.

def mutate(draw, text, words):
    for _ in range(draw.choice((1, 1, 1, 2, 3, 5))):
        text = draw.choice((change_value, change_value, change_value, change_word, change_word, change_lines, add_key,
                            damage))(draw, text, words)
    return text


def change_value(draw, text, words):
    """Replaces a number, or the value after a colon."""
    places = [match.span() for match in re.finditer(r"(?<![\w.])-?\d[\w.+-]*", text)]
    places += [match.span(1) for match in re.finditer(r": ([^\s\[\]{},#]+)", text)]
    if not places:
        return text
    start, end = draw.choice(places)
    return text[:start] + draw.choice(EXTREMES) + text[end:]


def change_word(draw, text, words):
    places = [match.span() for match in re.finditer(r"[a-z_][a-z_0-9]{2,}", text)]
    if not places:
        return text
    start, end = draw.choice(places)
    word = draw.choice(words) if draw.random() < 0.7 else text[start:end][:-1]
    return text[:start] + word + text[end:]


def change_lines(draw, text, words):
    lines = text.splitlines()
    if len(lines) < 2:
        return text
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.randrange(4)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[j])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i] = draw.choice(("", "  ")) + lines[i][draw.choice((0, 1, 2)):]
    return "\n".join(lines) + "\n"


def add_key(draw, text, words):
    places = [match.end() for match in re.finditer(r"\{", text)]
    if not places:
        return text
    at = draw.choice(places)
    return text[:at] + f"{draw.choice(words)}: {draw.choice(EXTREMES)}, " + text[at:]


def damage(draw, text, words):
    at = draw.randrange(len(text) + 1)
    kind = draw.randrange(3)
    if kind == 0:
        return text[:at] + draw.choice(DAMAGE) + text[at:]
    if kind == 1:
        return text[:at] + text[at + draw.randrange(1, 12):]
    other = draw.randrange(len(text) + 1)
    return text[:at] + text[other:other + draw.randrange(40)] + text[at:]


# Configurations that are generated from the JSON schema.

class Maker:
    """Generates values that a schema allows, most of them small, and sometimes invalid ones."""

    def __init__(self, schema, draw):
        self.schema, self.draw = schema, draw

    def resolve(self, node):
        while "$ref" in node:
            at = self.schema
            for key in node["$ref"][2:].split("/"):
                at = at[key]
            node = {**at, **{k: v for k, v in node.items() if k != "$ref"}}
        return node

    def kind(self, definition, name):
        """Returns the schema of a kind's options."""
        for choice in self.resolve({"$ref": f"#/$defs/{definition}"})["oneOf"]:
            for one in choice.get("oneOf", [choice]):
                if name in one.get("properties", {}):
                    return one["properties"][name]
        raise KeyError(name)

    def value(self, node, depth=0):
        draw = self.draw
        node = self.resolve(node)
        if draw.random() < 0.005:
            return draw.choice([0, -1, 2147483647, 4294967297, 1e39, 1e-39, 1.5, "x", None, True, [], {}, 9223372036854775807])
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return draw.choice(node["enum"])
        for several in ("oneOf", "anyOf"):
            if several in node:
                return self.value(draw.choice(node[several]), depth + 1)
        kind = node.get("type")
        if isinstance(kind, list):
            kind = kind[0]
        if kind == "integer":
            low = int(node.get("minimum", 0))
            return draw.choice([low, low + 1, low + 2, draw.randrange(low, low + 9), min(low + 1000, node.get("maximum", low + 1000))])
        if kind == "number":
            low = node.get("minimum", node.get("exclusiveMinimum", -2))
            high = node.get("maximum", node.get("exclusiveMaximum", low + 2))
            ends = [one for key, one in (("minimum", low), ("maximum", high)) if key in node]
            return draw.choice([*ends, (low + high) / 2, draw.uniform(low, high), round(draw.uniform(low, min(high, low + 1)), 3)])
        if kind == "boolean":
            return draw.random() < 0.5
        if kind == "string":
            pattern = node.get("pattern", "")
            lengths = [one for one in ("1 epoch", "0.5 epochs", "2 epochs", "3 steps", "1 minute", "0.5 hours", "auto")
                       if re.search(pattern, one)]
            return draw.choice((lengths if pattern else []) or ["cpu:0", "x", "val_loss", "loss", "1/3"])
        if kind == "array":
            least = node.get("minItems", 0)
            return [self.value(node.get("items", {}), depth + 1) for _ in range(draw.randint(least, node.get("maxItems", least + 2)))]
        if kind == "object":
            return self.options(node, depth)
        return None if kind == "null" else draw.choice([1, "x", None])

    def options(self, node, depth=0, chance=0.3):
        """Generates the required keys and some of the optional keys."""
        node = self.resolve(node)
        for several in ("anyOf", "oneOf"):
            if several in node:
                node = self.resolve(next(choice for choice in map(self.resolve, node[several]) if "object" in choice.get("type", "")
                                         or "anyOf" in choice))
        required = node.get("required", [])
        return {name: self.value(one, depth + 1) for name, one in node.get("properties", {}).items()
                if name in required or (depth < 6 and self.draw.random() < chance)}


ANY_SHAPE = ["softmax", "unit_normalization", "rms_normalization", "gaussian_noise", "gaussian_dropout"]
IMAGE_LAYERS = ["conv2d", "depthwise_conv2d", "conv2d_transpose", "max_pooling2d", "average_pooling2d", "zero_padding2d",
                "cropping2d", "upsampling2d", "separable_conv2d", "permute", "batch_normalization", "layer_normalization", "activation", "prelu", "dropout",
                "spatial_dropout2d", "group_normalization", "rescaling", "resizing", *ANY_SHAPE]
SEQUENCE_LAYERS = ["conv1d", "conv1d_transpose", "lstm", "gru", "simple_rnn", "max_pooling1d", "average_pooling1d", "zero_padding1d", "cropping1d", "upsampling1d",
                   "spatial_dropout1d", "multi_head_attention", "position_embedding", "sinusoidal_position_encoding", "masking"]
REFUSING_MASKS = ["conv1d", "conv1d_transpose", "max_pooling1d", "average_pooling1d", "zero_padding1d", "cropping1d", "upsampling1d",
                  "global_max_pooling1d", "flatten"]
VOLUME_LAYERS = ["conv3d", "max_pooling3d", "average_pooling3d", "zero_padding3d", "cropping3d", "upsampling3d", "batch_normalization",
                 "activation", "dropout"]
ROW_LAYERS = ["dense", "batch_normalization", "layer_normalization", "activation", "prelu", "dropout", *ANY_SHAPE]
# Layers that reduce a sequence, an image or a volume to one row. The key is the number of axes of the layer's input.
POOLING_TO_ROWS = {2: ["global_max_pooling1d", "global_average_pooling1d"], 3: ["global_max_pooling2d", "global_average_pooling2d"],
                   4: ["global_max_pooling3d", "global_average_pooling3d"]}
GENERATED_LAYERS = {*IMAGE_LAYERS, *SEQUENCE_LAYERS, *VOLUME_LAYERS, *ROW_LAYERS, *sum(POOLING_TO_ROWS.values(), []), "flatten"}
# Layers that generate() does not use, and the reasons. Only the configurations in EVERYTHING and their mutations
# contain these layers.
MERGES = "generated models are chains, and the layer reads several values"
NOT_GENERATED = {
    "bidirectional": "its option is a layer, which must be recurrent",
    "time_distributed": "its option is a layer, which must suit the shape of one position",
    "add": MERGES, "multiply": MERGES, "subtract": MERGES, "average": MERGES, "maximum": MERGES, "minimum": MERGES,
    "concatenate": MERGES, "dot": MERGES,
    "embedding": "the generated input has floats",
    "repeat_vector": "the generated targets have no third axis",
    "reshape": "a random shape seldom has as many elements as the input",
}


def draw_strategy(draw, maker, layers):
    """Draws a strategy that mostly fits these layers, all of which have names."""
    names = [options["name"] for layer in layers for options in layer.values()]
    kind = draw.choice(["single", "mirrored", "placed", "placed", "pipeline", "pipeline", "pipeline", "sharded", "sharded"])
    if draw.random() < 0.1:
        return {kind: maker.options(maker.kind("strategy", kind), chance=0.6)}
    if kind == "single":
        return {"single": {"device": "cpu:0"}}
    devices = [f"cpu:{i}" for i in range(draw.choice([1, 2, 2, 3, 4]))]
    if kind == "mirrored":
        return {"mirrored": {"devices": devices, **({"replicas": draw.choice([1, 2, 3, 9])} if draw.random() < 0.4 else {})}}
    if kind == "sharded":
        return {"sharded": {"devices": devices, "level": draw.choice(["optimizer", "gradients", "parameters"])}}
    if kind == "placed":
        for layer in layers:
            for options in layer.values():
                if draw.random() < 0.2:
                    options["device"] = draw.choice(devices)
        patterns = draw.sample(names, draw.randint(0, len(names))) + (["n*"] if draw.random() < 0.1 else [])
        return {"placed": {"layers": {pattern: draw.choice(devices) for pattern in patterns}}} if patterns else "placed"
    replicas = draw.choice([1, 1, 1, 2])
    stages = min(len(devices), len(names))
    named = [names[i] for i in sorted(draw.sample(range(len(names)), stages - 1))]
    options = {"devices": [f"cpu:{i}" for i in range(stages * replicas)], "stages": draw.choice(["auto", named, named]),
               "schedule": draw.choice(["1f1b", "gpipe"]), "replicas": replicas}
    return {"pipeline": {**options, **({"microbatches": draw.choice([1, 2, 3, 4, 7, 64])} if draw.random() < 0.8 else {})}}


def generate(draw, schema):
    """Generates a whole configuration: parts that must fit together are built here, all options come from the
    schema."""
    maker = Maker(schema, draw)

    def layer(name):
        options = maker.options(maker.kind("layer", name))
        for key in ("name", "inputs", "trainable", "device", "recompute", "shared_with", "ignore_mask", "filters", "units"):
            options.pop(key, None)
        if "padding" in options and not name.startswith("zero_padding") or \
                name.endswith(("conv2d", "conv3d", "pooling2d", "pooling3d")) and not name.startswith("global") and draw.random() < 0.7:
            options["padding"] = "same"
        if name == "prelu" and "shared_axes" in options:
            options["shared_axes"] = draw.choice([None, 1, [1], [2], [1, 2]])
        if name == "group_normalization":
            options["groups"] = draw.choice([1, 1, -1, 2])
        if name in ("conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose"):
            options["filters"] = draw.choice([1, 2, 3, 8, 16, 17])
        if "groups" in options and name.startswith("conv"):  # most inputs have another number of channels
            options |= {"groups": 2, "filters": 8} if draw.random() < 0.3 else {"groups": 1}
        if name == "resizing":
            options |= {"height": draw.choice([1, 3, 8]), "width": draw.choice([2, 5, 9])}
        if name == "dense":
            options["units"] = draw.choice([1, 2, 5, 16, 33])
        if name in ("lstm", "gru", "simple_rnn"):
            options |= {"units": draw.choice([1, 2, 5, 16]), "return_sequences": True, "return_state": False}
        if name == "multi_head_attention":
            options |= {"num_heads": draw.choice([1, 2, 4]), "key_dim": draw.choice([2, 8]), "num_key_value_heads": draw.choice([None, 1])}
        if name == "position_embedding":
            options["sequence_length"] = 64
        if draw.random() < 0.1:
            options["trainable"] = False
        if draw.random() < 0.1:
            options["recompute"] = draw.choice([True, False, {"segment": "together"}])
        return {name: options}

    is_image = draw.random() < 0.6
    shape = [draw.choice([1, 4, 7, 12]), draw.choice([1, 5, 8]), draw.choice([1, 2, 3, 16])] if is_image else \
        draw.choice([[], [1], [4], [9], [3, 4], [9, 2]])
    if is_image and draw.random() < 0.3:
        shape = [draw.choice([1, 2, 5])] + shape
    kinds = {2: SEQUENCE_LAYERS, 3: IMAGE_LAYERS, 4: VOLUME_LAYERS}.get(len(shape), [])
    layers = [layer(draw.choice(kinds)) for _ in range(draw.randrange(4))] if kinds else []
    layers += [layer(draw.choice(POOLING_TO_ROWS[len(shape)]))] if kinds and draw.random() < 0.2 else []
    layers += [{"flatten": {}}] if layers or is_image or draw.random() < 0.5 or not shape else []
    if any("masking" in one for one in layers):
        for one in layers:
            for kind, options in one.items():
                if kind in REFUSING_MASKS or options.get("go_backwards"):
                    options["ignore_mask"] = True
    layers += [layer(draw.choice(ROW_LAYERS)) for _ in range(draw.randrange(3))]
    if draw.random() < 0.2:
        layers += [{"layer_normalization": {"name": "rows"}}, layer(draw.choice(["activation", "dropout"])),
                   {"layer_normalization": {"shared_with": "rows"}}]
    if draw.random() < 0.2:
        layers += [{"dense": {"units": 5}}, {"dense": {"units": 5, "name": "square"}}, layer(draw.choice(ROW_LAYERS[1:])),
                   {"dense": {"shared_with": "square", **({"recompute": True} if draw.random() < 0.3 else {})}}]
    classes = draw.choice([1, 2, 3, 10])
    loss_name = draw.choice(["sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy",
                             "mean_squared_error", "mean_absolute_error", "huber"])
    sparse = loss_name.startswith("sparse")
    layers.append({"dense": {"units": classes, "name": "last", **({"activation": "softmax"} if draw.random() < 0.3 else {})}})
    target = {"classes": classes} if sparse else {"shape": [classes]}
    if len(shape) == 2 and "flatten" not in str(layers):
        target = {"shape": [shape[0], classes]}
        loss_name = "mean_squared_error"

    def split():
        options = maker.options(maker.kind("reader", "synthetic"))
        options.pop("targets", None)
        if draw.random() < 0.8:
            options.pop("input", None)
        return {"synthetic": {**options, "samples": draw.choice([1, 2, 7, 40]), "target": target}}

    def choice(definition, wanted=None):
        names = [wanted] if wanted else kind_names(maker, definition)
        name = draw.choice(names)
        options = maker.kind(definition, name)
        options = maker.value(options) if not wanted and draw.random() < 0.3 else maker.options(options)
        return {name: options} if options else name

    train = maker.options(schema["properties"]["train"])
    train.update({"epochs": 1, "batch_size": draw.choice([1, 2, 3, 8, 64, 1000]), "loss": choice("loss", loss_name),
                  "optimizer": choice("optimizer"), "precision": "float32"})
    for key in ("callbacks", "metrics"):
        train.pop(key, None)
    for key in ("groups", "class_weight"):  # random values of these options rarely fit the rest of the configuration
        if draw.random() < 0.8:
            train.pop(key, None)
    for key in ("clip_norm", "clip_value"):
        if key in train and draw.random() < 0.8:
            train[key] = draw.choice([1e-6, 0.1, 1, 1000])
    if draw.random() < 0.5:
        suiting = (["accuracy", "sparse_categorical_accuracy", "f1_score", "recall", "auc", "confusion_matrix", "mean_iou", "dice",
                     "cohen_kappa", "matthews_correlation", "perplexity", "precision_at_recall"] if sparse
                   else ["mean_absolute_error", "binary_accuracy", "precision", "auc", "r2_score", "root_mean_squared_error", "hinge"])
        train["metrics"] = [choice("metric", draw.choice(suiting))] if draw.random() < 0.7 else [choice("metric")]
    dataset = {"train": split()}
    if draw.random() < 0.4:
        drawn = {"split": {"of": "train", "fraction": draw.choice([0.1, 0.5, 0.99]), "stratify": draw.random() < 0.5}}
        dataset["validation"] = drawn if draw.random() < 0.4 else split()
    if draw.random() < 0.3:
        dataset["transforms"] = [choice("transform")]
    if draw.random() < 0.3:
        dataset["cache"] = draw.choice(["none", "memory", "device"])
    for number, options in enumerate(options for layer in layers for options in layer.values()):
        options.setdefault("name", f"n{number}")
    strategy = draw_strategy(draw, maker, layers)
    config = {"seed": draw.choice([0, 1, 9223372036854775807]), "model": {"inputs": {"x": shape}, "layers": layers},
              "dataset": dataset, "strategy": strategy, "train": train}
    if draw.random() < 0.5:
        config["checkpoint"] = maker.options(schema["properties"]["checkpoint"])
        config["checkpoint"].pop("best", None)
    return json.dumps(config, indent=1)  # JSON is valid YAML


def kind_names(maker, definition):
    names = []
    for choice in maker.resolve({"$ref": f"#/$defs/{definition}"})["oneOf"]:
        for one in choice.get("oneOf", [choice]):
            names += list(one.get("properties", {}))
    return names


def made_small(program, text, fault):
    """Removes as many lines of the text as possible without changing the kind of fault that the text causes."""
    kind = fault.split(":")[0]
    lines, deadline = text.splitlines(), time.monotonic() + 60
    size = max(len(lines) // 2, 1)
    while size >= 1 and time.monotonic() < deadline:
        at = 0
        while at < len(lines) and time.monotonic() < deadline:
            fewer = lines[:at] + lines[at + size:]
            found = find_fault(program, "\n".join(fewer) + "\n")
            if found and found.split(":")[0] == kind:
                lines, fault = fewer, found
            else:
                at += size
        size //= 2
    return "\n".join(lines) + "\n", fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, help="number of mutated configurations; half as many are generated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--keep-going", action="store_true", help="print all findings without their configurations")
    arguments = parser.parse_args()
    counts = LONG if arguments.long else SHORT
    if arguments.count is not None:
        counts = {"mutated": arguments.count, "generated": arguments.count // 2}
    program = Program(arguments.program)

    bases = [path.read_text() for path in sorted((ROOT / "configs").glob("*.yaml"))]
    bases += [path.read_text().replace("../../datasets", "../datasets") for path in sorted((ROOT / "configs/smoke").glob("*.yaml"))]
    bases += EVERYTHING * 3
    words = sorted(set(re.findall(r"[a-z_][a-z_0-9]{2,}", "\n".join(bases))))
    schema = json.loads(subprocess.run([program.path, "schema"], capture_output=True, text=True, check=True).stdout)

    def case(kind, i):
        draw = random.Random(f"{kind} {arguments.seed} {i}")
        return mutate(draw, draw.choice(bases), words) if kind == "mutated" else generate(draw, schema)

    def tried(one):
        return one, find_fault(program, case(*one))

    todo = [(kind, i) for kind, count in counts.items() for i in range(count)]
    findings = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for (kind, i), fault in pool.map(tried, todo):
            if fault is None:
                continue
            findings += 1
            if arguments.keep_going:
                print(f"{kind} {i}: {fault}", flush=True)
                continue
            pool.shutdown(wait=False, cancel_futures=True)
            text, fault = made_small(program, case(kind, i), fault)
            print(f"{kind} configuration {i} of seed {arguments.seed}: {fault}\n---\n{text}", end="")
            return 1
    print(f"{counts['mutated']} mutated and {counts['generated']} generated configurations, {program.trained} of them "
          f"trained: {findings or 'nothing'} found")
    if program.trained * 20 < len(todo):
        print("too few configurations were trained to test anything")
        return 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
