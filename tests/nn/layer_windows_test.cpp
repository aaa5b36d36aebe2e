// Compares the outputs of convolutions and poolings with plain double-precision formulas.
#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {
namespace {

/// Images of shape [batch, height, width, channels]; pixels outside the images are zero.
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

/// Checks a transposed convolution. The reference multiplies the kernel, of shape [size_y, size_x, filters,
/// channels], by each input pixel, and adds the products to the output.
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

/// The window of a 3-D layer. The elements of each array are depth, height and width.
struct VolumeWindow {
  std::array<int64_t, 3> size, strides{1, 1, 1}, dilation{1, 1, 1}, before{};
};
enum class Volumes { convolved, max, mean };

/// Checks a convolution or a pooling of two volumes of shape [5, 3, 4, 2]. The kernel of the convolution has
/// the shape [depth, height, width, channels, filters].
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

}  // namespace

TEST_CASE("convolutions match a plain loop with TensorFlow's padding") {
  check_convolution("conv2d: {filters: 4, kernel_size: 3}", {.size_y = 3, .size_x = 3});
  check_convolution("conv2d: {filters: 4, kernel_size: [3, 2], dilation_rate: 2, use_bias: false}",
                    {.size_y = 3, .size_x = 2, .dilation = 2});
  check_convolution("conv2d: {filters: 2, kernel_size: 4, padding: same}",
                    {.size_y = 4, .size_x = 4, .top = 1, .left = 1});
  // With stride 2, 7 rows get one row of padding at the top and one at the bottom. 6 columns get one column
  // of padding on the right.
  check_convolution("conv2d: {filters: 2, kernel_size: 3, strides: 2, padding: same}",
                    {.size_y = 3, .size_x = 3, .stride = 2, .top = 1});
  check_convolution("depthwise_conv2d: {kernel_size: 2}", {.size_y = 2, .size_x = 2}, true);
  check_convolution("depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2, padding: same}",
                    {.size_y = 3, .size_x = 3, .top = 1, .left = 1}, true);
}

TEST_CASE("transposed convolutions match a plain loop") {
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: 3, strides: 2}",
                  {.size_y = 3, .size_x = 3, .stride = 2});
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: [2, 1], strides: 3}",
                  {.size_y = 2, .size_x = 1, .stride = 3});
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: 3, strides: 2, padding: same}",
                  {.size_y = 3, .size_x = 3, .stride = 2});
  check_transpose("conv2d_transpose: {filters: 3, kernel_size: 3, padding: same}",
                  {.size_y = 3, .size_x = 3, .top = 1, .left = 1});
}

TEST_CASE("poolings match a plain loop") {
  check_pooling("max_pooling2d", {.size_y = 2, .size_x = 2, .stride = 2}, true);
  check_pooling("max_pooling2d: {pool_size: 3, strides: 2, padding: same}",
                {.size_y = 3, .size_x = 3, .stride = 2, .top = 1}, true);
  check_pooling("average_pooling2d: {pool_size: [3, 2], strides: 1}", {.size_y = 3, .size_x = 2}, false);
  check_pooling("average_pooling2d: {pool_size: 3, strides: 2, padding: same}",
                {.size_y = 3, .size_x = 3, .stride = 2, .top = 1}, false);
  check_pooling("global_max_pooling2d", {.size_y = 7, .size_x = 6}, true);
  check_pooling("global_average_pooling2d: {keepdims: true}", {.size_y = 7, .size_x = 6}, false);
}

