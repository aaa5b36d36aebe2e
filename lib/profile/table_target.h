// Chooses the target column of a table for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/table_profile.h"

namespace dtrain {

struct TargetPlan {
  size_t column = 0;
  bool regression = false;
  int64_t classes = 0;
  // Whether the class names are numbers, but not exactly the numbers from 0 to the number of classes - 1.
  bool names_are_numbers = false;
  bool rare = false;                  // whether a class has far fewer rows than another class
  bool stratify = false;              // whether every class has enough rows for all splits
  std::string note;                   // why a column with a more likely name was not chosen; usually ""
  std::string rare_warning;           // "" if `stratify`
  std::vector<std::string> warnings;  // other problems of the column
};

/// If the largest class has at least this many times as many rows as the smallest class, the classes are
/// weighted.
inline constexpr int64_t kRareClass = 10;

/// Returns the target. If `wanted` is not empty, this is the column with that name. Otherwise it is the first
/// column that can be predicted and is not an unlikely target, such as an id or a coordinate. If there is no
/// such column, it is the first column that can be predicted. The columns with common target names are tried
/// first, and then all columns from the last to the first; `other` is not tried. Throws UserError if no
/// column can be chosen.
TargetPlan choose_target(const TableProfile& table, const std::string& wanted,
                         std::optional<size_t> other = {});

}  // namespace dtrain
