#include "data/columns/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "data/loader/parallel.h"

namespace dtrain {

namespace {

/// Count, mean and sum of squared deviations of some numbers. NaN values are skipped.
struct Tally {
  double count = 0, mean = 0, squares = 0;  // squares: sum of squared differences from the mean

  void add(const Tally& other) {
    if (other.count == 0) return;
    const double total = count + other.count, difference = other.mean - mean;
    mean += difference * (other.count / total);
    squares += other.squares + difference * difference * (count * other.count / total);
    count = total;
  }
};

/// Returns the tally of values[0], values[step], values[2 * step], ... The first value is subtracted from all
/// values, so that `squares` is exactly 0 if all values are equal.
Tally tally(const double* values, size_t size, size_t step) {
  size_t begin = 0;
  while (begin < size && std::isnan(values[begin])) begin += step;
  Tally all;
  if (begin >= size) return all;
  const double first = values[begin];
  double sum = 0;
  for (size_t i = begin; i < size; i += step)
    if (!std::isnan(values[i])) {
      sum += values[i] - first;
      ++all.count;
    }
  const double shift = sum / all.count;
  for (size_t i = begin; i < size; i += step)
    if (!std::isnan(values[i])) {
      const double difference = values[i] - first - shift;
      all.squares += difference * difference;
    }
  all.mean = first + shift;
  return all;
}

int64_t rows_of_block(int64_t elements) {
  constexpr int64_t kElements = int64_t{1} << 18;
  return std::max<int64_t>(1, kElements / std::max<int64_t>(1, elements));
}

/// Calls visit(block, values) for each block of rows, on several threads.
template <class Visit>
void for_row_blocks(const FitSamples& samples, Visit visit) {
  const int64_t elements = samples.spec.shape.elements(), rows = rows_of_block(elements);
  const int64_t blocks = (samples.size + rows - 1) / rows;
  run_blocks(blocks, [&](int64_t block) {
    const int64_t count = std::min(rows, samples.size - block * rows);
    std::vector<double> values(static_cast<size_t>(count * elements));
    samples.read(block * rows, count, values.data());
    visit(block, values);
  });
}

/// Returns one tally per channel. Element i of a row belongs to channel i % channels.
std::vector<Tally> tallies(const FitSamples& samples, size_t channels) {
  std::vector<Tally> all(channels);
  // Blocks are merged in order, so that the result does not depend on the threads. A block is merged and
  // freed as soon as all earlier blocks are merged because the tallies of wide rows are large.
  std::map<int64_t, std::vector<Tally>> waiting;
  int64_t merged = 0;
  std::mutex mutex;
  for_row_blocks(samples, [&](int64_t block, const std::vector<double>& values) {
    std::vector<Tally> part;
    part.reserve(channels);
    for (size_t c = 0; c < channels; ++c)
      part.push_back(tally(values.data() + c, values.size() - std::min(c, values.size()), channels));
    const std::lock_guard lock(mutex);
    waiting.emplace(block, std::move(part));
    for (auto next = waiting.find(merged); next != waiting.end(); next = waiting.find(++merged)) {
      for (size_t c = 0; c < channels; ++c) all[c].add(next->second[c]);
      waiting.erase(next);
    }
  });
  return all;
}

}  // namespace

Moments moments_of(const FitSamples& samples) {
  const Shape& shape = samples.spec.shape;
  Moments moments;
  for (const Tally& one : tallies(samples, shape.rank() == 0 ? 1 : static_cast<size_t>(shape.back()))) {
    moments.mean.push_back(one.mean);
    moments.deviation.push_back(std::sqrt(one.squares / std::max(one.count, 1.0)));
  }
  return moments;
}

std::vector<double> means_of_elements(const FitSamples& samples) {
  std::vector<double> means;
  for (const Tally& one : tallies(samples, static_cast<size_t>(samples.spec.shape.elements())))
    means.push_back(one.count > 0 ? one.mean : std::numeric_limits<double>::quiet_NaN());
  return means;
}

std::vector<double> medians_of_elements(const FitSamples& samples, const std::vector<size_t>& elements) {
  // A pass over the samples computes as many medians as fit into kMostBytes, but at least kFewest. Each
  // median needs memory for all values of its element.
  constexpr size_t kMostBytes = size_t{256} << 20, kFewest = 8;
  const size_t bytes_of_one = std::max<size_t>(static_cast<size_t>(samples.size), 1) * sizeof(double);
  const size_t at_a_time = std::max(kMostBytes / bytes_of_one, kFewest);
  const auto width = static_cast<size_t>(samples.spec.shape.elements());
  const auto rows = static_cast<size_t>(rows_of_block(samples.spec.shape.elements()));
  std::vector<double> medians(width, std::numeric_limits<double>::quiet_NaN());
  for (size_t from = 0; from < elements.size(); from += at_a_time) {
    const size_t to = std::min(from + at_a_time, elements.size());
    std::vector<std::vector<double>> columns(to - from,
                                             std::vector<double>(static_cast<size_t>(samples.size)));
    for_row_blocks(samples, [&](int64_t block, const std::vector<double>& values) {
      for (size_t e = from; e < to; ++e)
        for (size_t row = 0; row < values.size() / width; ++row)
          columns[e - from][static_cast<size_t>(block) * rows + row] = values[row * width + elements[e]];
    });
    for (size_t e = from; e < to; ++e) {
      auto& column = columns[e - from];
      std::erase_if(column, [](double value) { return std::isnan(value); });
      if (column.empty()) continue;
      const auto middle = column.begin() + static_cast<ptrdiff_t>(column.size() / 2);
      std::nth_element(column.begin(), middle, column.end());
      double median = *middle;
      if (column.size() % 2 == 0) median = (median + *std::max_element(column.begin(), middle)) / 2;
      medians[elements[e]] = median;
    }
  }
  return medians;
}

}  // namespace dtrain