TEST_CASE("volume convolutions and poolings match a plain loop with TensorFlow's padding") {
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

TEST_CASE("conv1d_transpose adds the kernel at every position of the output that an input reaches") {
  LayerRun run({.yaml = "conv1d_transpose: {filters: 1, kernel_size: 3, strides: 2}",
                .inputs = {{"x", {2, 1}}},
                .batch = 1});
  run.inputs = {{2, 3}};
  run.parameters = {{1, 10, 100}, {0.5f}};
  check_values(run.forward(), {2.5, 20.5, 203.5, 30.5, 300.5});
}

TEST_CASE("conv1d and max_pooling1d match a plain loop over sequences") {
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
}

/// Returns the columns [first, first + count) of a matrix with this number of columns.
Values columns_of(const Values& matrix, int64_t columns, int64_t first, int64_t count) {
  Values part;
  for (int64_t i = 0; i < static_cast<int64_t>(matrix.size()); ++i)
    if (i % columns >= first && i % columns < first + count) part.push_back(matrix[static_cast<size_t>(i)]);
  return part;
}

/// Checks that a convolution with groups gives the outputs and gradients of separate convolutions of the
/// groups. `options`: the options except for filters and groups.
void check_groups(const std::string& kind, const std::string& options, const Shape& input, int64_t filters,
                  int64_t groups) {
  const auto yaml = [&](int64_t count, const std::string& further) {
    return kind + ": {filters: " + std::to_string(count) + ", " + options + further + "}";
  };
  INFO(yaml(filters, ", groups: " + std::to_string(groups)));
  LayerRun whole({yaml(filters, ", groups: " + std::to_string(groups)), {{"x", input}}});
  const Values output = whole.forward();
  const Values diff = spread_values(whole.output_elements(), -1, 1, 9);
  const LayerRun::Gradients gradients = whole.backward(diff);
  const int64_t channels = input.back() / groups, own_filters = filters / groups;
  CHECK(whole.parameter_specs[0].shape[whole.parameter_specs[0].shape.rank() - 2] == channels);
  const auto as_doubles = [](const Values& values) { return Doubles(values.begin(), values.end()); };
  for (int64_t g = 0; g < groups; ++g) {
    CAPTURE(g);
    const auto of_filters = [&](const Values& values) {
      return columns_of(values, filters, g * own_filters, own_filters);
    };
    const auto of_channels = [&](const Values& values) {
      return columns_of(values, input.back(), g * channels, channels);
    };
    Shape part = input;
    part[part.rank() - 1] = channels;
    LayerRun one({yaml(own_filters, ""), {{"x", part}}});
    one.inputs = {of_channels(whole.inputs[0])};
    one.parameters.clear();
    for (const Values& parameter : whole.parameters) one.parameters.push_back(of_filters(parameter));
    check_values(of_filters(output), as_doubles(one.forward()));
    const LayerRun::Gradients own = one.backward(of_filters(diff));
    check_values(of_channels(gradients.inputs[0]), as_doubles(own.inputs[0]));
    for (size_t i = 0; i < own.parameters.size(); ++i)
      check_values(of_filters(gradients.parameters[i]), as_doubles(own.parameters[i]));
  }
}

TEST_CASE("convolutions with groups are separate convolutions of the groups") {
  check_groups("conv2d", "kernel_size: 3", Shape{7, 6, 4}, 6, 2);
  check_groups("conv2d", "kernel_size: [3, 2], strides: 2, padding: same", Shape{7, 6, 9}, 6, 3);
  check_groups("conv2d", "kernel_size: 3, dilation_rate: 2, use_bias: false", Shape{7, 6, 32}, 64, 2);
  check_groups("conv2d", "kernel_size: 1", Shape{5, 4, 32}, 32, 4);
  check_groups("conv2d", "kernel_size: 3, padding: same", Shape{7, 6, 5}, 10, 5);
  check_groups("conv1d", "kernel_size: 3, padding: causal", Shape{9, 4}, 8, 2);
  check_groups("conv1d", "kernel_size: 2, strides: 2", Shape{9, 16}, 16, 16);
  check_groups("conv3d", "kernel_size: [3, 2, 1], padding: same", Shape{4, 5, 3, 4}, 6, 2);
  check_groups("conv3d", "kernel_size: 2, strides: 2", Shape{4, 5, 4, 32}, 32, 2);
  check_groups("conv3d", "kernel_size: 2", Shape{4, 3, 4, 3}, 3, 3);
}

TEST_CASE("convolutions with one group have the same bits with and without the option") {
  const LayerCase plain{"conv2d: {filters: 5, kernel_size: 3}", {{"x", {7, 6, 3}}}};
  LayerCase grouped = plain;
  grouped.yaml = "conv2d: {filters: 5, kernel_size: 3, groups: 1}";
  CHECK(LayerRun(plain).forward() == LayerRun(grouped).forward());
}

TEST_CASE("separable_conv2d is a depthwise convolution followed by a 1x1 convolution") {
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

}  // namespace dtrain::test
