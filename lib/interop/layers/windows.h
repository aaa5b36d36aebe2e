// Parses options that several layers have in common, for the table of formats.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "nn/layers/window.h"

namespace dtrain {

// `image` is the shape of a layer's input: [height, width, channels] or [depth, height, width, channels].

/// Parses a size written by Codec<Size2> or Codec<Size3>: a number, [height, width], or [depth, height,
/// width].
Size3 size_of(const Json& written, const Shape& image);
/// Parses sides written by Codec<Padding2> or Codec<Padding3>: [[top, bottom], [left, right]], for volumes
/// with [front, back] first.
Padding3 sides_of(const Json& written);
/// Parses the `padding` option of a layer with a window.
Border border_of(const Json& options);
/// Parses the window of a convolution: kernel_size, strides, dilation_rate and padding.
Window convolution_window(const Json& options, const Shape& image);
/// Parses the window of a pooling layer: pool_size, strides (pool_size if null) and padding.
Window pooling_window(const Json& options, const Shape& image);

/// Returns the size along each axis of the image, outermost first.
std::vector<int64_t> axes_of(const Size3& size, const Shape& image);
/// Returns the padding at the start of each axis, then at the end of each axis.
std::vector<int64_t> pads_of(const Padding3& sides, const Shape& image);
/// Returns "2d", or "3d" if the image is a volume.
std::string dimensions_of(const Shape& image);

/// The padding of a transposed convolution, in the form of ONNX and PyTorch: the output is cropped by `cut`,
/// and extended by `extra` at its end.
struct TransposePadding {
  Padding3 cut;
  Size3 extra{0, 0, 0};
};
/// `input` and `output` are [height, width, ...].
TransposePadding transpose_padding(const Window& window, const Shape& input, const Shape& output);

}  // namespace dtrain
