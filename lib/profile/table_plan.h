// Plans the role of each column of a table for `dtrain new`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "profile/column_meaning.h"
#include "profile/table_series.h"
#include "profile/table_target.h"

namespace dtrain {

struct ColumnRole {
  enum class Use { target, id, feature, time, series, left_out };
  ColumnMeaning meaning = ColumnMeaning::empty;
  Use use = Use::left_out;
  std::string why;  // the reason why the column is left out; "" if it is used
};

struct TablePlan {
  TargetPlan target;
  std::vector<ColumnRole> columns;    // in the order of the table's columns
  std::vector<std::string> warnings;  // problems in the data
  std::optional<TableSeries> series;  // set if windows of time series are proposed

  std::vector<size_t> places(ColumnRole::Use use) const;
  /// Returns the indices of the features with this meaning.
  std::vector<size_t> features(ColumnMeaning meaning) const;
  /// Returns the column of free text if it is the only feature; otherwise nullopt.
  std::optional<size_t> text() const;
  /// Returns the numeric features that have no value in at least a twentieth of the rows. For each of them,
  /// an additional 0/1 feature marks the rows without a value.
  std::vector<size_t> indicators(const TableProfile& table) const;
};

/// Chooses the roles of all columns. `path` is the path of the table. Throws UserError if the table has no
/// column that can be the target, or no features.
TablePlan plan_table(const TableProfile& table, const std::string& path, const std::string& wanted_target);

/// Returns the plan as a table for the terminal. It shows the kind, the missing values, the number of
/// different values and the use of each column.
std::string table_of_columns(const TableProfile& table, const TablePlan& plan);
Json json_of_columns(const TableProfile& table, const TablePlan& plan);

}  // namespace dtrain
