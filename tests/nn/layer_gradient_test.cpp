// Checks every layer's gradients against finite differences of its outputs.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {
namespace {

const TensorSpec kRow{"x", {6}};
const TensorSpec kImage{"x", {7, 6, 3}};
const TensorSpec kDeepImage{"x", {5, 4, 16}};  // channels fill whole blocks
const TensorSpec kVolume{"x", {5, 4, 3, 2}};
const TensorSpec kDeepVolume{"x", {3, 4, 3, 16}};
const TensorSpec kSequence{"x", {5, 3}};
const std::vector<uint8_t> kMask = {0, 1, 0, 1, 0, 1, 1, 1, 0, 0};
const std::vector<uint8_t> kNoStep = {1, 1, 1, 0, 0,
                                      0, 0, 0, 0, 0};  // all steps of the second sample are masked

double projection(const Values& output, const Values& weights) {
  return std::inner_product(output.begin(), output.end(), weights.begin(), 0.0, std::plus<>(),
                            [](float a, float b) { return static_cast<double>(a) * b; });
}

/// Returns whether `gradient` is the derivative of the projection with respect to `value`, by finite
/// differences with this step. At a kink it is enough that it matches the slope on one side.
bool agrees(LayerRun& run, float& value, float gradient, const Values& weights, float step) {
  const float x = value;
  const double here = projection(run.forward(), weights);
  value = x + step;
  const double above = (projection(run.forward(), weights) - here) / (static_cast<double>(value) - x);
  value = x - step;
  const double below = (here - projection(run.forward(), weights)) / (static_cast<double>(x) - value);
  value = x;
  const auto near = [&](double slope) { return std::abs(gradient - slope) <= 4e-3 * (1 + std::abs(slope)); };
  const double both = (above + below) / 2;
  return near(both) || near(above) || near(below);
}

/// Checks at most `most` elements.
void check_array(LayerRun& run, Values& values, const Values& gradient, const Values& weights, size_t most,
                 const std::string& what) {
  REQUIRE(gradient.size() == values.size());
  const size_t stride = values.size() / most + 1;
  for (size_t i = 0; i < values.size(); i += stride) {
    INFO(what << "[" << i << "] has gradient " << gradient[i]);
    // The large step has the smaller rounding error; the small one crosses fewer kinks.
    CHECK((agrees(run, values[i], gradient[i], weights, 1e-2f) ||
           agrees(run, values[i], gradient[i], weights, 1e-3f)));
  }
}

void check_gradients(const LayerCase& c, Device* device = nullptr) {
  INFO(c.yaml << ", activation " << static_cast<int>(c.fused.kind) << ", layout "
              << static_cast<int>(c.layout));
  LayerRun run(c, device);
  const Values weights = spread_values(run.output_elements(), -1, 1, 99);
  const Values output = run.forward();
  const LayerRun::Gradients gradients = run.backward(weights);

  if (run.requirements().forward_in_place && !run.requirements().is_view) CHECK(run.forward(true) == output);
  if (run.requirements().backward_in_place && c.inputs_need_gradient) {
    run.forward();
    CHECK(run.backward(weights, true).inputs == gradients.inputs);
  }
  const size_t most = device ? 8 : 40;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (c.inputs_need_gradient && c.inputs[i].dtype == DType::float32)
      check_array(run, run.inputs[i], gradients.inputs[i], weights, most, "input " + std::to_string(i));
  for (size_t i = 0; i < run.parameters.size(); ++i)
    if (c.trainable && !run.parameter_specs[i].moving_average)
      check_array(run, run.parameters[i], gradients.parameters[i], weights, most,
                  run.parameter_specs[i].name);
}

/// Every layer that computes something, at least once for each of its code paths.
const std::vector<LayerCase>& cases() {
  static const std::vector<LayerCase> all = {
      {"dense: {units: 5}", {kRow}},
      {"dense: {units: 4, use_bias: false}", {kImage}},
      {"conv2d: {filters: 4, kernel_size: 3}", {kImage}},
      {"conv2d: {filters: 4, kernel_size: [3, 2], strides: 2, padding: same}", {kImage}},
      {"conv2d: {filters: 2, kernel_size: 2, dilation_rate: 2, use_bias: false}", {kImage}},
      {"conv2d: {filters: 16, kernel_size: 3, padding: same}", {kDeepImage}},
      {"depthwise_conv2d: {kernel_size: 3}", {kImage}},
      {"depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2, strides: 2, padding: same}", {kImage}},
      {"conv2d_transpose: {filters: 4, kernel_size: 3, strides: 2}", {kImage}},
      {"conv2d_transpose: {filters: 2, kernel_size: 3, strides: 2, padding: same}", {kImage}},
      {"conv2d_transpose: {filters: 2, kernel_size: 3, strides: 2, padding: same, output_padding: 1, "
       "use_bias: false}",
       {kImage}},
      {"max_pooling2d", {kImage}},
      {"max_pooling2d: {pool_size: 3, strides: 2, padding: same}", {kImage}},
      {"average_pooling2d: {pool_size: [3, 2], strides: 1}", {kImage}},
      {"average_pooling2d: {pool_size: 3, strides: 2, padding: same}", {kImage}},
      {"global_max_pooling2d", {kImage}},
      {"global_average_pooling2d: {keepdims: true}", {kImage}},
      {"batch_normalization", {kImage}},
      {.yaml = "batch_normalization: {center: false}", .inputs = {kRow}, .batch = 5},
      {"batch_normalization: {scale: false}", {{"x", {4, 3}}}},
      {"batch_normalization: {synchronized: true}", {kImage}},
      {.yaml = "batch_normalization: {synchronized: true, center: false}", .inputs = {kRow}, .batch = 5},
      {"batch_normalization: {synchronized: true, scale: false}", {{"x", {4, 3}}}},
      {.yaml = "batch_normalization", .inputs = {kImage}, .trainable = false},
      {.yaml = "batch_normalization: {center: false, scale: false}", .inputs = {kImage}, .trainable = false},
      {"layer_normalization", {kImage}},
      {"layer_normalization: {center: false}", {kRow}},
      {"layer_normalization: {scale: false}", {kRow}},
      {.yaml = "layer_normalization", .inputs = {kRow}, .trainable = false},
      {"group_normalization: {groups: 1}", {kImage}},
      {"group_normalization: {groups: 4}", {kDeepImage}},
      {"group_normalization: {groups: 2, center: false}", {kRow}},
      {"group_normalization: {groups: -1, scale: false}", {kImage}},
      {.yaml = "group_normalization: {groups: 2}", .inputs = {kRow}, .trainable = false},
      {"rms_normalization", {kImage}},
      {"rms_normalization: {epsilon: 0.5}", {kRow}},
      {.yaml = "rms_normalization", .inputs = {kRow}, .trainable = false},
      {"unit_normalization", {kImage}},
      {"unit_normalization", {kRow}},
      {"rescaling: {scale: 3, offset: -1}", {kImage}},
      {"rescaling: {scale: [0.5, 2, -1], offset: [1, 0, 3]}", {kImage}},
      {"rescaling: {scale: 2, offset: [1, 0, 3, 4, 5, 6]}", {kRow}},
      {"activation: linear", {kRow}},
      {"activation: relu", {kRow}},
      {"activation: {leaky_relu: {negative_slope: 0.1}}", {kRow}},
      {"activation: gelu", {kRow}},
      {"activation: {gelu: {approximate: true}}", {kRow}},
      {"activation: silu", {kRow}},
      {"activation: tanh", {kRow}},
      {"activation: sigmoid", {kRow}},
      {"activation: {elu: {alpha: 0.5}}", {kRow}},
      {.yaml = "activation: relu6", .inputs = {kRow}, .low = -4, .high = 9},
      {.yaml = "activation: {relu: {max_value: 2, negative_slope: 0.1, threshold: 0.5}}",
       .inputs = {kRow},
       .low = -4,
       .high = 4},
      {"activation: {relu: {max_value: 0.1}}", {kRow}},
      {.yaml = "activation: hard_silu", .inputs = {kRow}, .low = -4, .high = 4},
      {"activation: mish", {kRow}},
      {.yaml = "activation: hard_sigmoid", .inputs = {kRow}, .low = -4, .high = 4},
      {"activation: selu", {kRow}},
      {"activation: softplus", {kRow}},
      {"activation: softsign", {kRow}},
      {"activation: exponential", {kRow}},
      {"activation: softmax", {kImage}},
      {"softmax", {kImage}},
      {"prelu", {kImage}},
      {"prelu", {kRow}},
      {"prelu: {shared_axes: [1, 2]}", {kDeepImage}},
      {"prelu: {shared_axes: [1, 2, 3]}", {kImage}},
      {"prelu: {shared_axes: [1, 3]}", {kImage}},
      {"prelu: {shared_axes: [2, 3]}", {kImage}},
      {"prelu: {shared_axes: 1}", {{"x", {6, 8}}}},
      {"dropout: {rate: 0.4}", {kImage}},
      {"dropout: {rate: 0}", {kRow}},
      {"spatial_dropout1d: {rate: 0.4}", {{"x", {6, 8}}}},
      {"spatial_dropout2d: {rate: 0.4}", {kImage}},
      {"spatial_dropout2d: {rate: 0.4}", {kDeepImage}},
      {"gaussian_noise: {stddev: 0.4}", {kImage}},
      {"gaussian_dropout: {rate: 0.4}", {kImage}},
      {"gaussian_dropout: {rate: 0.4}", {kDeepImage}},
      {"flatten", {kImage}},
      {"reshape: [3, -1]", {kRow}},
      {"add", {kImage, kImage, kImage}},
      {"multiply", {kImage, kImage, kImage}},
      {"subtract", {kImage, kImage}},
      {"average", {kImage, kImage, kImage}},
      {"maximum", {kImage, kImage, kImage}},
      {"minimum", {kRow, kRow}},
      {"permute: [3, 1, 2]", {kImage}},
      {"permute: [2, 1]", {{"x", {3, 4}}}},
      {"repeat_vector: 3", {kRow}},
      {"upsampling2d", {kImage}},
      {"upsampling2d: {interpolation: bilinear}", {kImage}},
      {"upsampling2d: {size: [1, 3], interpolation: bilinear}", {kDeepImage}},
      {"conv1d: {filters: 4, kernel_size: 3, padding: same}", {{"x", {6, 3}}}},
      {"conv1d: {filters: 16, kernel_size: 2, strides: 2, use_bias: false}", {{"x", {7, 16}}}},
      {"conv1d: {filters: 16, kernel_size: 3, dilation_rate: 2}", {{"x", {9, 16}}}, {Activation::tanh}},
      {"conv1d: {filters: 4, kernel_size: 3, padding: causal}", {{"x", {6, 3}}}},
      {"conv1d_transpose: {filters: 4, kernel_size: 4, strides: 2, padding: same}", {{"x", {6, 3}}}},
      {"conv1d_transpose: {filters: 3, kernel_size: 3, strides: 3, output_padding: 1, use_bias: false}",
       {{"x", {5, 4}}}},
      {"conv1d: {filters: 16, kernel_size: 3, strides: 2, padding: causal}", {{"x", {7, 16}}}},
      {"conv1d: {filters: 3, kernel_size: 4, dilation_rate: 3, padding: causal, use_bias: false}",
       {{"x", {5, 3}}}},
      {"max_pooling1d: {pool_size: 3, strides: 2, padding: same}", {{"x", {7, 3}}}},
      {"average_pooling1d", {{"x", {7, 16}}}},
      {"global_max_pooling1d", {{"x", {5, 3}}}},
      {"global_average_pooling1d: {keepdims: true}", {{"x", {5, 3}}}},
      {"zero_padding1d: [1, 2]", {{"x", {4, 3}}}},
      {"cropping1d: [1, 2]", {{"x", {6, 3}}}},
      {"upsampling1d: 3", {{"x", {4, 3}}}},
      {"upsampling2d: [3, 1]", {kImage}},
      {"conv3d: {filters: 4, kernel_size: 3}", {kVolume}},
      {"conv3d: {filters: 3, kernel_size: [3, 2, 1], strides: [2, 1, 2], padding: same}", {kVolume}},
      {"conv3d: {filters: 2, kernel_size: 2, dilation_rate: [2, 1, 2], use_bias: false}", {kVolume}},
      {"conv3d: {filters: 16, kernel_size: 3, padding: same}", {kDeepVolume}, {Activation::tanh}},
      {"conv3d: {filters: 3, kernel_size: 1}", {kVolume}},
      {.yaml = "conv3d: {filters: 4, kernel_size: 2}", .inputs = {kVolume}, .trainable = false},
      {"max_pooling3d", {kVolume}},
      {"max_pooling3d: {pool_size: 3, strides: 2, padding: same}", {kDeepVolume}},
      {"average_pooling3d: {pool_size: [3, 2, 1], strides: 1}", {kVolume}},
      {"average_pooling3d: {pool_size: 3, strides: 2, padding: same}", {kDeepVolume}},
      {"global_max_pooling3d", {kVolume}},
      {"global_average_pooling3d: {keepdims: true}", {kVolume}},
      {"batch_normalization", {kVolume}},
      {"zero_padding3d: [[1, 2], [0, 3], 1]", {kVolume}},
      {"cropping3d: [[1, 2], [0, 1], [1, 0]]", {kVolume}},
      {"upsampling3d: [2, 1, 3]", {kVolume}},
      {"separable_conv2d: {filters: 4, kernel_size: 3, padding: same}", {kImage}},
      {"separable_conv2d: {filters: 3, kernel_size: [2, 3], strides: 2, depth_multiplier: 2, use_bias: "
       "false}",
       {kImage}},
      {.yaml = "separable_conv2d: {filters: 16, kernel_size: 3}", .inputs = {kDeepImage}, .trainable = false},
      {"separable_conv2d: {filters: 16, kernel_size: 3, padding: same}", {kDeepImage}, {Activation::tanh}},
      {"concatenate", {kImage, {"y", {7, 6, 2}}}},
      {"concatenate: {axis: 1}", {kImage, {"y", {2, 6, 3}}, {"z", {1, 6, 3}}}},
      {"zero_padding2d: [[1, 2], [0, 3]]", {kImage}},
      {"cropping2d: [[1, 2], [0, 3]]", {kImage}},
      {"lstm: {units: 4}", {kSequence}},
      {"lstm: {units: 3, return_sequences: true, go_backwards: true, use_bias: false}", {kSequence}},
      {"lstm: {units: 3, return_sequences: true, dropout: 0.4}", {kSequence, {"h", {3}}, {"c", {3}}}},
      {"lstm: {units: 3, activation: softsign, recurrent_activation: silu, return_state: true}", {kSequence}},
      {"gru: {units: 4}", {kSequence}},
      {"gru: {units: 3, return_sequences: true, dropout: 0.4}", {kSequence, {"h", {3}}}},
      {"gru: {units: 3, reset_after: false, return_sequences: true, go_backwards: true}",
       {kSequence, {"h", {3}}}},
      {"gru: {units: 3, reset_after: false, use_bias: false, activation: gelu}", {kSequence}},
      {"gru: {units: 3, use_bias: false, recurrent_activation: softplus}", {kSequence}},
      {"simple_rnn: {units: 4}", {kSequence}},
      {"simple_rnn: {units: 3, return_sequences: true, go_backwards: true, use_bias: false}",
       {kSequence, {"h", {3}}}},
      {"simple_rnn: {units: 3, activation: silu, dropout: 0.4}", {kSequence}},
      {"multi_head_attention: {num_heads: 2, key_dim: 4}", {kSequence}},
      {"multi_head_attention: {num_heads: 4, key_dim: 2, value_dim: 3, num_key_value_heads: 2, causal: true, "
       "dropout: 0.4}",
       {kSequence}},
      {"multi_head_attention: {num_heads: 3, key_dim: 2, use_bias: false, rotary: {base: 100}}",
       {kSequence, {"v", {4, 2}}}},
      {"multi_head_attention: {num_heads: 1}", {kSequence, {"v", {4, 2}}, {"k", {4, 5}}}},
      {.yaml = "multi_head_attention: {num_heads: 3}", .inputs = {kSequence}, .trainable = false},
      {"position_embedding: {sequence_length: 7}", {kSequence}},
      {"sinusoidal_position_encoding", {kSequence}},
      {"bidirectional: {layer: {lstm: {units: 3}}}", {kSequence}},
      {"bidirectional: {layer: {gru: {units: 3, return_sequences: true, dropout: 0.4}}, merge_mode: sum}",
       {kSequence}},
      {"bidirectional: {layer: {simple_rnn: {units: 3, return_sequences: true}}, merge_mode: mul}",
       {kSequence, {"a", {3}}, {"b", {3}}}},
      {"bidirectional: {layer: {lstm: {units: 2, return_sequences: true}}, merge_mode: ave, backward_layer: "
       "{gru: {units: 2, return_sequences: true, go_backwards: true}}}",
       {kSequence}},
      {"bidirectional: {layer: {simple_rnn: {units: 3, go_backwards: true, return_sequences: true}}, "
       "merge_mode: none}",
       {kSequence}},
      {.yaml = "lstm: {units: 3}", .inputs = {kSequence}, .mask = kMask},
      {.yaml = "lstm: {units: 3, return_sequences: true}",
       .inputs = {kSequence, {"h", {3}}, {"c", {3}}},
       .mask = kNoStep},
      {.yaml = "gru: {units: 3, go_backwards: true}", .inputs = {kSequence}, .mask = kMask},
      {.yaml = "gru: {units: 3, reset_after: false, return_sequences: true}",
       .inputs = {kSequence, {"h", {3}}},
       .mask = kNoStep},
      {.yaml = "simple_rnn: {units: 3, return_sequences: true}", .inputs = {kSequence}, .mask = kMask},
      {.yaml = "bidirectional: {layer: {lstm: {units: 3}}}", .inputs = {kSequence}, .mask = kMask},
      {.yaml = "bidirectional: {layer: {gru: {units: 3, return_sequences: true}}}",
       .inputs = {kSequence},
       .mask = kMask},
      {.yaml = "bidirectional: {layer: {lstm: {units: 2, return_sequences: true}}, merge_mode: sum}",
       .inputs = {kSequence},
       .mask = kNoStep},
      {.yaml = "bidirectional: {layer: {simple_rnn: {units: 3, return_sequences: true}}, merge_mode: mul}",
       .inputs = {kSequence, {"a", {3}}, {"b", {3}}},
       .mask = kMask},
      {.yaml = "global_average_pooling1d", .inputs = {kSequence}, .mask = kNoStep},
      {.yaml = "multi_head_attention: {num_heads: 2, key_dim: 4}", .inputs = {kSequence}, .mask = kMask},
      {.yaml = "multi_head_attention: {num_heads: 3, causal: true}",
       .inputs = {kSequence, {"v", {5, 2}}},
       .mask = kNoStep},
      {"masking: {mask_value: 5}", {kSequence}},
      {.yaml = "embedding: {input_dim: 4, output_dim: 3, mask_zero: true}",
       .inputs = {{"x", {6}, DType::int32}},
       .low = 0,
       .high = 4},
      {.yaml = "embedding: {input_dim: 5, output_dim: 3}",
       .inputs = {{"x", {6}, DType::int32}},
       .low = 0,
       .high = 5},
  };
  return all;
}

/// Layers whose inputs have no gradient, with the reason. Their rows check the gradients of their parameters.
const std::map<std::string, std::string> kWithoutInputGradients = {
    {"embedding", "its inputs are indices"},
};

bool is_of_kind(const LayerCase& c, const std::string& kind) {
  return c.yaml == kind || c.yaml.starts_with(kind + ":");
}

bool checks_input_gradients(const LayerCase& c) {
  return c.inputs_need_gradient && std::all_of(c.inputs.begin(), c.inputs.end(), [](const TensorSpec& input) {
           return input.dtype == DType::float32;
         });
}

std::string name_of(const LayerCase& c) {
  std::string name = c.yaml + " of";
  for (const TensorSpec& input : c.inputs) name += " " + input.shape.str();
  if (c.fused.kind != Activation::linear) name += ", with an activation";
  if (!c.mask.empty()) name += ", masked";
  return c.trainable ? name : name + ", frozen";
}

struct NamedCase {
  std::string name;
  LayerCase row;
};
const std::vector<NamedCase>& named_cases() {
  static const std::vector<NamedCase> all = [] {
    std::vector<NamedCase> named;
    for (const LayerCase& c : cases()) named.push_back({name_of(c), c});
    return named;
  }();
  return all;
}

/// Every layer with every activation that it fuses.
const std::vector<NamedCase>& fused_cases() {
  using A = Activation;
  static const std::vector<std::pair<std::string, ActivationSpec>> activations = {
      {"relu", {A::relu}},
      {"leaky_relu", {A::leaky_relu, 0.2f}},
      {"gelu", {A::gelu}},
      {"silu", {A::silu}},
      {"tanh", {A::tanh}},
      {"sigmoid", {A::sigmoid}},
      {"elu", {A::elu, 1.0f}},
      {"clipped_relu", {.kind = A::clipped_relu, .maximum = 0.5f}},
      {"softplus", {A::softplus}},
      {"softsign", {A::softsign}},
      {"hard_sigmoid", {A::hard_sigmoid, 0.2f}},
      {"hard_silu", {A::hard_silu}},
      {"selu", {A::selu}},
      {"exponential", {A::exponential}},
      {"mish", {A::mish}},
  };
  static const std::vector<NamedCase> all = [] {
    std::vector<NamedCase> named;
    for (LayerCase c : cases()) {
      const std::string name = name_of(c);
      for (const auto& [activation, spec] : activations) {
        if (!layer_of(c.yaml)->can_fuse(spec)) continue;
        c.fused = spec;
        named.push_back({name + ", " + activation, c});
      }
    }
    return named;
  }();
  return all;
}

/// Calls use(row) for each row, in a subcase of the row's name.
template <class Use>
void each_in_subcase(const std::vector<NamedCase>& rows, Use&& use) {
  for (const NamedCase& c : rows) SUBCASE(c.name.c_str()) use(c.row);
}

/// Checks that elements differ by at most `tolerance`, relative to the largest magnitude or to 1.
void check_near(const Values& found, const Values& expected, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(found.size() == expected.size());
  double greatest = 1, worst = 0;
  for (const float value : expected) greatest = std::max(greatest, std::abs(static_cast<double>(value)));
  bool numbers = true;
  for (size_t i = 0; i < found.size(); ++i) {
    const double apart = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    numbers = numbers && !std::isnan(apart);
    worst = std::max(worst, apart);
  }
  CHECK(numbers);
  CHECK(worst <= tolerance * greatest);
}

/// Checks that a GPU computes the same values and gradients as the CPU.
void check_as_on_cpu(const LayerCase& c, Device& device) {
  INFO(c.yaml << ", activation " << static_cast<int>(c.fused.kind));
  LayerRun there(c, &device), here(c);
  here.inputs = there.inputs;
  here.parameters = there.parameters;
  // Intermediate values are rounded to the compute type; with TF32, inputs of matrix products are rounded.
  const double tolerance = device.math.tf32 ? 4e-3 : device.tolerance(1e-4, 8);
  check_near(there.forward(), here.forward(), tolerance, "output");
  const Values weights = device.exact(spread_values(there.output_elements(), -1, 1, 99));
  const auto found = there.backward(weights), expected = here.backward(weights);
  REQUIRE(found.inputs.size() == expected.inputs.size());
  REQUIRE(found.parameters.size() == expected.parameters.size());
  for (size_t i = 0; i < found.inputs.size(); ++i)
    check_near(found.inputs[i], expected.inputs[i], tolerance, "input " + std::to_string(i));
  for (size_t i = 0; i < found.parameters.size(); ++i)
    check_near(found.parameters[i], expected.parameters[i], tolerance, there.parameter_specs[i].name);
}

}  // namespace

