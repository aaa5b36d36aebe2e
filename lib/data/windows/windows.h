// Windows of time series: the rows of each sample.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/windows/series_rows.h"
#include "data/windows/windows_options.h"

namespace dtrain {

/// The division of series by time, and the part that is wanted. Without fractions there is one part.
struct TimeParts {
  std::vector<double> fractions = {};  // fractions of the rows of a series, from the first part to the last
  size_t rest = 0;                     // index of the part that takes the remaining rows
  size_t wanted = 0;

  /// Returns the wanted part [first, second) of a series of `rows` rows.
  std::pair<int64_t, int64_t> part_of(int64_t rows) const;
};

/// Samples that consist of several rows of a series. Rows are row numbers of the source.
struct Windows {
  int64_t length = 0, horizon = 0;
  size_t inputs = 0;             // number of columns that are inputs; further columns are targets
  std::vector<int64_t> order;    // rows, sorted by series and time
  std::vector<int64_t> starts;   // indexed by window: index in `order` of its first row
  std::vector<int64_t> members;  // rows of the split, ascending, each once: transforms are fitted on them
  /// Indexed by window: name of the series that ends with the window. Empty if are_forecasts is false, or if
  /// there is only one series, which has no name.
  std::vector<std::string> names = {};
  std::string title = {};                  // title of the list `names`
  std::vector<std::string> warnings = {};  // one sentence each
  bool are_forecasts = false;              // whether each window is the end of its series, without targets

  int64_t size() const { return static_cast<int64_t>(starts.size()); }
  /// Returns the number of rows that a sample has in a column.
  int64_t rows_in(size_t column) const { return column < inputs ? length : horizon; }
  /// Returns the last row of a window's inputs, which identifies it.
  int64_t row(int64_t window) const {
    return order[static_cast<size_t>(starts[static_cast<size_t>(window)] + length - 1)];
  }
  /// Appends the rows of a window in a column.
  void append_rows(size_t column, int64_t window, std::vector<int64_t>& rows) const;
};

/// Returns the windows whose targets are in the wanted part of their series. Their inputs may begin before
/// the part. `inputs` is the number of columns that are inputs. Throws UserError if a series is shorter than
/// length + horizon, and if the part is too short for a window in every series.
Windows windows_of_part(SeriesRows series, const WindowsOptions& options, const TimeParts& parts,
                        size_t inputs);

/// Returns one window for each series: its last `length` rows, without targets. Throws UserError if a series
/// is shorter.
Windows windows_of_forecasts(SeriesRows series, const WindowsOptions& options, size_t inputs);

}  // namespace dtrain
