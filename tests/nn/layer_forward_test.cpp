// Every layer's values against plain double-precision formulas.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "layer_harness.h"

namespace dtrain {
namespace {

using Doubles = std::vector<double>;

void check_values(const Values& values, const Doubles& expected, double tolerance = 1e-5) {
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, std::abs(values[i] - expected[i]) / (1 + std::abs(expected[i])));
  CHECK(worst <= tolerance);
}

/// Images of shape [batch, height, width, channels]; pixels outside are zero.
struct Images {
  int64_t height, width, channels;
  const Values& values;
  double at(int64_t n, int64_t y, int64_t x, int64_t c) const {
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? values[static_cast<size_t>(((n * height + y) * width + x) * channels + c)] : 0;
  }
};

struct Geometry {
  int64_t size_y, size_x, stride = 1, dilation = 1, top = 0, left = 0;
};

/// Returns the array whose element [n, y, x, f] is value(n, y, x, f).
Doubles each_pixel(int64_t batch, const Shape& shape,
                   const std::function<double(int64_t, int64_t, int64_t, int64_t)>& value) {
  Doubles all;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t y = 0; y < shape[0]; ++y)
      for (int64_t x = 0; x < shape[1]; ++x)
        for (int64_t c = 0; c < shape[2]; ++c) all.push_back(value(n, y, x, c));
  return all;
}

/// Checks a convolution with a kernel of [size_y, size_x, channels, filters]. Depthwise convolutions have
/// `filters` filters for each channel.
void check_convolution(const std::string& yaml, const Geometry& g, bool depthwise = false) {
  INFO(yaml);
  LayerRun run({yaml, {{"x", {7, 6, 3}}}});
  const Images src{7, 6, 3, run.inputs[0]};
  const Values& kernel = run.parameters[0];
  const int64_t filters = run.parameter_specs[0].shape[3];
  const auto value = [&](int64_t n, int64_t y, int64_t x, int64_t f) {
    double sum = run.parameters.size() > 1 ? run.parameters[1][static_cast<size_t>(f)] : 0;
    for (int64_t ky = 0; ky < g.size_y; ++ky)
      for (int64_t kx = 0; kx < g.size_x; ++kx)
        for (int64_t c = 0; c < 3; ++c) {
          if (depthwise && c != f / filters) continue;
          const int64_t element = ((ky * g.size_x + kx) * 3 + c) * filters + (depthwise ? f % filters : f);
          sum +=
              src.at(n, y * g.stride + ky * g.dilation - g.top, x * g.stride + kx * g.dilation - g.left, c) *
              kernel[static_cast<size_t>(element)];
        }
    return sum;
  };
  check_values(run.forward(), each_pixel(2, run.output.shape, value));
}

/// Checks a transposed convolution: every input pixel adds the kernel, [size_y, size_x, filters, channels],
/// times the pixel to the output.
void check_transpose(const std::string& yaml, const Geometry& g) {
  INFO(yaml);
  LayerRun run({yaml, {{"x", {3, 4, 2}}}});
  const Images src{3, 4, 2, run.inputs[0]};
  const int64_t filters = run.output.shape[2];
  const auto value = [&](int64_t n, int64_t y, int64_t x, int64_t f) {
    double sum = run.parameters[1][static_cast<size_t>(f)];
    for (int64_t sy = 0; sy < 3; ++sy)
      for (int64_t sx = 0; sx < 4; ++sx)
        for (int64_t c = 0; c < 2; ++c) {
          const int64_t ky = y + g.top - sy * g.stride, kx = x + g.left - sx * g.stride;
          if (ky < 0 || ky >= g.size_y || kx < 0 || kx >= g.size_x) continue;
          const int64_t element = ((ky * g.size_x + kx) * filters + f) * 2 + c;
          sum += src.at(n, sy, sx, c) * run.parameters[0][static_cast<size_t>(element)];
        }
    return sum;
  };
  check_values(run.forward(), each_pixel(2, run.output.shape, value));
}

