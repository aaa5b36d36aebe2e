#include "data/windows/windows.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace dtrain {

namespace {

/// Throws UserError if a series has fewer than `least` rows. `expected` explains this number in the message.
void check_lengths(const SeriesRows& series, int64_t least, const char* expected) {
  for (size_t i = 0; i < series.size(); ++i)
    if (series.rows_of(i) < least)
      throw UserError(fmt::format("{0}: windows: {3} needs at least {1} rows ({2}), but has only {4}",
                                  series.source, least, expected, series.called(i), series.rows_of(i)));
}

Windows begin_windows(const SeriesRows& series, const WindowsOptions& options, size_t inputs) {
  Windows windows;
  windows.length = options.length;
  windows.horizon = options.horizon;
  windows.inputs = inputs;
  windows.title = options.by.value_or("series");
  windows.members.reserve(series.rows.size());
  return windows;
}

}  // namespace

std::pair<int64_t, int64_t> TimeParts::part_of(int64_t rows) const {
  if (fractions.empty()) return {0, rows};
  std::vector<int64_t> counts(fractions.size(), 0);
  int64_t left = rows;
  for (size_t i = fractions.size(); i-- > 0;) {
    if (i == rest) continue;
    const auto rounded = static_cast<int64_t>(std::floor(fractions[i] * static_cast<double>(rows) + 0.5));
    counts[i] = std::min(left, std::max<int64_t>(1, rounded));
    left -= counts[i];
  }
  counts[rest] = left;
  int64_t begin = 0;
  for (size_t i = 0; i < wanted; ++i) begin += counts[i];
  return {begin, begin + counts[wanted]};
}

void Windows::append_rows(size_t column, int64_t window, std::vector<int64_t>& rows) const {
  const int64_t start = starts[static_cast<size_t>(window)] + (column < inputs ? 0 : length);
  const auto first = order.begin() + start;
  rows.insert(rows.end(), first, first + rows_in(column));
}

Windows windows_of_part(SeriesRows series, const WindowsOptions& options, const TimeParts& parts,
                        size_t inputs) {
  const int64_t extent = options.length + options.horizon;
  check_lengths(series, extent, "length + horizon");
  Windows windows = begin_windows(series, options, inputs);
  size_t without = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    const auto [begin, end] = parts.part_of(series.rows_of(i));
    const int64_t first = series.begin_of(i);
    const size_t before = windows.starts.size();
    for (int64_t start = std::max<int64_t>(0, begin - options.length); start + extent <= end;
         start += options.stride)
      windows.starts.push_back(first + start);
    if (windows.starts.size() == before) ++without;
    windows.members.insert(windows.members.end(), series.rows.begin() + first + begin,
                           series.rows.begin() + first + end);
  }
  if (windows.starts.empty()) {
    const auto [begin, end] = parts.part_of(series.rows_of(0));
    throw UserError(fmt::format(
        "{}: windows: no series has enough rows for a window in this split: {}the split has {} of {}, "
        "but at least {} are needed for length {} and horizon {}; change the fractions of the splits, or "
        "make the windows shorter",
        series.source, series.size() > 1 ? "for example, " : "", format_plural(end - begin, "row"),
        series.called(0), std::max(options.horizon, extent - begin), options.length, options.horizon));
  }
  if (without > 0)
    windows.warnings.push_back(fmt::format(
        "{}: windows: {} of {} series have too few rows in this split for a window and are not used",
        series.source, without, series.size()));
  std::sort(windows.members.begin(), windows.members.end());
  windows.order = std::move(series.rows);
  return windows;
}

Windows windows_of_forecasts(SeriesRows series, const WindowsOptions& options, size_t inputs) {
  check_lengths(series, options.length, "the length of a window");
  Windows windows = begin_windows(series, options, inputs);
  for (const int64_t end : series.ends) windows.starts.push_back(end - options.length);
  windows.names = std::move(series.names);
  windows.order = std::move(series.rows);
  windows.are_forecasts = true;
  return windows;
}

}  // namespace dtrain
