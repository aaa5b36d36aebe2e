// Tests the errors of layers for invalid options and for inputs whose shapes they do not support.
#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {
namespace {

void check_error(const std::string& yaml, const std::vector<TensorSpec>& inputs,
                 const std::string& expected) {
  const std::string errors = errors_of(yaml, inputs);
  INFO(yaml << ": " << errors);
  CHECK(errors.find(expected) != std::string::npos);
}

}  // namespace

TEST_CASE("errors name expected and found shapes") {
  const TensorSpec row{"x", {5}}, image{"img", {5, 5, 64}}, numbers{"n", {5}, DType::int32};
  check_error("max_pooling2d: {pool_size: 7}", {image}, "pool_size 7x7 is larger than its input 5x5x64");
  check_error("conv2d: {filters: 1, kernel_size: [1, 6]}", {image},
              "kernel_size 1x6 is larger than its input 5x5x64");
  check_error("conv2d: {filters: 1, kernel_size: 3, dilation_rate: 3}", {image},
              "kernel_size 3x3, dilated to 7x7, is larger");
  check_error(
      "permute: [2, 1]", {image},
      "dims must list each axis of the input once, but dims is [2, 1] and 'img' has the shape 5x5x64");
  check_error("permute: [1, 1, 2]", {image},
              "a list that has each number from 1 to the number of axes (at most 5) exactly once");
  check_error("repeat_vector: 2", {image}, "expected an input with one axis");
  check_error("conv1d: {filters: 2, kernel_size: 3}", {image},
              "expected sequences of shape [length, channels]");
  check_error("zero_padding1d: [1, 2, 3]", {image}, "one number, or [before, after]");
  check_error("spatial_dropout1d: 0.5", {image},
              "expected sequences of shape [length, channels], but 'img' has the shape 5x5x64");
  check_error("group_normalization: {groups: 24}", {image},
              "expected a number of channels (the last axis) that can be divided into 24 equal groups, but "
              "'img' has the shape 5x5x64");
  check_error("group_normalization", {row}, "can be divided into 32 equal groups, but 'x' has the shape 5");
  check_error("rescaling: {scale: 1, offset: [1, 2, 3]}", {image},
              "expected an input with 3 channels (the last axis), but 'img' has the shape 5x5x64");
  check_error("prelu: {shared_axes: [1, 4]}", {image},
              "shared_axes: expected axes from 1 to 3 for the input 'img' of shape 5x5x64, but found 4");
  check_error("prelu: {shared_axes: [2, 4, 6]}", {{"x", {2, 2, 2, 2, 2, 2, 2}}},
              "shared_axes: this combination of axes is not supported; use adjacent axes, or an input with "
              "at most 5 axes");
  check_error("conv1d: {filters: 2, kernel_size: 3, padding: casual}", {image}, "did you mean 'causal'?");
  check_error("conv2d: {filters: 2, kernel_size: 3, padding: causal}", {image}, "unknown value 'causal'");
  check_error("subtract", {image, image, image}, "expected 2 inputs, found 3");
  check_error("cropping2d: [[2, 3], 0]", {image},
              "cropping [[2, 3], [0, 0]] removes the whole input of shape 5x5x64");
  check_error("cropping2d: [0, 3]", {image},
              "cropping [[0, 0], [3, 3]] removes the whole input of shape 5x5x64");
  for (const char* yaml : {"conv2d: {filters: 1, kernel_size: 1}", "depthwise_conv2d: {kernel_size: 1}",
                           "conv2d_transpose: {filters: 1, kernel_size: 1}", "max_pooling2d",
                           "average_pooling2d", "global_max_pooling2d", "global_average_pooling2d",
                           "zero_padding2d", "cropping2d", "spatial_dropout2d: 0.5"})
    check_error(yaml, {row}, "expected images of shape [height, width, channels], but 'x' has the shape 5");
  for (const char* yaml :
       {"dense: {units: 1}", "activation: relu", "dropout: 0.5", "batch_normalization", "layer_normalization",
        "softmax", "unit_normalization", "rms_normalization", "group_normalization", "rescaling: 2",
        "gaussian_noise: 0.5", "gaussian_dropout: 0.5", "spatial_dropout1d: 0.5"}) {
    check_error(yaml, {numbers}, "expected a float32 input, but 'n' has the type int32");
    check_error(yaml, {row, row}, "expected one input, found 2");
  }
  for (const char* yaml :
       {"dense: {units: 1}", "batch_normalization", "layer_normalization", "activation: softmax", "softmax",
        "group_normalization", "rms_normalization", "unit_normalization", "prelu"})
    check_error(yaml, {{"s", {}}}, "but 's' is a scalar");
  for (const char* yaml : {"add", "multiply", "concatenate"})
    check_error(yaml, {row}, "expected at least two inputs, found 1");
  check_error("add", {row, {"y", {6}}},
              "expected inputs of the same shape, but 'x' has the shape 5 and 'y' has the shape 6");
  check_error("concatenate", {image, {"y", {4, 5, 64}}},
              "differ only along axis -1, but 'img' has the shape 5x5x64 and 'y'");
  check_error("concatenate: {axis: 0}", {image, image}, "axis 0 does not exist in 'img' of shape 5x5x64");
  check_error("concatenate: {axis: -4}", {image, image}, "axis -4 does not exist in 'img' of shape 5x5x64");
  check_error("concatenate", {{"s", {}}, {"t", {}}},
              "expected inputs with at least one axis, but 's' is a scalar");
  check_error("reshape: [2, -1]", {row},
              "target_shape [2, -1] does not fit the input 'x' of shape 5, which has 5 elements");
  check_error("reshape: [1000000000, 1000000000, 1000000000]", {row}, "does not fit the input");
  check_error("embedding: {input_dim: 2, output_dim: 2}", {row},
              "expected an int32 input, but 'x' has the type float32");
}

