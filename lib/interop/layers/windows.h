// Options that several layers have in common, as rows of formats read them.
#pragma once

#include "base/json.h"
#include "nn/layers/window.h"

namespace dtrain {

/// A size as Codec<Size2> writes it: a number, or [height, width].
Size2 size_of(const Json& written);
/// The sides as Codec<Padding2> writes them: [[top, bottom], [left, right]].
Padding2 sides_of(const Json& written);
/// The option `padding` of a layer with a window.
Border border_of(const Json& options);
/// The window of a convolution's options: kernel_size, strides, dilation_rate and padding.
Window convolution_window(const Json& options);
/// The window of a pooling layer's options: pool_size, strides (pool_size if null) and padding.
Window pooling_window(const Json& options);

/// The padding of a transposed convolution, as ONNX and PyTorch say it: `before` and `after` cut the output
/// off, `extra` lengthens it at its end.
struct TransposePadding {
  Padding2 cut;
  Size2 extra{0, 0};
};
/// For an input and an output of [height, width, ...].
TransposePadding transpose_padding(const Window& window, const Shape& input, const Shape& output);

}  // namespace dtrain
