// Renders a model's image inputs for display.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// Returns true if the input has the shape of an image and is not empty. The shape must be [height, width] or
/// [height, width, channels] with 1, 3 or 4 channels.
bool is_picture_input(const TensorSpec& spec);

/// An image of 1 (grayscale), 3 (RGB) or 4 channels (RGB and alpha).
struct Picture {
  int64_t height = 0, width = 0, channels = 1;
  std::vector<uint8_t> pixels;  // [height, width, channels]

  /// Returns a PNG file of the image.
  std::string png() const;
  /// Returns a smaller image with at most `most` pixels per side. It consists of every n-th pixel of every
  /// n-th row, where n is as small as possible.
  Picture reduced(int64_t most) const;
};

/// Reads the image of one sample from an input column of `samples`. is_picture_input() must be true for the
/// column. The image is the one that the model receives in the first epoch with this seed. If all values are
/// in [0, 1] or in [0, 255], 0 is black. Otherwise the smallest value is black and the largest value is
/// white. Throws the same errors as Dataset::read_column().
Picture read_picture(const Dataset& samples, size_t column, int64_t row, uint64_t seed);

}  // namespace dtrain
