// Draws splits from another split, either at random or from the end of the other split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// One split that is drawn from another one. If `labels` has one value per row, the split gets the given
/// fraction of the rows of each label, rounded to whole rows. At least one row of each label is left in the
/// other split.
struct Draw {
  double fraction = 0;
  std::span<const double> labels;
};

/// Divides the rows [0, rows). Returns one part for each draw, in the order of the draws, followed by a
/// part that contains the remaining rows. The rows of each part are in ascending order. The result depends
/// only on the arguments. The part of a draw does not depend on later draws.
std::vector<std::vector<int64_t>> draw_splits(int64_t rows, std::span<const Draw> draws, uint64_t seed);

/// Like draw_splits(), but not random. It is used for rows that are consecutive parts of one text. The last
/// rows are divided among the draws, in order, and the remaining rows are before them. Each row has values in
/// common with the next `overlap` rows. Therefore `overlap` rows before each part, except the first part, are
/// not used at all. Draw::labels is ignored.
std::vector<std::vector<int64_t>> cut_splits(int64_t rows, std::span<const Draw> draws, int64_t overlap);

}  // namespace dtrain
