// Renders a model's image inputs for display.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// Returns true if an input has shape [height, width] or [height, width, 1, 3 or 4] and is not empty.
bool is_picture_input(const TensorSpec& spec);

/// An image of 1 (grayscale), 3 (RGB) or 4 channels (RGB and alpha).
struct Picture {
  int64_t height = 0, width = 0, channels = 1;
  std::vector<uint8_t> pixels;  // [height, width, channels]

  /// Returns a PNG file of the image.
  std::string png() const;
  /// Returns the image with at most `most` pixels per side: every n-th pixel of every n-th row, for the least
  /// n that suffices.
  Picture reduced(int64_t most) const;
};

/// Reads a sample's image from an input column of `samples` for which is_picture_input() is true, as the
/// model receives it with this seed in the first epoch. If all values are in [0, 1] or in [0, 255], 0 is
/// black; otherwise the least value is black and the greatest is white. Throws as Dataset::read_column()
/// does.
Picture read_picture(const Dataset& samples, size_t column, int64_t row, uint64_t seed);

}  // namespace dtrain
