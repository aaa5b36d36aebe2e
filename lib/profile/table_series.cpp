#include "profile/table_series.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/readers/csv/table.h"
#include "data/windows/series_rows.h"

namespace dtrain {

namespace {

constexpr int64_t kShortestSeries = 64;  // a shorter series has no windows

/// Reads the times of the table, and the names of the series if `by` is given.
CsvColumns read_order(const TableProfile& table, const std::string& path, size_t time,
                      std::optional<size_t> by) {
  const CsvFormat format{table.format.delimiter, table.header, table.format.comment, table.notation};
  return read_csv(path, format, [&](const CsvStart&) {
    CsvPlan plan;
    plan.series = by;
    plan.time = time;
    plan.readings[time].dates = {DatePart::days};
    return plan;
  });
}

/// Returns the median of `steps`, the intervals in days between consecutive rows of a series. Returns nullopt
/// if the intervals are not even. Intervals are even if at least nine tenths of them differ from the median
/// by at most a tenth. By this definition, months are even.
std::optional<double> even_interval(const std::vector<double>& steps) {
  if (steps.empty()) return std::nullopt;
  std::vector<double> sorted = steps;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double step = *middle;
  const auto even = std::count_if(steps.begin(), steps.end(),
                                  [&](double one) { return std::abs(one - step) <= 0.1 * step; });
  if (10 * even < 9 * static_cast<int64_t>(steps.size())) return std::nullopt;
  return step;
}

std::vector<double> steps_of(const SeriesRows& series, const Column& times) {
  std::vector<double> days(series.rows.size()), steps;
  times.read(series.rows, days.data());
  for (size_t i = 0; i < series.size(); ++i)
    for (int64_t row = series.begin_of(i) + 1; row < series.ends[i]; ++row)
      steps.push_back(days[static_cast<size_t>(row)] - days[static_cast<size_t>(row - 1)]);
  return steps;
}

std::optional<TableSeries> series_by(const TableProfile& table, const std::string& path, size_t time,
                                     std::optional<size_t> by) {
  constexpr int64_t kMostLength = 48, kMostHorizon = 12;  // rows
  try {
    const CsvColumns order = read_order(table, path, time, by);
    const SeriesRows series =
        sort_series({order.series.get(), order.times.get(), 0, path}, 0, order.times->size());
    int64_t shortest = series.rows_of(0);
    for (size_t i = 1; i < series.size(); ++i) shortest = std::min(shortest, series.rows_of(i));
    const auto days = even_interval(steps_of(series, *order.times));
    if (!days || shortest < kShortestSeries) return std::nullopt;
    return TableSeries{time,
                       by,
                       static_cast<int64_t>(series.size()),
                       *days,
                       std::min(kMostLength, shortest / 8),
                       std::min(kMostHorizon, shortest / 16)};
  } catch (const UserError&) {  // two rows have the same time, or a time or a name of a series is missing
    return std::nullopt;
  }
}

}  // namespace

std::optional<TableSeries> find_series(const TableProfile& table, const std::string& path,
                                       const std::vector<size_t>& times, const std::vector<size_t>& by) {
  for (const size_t time : times) {
    if (table.columns[time].distinct) {
      if (const auto found = series_by(table, path, time, {})) return found;
      continue;
    }
    for (const size_t column : by)
      if (const auto found = series_by(table, path, time, column)) return found;
  }
  return std::nullopt;
}

int64_t count_repeated_times(const TableProfile& table, const std::string& path, size_t time) {
  std::vector<double> days, steps;
  try {
    const CsvColumns order = read_order(table, path, time, {});
    days.resize(static_cast<size_t>(order.times->size()));
    order.times->read(row_numbers(0, order.times->size()), days.data());
  } catch (const UserError&) {  // a time cannot be read
    return 0;
  }
  std::sort(days.begin(), days.end());
  int64_t repeated = 0;
  for (size_t i = 1; i < days.size(); ++i) {
    if (days[i] == days[i - 1]) ++repeated;
    if (days[i] != days[i - 1]) steps.push_back(days[i] - days[i - 1]);
  }
  const bool is_series = std::ssize(days) - repeated >= kShortestSeries && even_interval(steps).has_value();
  return is_series && 100 * repeated <= std::ssize(days) ? repeated : 0;
}

std::string describe_interval(double days) {
  constexpr double kHours = 24, kMinutes = 24 * 60, kSeconds = 24 * 60 * 60;
  const auto in_words = [](double count, const char* noun) {
    const auto whole = static_cast<int64_t>(std::lround(count));
    return whole == 1 ? std::string(noun) : format_plural(whole, noun);
  };
  if (days >= 0.99) return in_words(days, "day");
  if (days * kHours >= 0.99) return in_words(days * kHours, "hour");
  if (days * kMinutes >= 0.99) return in_words(days * kMinutes, "minute");
  return in_words(std::max(1.0, days * kSeconds), "second");
}

}  // namespace dtrain
