// Determines the rows of splits that are drawn from other splits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/caches/cache.h"
#include "data/dataset_spec.h"

namespace dtrain {

struct DrawnRows {
  std::vector<int64_t> rows;          // rows of the source, ascending
  std::string words;                  // description of how the rows were drawn
  std::optional<uint64_t> seed = {};  // seed of the draw; not set if the rows were not drawn at random
};

/// Returns the sum of the fractions of all splits that are drawn from the same split as `split`. If `split`
/// is not drawn, returns the sum of the fractions that are drawn from it.
double held_out_fraction(const DatasetSpec& spec, const SplitSpec& split);

/// Returns the rows of `split` if it is drawn from another split, or the remaining rows if other splits are
/// drawn from it. [from, to) are the rows of the split from which samples are drawn. Returns nullopt if no
/// split is drawn. The labels of the first target are in held.columns[inputs]. Throws UserError if `stratify`
/// is set but there are no labels, or if a split would have no samples.
std::optional<DrawnRows> draw_rows(const DatasetSpec& spec, const SplitSpec& split, const CachedColumns& held,
                                   int64_t from, int64_t to, size_t inputs);

}  // namespace dtrain
