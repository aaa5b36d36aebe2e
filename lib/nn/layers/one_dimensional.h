// Layers for sequences of shape [length, channels]. Each is computed by the corresponding image layer, which
// treats the sequence as an image of height 1.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "nn/layer.h"

namespace dtrain {

/// Describes how the options of a sequence layer are converted to options of the corresponding image layer.
struct ImageOptions {
  std::string kind;  ///< kind of the image layer: "conv2d"
  /// Names of options whose value is a length. The length n is converted to [1, n].
  std::vector<std::string_view> windows;
  /// Names of options whose value is a pair. The pair [a, b] is converted to [[0, 0], [a, b]].
  std::vector<std::string_view> sides;
};

/// Returns a sequence layer that applies `image` to images of height 1. If a parameter of `image` has four
/// axes, the first axis has the extent 1, and the sequence layer removes it.
std::shared_ptr<const Layer> layer_of_sequences(std::shared_ptr<const Layer> image);
/// Returns the sequence layer with these options. `options` has the format of Schema::write().
std::shared_ptr<const Layer> layer_of_sequences(const ImageOptions& image, const ConfigNode& options);

/// The padding before and after a sequence, written as one number or two.
struct Sides {
  int64_t before = 0, after = 0;
};

template <>
struct Codec<Sides> {
  static bool parse(const ConfigNode& node, const std::string& where, Sides& out, Diagnostics& diagnostics);
  static ConfigNode write(const Sides& value);
  static Json schema();
};

}  // namespace dtrain
