// Windows that slide over images: borders and the extents that follow, as TensorFlow has them.
#pragma once

#include <string>

#include "config/codec.h"
#include "nn/layer.h"
#include "ops/specs.h"

namespace dtrain {

/// With `valid`, windows lie inside the image. With `same` there are ceil(extent / stride) windows and zeros
/// around the image, where the odd row and column of zeros are at the bottom and right. With `causal` all
/// zeros are at the top and left, as many as the window reaches back: no window sees what comes after its
/// place. No option of images is called so.
enum class Border { valid, same, causal };
template <>
inline const EnumNames<Border> names_of<Border> = {{Border::valid, "valid"}, {Border::same, "same"}};

struct Window {
  Size2 size;
  Size2 strides;
  Size2 dilation;
  Border border = Border::valid;
};

/// The window's extent on the image, holes included.
Size2 spread(const Window& window);
/// The padding of an image of [height, width, ...]; no side's is negative.
Padding2 padding_of(const Window& window, const Shape& image);
/// The shape [rows, columns, channels] that has a pixel for every place of the window, which must fit.
Shape window_positions(const Window& window, const Shape& image, int64_t channels);
/// A window, and the padding of its image, without what lies outside of the image wherever the window stands.
struct TrimmedWindow {
  Size2 size;
  Padding2 padding;
};
TrimmedWindow trimmed(const Window& window, const Shape& image);
/// Whether a kernel's elements are further apart than convolutions can take; reports an error then.
bool spreads_too_far(const Window& window, const std::string& option, const ReportError& report_error);
/// Whether the window fits into the image; reports an error else, calling the window `option` ("pool_size").
bool fits(const Window& window, const std::string& option, const TensorSpec& image,
          const ReportError& report_error);
/// "3x3"
std::string str(const Size2& size);

}  // namespace dtrain
