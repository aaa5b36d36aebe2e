// Determines the rows of splits that are taken from one another.
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
  std::optional<uint64_t> seed = {};  // unset if nothing was random
};

/// Returns the sum of the fractions of all splits that are drawn from `split` or, if `split` is drawn itself,
/// from its source.
double held_out_fraction(const DatasetSpec& spec, const SplitSpec& split);

/// Returns the rows of `split` if it is drawn from another split's rows [from, to), or if other splits are
/// drawn from it and it keeps the rest. Returns nullopt if there are no such draws. The labels of the first
/// target are at held.columns[inputs]. Throws UserError if stratify finds no labels, and if a split would
/// have no samples.
std::optional<DrawnRows> draw_rows(const DatasetSpec& spec, const SplitSpec& split, const CachedColumns& held,
                                   int64_t from, int64_t to, size_t inputs);

}  // namespace dtrain
