#include "data/loader/batch_order.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "data/columns/column.h"
#include "data/loader/parallel.h"
#include "data/loader/shuffle.h"

namespace dtrain {

namespace {

constexpr int64_t kWindow = 50;  // number of batches whose samples are sorted together

template <class T>
int64_t length_of(const T* sample, int64_t positions, int64_t elements, T padding) {
  const auto is_valid = [padding](T element) { return element != padding; };
  int64_t length = positions;
  while (length > 0) {
    const T* const last = sample + (length - 1) * elements;
    if (std::any_of(last, last + elements, is_valid)) break;
    --length;
  }
  return length;
}

/// Measures the lengths of consecutive samples in a column, beginning with the sample `first`. Element i of
/// `lengths` belongs to sample first + i. The element is set to the length of the sample, unless it is
/// already greater.
void measure(const Dataset& dataset, const PaddedColumn& column, int64_t first, std::span<int64_t> lengths) {
  const TensorSpec& spec = dataset.columns()[column.index];
  const int64_t positions = spec.shape[0], row = spec.shape.elements(), elements = row / positions;
  const auto count = static_cast<int64_t>(lengths.size());
  std::vector<std::byte> rows(static_cast<size_t>(count * row) * bytes_of(spec.dtype));
  dataset.read_column(column.index, {row_numbers(first, count)}, rows.data());
  const auto each = [&](const auto* values, auto padding) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t& length = lengths[static_cast<size_t>(i)];
      length = std::max(length, length_of(values + i * row, positions, elements, padding));
    }
  };
  if (spec.dtype == DType::int32)
    each(reinterpret_cast<const int32_t*>(rows.data()), static_cast<int32_t>(column.padding));
  else
    each(reinterpret_cast<const float*>(rows.data()), column.padding);
}

/// The number of samples that have the same length. The length is given in units (see round_lengths()).
struct LengthGroup {
  int64_t units = 0, samples = 0;
};

/// Divides groups, which are sorted by length, into at most `most` runs of consecutive groups. All lengths of
/// a run are rounded up to the length of its last group. The runs are chosen so that the sum of the rounded
/// lengths of all samples is minimal. Returns the index of the last group of each run.
std::vector<size_t> divide(const std::vector<LengthGroup>& groups, size_t most) {
  const size_t n = groups.size();
  std::vector<int64_t> before{0};  // number of samples before a group
  for (const LengthGroup& group : groups) before.push_back(before.back() + group.samples);
  // Dynamic programming over the number of runs. sums[j] is the smallest sum for the first j groups, divided
  // into the current number of runs. starts[r][j] is the index of the first group in the last run, if the
  // first j groups are divided into r + 1 runs.
  std::vector<int64_t> sums(n + 1, std::numeric_limits<int64_t>::max());
  sums[0] = 0;
  std::vector<std::vector<size_t>> starts;
  for (size_t run = 0; run < std::min(most, n); ++run) {
    std::vector<int64_t> next(n + 1, std::numeric_limits<int64_t>::max());
    std::vector<size_t> start(n + 1, 0);
    for (size_t j = run + 1; j <= n; ++j)
      for (size_t i = run; i < j; ++i) {
        if (sums[i] == std::numeric_limits<int64_t>::max()) continue;
        const int64_t sum = sums[i] + (before[j] - before[i]) * groups[j - 1].units;
        if (sum >= next[j]) continue;
        next[j] = sum;
        start[j] = i;
      }
    sums = std::move(next);
    starts.push_back(std::move(start));
  }
  std::vector<size_t> ends;
  for (size_t run = starts.size(), j = n; run-- > 0; j = starts[run][j]) ends.push_back(j - 1);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

}  // namespace

std::set<int64_t> SampleLengths::cut() const {
  std::set<int64_t> lengths(distinct.begin(), distinct.end());
  lengths.erase(positions);
  return lengths;
}

std::string SampleLengths::warning() const {
  if (!cut().empty()) return "";
  return fmt::format(
      "dataset.batches: bucket_by_length has no effect because every sample needs all {} positions; only "
      "padding at the end of a sequence can be removed, not padding at its beginning",
      positions);
}

