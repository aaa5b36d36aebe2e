// Sums up the row weights of each sample. These sums are needed for losses that are divided by the total
// weight of the whole batch, because the total must be known before the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// The columns from which the row weights of one output are computed. If there is neither a mask nor weights,
/// each sample has the single weight 1.
struct WeightColumns {
  /// A mask that is computed from a column. Each sample has `elements` mask elements. Each of them covers the
  /// same number of consecutive elements of the column. A mask element is 0 if all elements that it covers
  /// are equal to `padding`, else 1.
  struct Mask {
    size_t column = 0;
    float padding = 0;
    int64_t elements = 1;
  };
  std::optional<Mask> mask = {};
  std::optional<size_t> weights = {};  // index of a float32 column
};

/// Returns the masks of `count` samples, starting with the sample `first`, without augmentation. An element
/// is 0 if it is masked, else 1.
std::vector<float> read_masks(const Dataset& dataset, const WeightColumns::Mask& mask, int64_t first,
                              int64_t count);

/// The sum of the row weights of each sample, for each output. A row weight is the product of a weight and a
/// mask element. If one of the two arrays is shorter, each of its elements is used for the same number of
/// consecutive elements of the longer one.
struct SampleWeights {
  size_t outputs = 0;
  std::vector<double> sums;  // [samples, outputs], row-major

  /// Returns the sum of the row weights of these samples for each output.
  std::vector<double> sum(std::span<const int64_t> samples) const;
};

/// Computes the weight sums of all samples. Reads the samples on several threads, without augmentation.
SampleWeights weigh_samples(const Dataset& dataset, std::span<const WeightColumns> outputs);

}  // namespace dtrain
