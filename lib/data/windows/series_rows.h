// The rows of a source, divided into series and sorted by time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/columns/column.h"

namespace dtrain {

/// Row numbers of a source, series by series, sorted by time within each series.
struct SeriesRows {
  std::vector<int64_t> rows;  // row numbers of the source
  std::vector<int64_t> ends;  // indexed by series: end of its rows in `rows`
  // Names of the series, in the order of their first rows; empty if there is only one series.
  std::vector<std::string> names;
  std::string source;  // name of the files, for messages

  size_t size() const { return ends.size(); }
  int64_t begin_of(size_t series) const { return series == 0 ? 0 : ends[series - 1]; }
  int64_t rows_of(size_t series) const { return ends[series] - begin_of(series); }
  /// Returns the series for messages: "the series 'A'", or "the file".
  std::string called(size_t series) const;
};

/// Columns by which rows are sorted. Row 0 of each column is row `first` of the source.
struct OrderColumns {
  const Column* by = nullptr;    // texts (as SourceColumns::names) or numbers; null if there is one series
  const Column* time = nullptr;  // numbers; null if rows are in order
  int64_t first = 0;
  std::string source;  // name of the files, for messages
  // Names of the columns in the configuration; "" for a column that is null.
  std::string by_name = {}, time_name = {};
};

/// Sorts the rows [from, to) of the source. Throws UserError with the rows' numbers if two rows of a series
/// have the same time, and if a row has no series or no time.
SeriesRows sort_series(const OrderColumns& columns, int64_t from, int64_t to);

}  // namespace dtrain