void check_pooling(const std::string& yaml, const Geometry& g, bool max) {
  INFO(yaml);
  LayerRun run({yaml, {{"x", {7, 6, 3}}}});
  const Images src{7, 6, 3, run.inputs[0]};
  const Shape& shape = run.output.shape;
  const auto value = [&](int64_t n, int64_t y, int64_t x, int64_t c) {
    double best = -1e9, sum = 0, count = 0;
    for (int64_t sy = y * g.stride - g.top; sy < y * g.stride - g.top + g.size_y; ++sy)
      for (int64_t sx = x * g.stride - g.left; sx < x * g.stride - g.left + g.size_x; ++sx) {
        if (sy < 0 || sy >= 7 || sx < 0 || sx >= 6) continue;
        best = std::max(best, src.at(n, sy, sx, c));
        sum += src.at(n, sy, sx, c);
        ++count;
      }
    return max ? best : sum / count;
  };
  check_values(run.forward(), each_pixel(2, shape.rank() == 3 ? shape : Shape{1, 1, shape[0]}, value));
}

/// The window of a 3-D layer; elements are depth, height and width.
struct VolumeWindow {
  std::array<int64_t, 3> size, strides{1, 1, 1}, dilation{1, 1, 1}, before{};
};
enum class Volumes { convolved, max, mean };

/// Checks a convolution (kernel [depth, height, width, channels, filters]) or a pooling of volumes of shape
/// [5, 3, 4, 2].
void check_volumes(const std::string& yaml, const VolumeWindow& w, Volumes kind = Volumes::convolved) {
  INFO(yaml);
  const std::array<int64_t, 3> extents{5, 3, 4};
  LayerRun run({yaml, {{"x", {5, 3, 4, 2}}}});
  const bool convolves = kind == Volumes::convolved;
  const Shape out = run.output.shape.rank() == 4 ? run.output.shape : Shape{1, 1, 1, run.output.shape[0]};
  const int64_t filters = out[3];
  Doubles expected;
  for (int64_t o = 0; o < 2 * out.elements(); ++o) {
    const int64_t f = o % filters, pixel = o / filters, n = o / out.elements();
    const std::array<int64_t, 3> at{pixel / out[2] / out[1] % out[0], pixel / out[2] % out[1],
                                    pixel % out[2]};
    double best = -1e9, sum = 0, count = 0;
    for (int64_t k = 0; k < w.size[0] * w.size[1] * w.size[2]; ++k) {
      const std::array<int64_t, 3> element{k / w.size[2] / w.size[1], k / w.size[2] % w.size[1],
                                           k % w.size[2]};
      int64_t place = n;
      bool inside = true;
      for (size_t i = 0; i < 3; ++i) {
        const int64_t source = at[i] * w.strides[i] + element[i] * w.dilation[i] - w.before[i];
        inside = inside && source >= 0 && source < extents[i];
        place = place * extents[i] + source;
      }
      if (!inside) continue;
      for (int64_t c = 0; c < 2; ++c) {
        if (!convolves && c != f) continue;
        const double value = run.inputs[0][static_cast<size_t>(place * 2 + c)];
        best = std::max(best, value);
        sum += convolves ? value * run.parameters[0][static_cast<size_t>((k * 2 + c) * filters + f)] : value;
        ++count;
      }
    }
    if (run.parameters.size() > 1) sum += run.parameters[1][static_cast<size_t>(f)];
    expected.push_back(convolves ? sum : kind == Volumes::max ? best : sum / count);
  }
  check_values(run.forward(), expected);
}

/// Replaces x by (x - mean) / sqrt(variance + 1e-3) over the elements `first + i * stride`.
void normalize(Doubles& values, size_t first, size_t stride, size_t count) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < count; ++i) mean += values[first + i * stride] / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i)
    variance += std::pow(values[first + i * stride] - mean, 2) / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    double& value = values[first + i * stride];
    value = (value - mean) / std::sqrt(variance + 1e-3);
  }
}

}  // namespace

