#include "profile/table_plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "profile/table_relations.h"

namespace dtrain {

namespace {

using Use = ColumnRole::Use;

ColumnRole role_of_column(const TableProfile& table, size_t place) {
  const ColumnMeaning meaning = meaning_of(table, place);
  std::string why = why_no_feature(table.columns[place], meaning);
  return {meaning, why.empty() ? Use::feature : Use::left_out, std::move(why)};
}

/// Chooses the first column that identifies the rows. Its values become the ids of the predictions.
void choose_id(const TableProfile& table, TablePlan& plan) {
  const auto found = std::find_if(plan.columns.begin(), plan.columns.end(), [](const ColumnRole& column) {
    return column.use == Use::left_out && column.meaning == ColumnMeaning::id;
  });
  if (found == plan.columns.end()) return;
  found->use = Use::id;
  found->why = "";
  const auto place = static_cast<size_t>(found - plan.columns.begin());
  if (const std::string odd = why_no_numbers(table.columns[place]); !odd.empty())
    plan.warnings.push_back(fmt::format("{}, which identifies the rows: {}", called(table, place), odd));
}

/// Warns that the time series `series` are not used, because some rows have the same time as another row of
/// their series.
void warn_of_repeated_times(const TableProfile& table, const std::string& path, const TableSeries& series,
                            TablePlan& plan) {
  const auto repeated = static_cast<int64_t>(series.repeated.size());
  plan.warnings.push_back(fmt::format(
      "{}: the rows would be {}, but {} the same time as an earlier row{} ({}), so the configuration "
      "does not forecast, and its splits are drawn at random; if a clock was set back (daylight saving "
      "time), convert the times to UTC or remove the repeated rows, and write a new configuration",
      called(table, series.time),
      series.by ? fmt::format("{} time series ({})", format_count(series.series), called(table, *series.by))
                : "a time series",
      repeated == 1 ? "one row has" : format_plural(repeated, "row") + " have",
      series.by ? " of the same series" : "", describe_repeated(table, path, series)));
}

/// Proposes windows if the target is a number and the rows form time series. Samples that are windows have no
/// ids.
void choose_series(const TableProfile& table, const std::string& path, TablePlan& plan) {
  if (!plan.target.regression) return;
  std::vector<size_t> times = plan.features(ColumnMeaning::date), by;
  std::erase_if(times, [&](size_t i) { return table.columns[i].missing > 0; });
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    const bool is_name = column.kind == ColumnProfile::Kind::text ||
                         (column.kind == ColumnProfile::Kind::number && column.whole);
    if (is_name && i != plan.target.column && !column.many_values && column.values.size() > 1 &&
        column.missing == 0)
      by.push_back(i);
  }
  const std::optional<TableSeries> found = find_series(table, path, times, by);
  if (!found) return;
  if (!found->repeated.empty()) return warn_of_repeated_times(table, path, *found, plan);
  plan.series = found;
  plan.columns[plan.series->time].use = Use::time;
  if (plan.series->by) {
    plan.columns[*plan.series->by].use = Use::series;
    plan.columns[*plan.series->by].why = "";
  }
  for (const size_t id : plan.places(Use::id)) {
    plan.columns[id].use = Use::left_out;
    plan.columns[id].why = "it identifies the rows";
  }
}

/// Warns about columns that would be numeric except for a few texts.
void warn_of_odd_numbers(const TableProfile& table, TablePlan& plan) {
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    const ColumnRole& column = plan.columns[i];
    const std::string odd = why_no_numbers(table.columns[i]);
    if (odd.empty() || (column.use != Use::feature && column.meaning != ColumnMeaning::odd_numbers)) continue;
    const std::string what =
        column.use == Use::feature
            ? fmt::format("becomes {} with the values 0 and 1, although most of its values are numbers",
                          format_plural(static_cast<int64_t>(table.columns[i].values.size()), "feature"))
            : "is left out";
    plan.warnings.push_back(
        fmt::format("{} {}: {}; correct these values, or leave them empty, and write a new configuration",
                    called(table, i), what, odd));
  }
}

