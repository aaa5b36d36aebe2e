// Statistics computed over a column of the training split before the first step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/tensor_spec.h"
#include "data/data_facts.h"

namespace dtrain {

/// The samples of one column on which a transform is fitted. They have passed all steps of the column's plan
/// before this transform.
struct FitSamples {
  TensorSpec spec;  // shape and type of one row
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

/// Returns the mean of each element of a row. NaN values are skipped. If an element is NaN in all rows, its
/// mean is NaN.
std::vector<double> means_of_elements(const FitSamples& samples);
/// Returns the medians of the given `elements` of a row. NaN values are skipped. If the number of values is
/// even, the median is the mean of the two middle values. The result has one number for each element of a
/// row; it is NaN for elements that are not given and for elements that are NaN in all rows.
std::vector<double> medians_of_elements(const FitSamples& samples, const std::vector<size_t>& elements);

}  // namespace dtrain
