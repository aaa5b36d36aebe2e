// Tests the shapes of the outputs and of the parameters of layers.
#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {
namespace {

Shape shape_of(const std::string& yaml, const Shape& input) {
  return output_of(yaml, {{"x", input}}).shape;
}

std::string parameters_of(const std::string& yaml, const std::vector<TensorSpec>& inputs) {
  std::string all;
  for (const ParameterSpec& p : layer_of(yaml)->parameters(inputs))
    all += p.name + " " + p.shape.str() + " " + p.initializer.name + "; ";
  return all;
}

}  // namespace

TEST_CASE("output shapes are Keras's") {
  CHECK(shape_of("dense: {units: 5}", {3, 4}) == Shape{3, 5});
  CHECK(shape_of("conv2d: {filters: 8, kernel_size: 3}", {28, 28, 1}) == Shape{26, 26, 8});
  CHECK(shape_of("conv2d: {filters: 8, kernel_size: 3, strides: 2, padding: same}", {7, 6, 1}) ==
        Shape{4, 3, 8});
  CHECK(shape_of("conv2d: {filters: 8, kernel_size: 1, strides: 2}", {8, 7, 1}) == Shape{4, 4, 8});
  CHECK(shape_of("conv2d: {filters: 8, kernel_size: 3, dilation_rate: [2, 1]}", {7, 7, 2}) == Shape{3, 5, 8});
  CHECK(shape_of("depthwise_conv2d: {kernel_size: 3, depth_multiplier: 4}", {7, 7, 2}) == Shape{5, 5, 8});
  CHECK(shape_of("max_pooling2d", {7, 6, 2}) == Shape{3, 3, 2});
  CHECK(shape_of("max_pooling2d: {pool_size: 3, padding: same}", {7, 6, 2}) == Shape{3, 2, 2});
  CHECK(shape_of("average_pooling2d: {pool_size: 2, strides: 1}", {7, 6, 2}) == Shape{6, 5, 2});
  CHECK(shape_of("global_max_pooling2d", {7, 6, 2}) == Shape{2});
  CHECK(shape_of("global_average_pooling2d: {keepdims: true}", {7, 6, 2}) == Shape{1, 1, 2});
  CHECK(shape_of("flatten", {7, 6, 2}) == Shape{84});
  CHECK(shape_of("flatten", {}) == Shape{1});
  CHECK(shape_of("reshape: [3, -1, 1]", {12}) == Shape{3, 4, 1});
  CHECK(shape_of("reshape: []", {1}) == Shape{});
  CHECK(shape_of("zero_padding2d", {2, 3, 4}) == Shape{4, 5, 4});
  CHECK(shape_of("zero_padding2d: [2, 0]", {2, 3, 4}) == Shape{6, 3, 4});
  CHECK(shape_of("zero_padding2d: [[1, 2], 3]", {2, 3, 4}) == Shape{5, 9, 4});
  CHECK(shape_of("cropping2d", {5, 6, 4}) == Shape{5, 6, 4});
  CHECK(shape_of("upsampling2d: [2, 3]", {5, 6, 4}) == Shape{10, 18, 4});
  CHECK(shape_of("upsampling2d: {size: [2, 3], interpolation: bilinear}", {5, 6, 4}) == Shape{10, 18, 4});
  CHECK(shape_of("resizing: {height: 7, width: 2}", {5, 6, 4}) == Shape{7, 2, 4});
  CHECK(shape_of("prelu", {5, 6, 4}) == Shape{5, 6, 4});
  CHECK(shape_of("conv1d: {filters: 2, kernel_size: 3, padding: causal}", {7, 4}) == Shape{7, 2});
  CHECK(shape_of("conv1d: {filters: 2, kernel_size: 3, strides: 2, padding: causal}", {7, 4}) == Shape{4, 2});
  CHECK(shape_of("conv1d: {filters: 2, kernel_size: 9, dilation_rate: 4, padding: causal}", {7, 4}) ==
        Shape{7, 2});
  CHECK(shape_of("bidirectional: {layer: {gru: {units: 3}}}", {5, 6}) == Shape{6});
  CHECK(shape_of("bidirectional: {layer: {gru: {units: 3, return_sequences: true}}, merge_mode: sum}",
                 {5, 6}) == Shape{5, 3});
  CHECK(shape_of("time_distributed: {layer: {dense: {units: 3}}}", {5, 6}) == Shape{5, 3});
  CHECK(shape_of("time_distributed: {layer: {conv2d: {filters: 2, kernel_size: 3}}}", {5, 6, 4, 1}) ==
        Shape{5, 4, 2, 2});
  CHECK(shape_of("time_distributed: {layer: flatten}", {5, 6, 4}) == Shape{5, 24});
  CHECK(shape_of("conv1d_transpose: {filters: 3, kernel_size: 4, strides: 2}", {5, 6}) == Shape{12, 3});
  CHECK(shape_of("conv1d_transpose: {filters: 3, kernel_size: 4, strides: 2, padding: same}", {5, 6}) ==
        Shape{10, 3});
  CHECK(shape_of("conv1d_transpose: {filters: 3, kernel_size: 3, strides: 3, output_padding: 2}", {5, 6}) ==
        Shape{17, 3});
  CHECK(shape_of("permute: [3, 1, 2]", {5, 6, 4}) == Shape{4, 5, 6});
  CHECK(shape_of("repeat_vector: 7", {5}) == Shape{7, 5});
  CHECK(shape_of("separable_conv2d: {filters: 9, kernel_size: 3, strides: 2, padding: same}", {5, 6, 4}) ==
        Shape{3, 3, 9});
  CHECK(shape_of("cropping2d: 2", {5, 6, 4}) == Shape{1, 2, 4});
  CHECK(shape_of("cropping2d: [2, 0]", {5, 6, 4}) == Shape{1, 6, 4});
  CHECK(shape_of("cropping2d: [[1, 2], [0, 3]]", {5, 6, 4}) == Shape{2, 3, 4});
  CHECK(shape_of("batch_normalization", {2, 3, 4}) == Shape{2, 3, 4});
  CHECK(shape_of("activation: softmax", {2, 3}) == Shape{2, 3});
  for (const char* yaml :
       {"softmax", "rescaling: 2", "rescaling: {scale: [1, 2, 3], offset: 4}", "unit_normalization",
        "rms_normalization", "group_normalization: {groups: 3}", "group_normalization: {groups: -1}",
        "gaussian_noise: 0.1", "gaussian_dropout: 0.1", "spatial_dropout1d: 0.1"})
    CHECK(shape_of(yaml, {2, 3}) == Shape{2, 3});
  CHECK(shape_of("spatial_dropout2d: 0.1", {5, 2, 3}) == Shape{5, 2, 3});
  CHECK(shape_of("group_normalization", {5, 2, 64}) == Shape{5, 2, 64});
  CHECK(output_of("concatenate", {{"x", {2, 3}}, {"y", {2, 5}}}).shape == Shape{2, 8});
  CHECK(output_of("concatenate: {axis: 1}", {{"x", {2, 3}}, {"y", {1, 3}}}).shape == Shape{3, 3});
  CHECK(shape_of("lstm: {units: 5}", {7, 4}) == Shape{5});
  CHECK(shape_of("gru: {units: 5, return_sequences: true}", {7, 4}) == Shape{7, 5});
  CHECK(shape_of("simple_rnn: {units: 5, return_state: true}", {7, 4}) == Shape{5});
  CHECK(output_of("lstm: {units: 2}", {{"x", {3, 4}}, {"h", {2}}, {"c", {2}}}).shape == Shape{2});
  const TensorSpec embedded =
      output_of("embedding: {input_dim: 9, output_dim: 4}", {{"x", {7}, DType::int32}});
  CHECK(embedded.shape == Shape{7, 4});
  CHECK(embedded.dtype == DType::float32);
}

