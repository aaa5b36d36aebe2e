// The rows of a source, divided into series and sorted by time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/columns/column.h"

namespace dtrain {

/// The rows of all series, one series after the other. The rows of each series are sorted by time.
struct SeriesRows {
  std::vector<int64_t> rows;  // row numbers of the source
  std::vector<int64_t> ends;  // for each series, the end of its rows in `rows`
  // Names of the series, in the order in which they first occur. Empty if there is only one series.
  std::vector<std::string> names;
  std::string source;  // name of the files, for messages

  size_t size() const { return ends.size(); }
  int64_t begin_of(size_t series) const { return series == 0 ? 0 : ends[series - 1]; }
  int64_t rows_of(size_t series) const { return ends[series] - begin_of(series); }
  /// Returns the words for a series in messages: "the series 'A'", or "the file" if there is only one series.
  std::string called(size_t series) const;
};

/// Columns by which rows are sorted. Row 0 of each column is row `first` of the source.
struct OrderColumns {
  // Texts (see SourceColumns::names) or numbers; null if there is only one series.
  const Column* by = nullptr;
  const Column* time = nullptr;  // numbers; null if the rows are already in order
  int64_t first = 0;
  std::string source;  // name of the files, for messages
  // Names of the columns in the configuration. "" if the column is null.
  std::string by_name = {}, time_name = {};
};

/// Two rows of a series that have the same time.
struct RepeatedTime {
  int64_t earlier_row = 0, later_row = 0;  // row numbers of the source
};

/// Divides the rows [from, to) of the source into series, and sorts each series by time. Throws UserError if
/// two rows of a series have the same time, or if a row has no series or no time. The message contains the
/// row numbers. If `repeated` is not null, rows with the same time are not an error: the function adds
/// them to `repeated`, and the result contains only the first row of each time.
SeriesRows sort_series(const OrderColumns& columns, int64_t from, int64_t to,
                       std::vector<RepeatedTime>* repeated = nullptr);

}  // namespace dtrain
