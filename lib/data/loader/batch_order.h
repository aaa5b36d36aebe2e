// Batches of sequences of similar lengths: the lengths that batches are cut to, and the order of the samples.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// A column of sequences, [positions, ...], padded at their end. A position is padding if all its elements
/// equal `padding`.
struct PaddedColumn {
  size_t index = 0;
  float padding = 0;
};

/// The number of positions of each sample without the padding at its end, rounded up to a few lengths.
struct SampleLengths {
  static constexpr size_t kMost = 16;  // maximum number of different lengths; the model has a plan for each
  static constexpr int64_t kUnit = 8;  // lengths are multiples of it, except `positions`

  std::vector<int64_t> distinct;  // ascending; each is the length of some sample
  std::vector<uint8_t> which;     // indexed by sample: index of its length in `distinct`
  int64_t positions = 0;          // number of positions of a sample before it is cut

  /// Returns the lengths of batches that are cut: all but `positions`.
  std::set<int64_t> cut() const;
  /// Returns a warning if no batch can be cut, else "".
  std::string warning() const;
  /// Returns the longest length of these samples. There must be at least one sample.
  int64_t longest(std::span<const int64_t> samples) const;
};

/// Returns the number of positions of each sample up to the last one that is not padding, in any of these
/// columns; 0 if all are padding. Reads all samples, on several threads.
std::vector<int64_t> exact_lengths(const Dataset& dataset, std::span<const PaddedColumn> columns);

/// Rounds lengths up to at most SampleLengths::kMost different lengths, which are multiples of kUnit (of a
/// larger unit if there are very many positions) or `positions`. Chooses these lengths such that the sum of
/// all samples' rounded lengths is as small as possible.
SampleLengths round_lengths(std::span<const int64_t> exact, int64_t positions);

/// Returns the order of the samples of an epoch, in which each sample occurs once: shuffles the samples,
/// sorts the samples of each window of 50 batches by their rounded lengths, and shuffles the batches. Samples
/// of equal lengths stay in random order. A last, smaller batch remains last, with samples of any length. The
/// result is a pure function of the arguments.
std::vector<int64_t> order_by_length(const SampleLengths& lengths, int64_t batch_size, uint64_t seed,
                                     int64_t epoch);

/// Returns the number of positions that are computed in an epoch with this order of the samples: the sum over
/// all batches of the number of samples times the length to which the batch is cut.
int64_t computed_positions(const SampleLengths& lengths, std::span<const int64_t> order, int64_t batch_size);

}  // namespace dtrain