TEST_CASE("dense is x kernel + bias over the last axis") {
  LayerRun run({"dense: {units: 2}", {{"x", {3, 4}}}});
  CHECK(run.output.shape == Shape{3, 2});
  Doubles expected;
  for (size_t r = 0; r < 6; ++r)
    for (size_t u = 0; u < 2; ++u) {
      double sum = run.parameters[1][u];
      for (size_t i = 0; i < 4; ++i) sum += double{run.inputs[0][r * 4 + i]} * run.parameters[0][i * 2 + u];
      expected.push_back(sum);
    }
  check_values(run.forward(), expected);
}

TEST_CASE("convolutions, padded as in TensorFlow") {
  check_convolution("conv2d: {filters: 4, kernel_size: 3}", {.size_y = 3, .size_x = 3});
  check_convolution("conv2d: {filters: 4, kernel_size: [3, 2], dilation_rate: 2, use_bias: false}",
                    {.size_y = 3, .size_x = 2, .dilation = 2});
  check_convolution("conv2d: {filters: 2, kernel_size: 4, padding: same}",
                    {.size_y = 4, .size_x = 4, .top = 1, .left = 1});
  // 7 rows with stride 2: one row of padding at the top and at the bottom. 6 columns: one column of padding
  // on the right.
  check_convolution("conv2d: {filters: 2, kernel_size: 3, strides: 2, padding: same}",
                    {.size_y = 3, .size_x = 3, .stride = 2, .top = 1});
  check_convolution("depthwise_conv2d: {kernel_size: 2}", {.size_y = 2, .size_x = 2}, true);
  check_convolution("depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2, padding: same}",
                    {.size_y = 3, .size_x = 3, .top = 1, .left = 1}, true);
}

TEST_CASE("transposed convolutions") {
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: 3, strides: 2}",
                  {.size_y = 3, .size_x = 3, .stride = 2});
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: [2, 1], strides: 3}",
                  {.size_y = 2, .size_x = 1, .stride = 3});
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: 3, strides: 2, padding: same}",
                  {.size_y = 3, .size_x = 3, .stride = 2});
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: 3, padding: same}",
                  {.size_y = 3, .size_x = 3, .top = 1, .left = 1});
}

TEST_CASE("poolings") {
  check_pooling("max_pooling2d", {.size_y = 2, .size_x = 2, .stride = 2}, true);
  check_pooling("max_pooling2d: {pool_size: 3, strides: 2, padding: same}",
                {.size_y = 3, .size_x = 3, .stride = 2, .top = 1}, true);
  check_pooling("average_pooling2d: {pool_size: [3, 2], strides: 1}", {.size_y = 3, .size_x = 2}, false);
  check_pooling("average_pooling2d: {pool_size: 3, strides: 2, padding: same}",
                {.size_y = 3, .size_x = 3, .stride = 2, .top = 1}, false);
  check_pooling("global_max_pooling2d", {.size_y = 7, .size_x = 6}, true);
  check_pooling("global_average_pooling2d: {keepdims: true}", {.size_y = 7, .size_x = 6}, false);
}

TEST_CASE("convolutions and poolings of volumes, padded as in TensorFlow") {
  using Three = std::array<int64_t, 3>;
  check_volumes("conv3d: {filters: 4, kernel_size: 3}", {{3, 3, 3}});
  check_volumes("conv3d: {filters: 2, kernel_size: [3, 2, 1], dilation_rate: [1, 2, 1], use_bias: false}",
                {.size = {3, 2, 1}, .dilation = {1, 2, 1}});
  check_volumes("conv3d: {filters: 2, kernel_size: 3, strides: [2, 1, 2], padding: same}",
                {.size = {3, 3, 3}, .strides = {2, 1, 2}, .before = Three{1, 1, 0}});
  check_volumes("max_pooling3d", {.size = {2, 2, 2}, .strides = {2, 2, 2}}, Volumes::max);
  check_volumes("max_pooling3d: {pool_size: 3, strides: 2, padding: same}",
                {.size = {3, 3, 3}, .strides = {2, 2, 2}, .before = Three{1, 1, 0}}, Volumes::max);
  check_volumes("average_pooling3d: {pool_size: [3, 2, 1], strides: 1}", {{3, 2, 1}}, Volumes::mean);
  check_volumes("average_pooling3d: {pool_size: 3, strides: 2, padding: same}",
                {.size = {3, 3, 3}, .strides = {2, 2, 2}, .before = Three{1, 1, 0}}, Volumes::mean);
  check_volumes("global_max_pooling3d", {{5, 3, 4}}, Volumes::max);
  check_volumes("global_average_pooling3d: {keepdims: true}", {{5, 3, 4}}, Volumes::mean);
}

