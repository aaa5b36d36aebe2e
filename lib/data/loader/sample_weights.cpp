#include "data/loader/sample_weights.h"

#include <algorithm>
#include <cstddef>

#include "data/columns/column.h"
#include "data/loader/parallel.h"

namespace dtrain {

namespace {

/// Reads one column of `count` samples, beginning with the sample `first`.
std::vector<std::byte> read_rows(const Dataset& dataset, size_t column, int64_t first, int64_t count) {
  const TensorSpec& spec = dataset.columns()[column];
  std::vector<std::byte> rows(static_cast<size_t>(count * spec.shape.elements()) * bytes_of(spec.dtype));
  dataset.read_column(column, {row_numbers(first, count)}, rows.data());
  return rows;
}

/// Returns the sum of the products of the elements of two arrays. The arrays may have different sizes if one
/// size is a multiple of the other. Each element of the shorter array is then repeated for consecutive
/// elements of the longer one.
double sum_of_product(std::span<const float> a, std::span<const float> b) {
  const size_t n = std::max(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < n; ++i)
    sum += static_cast<double>(a[i / (n / a.size())]) * static_cast<double>(b[i / (n / b.size())]);
  return sum;
}

/// Computes the sum of the row weights of one output for each of `count` samples, beginning with the sample
/// `first`. Writes the results to sums[0], sums[stride], sums[2 * stride], ...
void weigh(const Dataset& dataset, const WeightColumns& output, int64_t first, int64_t count, double* sums,
           size_t stride) {
  const std::vector<float> mask = output.mask ? read_masks(dataset, *output.mask, first, count)
                                              : std::vector<float>(static_cast<size_t>(count), 1.0f);
  std::vector<std::byte> read;
  if (output.weights) read = read_rows(dataset, *output.weights, first, count);
  const auto* const weights = reinterpret_cast<const float*>(read.data());
  const size_t masks_of_sample = mask.size() / static_cast<size_t>(count);
  const size_t weights_of_sample = read.size() / sizeof(float) / static_cast<size_t>(count);
  constexpr float kOne = 1.0f;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    sums[i * stride] = sum_of_product(
        std::span(mask).subspan(i * masks_of_sample, masks_of_sample),
        weights ? std::span(weights + i * weights_of_sample, weights_of_sample) : std::span(&kOne, 1));
}

int64_t row_bytes(const Dataset& dataset, std::span<const WeightColumns> outputs) {
  const auto bytes = [&](size_t column) {
    const TensorSpec& spec = dataset.columns()[column];
    return spec.shape.elements() * static_cast<int64_t>(bytes_of(spec.dtype));
  };
  int64_t most = 1;
  for (const WeightColumns& output : outputs) {
    if (output.mask) most = std::max(most, bytes(output.mask->column));
    if (output.weights) most = std::max(most, bytes(*output.weights));
  }
  return most;
}

}  // namespace

std::vector<float> read_masks(const Dataset& dataset, const WeightColumns::Mask& mask, int64_t first,
                              int64_t count) {
  const TensorSpec& spec = dataset.columns()[mask.column];
  const std::vector<std::byte> rows = read_rows(dataset, mask.column, first, count);
  const int64_t covered = spec.shape.elements() / mask.elements;
  std::vector<float> valid(static_cast<size_t>(count * mask.elements));
  const auto find = [&](const auto* values, auto padding) {
    for (float& element : valid) {
      element = std::any_of(values, values + covered, [&](auto x) { return x != padding; }) ? 1.0f : 0.0f;
      values += covered;
    }
  };
  if (spec.dtype == DType::int32)
    find(reinterpret_cast<const int32_t*>(rows.data()), static_cast<int32_t>(mask.padding));
  else
    find(reinterpret_cast<const float*>(rows.data()), mask.padding);
  return valid;
}

std::vector<double> SampleWeights::sum(std::span<const int64_t> samples) const {
  std::vector<double> all(outputs, 0.0);
  for (const int64_t sample : samples)
    for (size_t i = 0; i < outputs; ++i) all[i] += sums[static_cast<size_t>(sample) * outputs + i];
  return all;
}

SampleWeights weigh_samples(const Dataset& dataset, std::span<const WeightColumns> outputs) {
  SampleWeights found{outputs.size(), {}};
  found.sums.resize(static_cast<size_t>(dataset.size()) * outputs.size());
  const int64_t block = std::max<int64_t>(1, (int64_t{1} << 20) / row_bytes(dataset, outputs));
  run_blocks((dataset.size() + block - 1) / block, [&](int64_t number) {
    const int64_t first = number * block, count = std::min(block, dataset.size() - first);
    for (size_t i = 0; i < outputs.size(); ++i)
      weigh(dataset, outputs[i], first, count,
            found.sums.data() + static_cast<size_t>(first) * outputs.size() + i, outputs.size());
  });
  return found;
}

}  // namespace dtrain
