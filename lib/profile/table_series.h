// Recognizes time series in a table, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/windows/series_rows.h"
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
  // Rows with the same time. Windows are possible only after the user has corrected these rows.
  std::vector<RepeatedTime> repeated = {};
};

/// Returns the time series in a CSV file. The rows of each series must follow each other at even intervals
/// when they are sorted by one of the columns `times`. Each of the columns `by` is tried as the column with
/// the name of the series. Returns nullopt if the table has no such series, or if a series is too short for
/// windows. If every possible choice of the columns leads to rows with the same time, but these are at most
/// one in a hundred rows, returns the result for one of the choices. Its member `repeated` then contains
/// these rows.
std::optional<TableSeries> find_series(const TableProfile& table, const std::string& path,
                                       const std::vector<size_t>& times, const std::vector<size_t>& by);

/// Returns the line numbers of the rows with the same time: "lines 601 and 602", or, if there are more than
/// three pairs, "lines 601 and 602, 801 and 802, 901 and 902, and 5 more".
std::string describe_repeated(const TableProfile& table, const std::string& path, const TableSeries& series);

/// Returns an interval in words: "hour", "15 minutes", "day".
std::string describe_interval(double days);

}  // namespace dtrain