TEST_CASE("on a GPU: values and gradients of every layer equal the CPU's in every type" *
          doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    for (LayerCase c : cases()) {
      check_as_on_cpu(c, device);
      // Smooth activations, because at a kink slightly different numbers may have different gradients.
      for (const Activation kind : {Activation::tanh, Activation::sigmoid}) {
        c.fused = {kind};
        if (layer_of(c.yaml)->can_fuse(c.fused)) check_as_on_cpu(c, device);
      }
      c.fused = {};
      c.inputs_need_gradient = false;
      if (!layer_of(c.yaml)->parameters(c.inputs).empty() && c.trainable) check_as_on_cpu(c, device);
      c.inputs_need_gradient = true;
      c.trainable = false;
      check_as_on_cpu(c, device);
    }
    check_as_on_cpu({"batch_normalization", {kDeepImage}, {Activation::relu}}, device);
    check_as_on_cpu({"batch_normalization: {synchronized: true}", {kDeepImage}, {Activation::relu}}, device);
  });
}

TEST_CASE("gradients of every layer match finite differences") {
  each_in_subcase(named_cases(), [](const LayerCase& c) { check_gradients(c); });
}

TEST_CASE("on a GPU: gradients of every layer match finite differences" * doctest::test_suite("gpu")) {
  const auto device = gpu_device({});
  for (const LayerCase& c : cases()) check_gradients(c, device.get());
}

