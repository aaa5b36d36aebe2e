// The sums of the samples' row weights, for losses whose divisors must be known before a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// The columns from which the row weights of one output are made. Without a mask and without weights, each
/// sample has one weight, 1.
struct WeightColumns {
  /// A mask with `elements` elements for each sample, each of which covers the same number of consecutive
  /// elements of the column. An element of the mask is 0 if all elements that it covers equal `padding`.
  struct Mask {
    size_t column = 0;
    float padding = 0;
    int64_t elements = 1;
  };
  std::optional<Mask> mask = {};
  std::optional<size_t> weights = {};  // index of a float32 column
};

/// The sum of the row weights of each sample and output: weights times mask. If one of the two arrays is
/// shorter, each of its elements counts for the same number of consecutive elements of the longer one.
struct SampleWeights {
  size_t outputs = 0;
  std::vector<double> sums;  // [samples, outputs], row-major

  /// Returns the sum over samples, for each output.
  std::vector<double> sum(std::span<const int64_t> samples) const;
};

/// Computes the sums of all samples. Reads the samples on several threads, without augmentation.
SampleWeights weigh_samples(const Dataset& dataset, std::span<const WeightColumns> outputs);

}  // namespace dtrain