TEST_CASE("convolutions report numbers of channels and filters that groups do not divide") {
  check_error("conv2d: {filters: 6, kernel_size: 1, groups: 4}", {{"x", {5, 5, 8}}},
              "layer.yaml:1:46: error: conv2d: filters must be a multiple of groups, but filters is 6 and "
              "groups is 4; use 4 or 8 filters, or groups: 3");
  check_error(
      "conv1d: {filters: 2, kernel_size: 1, groups: 3}", {{"x", {5, 6}}},
      "conv1d: filters must be a multiple of groups, but filters is 2 and groups is 3; use 3 filters, "
      "or groups: 2");
  check_error("conv2d: {filters: 8, kernel_size: 1, groups: 4}", {{"x", {5, 5, 6}}},
              "the number of input channels must be a multiple of groups, but 'x' has 6 channels and groups "
              "is 4; use an input with 4 or 8 channels, or groups: 2");
  check_error("conv3d: {filters: 4, kernel_size: 1, groups: 2}", {{"x", {5, 5, 5, 1}}},
              "but 'x' has 1 channel and groups is 2; use an input with 2 channels, or groups: 1");
  check_error("conv1d: {filters: 4, kernel_size: 1, groups: 2}", {{"x", {5, 3}}},
              "but 'x' has 3 channels and groups is 2; use an input with 2 or 4 channels, or groups: 1");
  check_error("conv2d: {filters: 6, kernel_size: 1, groups: 0}", {{"x", {5, 5, 6}}},
              "conv2d's groups: expected a number from 1 to");
  check_error("depthwise_conv2d: {kernel_size: 1, groups: 2}", {{"x", {5, 5, 6}}}, "unknown key 'groups'");
}

TEST_CASE("errors of volume layers name expected and found shapes") {
  const TensorSpec volume{"v", {5, 6, 7, 2}}, image{"x", {5, 5, 2}};
  for (const char* yaml :
       {"conv3d: {filters: 1, kernel_size: 1}", "max_pooling3d", "average_pooling3d", "global_max_pooling3d",
        "global_average_pooling3d", "zero_padding3d", "cropping3d", "upsampling3d"})
    check_error(yaml, {image},
                "expected volumes of shape [depth, height, width, channels], but 'x' has the shape 5x5x2");
  check_error("conv2d: {filters: 1, kernel_size: 1}", {volume},
              "expected images of shape [height, width, channels], but 'v' has the shape 5x6x7x2");
  check_error("max_pooling3d: {pool_size: [6, 1, 1]}", {volume},
              "pool_size 6x1x1 is larger than its input 5x6x7x2");
  check_error("conv3d: {filters: 1, kernel_size: 3, dilation_rate: [3, 1, 1]}", {volume},
              "kernel_size 3x3x3, dilated to 7x3x3, is larger");
  check_error(
      "conv3d: {filters: 1, kernel_size: 3, padding: same, dilation_rate: 600000}", {volume},
      "kernel_size 3x3x3 with dilation_rate 600000x600000x600000 spans 1200001x1200001x1200001 elements");
  check_error("conv3d: {filters: 1, kernel_size: [3, 3]}", {volume},
              "kernel_size: expected [depth, height, width], found a list of length 2");
  check_error("cropping3d: [[2, 3], 0, 0]", {volume},
              "cropping [[2, 3], [0, 0], [0, 0]] removes the whole input of shape 5x6x7x2");
  check_error(
      "zero_padding3d: [1, 2]", {volume},
      "expected one number, [planes, rows, columns], or [[front, back], [top, bottom], [left, right]]");
}