int64_t SampleLengths::longest(std::span<const int64_t> samples) const {
  uint8_t most = 0;
  for (const int64_t sample : samples) most = std::max(most, which[static_cast<size_t>(sample)]);
  return distinct[most];
}

std::vector<int64_t> exact_lengths(const Dataset& dataset, std::span<const PaddedColumn> columns) {
  std::vector<int64_t> lengths(static_cast<size_t>(dataset.size()), 0);
  int64_t row_bytes = 1;
  for (const PaddedColumn& column : columns) {
    const TensorSpec& spec = dataset.columns()[column.index];
    row_bytes = std::max(row_bytes, spec.shape.elements() * static_cast<int64_t>(bytes_of(spec.dtype)));
  }
  const int64_t block = std::max<int64_t>(1, (int64_t{1} << 20) / row_bytes);
  run_blocks((dataset.size() + block - 1) / block, [&](int64_t number) {
    const int64_t first = number * block, count = std::min(block, dataset.size() - first);
    for (const PaddedColumn& column : columns)
      measure(dataset, column, first,
              std::span(lengths).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
  });
  return lengths;
}

SampleLengths round_lengths(std::span<const int64_t> exact, int64_t positions) {
  // The number of units is limited because the run time of divide() grows with its square.
  constexpr int64_t kMostUnits = 512;
  const auto quotient = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t unit = SampleLengths::kUnit * quotient(quotient(positions, SampleLengths::kUnit), kMostUnits);
  // A sample that consists only of padding also has one position.
  const auto units_of = [&](int64_t length) { return quotient(std::max<int64_t>(length, 1), unit); };
  std::vector<int64_t> samples(static_cast<size_t>(units_of(positions)) + 1, 0);
  for (const int64_t length : exact) ++samples[static_cast<size_t>(units_of(length))];
  std::vector<LengthGroup> groups;
  for (size_t units = 1; units < samples.size(); ++units)
    if (samples[units] > 0) groups.push_back({static_cast<int64_t>(units), samples[units]});

  SampleLengths lengths{.distinct = {}, .which = {}, .positions = positions};
  // For samples with a length of n units, which[n] is the index of the rounded length in `distinct`.
  std::vector<uint8_t> which(samples.size(), 0);
  size_t first = 0;
  for (const size_t last : divide(groups, SampleLengths::kMost)) {
    for (; first <= last; ++first)
      which[static_cast<size_t>(groups[first].units)] = static_cast<uint8_t>(lengths.distinct.size());
    lengths.distinct.push_back(std::min(groups[last].units * unit, positions));
  }
  lengths.which.reserve(exact.size());
  for (const int64_t length : exact) lengths.which.push_back(which[static_cast<size_t>(units_of(length))]);
  return lengths;
}

std::vector<int64_t> order_by_length(const SampleLengths& lengths, int64_t batch_size, uint64_t seed,
                                     int64_t epoch) {
  const auto size = static_cast<int64_t>(lengths.which.size()), batches = size / batch_size;
  const std::vector<int64_t> places = shuffled_order(batches, seed, epoch, ShuffleOf::batches);
  std::vector<int64_t> shuffled = shuffled_order(size, seed, epoch);
  for (int64_t batch = 0; batch < batches; batch += kWindow)
    std::stable_sort(shuffled.begin() + batch * batch_size,
                     shuffled.begin() + std::min(batch + kWindow, batches) * batch_size,
                     [&](int64_t a, int64_t b) {
                       return lengths.which[static_cast<size_t>(a)] < lengths.which[static_cast<size_t>(b)];
                     });
  std::vector<int64_t> order;
  order.reserve(shuffled.size());
  for (const int64_t place : places)
    std::copy_n(shuffled.begin() + place * batch_size, batch_size, std::back_inserter(order));
  order.insert(order.end(), shuffled.begin() + batches * batch_size, shuffled.end());
  return order;
}

int64_t computed_positions(const SampleLengths& lengths, std::span<const int64_t> order, int64_t batch_size) {
  int64_t positions = 0;
  while (!order.empty()) {
    const auto batch = order.first(std::min(order.size(), static_cast<size_t>(batch_size)));
    positions += static_cast<int64_t>(batch.size()) * lengths.longest(batch);
    order = order.subspan(batch.size());
  }
  return positions;
}

}  // namespace dtrain
