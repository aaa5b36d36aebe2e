// Chooses the column of a table to predict, for `dtrain new`.
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
  bool names_are_numbers = false;     // class names are numbers other than 0 to classes - 1
  bool rare = false;                  // some class has far fewer rows than another
  bool stratify = false;              // each class has enough rows for all splits
  std::string note;                   // why a likelier column was not chosen; usually ""
  std::string rare_warning;           // "" if `stratify`
  std::vector<std::string> warnings;  // other problems of the column
};

/// Classes are weighted if the ratio of the largest to the smallest class is at least this number.
inline constexpr int64_t kRareClass = 10;

/// Returns the target: the column named by `wanted`, else the first predictable column, trying common target
/// names first, then all columns from last to first. Never returns `other`. Throws UserError if there is no
/// such column.
TargetPlan choose_target(const TableProfile& table, const std::string& wanted,
                         std::optional<size_t> other = {});

}  // namespace dtrain
