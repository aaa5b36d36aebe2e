#!/usr/bin/env python3
"""Starts dtrain's models with weights that Keras saved: the predictions must equal Keras's to 1e-5.

    read_from_keras.py DTRAIN

Uses every Keras that open_in_keras.py finds. Exits with 77, which CTest treats as skipped, if there is no Keras.
"""
import pathlib
import subprocess
import sys
import tempfile

import open_in_keras

CONFIG = """\
seed: 1
model:
  inputs: {{image: [8, 8, 3], words: {{shape: [4], dtype: int32}}}}
  layers:
    - embedding: {{name: base/embedded, inputs: words, input_dim: 7, output_dim: 2}}
    - flatten: {{name: text}}
    - lstm: {{name: base/memory, inputs: base/embedded, units: 3, return_sequences: true}}
    - gru: {{name: base/gated, units: 4, return_sequences: true, go_backwards: true}}
    - gru: {{name: base/old, units: 3, reset_after: false, return_sequences: true, recurrent_activation: hard_sigmoid}}
    - simple_rnn: {{name: base/plain, units: 2, activation: relu, use_bias: false}}
    - bidirectional: {{name: base/both, inputs: base/embedded, layer: {{lstm: {{units: 2}}}}, merge_mode: sum}}
    - reshape: {{inputs: base/embedded, target_shape: [4, 2, 1]}}
    - time_distributed: {{name: base/pairs, layer: {{lstm: {{units: 3}}}}}}
    - time_distributed: {{name: base/rows, layer: {{dense: {{units: 2}}}}}}
    - flatten: {{name: pairs}}
    - multi_head_attention: {{name: base/attention, inputs: base/embedded, num_heads: 2, key_dim: 3, causal: true}}
    - flatten: {{name: attended}}
    - reshape: {{inputs: image, target_shape: [4, 4, 4, 3]}}
    - conv3d: {{name: base/solid, filters: 3, kernel_size: 2}}
    - flatten: {{name: voxels}}
    - conv2d: {{name: base/conv, inputs: image, filters: 6, kernel_size: 3, activation: relu}}
    - conv2d: {{name: base/grouped, filters: 6, kernel_size: 1, groups: 3}}
    - batch_normalization: {{name: base/norm}}
    - depthwise_conv2d: {{name: base/depthwise, kernel_size: 3}}
    - conv2d_transpose: {{name: base/up, filters: 4, kernel_size: 2}}
    - separable_conv2d: {{name: base/separable, filters: 4, kernel_size: 3, padding: same}}
    - layer_normalization: {{name: base/layer_norm}}
    - group_normalization: {{name: base/group_norm, groups: 2}}
    - rms_normalization: {{name: base/rms_norm}}
    - prelu: {{name: base/prelu, shared_axes: [1, 2]}}
    - reshape: [25, 4]
    - conv1d: {{name: base/sequence, filters: 3, kernel_size: 3, padding: causal}}
    - conv1d_transpose: {{name: base/longer, filters: 2, kernel_size: 3, strides: 2, padding: same}}
    - prelu: {{name: base/each}}
    - flatten
    - concatenate: {{inputs: [flatten, voxels, text, base/plain, base/both, pairs, attended]}}
    - dense: {{name: head, units: 5, activation: softmax}}
  weights: {{from: {file}, rename: {{"conv/*": "base/conv/*", "norm/*": "base/norm/*",
    "grouped/*": "base/grouped/*", "depthwise/*": "base/depthwise/*", "up/*": "base/up/*", "separable/*": "base/separable/*", "embedded/*": "base/embedded/*", "layer_norm/*": "base/layer_norm/*",
    "group_norm/*": "base/group_norm/*", "rms_norm/*": "base/rms_norm/*",
    "prelu/*": "base/prelu/*", "sequence/*": "base/sequence/*", "each/*": "base/each/*", "solid/*": "base/solid/*",
    "memory/*": "base/memory/*", "gated/*": "base/gated/*", "old/*": "base/old/*", "plain/*": "base/plain/*",
    "both/*": "base/both/*", "longer/*": "base/longer/*", "pairs/*": "base/pairs/*", "rows/*": "base/rows/*", "attention/*": "base/attention/*"}}}}
dataset:
  train: {{synthetic: {{samples: 8, input: {{low: 0, high: 7}}, target: {{classes: 5}}}}}}
strategy: single
train:
  epochs: 0
  batch_size: 8
  loss: sparse_categorical_crossentropy
  optimizer: sgd
"""


def has_rms_normalization(keras):
    return hasattr(keras.layers, "RMSNormalization")  # Keras 2 has no RMSNormalization