TEST_CASE("output shapes of volume layers are Keras's") {
  const Shape volume{7, 6, 5, 2};
  CHECK(shape_of("conv3d: {filters: 8, kernel_size: 3}", volume) == Shape{5, 4, 3, 8});
  CHECK(shape_of("conv3d: {filters: 8, kernel_size: [3, 2, 1], strides: [1, 2, 3], padding: same}", volume) ==
        Shape{7, 3, 2, 8});
  CHECK(shape_of("conv3d: {filters: 8, kernel_size: 3, dilation_rate: [3, 1, 2]}", volume) ==
        Shape{1, 4, 1, 8});
  CHECK(shape_of("max_pooling3d", volume) == Shape{3, 3, 2, 2});
  CHECK(shape_of("average_pooling3d: {pool_size: [3, 2, 1], strides: 1}", volume) == Shape{5, 5, 5, 2});
  CHECK(shape_of("max_pooling3d: {pool_size: 3, padding: same}", volume) == Shape{3, 2, 2, 2});
  CHECK(shape_of("global_max_pooling3d", volume) == Shape{2});
  CHECK(shape_of("global_average_pooling3d: {keepdims: true}", volume) == Shape{1, 1, 1, 2});
  CHECK(shape_of("zero_padding3d", volume) == Shape{9, 8, 7, 2});
  CHECK(shape_of("zero_padding3d: [[1, 2], 3, 0]", volume) == Shape{10, 12, 5, 2});
  CHECK(shape_of("cropping3d", volume) == Shape{5, 4, 3, 2});
  CHECK(shape_of("cropping3d: [[1, 2], 0, [0, 3]]", volume) == Shape{4, 6, 2, 2});
  CHECK(shape_of("upsampling3d", volume) == Shape{14, 12, 10, 2});
  CHECK(shape_of("upsampling3d: [1, 2, 3]", volume) == Shape{7, 12, 15, 2});
  CHECK(parameters_of("conv3d: {filters: 8, kernel_size: [3, 2, 1]}", {{"x", volume}}) ==
        "kernel 3x2x1x2x8 glorot_uniform; bias 8 zeros; ");
}