TEST_CASE("every kind of layer has its gradients checked") {
  const std::vector<std::string> kinds = registry<Layer>().names();
  for (const std::string& kind : kinds) {
    const bool without_input_gradients = kWithoutInputGradients.contains(kind);
    const bool checked = std::any_of(cases().begin(), cases().end(), [&](const LayerCase& c) {
      return is_of_kind(c, kind) && (without_input_gradients ? c.trainable : checks_input_gradients(c));
    });
    CHECK_MESSAGE(checked, "cases() has no row that checks the gradients of the layer ", kind);
  }
  for (const auto& [kind, reason] : kWithoutInputGradients) {
    CHECK_MESSAGE(std::count(kinds.begin(), kinds.end(), kind) == 1, "kWithoutInputGradients names ", kind,
                  ", which is no layer");
    for (const LayerCase& c : cases()) {
      if (!is_of_kind(c, kind)) continue;
      INFO(c.yaml, " is a row of a layer without input gradients: ", reason);
      CHECK(!checks_input_gradients(c));
      CHECK(!layer_of(c.yaml)->parameters(c.inputs).empty());
    }
  }
}

// Doctest runs subcases of the same name as one, or skips the second of them.
TEST_CASE("rows have distinct names") {
  std::set<std::string> names;
  for (const std::vector<NamedCase>* rows : {&named_cases(), &fused_cases()})
    for (const NamedCase& c : *rows) CHECK_MESSAGE(names.insert(c.name).second, "two rows are ", c.name);
}