def config_of(keras, file):
    config = CONFIG
    if not has_rms_normalization(keras):
        for part in ("    - rms_normalization: {{name: base/rms_norm}}\n", ', "rms_norm/*": "base/rms_norm/*"'):
            assert part in config
            config = config.replace(part, "")
    return config.replace("recurrent_activation: hard_sigmoid", f"recurrent_activation: {gate_of(keras)}").format(file=file)


def gate_of(keras):
    return "hard_sigmoid" if keras.__version__.startswith("3") else "sigmoid"  # Keras 2's hard_sigmoid has another slope


def model_of(keras):
    layers = keras.layers
    image, words = keras.Input((8, 8, 3), name="image"), keras.Input((4,), dtype="int32", name="words")
    embedded = layers.Embedding(7, 2, name="embedded")(words)
    text = layers.Flatten()(embedded)
    state = layers.LSTM(3, return_sequences=True, name="memory")(embedded)
    state = layers.GRU(4, return_sequences=True, go_backwards=True, name="gated")(state)
    state = layers.GRU(3, reset_after=False, return_sequences=True, recurrent_activation=gate_of(keras), name="old")(state)
    state = layers.SimpleRNN(2, activation="relu", use_bias=False, name="plain")(state)
    both = layers.Bidirectional(layers.LSTM(2), merge_mode="sum", name="both")(embedded)
    pairs = layers.TimeDistributed(layers.LSTM(3), name="pairs")(layers.Reshape((4, 2, 1))(embedded))
    pairs = layers.Flatten()(layers.TimeDistributed(layers.Dense(2), name="rows")(pairs))
    attended = layers.Flatten()(layers.MultiHeadAttention(2, 3, name="attention")(embedded, embedded, use_causal_mask=True))
    voxels = layers.Flatten()(layers.Conv3D(3, 2, name="solid")(layers.Reshape((4, 4, 4, 3))(image)))
    x = layers.Conv2D(6, 3, activation="relu", name="conv")(image)
    x = layers.Conv2D(6, 1, groups=3, name="grouped")(x)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.DepthwiseConv2D(3, name="depthwise")(x)
    x = layers.Conv2DTranspose(4, 2, name="up")(x)
    x = layers.SeparableConv2D(4, 3, padding="same", name="separable")(x)
    x = layers.LayerNormalization(name="layer_norm")(x)
    x = layers.GroupNormalization(2, name="group_norm")(x)
    if has_rms_normalization(keras):
        x = layers.RMSNormalization(name="rms_norm")(x)
    x = layers.Reshape((25, 4))(layers.PReLU(shared_axes=[1, 2], name="prelu")(x))
    x = layers.Conv1D(3, 3, padding="causal", name="sequence")(x)
    x = layers.Conv1DTranspose(2, 3, strides=2, padding="same", name="longer")(x)
    x = layers.PReLU(name="each")(x)
    x = layers.Concatenate()([layers.Flatten()(x), voxels, text, state, both, pairs, attended])
    return keras.Model([image, words], layers.Dense(5, activation="softmax", name="head")(x))


def check(program, keras, folder):
    import h5py
    import numpy
    numpy.random.seed(7)
    model = model_of(keras)
    weights = [numpy.random.uniform(0.1, 0.9, weight.shape) for weight in model.get_weights()]
    # Scales down the kernel of the head. With large values, the softmax would be 0 or 1 whatever the other weights are.
    weights[-2] /= 100
    model.set_weights(weights)
    samples = numpy.random.uniform(size=(6, 8, 8, 3)).astype("float32")
    words = numpy.random.randint(0, 7, (6, 4)).astype("int32")
    expected = model.predict([samples, words], verbose=0)
    assert 0.01 < expected.min() and expected.max() < 0.9, expected
    model.save(folder / "model.h5")
    model.save(folder / "model.keras")
    files = ["model.h5", "model.keras"]
    if keras.__version__.startswith("3"):  # tf_keras does not save layer names in .weights.h5
        model.save_weights(folder / "model.weights.h5")
        files.append("model.weights.h5")
    with h5py.File(folder / "samples.h5", "w") as file:
        file["image"], file["words"] = samples, words
    differences = []
    for file in files:
        (folder / "run.yaml").write_text(config_of(keras, folder / file))
        for command in (["fit", "run.yaml", "--output", "run", "--overwrite"],
                        ["predict", "run", "--input", "samples.h5", "--output", "found.npy"]):
            subprocess.run([program, *command, "--quiet"], cwd=folder, check=True)
        differences.append(float(abs(numpy.load(folder / "found.npy") - expected).max()))
        if not differences[-1] < 1e-5:
            raise open_in_keras.Mistake(f"predictions of {file} differ by {differences[-1]}")
    return max(differences)


def main():
    program, kerases = open_in_keras.program_and_kerases()
    for name, keras in kerases.items():
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: predictions differ by {check(program, keras, pathlib.Path(folder)):.1e}")


if __name__ == "__main__":
    main()
