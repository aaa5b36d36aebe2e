// Takes splits from another split: at random, or from its end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// One split to draw. With `labels` (one value per row) it takes its fraction of the rows of each label,
/// rounded to whole rows, and leaves at least one row of each label.
struct Draw {
  double fraction = 0;
  std::span<const double> labels;
};

/// Divides the rows [0, rows) into one part per draw, in order, and a last part with the rest. The rows of a
/// part ascend. The result is a pure function of the arguments, and the part of a draw does not depend on
/// later draws.
std::vector<std::vector<int64_t>> draw_splits(int64_t rows, std::span<const Draw> draws, uint64_t seed);

/// Like draw_splits(), but without randomness, for rows that are consecutive parts of a whole: the parts of
/// the draws are the last rows, in order, and the rest comes before them. Each row has values in common with
/// the next `overlap` rows. So `overlap` rows before each part except the first belong to no part. Ignores
/// Draw::labels.
std::vector<std::vector<int64_t>> cut_splits(int64_t rows, std::span<const Draw> draws, int64_t overlap);

}  // namespace dtrain
