// Which rows of its source a split has, where splits are drawn from one another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/caches/cache.h"
#include "data/dataset_spec.h"

namespace dtrain {

struct DrawnRows {
  std::vector<int64_t> rows;  // of the source, ascending
  std::string words;          // how they were drawn
  uint64_t seed = 0;
};

/// The rows of `split`, which is drawn from another one's [from, to), or is what others leave of them;
/// nothing where no split is drawn. The first target's labels are at held.columns[inputs]. Throws UserError
/// where labels are wanted and are none, and where a split would have no samples.
std::optional<DrawnRows> draw_rows(const DatasetSpec& spec, const SplitSpec& split, const CachedColumns& held,
                                   int64_t from, int64_t to, size_t inputs);

}  // namespace dtrain
