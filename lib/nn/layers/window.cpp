#include "nn/layers/window.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

Size2 spread(const Window& window) {
  return {window.dilation.height * (window.size.height - 1) + 1,
          window.dilation.width * (window.size.width - 1) + 1};
}

Padding2 padding_of(const Window& window, const Shape& image) {
  const Size2 size = spread(window);
  if (window.border == Border::valid) return {};
  if (window.border == Border::causal) return {size.height - 1, 0, size.width - 1, 0};
  const auto total = [](int64_t extent, int64_t size, int64_t stride) {
    const int64_t windows = (extent + stride - 1) / stride;
    return std::max<int64_t>((windows - 1) * stride + size - extent, 0);
  };
  const int64_t rows = total(image[0], size.height, window.strides.height);
  const int64_t columns = total(image[1], size.width, window.strides.width);
  return {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2};
}

Shape window_positions(const Window& window, const Shape& image, int64_t channels) {
  const Size2 size = spread(window);
  const Padding2 padding = padding_of(window, image);
  return {(image[0] + padding.top + padding.bottom - size.height) / window.strides.height + 1,
          (image[1] + padding.left + padding.right - size.width) / window.strides.width + 1, channels};
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
  Padding2& padding = result.padding;
  trim(image[0], window.strides.height, result.size.height, padding.top, padding.bottom);
  trim(image[1], window.strides.width, result.size.width, padding.left, padding.right);
  return result;
}

bool spreads_too_far(const Window& window, const std::string& option, const ReportError& report_error) {
  constexpr int64_t kMost = 1 << 20;
  const Size2 size = spread(window);
  if (size.height <= kMost && size.width <= kMost) return false;
  report_error(fmt::format("{} {} with dilation_rate {} reaches over {}; at most {} are possible", option,
                           str(window.size), str(window.dilation), str(size), kMost));
  return true;
}

bool fits(const Window& window, const std::string& option, const TensorSpec& image,
          const ReportError& report_error) {
  const Size2 size = spread(window);
  if (window.border != Border::valid || (size.height <= image.shape[0] && size.width <= image.shape[1]))
    return true;
  const std::string spread_out = size == window.size ? "" : fmt::format(", spread out over {},", str(size));
  report_error(fmt::format("{} {}{} is larger than its input {}", option, str(window.size), spread_out,
                           image.shape.str()));
  return false;
}

std::string str(const Size2& size) {
  return fmt::format("{}x{}", size.height, size.width);
}

}  // namespace dtrain