TEST_CASE("shapes of transposed convolutions are Keras's") {
  const auto rows = [](const std::string& options) {
    return shape_of("conv2d_transpose: {filters: 1, kernel_size: 3, " + options + "}", {4, 4, 1})[0];
  };
  CHECK(rows("strides: 2") == 9);
  CHECK(rows("strides: 4") == 16);
  CHECK(rows("strides: 2, padding: same") == 8);
  CHECK(rows("strides: 2, output_padding: 0") == 9);
  CHECK(rows("strides: 2, output_padding: 1") == 10);
  CHECK(rows("strides: 2, padding: same, output_padding: 0") == 7);
  CHECK(rows("strides: 2, padding: same, output_padding: 1") == 8);
  CHECK(rows("dilation_rate: 2") == 8);
}

TEST_CASE("dot removes one axis of each input") {
  const auto shape = [](const std::string& axes, const Shape& a, const Shape& b) {
    return output_of("dot: {axes: " + axes + "}", {{"a", a}, {"b", b}}).shape;
  };
  CHECK(shape("1", {5}, {5}) == Shape{1});
  CHECK(shape("[1, 2]", {5}, {3, 5}) == Shape{3});
  CHECK(shape("[2, 1]", {3, 5}, {5, 4}) == Shape{3, 4});
  CHECK(shape("-1", {3, 5}, {4, 2, 5}) == Shape{3, 4, 2});
  CHECK(shape("[2, 1]", {3, 5, 2}, {5}) == Shape{3, 2});
}

TEST_CASE("parameters have Keras's names, shapes and initializers") {
  const TensorSpec image{"x", {9, 9, 3}};
  CHECK(parameters_of("dense: {units: 5}", {{"x", {4}}}) == "kernel 4x5 glorot_uniform; bias 5 zeros; ");
  CHECK(parameters_of("dense: {units: 5, use_bias: false, kernel_initializer: he_normal}", {{"x", {4}}}) ==
        "kernel 4x5 he_normal; ");
  CHECK(parameters_of("conv2d: {filters: 8, kernel_size: [3, 2]}", {image}) ==
        "kernel 3x2x3x8 glorot_uniform; bias 8 zeros; ");
  CHECK(parameters_of("conv2d: {filters: 6, kernel_size: [3, 2], groups: 3}", {image}) ==
        "kernel 3x2x1x6 glorot_uniform; bias 6 zeros; ");
  CHECK(parameters_of("conv1d: {filters: 6, kernel_size: 3, groups: 2}", {{"x", {9, 4}}}) ==
        "kernel 3x2x6 glorot_uniform; bias 6 zeros; ");
  CHECK(parameters_of("conv3d: {filters: 6, kernel_size: 3, groups: 2}", {{"x", {9, 9, 9, 4}}}) ==
        "kernel 3x3x3x2x6 glorot_uniform; bias 6 zeros; ");
  CHECK(parameters_of("depthwise_conv2d: {kernel_size: 2, depth_multiplier: 4}", {image}) ==
        "depthwise_kernel 2x2x3x4 glorot_uniform; bias 12 zeros; ");
  CHECK(parameters_of("conv2d_transpose: {filters: 8, kernel_size: 2}", {image}) ==
        "kernel 2x2x8x3 glorot_uniform; bias 8 zeros; ");
  CHECK(parameters_of("batch_normalization", {image}) ==
        "gamma 3 ones; beta 3 zeros; moving_mean 3 zeros; moving_variance 3 ones; ");
  CHECK(parameters_of("layer_normalization", {image}) == "gamma 3 ones; beta 3 zeros; ");
  CHECK(parameters_of("group_normalization: {groups: 1}", {image}) == "gamma 3 ones; beta 3 zeros; ");
  CHECK(parameters_of("group_normalization: {groups: 1, scale: false, beta_initializer: ones}", {image}) ==
        "beta 3 ones; ");
  CHECK(parameters_of("rms_normalization", {image}) == "scale 3 ones; ");
  CHECK(parameters_of("unit_normalization", {image}) == "");
  CHECK(parameters_of("rescaling: 2", {image}) == "");
  CHECK(parameters_of("time_distributed: {layer: {conv2d: {filters: 8, kernel_size: 2}}}",
                      {{"x", {4, 9, 9, 3}}}) == "kernel 2x2x3x8 glorot_uniform; bias 8 zeros; ");
  CHECK(parameters_of("prelu", {image}) == "alpha 9x9x3 zeros; ");
  CHECK(parameters_of("prelu: {shared_axes: [1, 2], alpha_initializer: ones}", {image}) ==
        "alpha 1x1x3 ones; ");
  CHECK(parameters_of("prelu: {shared_axes: 3}", {image}) == "alpha 9x9x1 zeros; ");
  CHECK(parameters_of("conv1d: {filters: 8, kernel_size: 3, padding: causal}", {{"x", {9, 3}}}) ==
        "kernel 3x3x8 glorot_uniform; bias 8 zeros; ");
  CHECK(parameters_of("embedding: {input_dim: 9, output_dim: 4}", {{"x", {7}, DType::int32}}) ==
        "embeddings 9x4 random_uniform; ");
}

