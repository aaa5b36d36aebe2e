// The column of a table that is predicted, for `dtrain new`.
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
  bool names_are_numbers = false;     // the classes' names are numbers, and not 0 to classes - 1
  bool rare = false;                  // some class has few rows beside another
  bool stratify = false;              // each class has rows for all splits
  std::string note;                   // why it is not another column that was more likely; "" as a rule
  std::string rare_warning;           // "" where `stratify`
  std::vector<std::string> warnings;  // other faults of the column
};

/// Rows of the largest class for each row of the smallest from which the classes are to be weighted.
inline constexpr int64_t kRareClass = 10;

/// The target: the column that `wanted` names, else the first that can be predicted of those with a usual
/// name and of the others from the last to the first. It is not `other`. Throws UserError where there is no
/// such column.
TargetPlan choose_target(const TableProfile& table, const std::string& wanted,
                         std::optional<size_t> other = {});

}  // namespace dtrain
