// Operators that slide a window over images with one, two or three spatial axes, channels first.
#include <algorithm>
#include <cstddef>
#include <limits>

#include "interop/onnx/operators.h"

namespace dtrain {

namespace {

/// A window along one axis of an image.
struct Axis {
  int64_t in = 1, out = 1, size = 1, stride = 1, dilation = 1, before = 0;

  /// Returns the position in the image that element k of the window reads to compute position `at` of the
  /// output. Returns -1 if this position is outside the image.
  int64_t source(int64_t at, int64_t k) const {
    const int64_t place = at * stride - before + k * dilation;
    return place < 0 || place >= in ? -1 : place;
  }
};

/// The axes along which a window moves. A 2-D image is treated as one plane. A sequence is treated as one
/// plane with one row.
struct Axes {
  Axis planes, rows, columns;
  int64_t in() const { return planes.in * rows.in * columns.in; }
  int64_t out() const { return planes.out * rows.out * columns.out; }
  /// Returns the number of elements of the window.
  int64_t size() const { return planes.size * rows.size * columns.size; }
};

int64_t attribute_or(const std::vector<int64_t>& values, size_t at, int64_t otherwise) {
  return at < values.size() ? values[at] : otherwise;
}

/// Returns the axes of a window that moves over the call's input, as the node's attributes describe it. If
/// the attribute kernel_shape is missing, the window has the size of `kernel`.
Axes window_axes(const OnnxCall& call, const Shape& kernel, bool is_transposed) {
  const Shape& image = call.input(0).shape;
  const size_t rank = image.rank() - 2;
  const auto strides = call.integers("strides"), dilations = call.integers("dilations");
  const auto pads = call.integers("pads"), sizes = call.integers("kernel_shape");
  const auto extra = call.integers("output_padding");
  const auto axis = [&](size_t i) {
    Axis one;
    one.in = image[i + 2];
    one.size = sizes.empty() ? kernel[i + 2] : sizes[i];
    one.stride = attribute_or(strides, i, 1);
    one.dilation = attribute_or(dilations, i, 1);
    one.before = attribute_or(pads, i, 0);
    const int64_t after = attribute_or(pads, i + rank, 0), spread = one.dilation * (one.size - 1) + 1;
    one.out = is_transposed
                  ? (one.in - 1) * one.stride + spread - one.before - after + attribute_or(extra, i, 0)
                  : (one.in + one.before + after - spread) / one.stride + 1;
    return one;
  };
  Axes axes;
  axes.columns = axis(rank - 1);
  if (rank > 1) axes.rows = axis(rank - 2);
  if (rank > 2) axes.planes = axis(rank - 3);
  return axes;
}

Shape shape_with(const OnnxCall& call, const Axes& axes, int64_t channels) {
  const Shape& image = call.input(0).shape;
  std::vector<int64_t> extents = {image[0], channels};
  if (image.rank() > 4) extents.push_back(axes.planes.out);
  if (image.rank() > 3) extents.push_back(axes.rows.out);
  extents.push_back(axes.columns.out);
  return Shape(extents);
}

/// Calls add(to, from) for every output pixel `to` for which element `k` of the window is inside the input.
/// `from` is the index of the input pixel that this element reads.
template <class Add>
void for_each_pixel(const Axes& axes, int64_t k, Add&& add) {
  const auto& [planes, rows, columns] = axes;
  const int64_t c = k % columns.size, r = k / columns.size % rows.size, p = k / columns.size / rows.size;
  for (int64_t line = 0; line < planes.out * rows.out; ++line) {
    const int64_t plane = planes.source(line / rows.out, p), row = rows.source(line % rows.out, r);
    if (plane < 0 || row < 0) continue;
    for (int64_t j = 0; j < columns.out; ++j) {
      const int64_t column = columns.source(j, c);
      if (column >= 0) add(line * columns.out + j, (plane * rows.in + row) * columns.in + column);
    }
  }
}

void add_bias(const OnnxCall& call, OnnxArray& result, int64_t pixels) {
  if (!call.has_input(2)) return;
  const std::vector<float>& bias = call.input(2).values;
  for (size_t i = 0; i < result.values.size(); ++i)
    result.values[i] += bias[i / static_cast<size_t>(pixels) % bias.size()];
}

OnnxArray convolution(const OnnxCall& call) {
  const OnnxArray &image = call.input(0), &kernel = call.input(1);
  const Axes axes = window_axes(call, kernel.shape, false);
  const int64_t groups = call.integer("group", 1), filters = kernel.shape[0], channels = kernel.shape[1];
  OnnxArray result(shape_with(call, axes, filters));
  for (int64_t n = 0; n < image.shape[0]; ++n)
    for (int64_t f = 0; f < filters; ++f) {
      float* to = result.values.data() + (n * filters + f) * axes.out();
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t channel = f / (filters / groups) * channels + c;
        const float* from = image.values.data() + (n * channels * groups + channel) * axes.in();
        const float* weights = kernel.values.data() + (f * channels + c) * axes.size();
        for (int64_t k = 0; k < axes.size(); ++k)
          for_each_pixel(axes, k, [&](int64_t a, int64_t b) { to[a] += weights[k] * from[b]; });
      }
    }
  add_bias(call, result, axes.out());
  return result;
}

OnnxArray transposed_convolution(const OnnxCall& call) {
  const OnnxArray &image = call.input(0), &kernel = call.input(1);
  const Axes axes = window_axes(call, kernel.shape, true);
  const int64_t channels = kernel.shape[0], filters = kernel.shape[1];
  OnnxArray result(shape_with(call, axes, filters));
  // A transposed convolution computes the gradient of an ordinary convolution with respect to its input. The
  // input of the ordinary convolution has the shape of the output of the transposed convolution.
  Axes back = axes;
  std::swap(back.planes.in, back.planes.out);
  std::swap(back.rows.in, back.rows.out);
  std::swap(back.columns.in, back.columns.out);
  for (int64_t n = 0; n < image.shape[0]; ++n)
    for (int64_t c = 0; c < channels; ++c) {
      const float* from = image.values.data() + (n * channels + c) * axes.in();
      for (int64_t f = 0; f < filters; ++f) {
        float* to = result.values.data() + (n * filters + f) * axes.out();
        const float* weights = kernel.values.data() + (c * filters + f) * axes.size();
        for (int64_t k = 0; k < axes.size(); ++k)
          for_each_pixel(back, k, [&](int64_t a, int64_t b) { to[b] += weights[k] * from[a]; });
      }
    }
  add_bias(call, result, axes.out());
  return result;
}

/// Computes the maximum or the mean of the pixels under each window. Padding is not included.
OnnxArray pooling(const OnnxCall& call, bool is_max) {
  const OnnxArray& image = call.input(0);
  const Axes axes = window_axes(call, {}, false);
  OnnxArray result(shape_with(call, axes, image.shape[1]));
  std::vector<float> counts(static_cast<size_t>(axes.out()));
  for (int64_t k = 0; k < axes.size(); ++k)
    for_each_pixel(axes, k, [&](int64_t to, int64_t) { ++counts[static_cast<size_t>(to)]; });
  if (is_max) std::fill(result.values.begin(), result.values.end(), -std::numeric_limits<float>::infinity());
  for (int64_t n = 0; n < image.shape[0] * image.shape[1]; ++n) {
    float* to = result.values.data() + n * axes.out();
    const float* from = image.values.data() + n * axes.in();
    for (int64_t k = 0; k < axes.size(); ++k)
      for_each_pixel(axes, k, [&](int64_t a, int64_t b) {
        to[a] = is_max ? (from[b] > to[a] ? from[b] : to[a]) : to[a] + from[b];
      });
    if (!is_max)
      for (int64_t i = 0; i < axes.out(); ++i) to[i] /= counts[static_cast<size_t>(i)];
  }
  return result;
}

OnnxArray global_pooling(const OnnxCall& call, bool is_max) {
  const OnnxArray& image = call.input(0);
  Shape shape = image.shape;
  for (size_t i = 2; i < shape.rank(); ++i) shape[i] = 1;
  OnnxArray result(shape);
  const size_t pixels = image.values.size() / result.values.size();
  for (size_t i = 0; i < result.values.size(); ++i) {
    const auto first = image.values.begin() + static_cast<ptrdiff_t>(i * pixels);
    double sum = 0;
    for (auto value = first; value != first + static_cast<ptrdiff_t>(pixels); ++value)
      sum += static_cast<double>(*value);
    result.values[i] = is_max ? *std::max_element(first, first + static_cast<ptrdiff_t>(pixels))
                              : static_cast<float>(sum / static_cast<double>(pixels));
  }
  return result;
}

}  // namespace

void add_onnx_windows(std::vector<std::pair<std::string, OnnxOperator>>& table) {
  table.emplace_back("Conv", convolution);
  table.emplace_back("ConvTranspose", transposed_convolution);
  table.emplace_back("MaxPool", [](const OnnxCall& call) { return pooling(call, true); });
  table.emplace_back("AveragePool", [](const OnnxCall& call) { return pooling(call, false); });
  table.emplace_back("GlobalMaxPool", [](const OnnxCall& call) { return global_pooling(call, true); });
  table.emplace_back("GlobalAveragePool", [](const OnnxCall& call) { return global_pooling(call, false); });
}

}  // namespace dtrain
