// Parses options that several kinds of layers have in common, for their conversions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "nn/layers/window.h"

namespace dtrain {

// In the functions below, `image` is the shape of a layer's input: [height, width, channels] or [depth,
// height, width, channels].

/// Parses a size that Codec<Size2> or Codec<Size3> has written: a single number, [height, width] or [depth,
/// height, width].
Size3 size_of(const Json& written, const Shape& image);
/// Parses sides that Codec<Padding2> or Codec<Padding3> has written: [[top, bottom], [left, right]]. For
/// volumes, [front, back] comes first.
Padding3 sides_of(const Json& written);
/// Parses the `padding` option of a layer with a window.
Border border_of(const Json& options);
/// Parses the window of a convolution: kernel_size, strides, dilation_rate and padding.
Window convolution_window(const Json& options, const Shape& image);
/// Returns the number of groups of a convolution.
int64_t groups_of_convolution(const Json& options);
/// Returns the argument `groups` of a convolution in PyTorch, such as ", groups=2". Returns "" for one group.
std::string torch_groups(const Json& options);
/// Parses the window of a pooling layer: pool_size, strides and padding. If strides is null, it equals
/// pool_size.
Window pooling_window(const Json& options, const Shape& image);

/// Returns the size along each spatial axis of the image. The order is depth (only for volumes), height,
/// width.
std::vector<int64_t> axes_of(const Size3& size, const Shape& image);
/// Returns the padding at the start of every spatial axis, followed by the padding at the end of every
/// spatial axis.
std::vector<int64_t> pads_of(const Padding3& sides, const Shape& image);
/// Returns "3d" if the image is a volume, else "2d".
std::string dimensions_of(const Shape& image);

/// The padding of a transposed convolution as ONNX and PyTorch express it: `cut` is removed from all sides of
/// the output, and `extra` is added at its end.
struct TransposePadding {
  Padding3 cut;
  Size3 extra{0, 0, 0};
};
/// Returns the padding of a transposed convolution. `input` and `output` are the shapes of its input and
/// output, [height, width, ...].
TransposePadding transpose_padding(const Window& window, const Shape& input, const Shape& output);

}  // namespace dtrain