TEST_CASE("gradients through every fused activation match finite differences") {
  CHECK(fused_cases().size() >= 8 * 9 + 5);
  each_in_subcase(fused_cases(), [](const LayerCase& c) { check_gradients(c); });
}

TEST_CASE("values and gradients are the same in other layouts") {
  const auto check = [](LayerCase c) {
    const Values plain = LayerRun(c).forward();
    for (const Layout layout : {Layout::planar, Layout::blocked8, Layout::blocked16}) {
      c.layout = layout;
      check_gradients(c);
      const Values values = LayerRun(c).forward();
      REQUIRE(values.size() == plain.size());
      for (size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - plain[i]) <= 1e-5);
    }
  };
  for (const char* yaml :
       {"max_pooling2d", "average_pooling2d: {pool_size: 3, padding: same}", "global_max_pooling2d",
        "global_average_pooling2d", "batch_normalization", "activation: tanh", "flatten",
        "conv2d: {filters: 16, kernel_size: 3}", "layer_normalization", "group_normalization: {groups: 4}",
        "rms_normalization", "rescaling: 2", "spatial_dropout2d: 0.4", "gaussian_noise: 0.4"})
    check({yaml, {kDeepImage}});
  for (const char* yaml : {"prelu", "prelu: {shared_axes: [1, 2]}", "prelu: {shared_axes: [1, 3]}",
                           "prelu: {shared_axes: [2, 3]}", "prelu: {shared_axes: [1, 2, 3]}"})
    check({yaml, {kDeepImage}});
  check({"prelu: {shared_axes: 1}", {{"x", {6, 16}}}});
  check({"batch_normalization", {kDeepImage}, {Activation::relu}});
  check({"batch_normalization: {synchronized: true}", {kDeepImage}});
  check({"batch_normalization: {synchronized: true}", {kDeepImage}, {Activation::relu}});
  check({.yaml = "batch_normalization", .inputs = {kDeepImage}, .trainable = false});
  for (const char* yaml : {"add", "multiply", "concatenate"})
    check({yaml, {kDeepImage, kDeepImage, kDeepImage}});
  for (const char* yaml :
       {"max_pooling3d", "average_pooling3d: {pool_size: 3, padding: same}", "global_max_pooling3d",
        "global_average_pooling3d", "batch_normalization", "activation: tanh", "flatten",
        "conv3d: {filters: 16, kernel_size: 3}", "zero_padding3d", "upsampling3d"})
    check({yaml, {kDeepVolume}});
}

