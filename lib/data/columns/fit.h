// What is computed over a column of the training split before the first step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/tensor_spec.h"
#include "data/data_facts.h"

namespace dtrain {

/// A column's samples, as they are at one point of their way to the model.
struct FitSamples {
  TensorSpec spec;  // of a row
  int64_t size = 0;
  /// Writes the rows [first, first + count) to `dst`. Any thread may call it.
  std::function<void(int64_t first, int64_t count, double* dst)> read;
};

/// Mean and population standard deviation of each channel (the last axis), or of all elements where a row is
/// a scalar.
struct Moments {
  std::vector<double> mean, deviation;
};

/// In double, and the same bits whatever the number of threads (Chan et al. 1983: blocks of rows by two
/// passes, merged in order). A channel that is constant has the deviation 0, exactly.
Moments moments_of(const FitSamples& samples);

/// The mean of each element of a row, over the rows that have a number there (not NaN); NaN where none has.
std::vector<double> means_of_elements(const FitSamples& samples);
/// The medians of these `elements` of a row, of an even count the middle between two. The result has a number
/// for every element of a row: NaN for the others, and where no row has one.
std::vector<double> medians_of_elements(const FitSamples& samples, const std::vector<size_t>& elements);

}  // namespace dtrain