/// Formats lists as "'a'", "'a' and 'b'" or "'a', 'b', 'c' and 4 more".
std::string list_of(const TableProfile& table, const std::vector<size_t>& places) {
  constexpr size_t kMostShown = 3;
  std::vector<std::string> names;
  for (const size_t place : places) names.push_back(called(table, place));
  if (names.size() > kMostShown + 1) {
    const auto more = static_cast<int64_t>(names.size() - kMostShown);
    names.resize(kMostShown);
    return fmt::format("{} and {} more", fmt::join(names, ", "), format_count(more));
  }
  if (names.size() == 1) return names[0];
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

/// Warns about features that reveal the target. A feature may even be the target under another name. Such
/// features are left out if there are other features.
void settle_giveaways(const TableProfile& table, TablePlan& plan) {
  const size_t target = plan.target.column;
  std::vector<size_t> same, determining, determined;
  const std::vector<size_t> features = plan.places(Use::feature);
  for (const size_t place : features) {
    const ColumnRelation relation = relate(table.columns[place], table.columns[target]);
    if (relation.is_same)
      same.push_back(place);
    else if (relation.determines)
      determining.push_back(place);
    else if (relation.is_determined)
      determined.push_back(place);
  }
  const std::string name = called(table, target);
  constexpr const char* kAdvice = "add a column to 'drop' if its values are not known before the target";
  if (same.size() == features.size()) {
    determining.insert(determining.end(), same.begin(), same.end());
  } else if (!same.empty()) {
    for (const size_t place : same) {
      plan.columns[place].use = Use::left_out;
      plan.columns[place].why = fmt::format("it is the target, {}, under another name", name);
    }
    plan.warnings.push_back(fmt::format(
        "{} {} left out, because {} the target, {}, under another name: each value of such a column "
        "corresponds to a single value of the target, and vice versa; to train on the column anyway, remove "
        "it from 'drop'",
        list_of(table, same), same.size() == 1 ? "is" : "are", same.size() == 1 ? "it is" : "each is", name));
  }
  if (!determining.empty())
    plan.warnings.push_back(fmt::format(
        "{}{} alone determines the target, {}: each value corresponds to a single value of the target; {}",
        determining.size() == 1 ? "" : "each of ", list_of(table, determining), name, kAdvice));
  if (!determined.empty())
    plan.warnings.push_back(
        fmt::format("the target, {}, alone determines {}: each value of the target corresponds to a single "
                    "value of such a column; {}",
                    name, list_of(table, determined), kAdvice));
}

/// If there are no other features, this function makes a column of free text a feature. It chooses the column
/// with the most words.
void choose_text(const TableProfile& table, TablePlan& plan) {
  std::optional<size_t> longest;
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    const ColumnRole& column = plan.columns[i];
    if (column.use != Use::left_out || column.meaning != ColumnMeaning::free_text) continue;
    if (!longest || table.columns[i].words > table.columns[*longest].words) longest = i;
  }
  if (!longest) return;
  plan.columns[*longest].use = Use::feature;
  plan.columns[*longest].why = "";
}

void check_rows(const TableProfile& table) {
  constexpr int64_t kLeast = 10;
  if (table.rows < kLeast)
    throw UserError(
        fmt::format("the table has {}, which is not enough for training, validation and test splits; at "
                    "least {} rows are needed",
                    format_plural(table.rows, "row"), kLeast));
}

/// Warns if the table has few rows. Otherwise warns if classes are rare; both warnings together would be
/// redundant.
void warn_of_few_rows(const TableProfile& table, TablePlan& plan) {
  constexpr int64_t kFew = 50;
  const int64_t of_test = std::max<int64_t>(table.rows * 15 / 100, 1);
  if (table.rows < kFew)
    plan.warnings.push_back(fmt::format(
        "the table has {}, and the test split has only {} of them, so its results are not reliable",
        format_plural(table.rows, "row"), of_test));
  else if (!plan.target.rare_warning.empty())
    plan.warnings.push_back(plan.target.rare_warning);
}

}  // namespace

std::vector<size_t> TablePlan::places(ColumnRole::Use use) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].use == use) found.push_back(i);
  return found;
}

std::vector<size_t> TablePlan::features(ColumnMeaning meaning) const {
  std::vector<size_t> found = places(Use::feature);
  std::erase_if(found, [&](size_t i) { return columns[i].meaning != meaning; });
  return found;
}

std::optional<size_t> TablePlan::text() const {
  const std::vector<size_t> texts = features(ColumnMeaning::free_text);
  return texts.empty() ? std::nullopt : std::optional(texts.front());
}

std::vector<size_t> TablePlan::indicators(const TableProfile& table) const {
  constexpr int64_t kShare = 20;
  std::vector<size_t> found = places(Use::feature);
  std::erase_if(found, [&](size_t i) {
    const ColumnMeaning meaning = columns[i].meaning;
    return (meaning != ColumnMeaning::number && meaning != ColumnMeaning::amount) ||
           kShare * table.columns[i].missing < table.rows;
  });
  return found;
}

TablePlan plan_table(const TableProfile& table, const std::string& path, const std::string& wanted_target) {
  TablePlan plan;
  check_rows(table);
  plan.target = choose_target(table, wanted_target);
  plan.warnings = plan.target.warnings;
  warn_of_few_rows(table, plan);
  for (size_t i = 0; i < table.columns.size(); ++i) plan.columns.push_back(role_of_column(table, i));
  plan.columns[plan.target.column].use = Use::target;
  choose_id(table, plan);
  choose_series(table, path, plan);
  warn_of_odd_numbers(table, plan);
  // The following check for features that reveal the target is skipped for time series: their features
  // include past values of the target, so other features may depend on the target.
  if (plan.series) return plan;
  settle_giveaways(table, plan);
  if (plan.places(Use::feature).empty()) choose_text(table, plan);
  if (!plan.places(Use::feature).empty()) return plan;
  throw UserError(
      "the table has no column to predict from; expected columns of numbers, or of text with few different "
      "values\n" +
      table_of_columns(table, plan));
}

}  // namespace dtrain
