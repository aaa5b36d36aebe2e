// Statistics computed over a column of the training split before the first step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/tensor_spec.h"
#include "data/data_facts.h"

namespace dtrain {

/// Samples of one column at one point of its plan.
struct FitSamples {
  TensorSpec spec;  // form of one row
  int64_t size = 0;
  /// Writes the rows [first, first + count) to `dst`. Safe to call from any thread.
  std::function<void(int64_t first, int64_t count, double* dst)> read;
};

/// Mean and population standard deviation of each channel (the last axis), or of all elements if a row is a
/// scalar.
struct Moments {
  std::vector<double> mean, deviation;
};

/// Computes moments in double. The result is bit-identical for any number of threads (Chan et al. 1983: two
/// passes per block of rows, blocks merged in order). The deviation of a constant channel is exactly 0.
Moments moments_of(const FitSamples& samples);

/// Returns the mean of each element of a row over the rows with a number there (not NaN); NaN if no row has
/// one.
std::vector<double> means_of_elements(const FitSamples& samples);
/// Returns the medians of the given `elements` of a row; for an even count, the mean of the two middle
/// values. The result has one number for each element of a row: NaN for elements not given, and if no row has
/// a number there.
std::vector<double> medians_of_elements(const FitSamples& samples, const std::vector<size_t>& elements);

}  // namespace dtrain
