// Sliding windows over images and volumes: padding and output extents, computed as in TensorFlow.
#pragma once

#include <string>

#include "config/codec.h"
#include "nn/layer.h"
#include "ops/specs.h"

namespace dtrain {

/// The padding of the input. With `valid`, there is no padding, and all windows are inside the image. With
/// `same`, the image is padded with zeros, so that there are ceil(extent / stride) windows. If the number of
/// padded rows or columns is odd, one more is added at the bottom or right. With `causal`, all zeros are
/// added at the top and left, so that an output depends only on its own and earlier positions. Only sequences
/// can have causal padding, so the options of image layers do not accept the name `causal`.
enum class Border { valid, same, causal };
template <>
inline const EnumNames<Border> names_of<Border> = {{Border::valid, "valid"}, {Border::same, "same"}};

/// A sliding window. For images, all depths are 1.
struct Window {
  Size3 size;
  Size3 strides;
  Size3 dilation;
  Border border = Border::valid;
};

// In the functions below, `image` is the shape of an image, [height, width, channels], or of a volume,
// [depth, height, width, channels].

/// Returns the extents of the image without the channels.
Size3 extents_of(const Shape& image);
/// Returns the extents of the window including the gaps of its dilation.
Size3 spread(const Window& window);
/// Returns the padding of an image. Its elements are never negative.
Padding3 padding_of(const Window& window, const Shape& image);
/// Returns the shape of the output, which has one pixel for each position of the window. The shape is [rows,
/// columns, channels] for images and [planes, rows, columns, channels] for volumes. The window must fit into
/// the image.
Shape window_positions(const Window& window, const Shape& image, int64_t channels);
/// A window and the padding of its image. A row, column or plane of a window is removed if it is outside the
/// image at every position of the window, because it only reads padding. The padding is reduced by the same
/// amount.
struct TrimmedWindow {
  Size3 size;
  Padding3 padding;
};
TrimmedWindow trimmed(const Window& window, const Shape& image);
/// Returns true, and reports an error, if the dilated window is larger than convolutions support.
bool spreads_too_far(const Window& window, const std::string& option, const TensorSpec& image,
                     const ReportError& report_error);
/// Returns whether the window fits into the image. Reports an error otherwise. `option` is the name of the
/// window in the message ("pool_size").
bool fits(const Window& window, const std::string& option, const TensorSpec& image,
          const ReportError& report_error);
/// Returns a text such as "3x3".
std::string str(const Size2& size);
/// Returns a text such as "3x3", or "3x3x3" if the image is a volume.
std::string str(const Size3& size, const Shape& image);

}  // namespace dtrain
