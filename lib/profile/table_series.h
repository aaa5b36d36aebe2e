// Recognizes time series in a table, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/column_meaning.h"

namespace dtrain {

/// A table whose rows follow each other in time at even intervals, in one series or several.
struct TableSeries {
  size_t time = 0;                  // the column of times
  std::optional<size_t> by = {};    // the column that names the series; unset if there is only one series
  int64_t series = 1;               // number of series
  double days = 0;                  // interval between rows
  int64_t length = 0, horizon = 0;  // proposed windows, which fit all parts of the shortest series
};

/// Returns the series if the rows of a CSV file, sorted by one of the columns `times`, follow each other at
/// even intervals. Tries each of the columns `by` to name series. Returns nullopt for any other table, and if
/// a series is too short for windows.
std::optional<TableSeries> find_series(const TableProfile& table, const std::string& path,
                                       const std::vector<size_t>& times, const std::vector<size_t>& by);

/// Returns an interval in words: "hour", "15 minutes", "day".
std::string describe_interval(double days);

}  // namespace dtrain