TEST_CASE("batch normalisation in training goes by the batch") {
  LayerRun run({"batch_normalization", {{"x", {2, 2, 3}}}});
  Doubles expected(run.inputs[0].begin(), run.inputs[0].end());
  for (size_t c = 0; c < 3; ++c) normalize(expected, c, 3, 8);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = expected[i] * run.parameters[0][i % 3] + run.parameters[1][i % 3];
  check_values(run.forward(), expected);
}

TEST_CASE("batch normalisation at inference, and frozen, goes by the moving averages") {
  for (const bool training : {false, true}) {
    LayerRun run({.yaml = "batch_normalization",
                  .inputs = {{"x", {2, 2, 3}}},
                  .training = training,
                  .trainable = false});
    Doubles expected;
    for (size_t i = 0; i < run.inputs[0].size(); ++i) {
      const size_t c = i % 3;
      const double normal =
          (run.inputs[0][i] - double{run.parameters[2][c]}) / std::sqrt(double{run.parameters[3][c]} + 1e-3);
      expected.push_back(normal * run.parameters[0][c] + run.parameters[1][c]);
    }
    check_values(run.forward(), expected);
  }
}

TEST_CASE("layer normalisation") {
  for (const bool training : {false, true}) {
    LayerRun run({.yaml = "layer_normalization", .inputs = {{"x", {3, 5}}}, .training = training});
    Doubles expected(run.inputs[0].begin(), run.inputs[0].end());
    for (size_t r = 0; r < 6; ++r) normalize(expected, r * 5, 1, 5);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = expected[i] * run.parameters[0][i % 5] + run.parameters[1][i % 5];
    check_values(run.forward(), expected);
  }
}

