#include "nn/layers/window.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

Size3 extents_of(const Shape& image) {
  const size_t rank = image.rank();
  return {rank == 4 ? image[0] : 1, image[rank - 3], image[rank - 2]};
}

Size3 spread(const Window& window) {
  const auto& [size, strides, dilation, border] = window;
  return {dilation.depth * (size.depth - 1) + 1, dilation.height * (size.height - 1) + 1,
          dilation.width * (size.width - 1) + 1};
}

Padding3 padding_of(const Window& window, const Shape& image) {
  if (window.border == Border::valid) return {};
  const Size3 size = spread(window), extents = extents_of(image);
  if (window.border == Border::causal) return {0, 0, size.width - 1, 0};
  const auto total = [](int64_t extent, int64_t window_size, int64_t stride) {
    const int64_t windows = (extent + stride - 1) / stride;
    return std::max<int64_t>((windows - 1) * stride + window_size - extent, 0);
  };
  const int64_t planes = total(extents.depth, size.depth, window.strides.depth);
  const int64_t rows = total(extents.height, size.height, window.strides.height);
  const int64_t columns = total(extents.width, size.width, window.strides.width);
  return {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2, planes / 2, planes - planes / 2};
}

Shape window_positions(const Window& window, const Shape& image, int64_t channels) {
  const Size3 size = spread(window), extents = extents_of(image);
  const Padding3 padding = padding_of(window, image);
  const int64_t planes =
      (extents.depth + padding.front + padding.back - size.depth) / window.strides.depth + 1;
  const int64_t rows =
      (extents.height + padding.top + padding.bottom - size.height) / window.strides.height + 1;
  const int64_t columns =
      (extents.width + padding.left + padding.right - size.width) / window.strides.width + 1;
  return image.rank() == 4 ? Shape{planes, rows, columns, channels} : Shape{rows, columns, channels};
}

TrimmedWindow trimmed(const Window& window, const Shape& image) {
  TrimmedWindow result{window.size, padding_of(window, image)};
  const auto trim = [](int64_t extent, int64_t stride, int64_t& size, int64_t& before, int64_t& after) {
    const int64_t last_start = (extent + before + after - size) / stride * stride;
    const int64_t front = std::max<int64_t>(before - last_start, 0),
                  back = std::max<int64_t>(size - before - extent, 0);
    size -= front + back;
    before -= front;
    after -= back;
  };
  Padding3& padding = result.padding;
  const Size3 extents = extents_of(image);
  trim(extents.depth, window.strides.depth, result.size.depth, padding.front, padding.back);
  trim(extents.height, window.strides.height, result.size.height, padding.top, padding.bottom);
  trim(extents.width, window.strides.width, result.size.width, padding.left, padding.right);
  return result;
}

bool spreads_too_far(const Window& window, const std::string& option, const TensorSpec& image,
                     const ReportError& report_error) {
  constexpr int64_t kMost = 1 << 20;
  const Size3 size = spread(window);
  if (size.depth <= kMost && size.height <= kMost && size.width <= kMost) return false;
  const auto shown = [&](const Size3& some) { return str(some, image.shape); };
  report_error(fmt::format(
      "{} {} with dilation_rate {} spans {} elements, but at most {} elements are supported along an axis",
      option, shown(window.size), shown(window.dilation), shown(size), kMost));
  return true;
}

bool fits(const Window& window, const std::string& option, const TensorSpec& image,
          const ReportError& report_error) {
  const Size3 size = spread(window), extents = extents_of(image.shape);
  if (window.border != Border::valid ||
      (size.depth <= extents.depth && size.height <= extents.height && size.width <= extents.width))
    return true;
  const auto shown = [&](const Size3& some) { return str(some, image.shape); };
  const std::string spread_out = size == window.size ? "" : fmt::format(", dilated to {},", shown(size));
  report_error(fmt::format("{} {}{} is larger than its input {}", option, shown(window.size), spread_out,
                           image.shape.str()));
  return false;
}

std::string str(const Size2& size) {
  return fmt::format("{}x{}", size.height, size.width);
}

std::string str(const Size3& size, const Shape& image) {
  const std::string plane = str({size.height, size.width});
  return image.rank() == 4 ? fmt::format("{}x{}", size.depth, plane) : plane;
}

}  // namespace dtrain
