#include "profile/table_series.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "data/readers/csv/table.h"
#include "data/readers/csv/text.h"

namespace dtrain {

namespace {

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

/// Returns the median interval, in days, between consecutive rows of a series. Returns nullopt if the
/// intervals are not even. Intervals are even if at least nine tenths of them differ from the median by at
/// most a tenth. By this definition, months are even.
std::optional<double> even_interval(const SeriesRows& series, const Column& times) {
  std::vector<double> days(series.rows.size()), steps;
  times.read(series.rows, days.data());
  for (size_t i = 0; i < series.size(); ++i)
    for (int64_t row = series.begin_of(i) + 1; row < series.ends[i]; ++row)
      steps.push_back(days[static_cast<size_t>(row)] - days[static_cast<size_t>(row - 1)]);
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

std::optional<TableSeries> series_by(const TableProfile& table, const std::string& path, size_t time,
                                     std::optional<size_t> by) {
  constexpr int64_t kShortest = 64, kMostLength = 48, kMostHorizon = 12;  // rows
  constexpr int64_t kFew = 100;  // at most one row in `kFew` may have the same time as an earlier row
  try {
    const CsvColumns order = read_order(table, path, time, by);
    std::vector<RepeatedTime> repeated;
    const SeriesRows series =
        sort_series({order.series.get(), order.times.get(), 0, path}, 0, order.times->size(), &repeated);
    int64_t shortest = series.rows_of(0);
    for (size_t i = 1; i < series.size(); ++i) shortest = std::min(shortest, series.rows_of(i));
    if (shortest < kShortest || kFew * std::ssize(repeated) > order.times->size()) return std::nullopt;
    const auto days = even_interval(series, *order.times);
    if (!days) return std::nullopt;
    return TableSeries{time,
                       by,
                       static_cast<int64_t>(series.size()),
                       *days,
                       std::min(kMostLength, shortest / 8),
                       std::min(kMostHorizon, shortest / 16),
                       std::move(repeated)};
  } catch (const UserError&) {  // a time or a name of a series is missing
    return std::nullopt;
  }
}

}  // namespace

std::optional<TableSeries> find_series(const TableProfile& table, const std::string& path,
                                       const std::vector<size_t>& times, const std::vector<size_t>& by) {
  std::optional<TableSeries> with_repeated;
  for (const size_t time : times) {
    std::vector<std::optional<size_t>> names;
    if (!table.columns[time].distinct) names.assign(by.begin(), by.end());
    names.push_back(std::nullopt);  // the table is one series
    for (const std::optional<size_t> name : names) {
      auto found = series_by(table, path, time, name);
      if (found && found->repeated.empty()) return found;
      // Almost any column may look like the names of series, for example a column that marks weekends.
      // Therefore, a single series is preferred to several series.
      if (found && (!with_repeated || (with_repeated->by && !name))) with_repeated = std::move(found);
    }
  }
  return with_repeated;
}

std::string describe_repeated(const TableProfile& table, const std::string& path, const TableSeries& series) {
  constexpr size_t kMostShown = 3;
  const CsvText text(path, table.format.delimiter, table.format.comment);
  const auto line_of = [&](int64_t row) {
    return text.line_of(text.find(row + (table.header ? 1 : 0), series.time));
  };
  std::vector<std::string> pairs;
  for (size_t i = 0; i < std::min(kMostShown, series.repeated.size()); ++i)
    pairs.push_back(fmt::format("{} and {}", line_of(series.repeated[i].earlier_row),
                                line_of(series.repeated[i].later_row)));
  const auto more = std::ssize(series.repeated) - std::ssize(pairs);
  return fmt::format("lines {}{}", fmt::join(pairs, ", "),
                     more > 0 ? fmt::format(", and {} more", format_count(more)) : "");
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
