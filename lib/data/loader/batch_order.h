// Groups sequences of similar lengths into batches: determines the order of the samples, and the lengths to
// which batches are truncated.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// A column that contains sequences of shape [positions, ...] with padding at the end. A position is padding
/// if all its elements are equal to `padding`.
struct PaddedColumn {
  size_t index = 0;
  float padding = 0;
};

/// The lengths of all samples. The length of a sample is its number of positions without the padding at the
/// end, rounded up to one of a few lengths.
struct SampleLengths {
  static constexpr size_t kMost = 16;  // maximum number of different lengths; the model has a plan for each
  static constexpr int64_t kUnit = 8;  // all lengths except `positions` are multiples of this number

  // The different lengths, in ascending order; at least one sample has each length.
  std::vector<int64_t> distinct;
  std::vector<uint8_t> which;  // for each sample, the index of its length in `distinct`
  int64_t positions = 0;       // number of positions of a sample before it is truncated

  /// Returns the lengths of truncated batches: all lengths except `positions`.
  std::set<int64_t> cut() const;
  /// Returns a warning if no batch can be truncated, else "".
  std::string warning() const;
  /// Returns the length of the longest of these samples. There must be at least one sample.
  int64_t longest(std::span<const int64_t> samples) const;
};

/// Returns the exact length of each sample: the number of positions up to the last position that is not
/// padding in at least one of the columns. The length is 0 if all positions are padding. Reads all samples,
/// on several threads.
std::vector<int64_t> exact_lengths(const Dataset& dataset, std::span<const PaddedColumn> columns);

/// Rounds the exact lengths up to at most SampleLengths::kMost different lengths. Each of these lengths is
/// either a multiple of a unit or equal to `positions`. The unit is kUnit, or a multiple of kUnit if there
/// are very many positions. The lengths are chosen so that the sum of the rounded lengths of all samples is
/// as small as possible.
SampleLengths round_lengths(std::span<const int64_t> exact, int64_t positions);

/// Returns an order of the samples in which batches consist of samples of similar lengths. First, all samples
/// are shuffled. Then, the samples of each window of 50 batches are sorted by their rounded lengths; samples
/// of equal lengths stay in random order. Finally, the batches are shuffled. If the last batch is smaller
/// than the others, it stays last, and the lengths of its samples may differ greatly. The result depends only
/// on the arguments.
std::vector<int64_t> order_by_length(const SampleLengths& lengths, int64_t batch_size, uint64_t seed,
                                     int64_t epoch);

/// Returns the number of positions that the model computes in an epoch with this order. For each batch, this
/// is the number of samples times the length to which the batch is truncated.
int64_t computed_positions(const SampleLengths& lengths, std::span<const int64_t> order, int64_t batch_size);

}  // namespace dtrain