TEST_CASE("transposed convolutions report an output_padding that is not possible") {
  check_error(
      "conv2d_transpose: {filters: 1, kernel_size: 2, strides: 2, padding: same, output_padding: 0}",
      {{"x", {4, 4, 1}}},
      "output_padding 0 is not possible with kernel_size 2x2, strides 2x2 and an input of shape 4x4x1");
}

TEST_CASE("recurrent layers report inputs and activations that they do not take") {
  const TensorSpec sequence{"x", {9, 3}}, state{"h", {2}};
  check_error("lstm: {units: 2}", {{"x", {9}}},
              "expected sequences of shape [steps, features], but 'x' has the shape 9");
  check_error("lstm: {units: 2}", {sequence, state},
              "expected one input (the sequences), or 3 inputs (the sequences, and the initial state and "
              "cell state), but found 2 inputs");
  check_error("gru: {units: 2}", {sequence, state, state},
              "expected one input (the sequences), or 2 inputs (the sequences, and the initial state), but "
              "found 3 inputs");
  check_error("gru: {units: 3}", {sequence, state},
              "expected an initial state of shape 3, but 'h' has the shape 2");
  check_error("simple_rnn: {units: 2}", {{"n", {9, 3}, DType::int32}}, "expected a float32 input");
  check_error("lstm: {units: 2, recurrent_activation: softmax}", {sequence},
              "softmax cannot be the activation of a recurrent layer");
  check_error("simple_rnn: {units: 2, dropout: 1}", {sequence}, "dropout");
  check_error("lstm: {units: 2, reset_after: true}", {sequence}, "reset_after");
}

TEST_CASE("attention reports heads and inputs that do not fit") {
  const TensorSpec x{"x", {9, 6}};
  check_error("multi_head_attention: {num_heads: 4}", {x},
              "num_heads must divide the width of the input, but num_heads is 4 and 'x' has the width 6");
  check_error("multi_head_attention: {num_heads: 3, num_key_value_heads: 2}", {x},
              "num_key_value_heads must divide num_heads, but num_key_value_heads is 2 and num_heads is 3");
  check_error("multi_head_attention: {num_heads: 2, rotary: {}}", {x},
              "rotary needs an even key_dim, but key_dim is 3");
  check_error("multi_head_attention: {num_heads: 2}", {{"x", {6}}},
              "expected sequences of shape [positions, features], but 'x' has the shape 6");
  check_error("multi_head_attention: {num_heads: 2}", {x, x, x, x}, "found 4 inputs");
  check_error("multi_head_attention: {num_heads: 2}", {x, {"v", {4, 6}}, {"k", {5, 6}}},
              "the value 'v' has 4 positions, but the key 'k' has 5");
  check_error("multi_head_attention: {num_heads: 2, dropout: 1}", {x}, "dropout");
  check_error("multi_head_attention: {num_heads: 2, rotary: {base: 0}}", {x}, "base");
  check_error("position_embedding: {sequence_length: 8}", {x},
              "sequence_length is 8, but the input 'x' has 9 positions; increase sequence_length");
  check_error("sinusoidal_position_encoding", {{"x", {6}}},
              "expected sequences of shape [positions, features]");
}

TEST_CASE("dot reports axes and inputs that do not fit") {
  const TensorSpec a{"a", {3, 5}}, b{"b", {4, 5}};
  check_error(
      "dot: {axes: 1}", {a, b},
      "the axes must have the same size, but the size is 3 in 'a' of shape 3x5 and 4 in 'b' of shape 4x5");
  check_error("dot: {axes: 0}", {a, b}, "axis 0 does not exist in 'a' of shape 3x5");
  check_error("dot: {axes: [-1, 3]}", {a, b}, "axis 3 does not exist in 'b' of shape 4x5");
  check_error("dot: {axes: 1}", {a, {"s", {}}},
              "expected inputs with at least one axis, but 's' is a scalar");
  check_error("dot: {axes: -1}", {a, b, b}, "expected 2 inputs, found 3");
  check_error("dot: {axes: [1, 2, 3]}", {a, b}, "dot's axes: expected one number, or a list of two numbers");
}

TEST_CASE("time_distributed refuses layers that it cannot apply to all positions at once") {
  const TensorSpec sequence{"x", {4, 2}}, video{"x", {4, 5, 5, 2}};
  const auto check = [](const std::string& layer, const TensorSpec& input, const std::string& expected) {
    check_error("time_distributed: {layer: " + layer + "}", {input}, expected);
  };
  check("{dense: {units: 1}}", {"x", {4}},
        "expected an input with an axis of positions and at least one more axis, but 'x' has the shape 4");
  check(
      "{conv2d: {filters: 1, kernel_size: 1}}", sequence,
      "the inner layer conv2d: expected images of shape [height, width, channels], but 'x' has the shape 2");
  check("batch_normalization", video,
        "the inner layer batch_normalization: expected a layer that does not compute batch statistics");
  check("masking", {"x", {4, 3, 2}}, "the inner layer masking: expected a layer that does not create a mask");
  check("{lstm: {units: 1, return_state: true}}", {"x", {4, 3, 2}},
        "the inner layer lstm: expected a layer with one output, but the layer has 3 outputs");
  check("add", sequence, "the inner layer add: expected at least two inputs, found 1");
  check("{dens: {units: 1}}", sequence, "unknown layer 'dens'; did you mean 'dense'?");
  check_error("time_distributed", {sequence}, "missing key 'layer'");
}

