// Inputs of a model that are pictures, as a person may look at them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// Whether an input is [height, width] or [height, width, 1, 3 or 4], and not empty.
bool is_picture_input(const TensorSpec& spec);

struct Picture {
  int64_t height = 0, width = 0, channels = 1;
  std::vector<uint8_t> pixels;

  std::string png() const;
  /// Of at most so many pixels a side: every n-th pixel.
  Picture reduced(int64_t most) const;
};

/// A sample's picture, an input column of `samples` for which is_picture_input() is true, as the model gets
/// it with this seed in the first epoch. Numbers of [0, 1] or of [0, 255] are taken as they are; of others
/// the least is black and the greatest white. Throws as Dataset::read_column() does.
Picture read_picture(const Dataset& samples, size_t column, int64_t row, uint64_t seed);

}  // namespace dtrain
