// Renders a model's image inputs for display.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// Returns true if an input has shape [height, width] or [height, width, 1, 3 or 4] and is not empty.
bool is_picture_input(const TensorSpec& spec);

struct Picture {
  int64_t height = 0, width = 0, channels = 1;
  std::vector<uint8_t> pixels;

  std::string png() const;
  /// Returns the image with at most `most` pixels per side, by taking every n-th pixel.
  Picture reduced(int64_t most) const;
};

/// Reads a sample's image from an input column of `samples` for which is_picture_input() is true, as the
/// model receives it with this seed in the first epoch. Values in [0, 1] or [0, 255] are kept; any other
/// range is scaled from black to white. Throws as Dataset::read_column() does.
Picture read_picture(const Dataset& samples, size_t column, int64_t row, uint64_t seed);

}  // namespace dtrain
