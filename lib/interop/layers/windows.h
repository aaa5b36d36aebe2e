// Options that several layers have in common, as rows of formats read them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "nn/layers/window.h"

namespace dtrain {

// `image` is the shape of what a layer reads: of [height, width, channels] or of [depth, height, width,
// channels].

/// A size as Codec<Size2> and Codec<Size3> write it: a number, or [height, width], or [depth, height, width].
Size3 size_of(const Json& written, const Shape& image);
/// The sides as Codec<Padding2> and Codec<Padding3> write them: [[top, bottom], [left, right]], with [front,
/// back] before them.
Padding3 sides_of(const Json& written);
/// The option `padding` of a layer with a window.
Border border_of(const Json& options);
/// The window of a convolution's options: kernel_size, strides, dilation_rate and padding.
Window convolution_window(const Json& options, const Shape& image);
/// The window of a pooling layer's options: pool_size, strides (pool_size if null) and padding.
Window pooling_window(const Json& options, const Shape& image);

/// The numbers of the image's axes.
std::vector<int64_t> axes_of(const Size3& size, const Shape& image);
/// The beginnings of the image's axes, then their ends.
std::vector<int64_t> pads_of(const Padding3& sides, const Shape& image);
/// "2d", or "3d" where the image is a volume.
std::string dimensions_of(const Shape& image);

/// The padding of a transposed convolution, as ONNX and PyTorch say it: `before` and `after` cut the output
/// off, `extra` lengthens it at its end.
struct TransposePadding {
  Padding3 cut;
  Size3 extra{0, 0, 0};
};
/// For an input and an output of [height, width, ...].
TransposePadding transpose_padding(const Window& window, const Shape& input, const Shape& output);

}  // namespace dtrain
