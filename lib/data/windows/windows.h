// Windows of time series. Determines which rows belong to each sample.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/windows/series_rows.h"
#include "data/windows/windows_options.h"

namespace dtrain {

/// Divides each series into parts by time, and selects one of these parts. If there are no fractions, there
/// is only one part.
struct TimeParts {
  // For each part, the fraction of the rows of a series that the part gets. The parts are in
  // chronological order.
  std::vector<double> fractions = {};
  size_t rest = 0;  // index of the part that gets the remaining rows
  size_t wanted = 0;

  /// Returns the range [first, second) of rows of the wanted part, for a series of `rows` rows.
  std::pair<int64_t, int64_t> part_of(int64_t rows) const;
};

/// Samples that consist of several rows of a time series. All rows are given as row numbers of the source.
struct Windows {
  int64_t length = 0, horizon = 0;
  size_t inputs = 0;            // number of input columns; all further columns are targets
  std::vector<int64_t> order;   // rows, sorted by series and time
  std::vector<int64_t> starts;  // for each window, the index in `order` of its first row
  // All rows of the split in ascending order, each row once; transforms are fitted on these rows.
  std::vector<int64_t> members;
  /// For each window, the name of its series. Empty if are_forecasts is false, or if the option `by` is not
  /// set. (Without this option, there is only one series, and it has no name.)
  std::vector<std::string> names = {};
  std::string title = {};                  // title of `names`, such as the name of a column
  std::vector<std::string> warnings = {};  // one sentence each
  // Whether each window consists of the last rows of its series and has no targets.
  bool are_forecasts = false;

  int64_t size() const { return static_cast<int64_t>(starts.size()); }
  /// Returns the number of rows of a column that belong to one sample.
  int64_t rows_in(size_t column) const { return column < inputs ? length : horizon; }
  /// Returns the row number of the last input row of a window. This row identifies the window.
  int64_t row(int64_t window) const {
    return order[static_cast<size_t>(starts[static_cast<size_t>(window)] + length - 1)];
  }
  /// Appends the row numbers of a window's rows in a column.
  void append_rows(size_t column, int64_t window, std::vector<int64_t>& rows) const;
};

/// Returns all windows whose targets are in the wanted part of their series. The inputs of a window may begin
/// before this part. `inputs` is the number of input columns. Throws UserError if a series is shorter than
/// length + horizon, or if no series has enough rows in this part for a window.
Windows windows_of_part(SeriesRows series, const WindowsOptions& options, const TimeParts& parts,
                        size_t inputs);

/// Returns one window for each series. It consists of the last `length` rows of the series and has no
/// targets. Throws UserError if a series has fewer rows.
Windows windows_of_forecasts(SeriesRows series, const WindowsOptions& options, size_t inputs);

}  // namespace dtrain
