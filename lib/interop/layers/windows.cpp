#include "interop/layers/windows.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

namespace {

Window window_with(const Json& options, const char* size, const Shape& image) {
  Window window;
  window.size = size_of(options.at(size), image);
  window.strides = options.at("strides").is_null() ? window.size : size_of(options.at("strides"), image);
  window.border = border_of(options);
  return window;
}

bool is_volume(const Shape& image) {
  return image.rank() == 4;
}

}  // namespace

Size3 size_of(const Json& written, const Shape& image) {
  const auto number = [&](size_t i) {
    return written.is_array() ? written.items().at(i).as_int() : written.as_int();
  };
  if (is_volume(image)) return {number(0), number(1), number(2)};
  return Size2{number(0), number(1)};
}

Border border_of(const Json& options) {
  const std::string& name = options.at("padding").as_string();
  return name == "same" ? Border::same : name == "causal" ? Border::causal : Border::valid;
}

Padding3 sides_of(const Json& written) {
  const Json::Array& axes = written.items();
  const auto side = [&](size_t from_end, size_t i) {
    return from_end <= axes.size() ? axes[axes.size() - from_end].items()[i].as_int() : 0;
  };
  return {side(2, 0), side(2, 1), side(1, 0), side(1, 1), side(3, 0), side(3, 1)};
}

Window convolution_window(const Json& options, const Shape& image) {
  Window window = window_with(options, "kernel_size", image);
  window.dilation = size_of(options.at("dilation_rate"), image);
  return window;
}

int64_t groups_of_convolution(const Json& options) {
  const Json* const groups = options.find("groups");  // options are written without `groups: 1`
  return groups ? groups->as_int() : 1;
}

std::string torch_groups(const Json& options) {
  const int64_t groups = groups_of_convolution(options);
  return groups > 1 ? fmt::format(", groups={}", groups) : "";
}

Window pooling_window(const Json& options, const Shape& image) {
  return window_with(options, "pool_size", image);
}

std::vector<int64_t> axes_of(const Size3& size, const Shape& image) {
  if (is_volume(image)) return {size.depth, size.height, size.width};
  return {size.height, size.width};
}

std::vector<int64_t> pads_of(const Padding3& sides, const Shape& image) {
  std::vector<int64_t> ends = axes_of({sides.front, sides.top, sides.left}, image);
  const std::vector<int64_t> after = axes_of({sides.back, sides.bottom, sides.right}, image);
  ends.insert(ends.end(), after.begin(), after.end());
  return ends;
}

std::string dimensions_of(const Shape& image) {
  return is_volume(image) ? "3d" : "2d";
}

TransposePadding transpose_padding(const Window& window, const Shape& input, const Shape& output) {
  TransposePadding result;
  result.cut = padding_of(window, output);
  const Size3 size = spread(window);
  const auto settle = [](int64_t whole, int64_t wanted, int64_t before, int64_t& after, int64_t& extra) {
    const int64_t left = whole - before - wanted;
    after = std::max<int64_t>(left, 0);
    extra = std::max<int64_t>(-left, 0);
  };
  settle((input[0] - 1) * window.strides.height + size.height, output[0], result.cut.top, result.cut.bottom,
         result.extra.height);
  settle((input[1] - 1) * window.strides.width + size.width, output[1], result.cut.left, result.cut.right,
         result.extra.width);
  return result;
}

}  // namespace dtrain
