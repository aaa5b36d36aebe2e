// What `dtrain new` makes of each column of a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "profile/column_meaning.h"
#include "profile/table_target.h"

namespace dtrain {

struct ColumnRole {
  enum class Use { target, id, feature, left_out };
  ColumnMeaning meaning = ColumnMeaning::empty;
  Use use = Use::left_out;
  std::string why;  // it is left out; "" for other uses
};

struct TablePlan {
  TargetPlan target;
  std::vector<ColumnRole> columns;    // of the table, in its order
  std::vector<std::string> warnings;  // faults of the data

  std::vector<size_t> places(ColumnRole::Use use) const;
  /// The features of this meaning.
  std::vector<size_t> features(ColumnMeaning meaning) const;
  /// The features that are numbers and miss at least a twentieth of the rows' values, so that these rows are
  /// marked by a feature of their own.
  std::vector<size_t> indicators(const TableProfile& table) const;
};

/// Throws UserError where the table has nothing to predict, or nothing to predict it from.
TablePlan plan_table(const TableProfile& table, const std::string& wanted_target);

/// The plan as a table of text: kind, missing values, different values and use of each column.
std::string table_of_columns(const TableProfile& table, const TablePlan& plan);
Json json_of_columns(const TableProfile& table, const TablePlan& plan);

}  // namespace dtrain
