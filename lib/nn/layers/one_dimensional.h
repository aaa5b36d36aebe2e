// Layers of sequences, [length, channels], computed as layers of images of height 1.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "nn/layer.h"

namespace dtrain {

/// Describes how options of a sequence layer are converted to options of the image layer.
struct ImageOptions {
  std::string kind;                       ///< kind of the image layer: "conv2d"
  std::vector<std::string_view> windows;  ///< names of options that are lengths: n becomes [1, n]
  std::vector<std::string_view> sides;    ///< names of options that are pairs: [a, b] becomes [[0, 0], [a,
                                          ///< b]]
};

/// Returns the sequence layer that applies `image` to images of height 1. Parameters with four axes lose the
/// first axis, which has extent 1.
std::shared_ptr<const Layer> layer_of_sequences(std::shared_ptr<const Layer> image);
/// Returns the sequence layer with these options, in the form that a Schema writes.
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