TEST_CASE("invalid options are reported at their location") {
  const TensorSpec image{"x", {5, 5, 2}};
  check_error("dense: {units: 0}", {image},
              "layer.yaml:1:16: error: dense's units: expected a number from 1 to");
  check_error("dense", {image}, "missing key 'units'");
  check_error("conv2d: {filters: 1, kernal_size: 3}", {image}, "did you mean 'kernel_size'?");
  check_error("conv2d: {filters: 1, kernel_size: 3, padding: sane}", {image}, "did you mean 'same'?");
  check_error("dense: {units: 1, activation: rleu}", {image},
              "unknown activation 'rleu'; did you mean 'relu'?");
  check_error("dense: {units: 1, kernel_initializer: hr_normal}", {image}, "did you mean 'he_normal'?");
  check_error("bidirectional: {layer: {dense: {units: 1}}}", {image},
              "bidirectional's layer: expected lstm, gru or simple_rnn");
  check_error("bidirectional: {layer: {gru: {units: 1}}, backward_layer: {gru: {units: 1}}}", {image},
              "must have opposite values of go_backwards");
  check_error(
      "bidirectional: {layer: {gru: {units: 1}}, merge_mode: sum, backward_layer: {gru: {units: 2, "
      "go_backwards: true}}}",
      {image}, "must have the same units, but they have 1 and 2");
  check_error("conv1d_transpose: {filters: 1, kernel_size: 2, strides: 2, output_padding: 2}", {image},
              "must be less than the strides, which are 2, but output_padding is 2");
  check_error("dropout: {rate: 1}", {image},
              "dropout's rate: expected a number of at least 0 and less than 1");
  for (const char* kind : {"spatial_dropout2d", "gaussian_dropout"})
    check_error(kind + std::string(": {rate: 1}"), {image},
                "rate: expected a number of at least 0 and less than 1");
  check_error("gaussian_noise: {stddev: 2}", {image}, "stddev: expected a number from 0 to 1");
  check_error("group_normalization: {groups: 0}", {image}, "groups: expected a number of at least 1, or -1");
  check_error("group_normalization: {groups: -2}", {image}, "groups: expected a number from -1 to");
  check_error("rescaling: {scale: []}", {image},
              "scale: expected a number, or a list with one number for each channel");
  check_error("rescaling: {scale: [1, 2], offset: [1, 2, 3]}", {image},
              "rescaling's offset: expected one number, or 2 numbers (as many as in `scale`)");
  check_error("rescaling", {image}, "missing key 'scale'");
  check_error("resizing: {height: 4}", {image}, "missing key 'width'");
  check_error("resizing: {height: 4, width: 0}", {image}, "resizing's width: expected a number from 1 to");
  check_error("resizing: {height: 4, width: 4, interpolation: bicubic}", {image},
              "resizing's interpolation: unknown value 'bicubic'; expected one of nearest, bilinear");
  check_error("resizing: {height: 4, width: 4}", {{"x", {4}}},
              "expected images of shape [height, width, channels]");
  check_error(
      "resizing: {height: 1073741823, width: 4}", {image},
      "'x' of shape 5x5x2 cannot be resized to 1073741823 x 4, because images of these sizes are too large");
  check_error("reshape: [-1, -1]", {image}, "at most one size is -1");
  check_error("reshape: [0]", {image}, "a list of sizes of at least 1");
  check_error("zero_padding2d: -1", {image}, "a number from 0 to");
  check_error("zero_padding2d: [1, 2, 3]", {image}, "[[top, bottom], [left, right]]");
  check_error("cropping2d: -1", {image}, "cropping2d's cropping: expected a number from 0 to");
  check_error("cropping2d: [1, 2, 3]", {image}, "[[top, bottom], [left, right]]");
  check_error("conv2d_transpose: {filters: 1, kernel_size: 3, strides: 2, output_padding: 2}", {image},
              "must be less than each of the strides 2x2, but it is 2");
  check_error("batch_normalization: {momentum: 2}", {image}, "a number from 0 to 1");
  check_error("flatten: {data_format: channels_last}", {image}, "unknown key 'data_format'");
}

}  // namespace dtrain::test