TEST_CASE("recurrent layers have Keras's parameters") {
  const std::vector<TensorSpec> sequence = {{"x", {9, 3}}};
  CHECK(parameters_of("lstm: {units: 2}", sequence) ==
        "kernel 3x8 glorot_uniform; recurrent_kernel 2x8 orthogonal; bias 8 zeros; ");
  CHECK(parameters_of("gru: {units: 2}", sequence) ==
        "kernel 3x6 glorot_uniform; recurrent_kernel 2x6 orthogonal; bias 2x6 zeros; ");
  CHECK(parameters_of("gru: {units: 2, reset_after: false}", sequence) ==
        "kernel 3x6 glorot_uniform; recurrent_kernel 2x6 orthogonal; bias 6 zeros; ");
  CHECK(parameters_of("simple_rnn: {units: 2, use_bias: false}", sequence) ==
        "kernel 3x2 glorot_uniform; recurrent_kernel 2x2 orthogonal; ");
}

TEST_CASE("attention has Keras's parameters") {
  const std::vector<TensorSpec> sequence = {{"x", {9, 6}}};
  CHECK(parameters_of("multi_head_attention: {num_heads: 2}", sequence) ==
        "query/kernel 6x2x3 glorot_uniform; query/bias 2x3 zeros; key/kernel 6x2x3 glorot_uniform; "
        "key/bias 2x3 zeros; value/kernel 6x2x3 glorot_uniform; value/bias 2x3 zeros; "
        "attention_output/kernel 2x3x6 glorot_uniform; attention_output/bias 6 zeros; ");
  CHECK(
      parameters_of("multi_head_attention: {num_heads: 4, key_dim: 2, value_dim: 5, num_key_value_heads: 2, "
                    "use_bias: false}",
                    {{"q", {9, 6}}, {"v", {4, 3}}, {"k", {4, 7}}}) ==
      "query/kernel 6x4x2 glorot_uniform; key/kernel 7x2x2 glorot_uniform; "
      "value/kernel 3x2x5 glorot_uniform; attention_output/kernel 4x5x6 glorot_uniform; ");
  CHECK(shape_of("multi_head_attention: {num_heads: 2}", {9, 6}) == Shape{9, 6});
  CHECK(parameters_of("position_embedding: {sequence_length: 9}", sequence) ==
        "embeddings 9x6 glorot_uniform; ");
}

TEST_CASE("an activation option becomes a layer, except linear and null") {
  CHECK(layer_of("dense: {units: 1, activation: {elu: {alpha: 0.5}}}")->activation()->elementwise()->alpha ==
        0.5f);
  CHECK(layer_of("conv2d: {filters: 1, kernel_size: 1, activation: softmax}")->activation()->is_softmax());
  CHECK(!layer_of("dense: {units: 1, activation: linear}")->activation());
  CHECK(!layer_of("dense: {units: 1, activation: null}")->activation());
  CHECK(!layer_of("dense: {units: 1}")->activation());
  const auto leaky = layer_of("dense: {units: 1, activation: leaky_relu}")->activation()->elementwise();
  CHECK(leaky->alpha == 0.2f);
  const auto resolved = [](const std::string& yaml) {
    return to_json(layer_of("activation: " + yaml).resolved).at("activation").at("activation").dump();
  };
  CHECK(resolved("{relu: {negative_slope: 0}}") == R"("relu")");
  CHECK(resolved("{relu: {max_value: 6}}") ==
        R"({"relu": {"max_value": 6, "negative_slope": 0, "threshold": 0}})");
  CHECK(resolved("hard_sigmoid") == R"("hard_sigmoid")");
}

}  // namespace dtrain::test