TEST_CASE("gradients are right without input gradients and for frozen layers") {
  each_in_subcase(named_cases(), [](LayerCase c) {
    c.inputs_need_gradient = false;
    if (!layer_of(c.yaml)->parameters(c.inputs).empty() && c.trainable) check_gradients(c);
    c.inputs_need_gradient = true;
    c.trainable = false;
    check_gradients(c);
  });
}

TEST_CASE("batch normalization scales its statistics by the replica's share") {
  LayerRun run({"batch_normalization", {{"x", {2, 2, 1}}}});
  run.share = 0.25f;
  run.inputs[0] = {1, 2, 3, 4, 5, 6, 7, 12};
  run.forward();
  const auto gradients = run.backward(Values(8, 0.0f)).parameters;
  CHECK(run.parameter_specs[2].name == "moving_mean");
  CHECK(gradients[2][0] == doctest::Approx(0.25 * 5));
  // The biased variance: the sum of the squares of -4 -3 -2 -1 0 1 2 7, divided by 8.
  CHECK(gradients[3][0] == doctest::Approx(0.25 * 84 / 8));
  CHECK(*run.parameter_specs[2].moving_average == 0.99f);
  CHECK(*run.parameter_specs[3].moving_average == 0.99f);
  CHECK(!run.parameter_specs[0].moving_average);
}

}  // namespace dtrain::test