TEST_CASE("activations, as layers and fused") {
  const std::vector<std::pair<std::string, std::function<double(double)>>> functions = {
      {"linear", [](double x) { return x; }},
      {"relu", [](double x) { return std::max(x, 0.0); }},
      {"leaky_relu", [](double x) { return x > 0 ? x : 0.2 * x; }},
      {"{leaky_relu: {negative_slope: 0.3}}", [](double x) { return x > 0 ? x : 0.3 * x; }},
      {"gelu", [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"{gelu: {approximate: true}}",
       [](double x) { return x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"{elu: {alpha: 2}}", [](double x) { return x > 0 ? x : 2 * std::expm1(x); }},
      {"{relu: {negative_slope: 0.1}}", [](double x) { return x > 0 ? x : 0.1 * x; }},
      {"{relu: {max_value: 1.5, threshold: 0.5, negative_slope: 0.1}}",
       [](double x) { return x > 0.5 ? std::min(x, 1.5) : 0.1 * (x - 0.5); }},
      {"{relu: {max_value: 1}}", [](double x) { return std::clamp(x, 0.0, 1.0); }},
      {"{relu: {max_value: 0.3}}", [](double x) { return std::clamp(x, 0.0, 0.3); }},
      {"relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
      {"hard_silu", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {"hard_swish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {"hard_sigmoid", [](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {"{hard_sigmoid: {slope: 0.2}}", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"selu",
       [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"exponential", [](double x) { return std::exp(x); }},
  };
  for (const auto& [written, function] : functions) {
    const std::string& name = written;
    INFO(name);
    LayerRun run({.yaml = "activation: " + name, .inputs = {{"x", {32}}}, .low = -3, .high = 3});
    Doubles expected;
    for (const float x : run.inputs[0]) expected.push_back(function(x));
    check_values(run.forward(), expected);

    const ActivationSpec spec = *layer_of("activation: " + name)->elementwise();
    if (!layer_of("add")->can_fuse(spec)) continue;
    LayerRun sum({.yaml = "add", .inputs = {{"x", {8}}, {"y", {8}}}, .fused = spec});
    expected.clear();
    for (size_t i = 0; i < 16; ++i) expected.push_back(function(double{sum.inputs[0][i]} + sum.inputs[1][i]));
    check_values(sum.forward(), expected);
  }
}

TEST_CASE("prelu has an alpha for each element, or for all along an axis") {
  const auto run = [](const char* yaml, Values alpha) {
    LayerRun layer({.yaml = yaml, .inputs = {{"x", {2, 2}}}, .batch = 2});
    layer.inputs = {{-1, 2, -3, -4, 5, -6, 0, -8}};
    layer.parameters = {std::move(alpha)};
    return layer.forward();
  };
  CHECK(run("prelu", {1, 10, 2, 0.5}) == Values{-1, 2, -6, -2, 5, -60, 0, -4});
  CHECK(run("prelu: {shared_axes: 1}", {10, 0.5}) == Values{-10, 2, -30, -2, 5, -3, 0, -4});
  CHECK(run("prelu: {shared_axes: [2]}", {10, 0.5}) == Values{-10, 2, -1.5, -2, 5, -60, 0, -4});
  CHECK(run("prelu: {shared_axes: [1, 2]}", {0.5}) == Values{-0.5, 2, -1.5, -2, 5, -3, 0, -4});
}

TEST_CASE("where prelu's input is 0, its gradients are 0") {
  LayerRun layer({.yaml = "prelu", .inputs = {{"x", {3}}}, .batch = 1});
  layer.inputs = {{-2, 0, 2}};
  layer.parameters = {{0.5, 0.5, 0.5}};
  layer.forward();
  const LayerRun::Gradients gradients = layer.backward(Values{1, 1, 1});
  CHECK(gradients.inputs[0] == Values{0.5, 0, 1});
  CHECK(gradients.parameters[0] == Values{-2, 0, 0});
}

TEST_CASE("softmax is over the last axis") {
  LayerRun run({"activation: softmax", {{"x", {2, 3}}}});
  Doubles expected;
  for (size_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) sum += std::exp(run.inputs[0][r * 3 + c]);
    for (size_t c = 0; c < 3; ++c) expected.push_back(std::exp(run.inputs[0][r * 3 + c]) / sum);
  }
  check_values(run.forward(), expected);
}

TEST_CASE("dropout drops its rate, scales the rest, and does nothing at inference") {
  LayerCase c{"dropout: {rate: 0.25}", {{"x", {5000}}}};
  c.low = 1, c.high = 2;
  LayerRun run(c);
  const Values output = run.forward();
  size_t dropped = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i] == 0)
      ++dropped;
    else
      REQUIRE(output[i] == doctest::Approx(run.inputs[0][i] / 0.75));
  }
  CHECK(dropped == doctest::Approx(2500).epsilon(0.06));
  c.training = false;
  LayerRun inference(c);
  CHECK(inference.requirements().is_view);
  CHECK(inference.forward() == inference.inputs[0]);
}

TEST_CASE("multiply, concatenate, padding, cropping, reshape and embedding move and combine elements") {
  LayerRun product({.yaml = "multiply", .inputs = {{"x", {2}}, {"y", {2}}}, .batch = 1});
  product.inputs = {{2, 3}, {5, -7}};
  CHECK(product.forward() == Values{10, -21});

  LayerRun less({.yaml = "subtract", .inputs = {{"x", {2}}, {"y", {2}}}, .batch = 1});
  less.inputs = {{2, 3}, {5, -7}};
  CHECK(less.forward() == Values{-3, 10});
  const auto merged = [](const char* kind) {
    LayerRun run({.yaml = kind, .inputs = {{"x", {3}}, {"y", {3}}, {"z", {3}}}, .batch = 1});
    run.inputs = {{1, 5, -3}, {2, 5, -6}, {6, -1, 0}};
    return run.forward();
  };
  CHECK(merged("average") == Values{3, 3, -3});
  CHECK(merged("maximum") == Values{6, 5, 0});
  CHECK(merged("minimum") == Values{1, -1, -6});

  LayerRun turned({.yaml = "permute: [2, 1]", .inputs = {{"x", {2, 3}}}, .batch = 2});
  turned.inputs = {{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  CHECK(turned.output.shape == Shape{3, 2});
  CHECK(turned.forward() == Values{1, 4, 2, 5, 3, 6, 11, 14, 12, 15, 13, 16});

  LayerRun repeated({.yaml = "repeat_vector: 2", .inputs = {{"x", {2}}}, .batch = 2});
  repeated.inputs = {{1, 2, 3, 4}};
  CHECK(repeated.forward() == Values{1, 2, 1, 2, 3, 4, 3, 4});

  LayerRun larger({.yaml = "upsampling2d: [2, 3]", .inputs = {{"x", {1, 2, 1}}}, .batch = 2});
  larger.inputs = {{1, 2, 3, 4}};
  CHECK(larger.output.shape == Shape{2, 6, 1});
  CHECK(larger.forward() == Values{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});

  LayerRun between({.yaml = "upsampling2d: {size: [1, 2], interpolation: bilinear}",
                    .inputs = {{"x", {1, 2, 1}}},
                    .batch = 2});
  between.inputs = {{1, 5, 3, 4}};
  CHECK(between.output.shape == Shape{1, 4, 1});
  CHECK(between.forward() == Values{1, 2, 4, 5, 3, 3.25, 3.75, 4});

  LayerRun deeper({.yaml = "upsampling3d: [2, 1, 2]", .inputs = {{"x", {1, 1, 2, 1}}}, .batch = 2});
  deeper.inputs = {{1, 2, 3, 4}};
  CHECK(deeper.output.shape == Shape{2, 1, 4, 1});
  CHECK(deeper.forward() == Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  LayerRun framed(
      {.yaml = "zero_padding3d: [[1, 0], [0, 1], [1, 0]]", .inputs = {{"x", {1, 1, 2, 1}}}, .batch = 1});
  framed.inputs = {{1, 2}};
  CHECK(framed.output.shape == Shape{2, 2, 3, 1});
  CHECK(framed.forward() == Values{0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0});
  LayerRun cut({.yaml = "cropping3d: [[1, 0], [0, 1], [1, 0]]", .inputs = {{"x", {2, 2, 3, 1}}}, .batch = 1});
  cut.inputs = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  CHECK(cut.output.shape == Shape{1, 1, 2, 1});
  CHECK(cut.forward() == Values{8, 9});

  LayerRun filtered(
      {.yaml = "conv1d: {filters: 1, kernel_size: 2, strides: 2}", .inputs = {{"x", {5, 1}}}, .batch = 1});
  filtered.inputs = {{1, 2, 3, 4, 5}};
  filtered.parameters = {{10, 1}, {0.5}};
  CHECK(filtered.parameter_specs[0].shape == Shape{2, 1, 1});
  CHECK(filtered.output.shape == Shape{2, 1});
  CHECK(filtered.forward() == Values{12.5, 34.5});
  LayerRun causal({.yaml = "conv1d: {filters: 1, kernel_size: 2, dilation_rate: 2, padding: causal}",
                   .inputs = {{"x", {4, 1}}},
                   .batch = 1});
  causal.inputs = {{1, 2, 3, 4}};
  causal.parameters = {{10, 1}, {0.5}};
  CHECK(causal.forward() == Values{1.5, 2.5, 13.5, 24.5});
  LayerRun longest({.yaml = "max_pooling1d", .inputs = {{"x", {5, 1}}}, .batch = 1});
  longest.inputs = {{1, 2, 4, 3, 9}};
  CHECK(longest.forward() == Values{2, 4});
  LayerRun ends({.yaml = "zero_padding1d: [2, 1]", .inputs = {{"x", {2, 1}}}, .batch = 1});
  ends.inputs = {{3, 4}};
  CHECK(ends.forward() == Values{0, 0, 3, 4, 0});

  LayerRun joined({"concatenate: {axis: -2}", {{"x", {1, 2}}, {"y", {2, 2}}}});
  joined.inputs = {{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10, 11, 12}};
  CHECK(joined.forward() == Values{1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12});

  LayerRun padded({.yaml = "zero_padding2d: [[1, 0], [0, 2]]", .inputs = {{"x", {1, 2, 1}}}, .batch = 1});
  padded.inputs = {{3, 4}};
  CHECK(padded.forward() == Values{0, 0, 0, 0, 3, 4, 0, 0});

  LayerRun cropped({.yaml = "cropping2d: [[1, 0], [0, 2]]", .inputs = {{"x", {2, 4, 1}}}, .batch = 2});
  cropped.inputs = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  CHECK(cropped.forward() == Values{5, 6, 13, 14});

  LayerRun shaped({"reshape: {target_shape: [-1, 2]}", {{"x", {6}}}});
  CHECK(shaped.output.shape == Shape{3, 2});
  CHECK(shaped.forward() == shaped.inputs[0]);

  LayerRun table({"embedding: {input_dim: 3, output_dim: 2}", {{"x", {2}, DType::int32}}});
  table.inputs = {{2, 0, 1, 2}};
  table.parameters = {{10, 11, 20, 21, 30, 31}};
  CHECK(table.output.shape == Shape{2, 2});
  CHECK(table.forward() == Values{30, 31, 10, 11, 20, 21, 30, 31});
}

TEST_CASE("of equal inputs, the first has the gradient of the largest and of the smallest") {
  for (const char* kind : {"maximum", "minimum"}) {
    LayerRun run({.yaml = kind, .inputs = {{"x", {2}}, {"y", {2}}, {"z", {2}}}, .batch = 1});
    run.inputs = {{4, 1}, {4, 7}, {4, 7}};
    run.forward();
    const auto gradients = run.backward(Values{1, 1}).inputs;
    const bool largest = std::string(kind) == "maximum";
    CHECK(gradients[0] == (largest ? Values{1, 0} : Values{1, 1}));
    CHECK(gradients[1] == (largest ? Values{0, 1} : Values{0, 0}));
    CHECK(gradients[2] == Values{0, 0});
  }
}

TEST_CASE("separable_conv2d is a depthwise convolution and one of 1x1") {
  for (const char* options : {"{kernel_size: 3, padding: same, filters: 5, depth_multiplier: 2}",
                              "{kernel_size: [2, 3], strides: 2, filters: 16}"}) {
    CAPTURE(options);
    LayerRun whole(
        {.yaml = std::string("separable_conv2d: ") + options, .inputs = {{"x", {7, 6, 16}}}, .batch = 2});
    const bool is_first = std::string(options).find("same") != std::string::npos;
    LayerRun depthwise({.yaml = is_first
                                    ? "depthwise_conv2d: {kernel_size: 3, padding: same, depth_multiplier: 2}"
                                    : "depthwise_conv2d: {kernel_size: [2, 3], strides: 2}",
                        .inputs = {{"x", {7, 6, 16}}},
                        .batch = 2});
    depthwise.inputs = whole.inputs;
    depthwise.parameters = {whole.parameters[0],
                            Values(static_cast<size_t>(depthwise.output.shape[2]), 0.0f)};
    LayerRun pointwise(
        {.yaml = is_first ? "conv2d: {kernel_size: 1, filters: 5}" : "conv2d: {kernel_size: 1, filters: 16}",
         .inputs = {{"x", depthwise.output.shape}},
         .batch = 2});
    pointwise.inputs = {depthwise.forward()};
    pointwise.parameters = {whole.parameters[1], whole.parameters[2]};
    const Values found = whole.forward(), expected = pointwise.forward();
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

}  // namespace dtrain
