// Recognizes time series in a table, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/column_meaning.h"

namespace dtrain {

/// A table of one or several time series. The rows of a series follow each other at even intervals.
struct TableSeries {
  size_t time = 0;  // the column of times
  // The column with the name of the series; nullopt if there is only one series.
  std::optional<size_t> by = {};
  int64_t series = 1;               // number of series
  double days = 0;                  // interval between rows
  int64_t length = 0, horizon = 0;  // proposed windows; they fit into all parts of the shortest series
};

/// Returns the time series in a CSV file. The rows of each series must follow each other at even intervals
/// when they are sorted by one of the columns `times`. Each of the columns `by` is tried as the column with
/// the name of the series. Returns nullopt if the table has no such series, or if a series is too short for
/// windows.
std::optional<TableSeries> find_series(const TableProfile& table, const std::string& path,
                                       const std::vector<size_t>& times, const std::vector<size_t>& by);

/// Returns the number of rows that have the same time as an earlier row, if the table would be a time series
/// without these rows and at most one row in a hundred is such a row. Otherwise returns 0.
int64_t count_repeated_times(const TableProfile& table, const std::string& path, size_t time);

/// Returns an interval in words: "hour", "15 minutes", "day".
std::string describe_interval(double days);

}  // namespace dtrain
