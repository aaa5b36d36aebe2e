// Sliding windows over images and volumes: padding and output extents, by TensorFlow's rules.
#pragma once

#include <string>

#include "config/codec.h"
#include "nn/layer.h"
#include "ops/specs.h"

namespace dtrain {

/// `valid`: windows are inside the image. `same`: there are ceil(extent / stride) windows, with zeros around
/// the image; an odd row or column of zeros is at the bottom or right. `causal`: all zeros are at the top and
/// left, so that a window does not extend beyond its position. Only sequences use it; options of image layers
/// do not accept its name.
enum class Border { valid, same, causal };
template <>
inline const EnumNames<Border> names_of<Border> = {{Border::valid, "valid"}, {Border::same, "same"}};

/// A sliding window. For images, the depths are 1.
struct Window {
  Size3 size;
  Size3 strides;
  Size3 dilation;
  Border border = Border::valid;
};

// `image` is the shape of an image, [height, width, channels], or of a volume, [depth, height, width,
// channels].

/// Returns the extents without the channels.
Size3 extents_of(const Shape& image);
/// Returns the extents of the dilated window.
Size3 spread(const Window& window);
/// Returns the padding of an image; never negative.
Padding3 padding_of(const Window& window, const Shape& image);
/// Returns the output's shape, [rows, columns, channels] or [planes, rows, columns, channels], with one pixel
/// for each position of the window. The window must fit into the image.
Shape window_positions(const Window& window, const Shape& image, int64_t channels);
/// A window and its image's padding, without the rows, columns and planes of the window that are outside the
/// image at every position.
struct TrimmedWindow {
  Size3 size;
  Padding3 padding;
};
TrimmedWindow trimmed(const Window& window, const Shape& image);
/// Returns true, and reports an error, if the dilated window is larger than convolutions support.
bool spreads_too_far(const Window& window, const std::string& option, const TensorSpec& image,
                     const ReportError& report_error);
/// Returns whether the window fits into the image; reports an error otherwise. `option` is the window's name
/// in the message ("pool_size").
bool fits(const Window& window, const std::string& option, const TensorSpec& image,
          const ReportError& report_error);
/// Returns "3x3".
std::string str(const Size2& size);
/// Returns "3x3", or "3x3x3" if the image is a volume.
std::string str(const Size3& size, const Shape& image);

}  // namespace dtrain
