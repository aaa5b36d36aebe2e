#include "data/windows/series_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "data/stages/number_at.h"

namespace dtrain {

namespace {

/// Reads the rows [from, to) of the source, and calls visit(i, bytes) for each row. `i` is the number of the
/// row counted from `from`. `bytes` is the content of the row in `column`. Row 0 of `column` is row `first`
/// of the source.
template <class Visit>
void for_each_key(const Column& column, int64_t first, int64_t from, int64_t to, Visit visit) {
  for_each_block(column, from - first, to - first, [&](int64_t begin, int64_t count, size_t) {
    const auto block = allocate_bytes(static_cast<size_t>(count) * column.row_bytes());
    column.read(row_numbers(begin, count), block.get());
    for (int64_t i = 0; i < count; ++i)
      visit(static_cast<size_t>(begin + first - from + i),
            block.get() + static_cast<size_t>(i) * column.row_bytes());
  });
}

void check_key(const Column& column, const OrderColumns& columns, const std::string& name,
               const char* option) {
  if (column.row_elements() != 1)
    throw UserError(
        fmt::format("{}: the array '{}', which the option '{}' of 'windows' names, must have one value per "
                    "row, but has {}",
                    columns.source, name, option, column.row_elements()));
}

/// Returns the name of the series that a row of the column contains. Returns "" if the row contains no name.
std::string series_name(const Column& column, const std::byte* row) {
  const TensorSpec& spec = column.spec();
  if (spec.dtype != DType::uint8 || spec.shape.rank() == 0) {
    const double number = number_at(row, spec.dtype, 0);
    return std::isnan(number) ? "" : fmt::format("{}", number);
  }
  const auto* const text = reinterpret_cast<const char*>(row);
  return {text, std::find(text, text + column.row_bytes(), '\0')};
}

/// Returns the index of the series of each row. Adds the names of the series to `names`, in the order in
/// which they first occur.
std::vector<size_t> series_of_rows(const OrderColumns& columns, int64_t from, int64_t to,
                                   std::vector<std::string>& names) {
  std::vector<size_t> series(static_cast<size_t>(to - from));
  if (!columns.by) return series;
  const Column& by = *columns.by;
  if (by.spec().dtype != DType::uint8) check_key(by, columns, columns.by_name, "by");
  std::unordered_map<std::string, size_t> known;
  for_each_key(by, columns.first, from, to, [&](size_t i, const std::byte* row) {
    std::string name = series_name(by, row);
    if (name.empty())
      throw UserError(
          fmt::format("{}: '{}', which the option 'by' of 'windows' names, must contain the name of a "
                      "series in each row, but row {} (counted from 0) has none",
                      columns.source, columns.by_name, from + static_cast<int64_t>(i)));
    const auto [found, is_new] = known.try_emplace(std::move(name), names.size());
    if (is_new) names.push_back(found->first);
    series[i] = found->second;
  });
  return series;
}

std::vector<double> times_of_rows(const OrderColumns& columns, int64_t from, int64_t to) {
  std::vector<double> times;
  if (!columns.time) return times;
  const Column& time = *columns.time;
  check_key(time, columns, columns.time_name, "time");
  times.resize(static_cast<size_t>(to - from));
  for_each_key(time, columns.first, from, to, [&](size_t i, const std::byte* row) {
    times[i] = number_at(row, time.spec().dtype, 0);
    if (!std::isfinite(times[i]))
      throw UserError(fmt::format(
          "{}: '{}', which the option 'time' of 'windows' names, must contain a time in each row, but "
          "row {} (counted from 0) has none",
          columns.source, columns.time_name, from + static_cast<int64_t>(i)));
  });
  return times;
}

[[noreturn]] void fail_repeated(const OrderColumns& columns, const RepeatedTime& rows,
                                const std::string& series) {
  throw UserError(fmt::format(
      "{}: windows: rows {} and {} (counted from 0) of {} have the same time, but each row must have a "
      "different time{}; if a clock was set back (daylight saving time), convert the times to UTC or remove "
      "the repeated rows",
      columns.source, rows.earlier_row, rows.later_row, series,
      columns.by ? "" : "; if the file has several series, set 'by' to the column that names the series"));
}

}  // namespace

std::string SeriesRows::called(size_t series) const {
  return names.empty() ? "the file" : fmt::format("the series '{}'", names[series]);
}

SeriesRows sort_series(const OrderColumns& columns, int64_t from, int64_t to,
                       std::vector<RepeatedTime>* repeated) {
  SeriesRows sorted{{}, {}, {}, columns.source};
  const std::vector<size_t> series = series_of_rows(columns, from, to, sorted.names);
  const std::vector<double> times = times_of_rows(columns, from, to);
  std::vector<size_t> order(series.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (series[a] != series[b]) return series[a] < series[b];
    return !times.empty() && times[a] < times[b];
  });
  sorted.rows.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_first = i == 0 || series[order[i]] != series[order[i - 1]];
    if (is_first && i > 0) sorted.ends.push_back(std::ssize(sorted.rows));
    const int64_t row = from + static_cast<int64_t>(order[i]);
    if (!is_first && !times.empty() && times[order[i]] == times[order[i - 1]]) {
      const RepeatedTime rows{sorted.rows.back(), row};
      if (!repeated) fail_repeated(columns, rows, sorted.called(series[order[i]]));
      repeated->push_back(rows);
    } else {
      sorted.rows.push_back(row);
    }
  }
  sorted.ends.push_back(std::ssize(sorted.rows));
  return sorted;
}

}  // namespace dtrain
