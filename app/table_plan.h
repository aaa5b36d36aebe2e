// The parts that a table's columns play, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "table_profile.h"

namespace dtrain {

/// The part that each of a table's columns plays.
struct TablePlan {
  size_t target = 0;
  std::optional<size_t> id;
  std::vector<size_t> categories, drop, features;  // features: numbers and categories
  std::vector<std::string> notes;                  // why columns are dropped, and the like
  std::vector<std::string> warnings;               // what had better be mended
  bool missing_numbers = false;                    // some feature has rows without its number
  bool regression = false;
  int64_t classes = 0;
  bool names_of_target = false;  // its numbers are labels of classes, not 0 to classes - 1
  bool rare = false;             // some class has few rows beside others
  bool stratify = false;         // each class has rows for all splits
  int64_t width = 0;             // of the features: a category makes one for each value
};

/// As --target calls a column.
std::string shown(const TableProfile& table, size_t column);
/// As a sentence calls it.
std::string called(const TableProfile& table, size_t column);
/// As the configuration calls it: by its name, or without a header by its index.
std::string yaml_column(const TableProfile& table, size_t column);

/// The column to predict: the one that `wanted` names, else one with a usual name, else the last; none that
/// is `other`, where there are more. Throws UserError where `wanted` names none.
size_t find_target(const TableProfile& table, const std::string& wanted, std::optional<size_t> other = {});

/// What keeps a column of numbers from being one: "it has 981 numbers and 1 text ('unknown' in line 602)"; ""
/// where it is none.
std::string why_no_numbers(const ColumnProfile& column);

/// Decides whether plan.target is a class or a number, and notes what speaks against it. Throws UserError
/// where it can be neither.
void plan_target(const TableProfile& table, TablePlan& plan);

/// The text in small letters.
std::string lower(std::string text);

}  // namespace dtrain
