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

/// How the options of a layer of sequences become those of the layer of images.
struct ImageOptions {
  std::string kind;                       ///< the layer of images: "conv2d"
  std::vector<std::string_view> windows;  ///< options that are lengths: n becomes [1, n]
  std::vector<std::string_view> sides;    ///< options that are pairs: [a, b] becomes [[0, 0], [a, b]]
};

/// The layer of sequences that a layer of images makes of images of height 1. Parameters of four axes lose
/// the first, which is 1.
std::shared_ptr<const Layer> layer_of_sequences(std::shared_ptr<const Layer> image);
/// The layer of sequences that `options`, as a Schema writes them, describe.
std::shared_ptr<const Layer> layer_of_sequences(const ImageOptions& image, const ConfigNode& options);

/// The positions before and after a sequence, written as one number or two.
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
