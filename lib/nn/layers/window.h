// Windows that slide over images and volumes: borders and the extents that follow, as TensorFlow has them.
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

/// Of depth 1 for images.
struct Window {
  Size3 size;
  Size3 strides;
  Size3 dilation;
  Border border = Border::valid;
};

// An image is of [height, width, channels], or a volume of [depth, height, width, channels].

/// The extents without the channels.
Size3 extents_of(const Shape& image);
/// The window's extent on the image, holes included.
Size3 spread(const Window& window);
/// The padding of an image; no side's is negative.
Padding3 padding_of(const Window& window, const Shape& image);
/// The shape [rows, columns, channels], or [planes, rows, columns, channels], that has a pixel for every
/// place of the window, which must fit.
Shape window_positions(const Window& window, const Shape& image, int64_t channels);
/// A window, and the padding of its image, without what lies outside of the image wherever the window stands.
struct TrimmedWindow {
  Size3 size;
  Padding3 padding;
};
TrimmedWindow trimmed(const Window& window, const Shape& image);
/// Whether a kernel's elements are further apart than convolutions can take; reports an error then.
bool spreads_too_far(const Window& window, const std::string& option, const TensorSpec& image,
                     const ReportError& report_error);
/// Whether the window fits into the image; reports an error else, calling the window `option` ("pool_size").
bool fits(const Window& window, const std::string& option, const TensorSpec& image,
          const ReportError& report_error);
/// "3x3"
std::string str(const Size2& size);
/// The same, or "3x3x3" where the image is a volume.
std::string str(const Size3& size, const Shape& image);

}  // namespace dtrain
