// Splits that are drawn from another one at random.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// One split that is to be drawn. With labels (a value for each row) it has its fraction of the rows of each
/// label, as far as whole rows go, and leaves at least one of each.
struct Draw {
  double fraction = 0;
  std::span<const double> labels;
};

/// The rows [0, rows) fall into a part for each draw, in their order, and a last part of what is left. A part
/// has its rows in ascending order. A pure function of its arguments; what is drawn does not depend on later
/// draws.
std::vector<std::vector<int64_t>> draw_splits(int64_t rows, std::span<const Draw> draws, uint64_t seed);

}  // namespace dtrain
