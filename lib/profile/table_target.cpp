#include "profile/table_target.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "config/diagnostics.h"
#include "profile/column_meaning.h"

namespace dtrain {

namespace {

using ColumnKind = ColumnProfile::Kind;

bool has_name(const ColumnProfile& column, std::string_view name) {
  return in_small_letters(column.name) == name;
}

/// Returns true if the table has a numeric column with this name.
bool has_numbers(const TableProfile& table, std::string_view name) {
  return std::any_of(table.columns.begin(), table.columns.end(), [&](const ColumnProfile& column) {
    return column.kind == ColumnKind::number && has_name(column, name);
  });
}

/// Returns true if the column is a coordinate. This is a numeric column called x, y or z in a table that has
/// numeric columns x and y. Coordinates are unlikely targets: one of them is chosen only if there is no
/// likely target.
bool is_coordinate(const TableProfile& table, size_t place) {
  const ColumnProfile& column = table.columns[place];
  const bool named = has_name(column, "x") || has_name(column, "y") || has_name(column, "z");
  return named && column.kind == ColumnKind::number && has_numbers(table, "x") && has_numbers(table, "y");
}

/// Returns true if the column contains each integer of a range exactly once, in any order.
bool has_consecutive_numbers(const TableProfile& table, const ColumnProfile& column) {
  constexpr int64_t kLeastRows = 20;
  return column.kind == ColumnKind::number && column.whole && column.distinct && column.missing == 0 &&
         table.rows >= kLeastRows && column.most - column.least == static_cast<double>(table.rows - 1);
}

/// Returns the number of rows in which the column has a value.
int64_t known_rows(const TableProfile& table, size_t place) {
  return table.rows - table.columns[place].missing;
}

/// Returns true if the numbers look like class labels. Such numbers are small integers with few different
/// values, such as 0 to 9, or -1 and 1.
bool are_labels(const ColumnProfile& column, int64_t rows) {
  constexpr double kMostLabel = 20;
  constexpr size_t kMostLabels = 20;
  return column.kind == ColumnKind::number && column.whole && !column.many_values &&
         column.values.size() <= kMostLabels && 2 * static_cast<int64_t>(column.values.size()) <= rows &&
         ((column.least >= 0 && column.most <= kMostLabel) || (column.least == -1 && column.most == 1));
}

/// Returns the reason why the texts of a column cannot be class labels. Returns "" if they can. On average,
/// each class must have at least `rows_each` rows.
std::string why_no_classes(const TableProfile& table, size_t place, int64_t rows_each) {
  const ColumnProfile& column = table.columns[place];
  const auto classes = static_cast<int64_t>(column.values.size());
  const int64_t rows = known_rows(table, place);
  if (!column.many_values && rows_each * classes <= rows) return "";
  return fmt::format("it has {}{} different texts in {}, too many to be classes",
                     column.many_values ? "more than " : "", format_count(classes),
                     format_plural(rows, "row"));
}

/// Returns true if a column that contains mostly numbers, but also texts, has class labels.
bool are_odd_labels(const ColumnProfile& column) {
  constexpr size_t kMostLabels = 20;
  return !column.many_values && column.values.size() <= kMostLabels && is_most(column.numbers, column);
}

/// Returns why a column cannot be predicted at all, or "" if it can.
std::string why_no_target(const TableProfile& table, size_t place) {
  const ColumnProfile& column = table.columns[place];
  if (column.kind == ColumnKind::empty) return "it is empty";
  if (column.kind == ColumnKind::date) return "it contains dates";
  if (!column.many_values && column.values.size() == 1)
    return fmt::format("all rows{} have the same value, {}, so there is nothing to learn",
                       column.missing > 0 ? " that have a value" : "", quoted_value(column.values[0]));
  if (const std::string why = why_no_numbers(column); !why.empty() && !are_odd_labels(column)) return why;
  constexpr int64_t kLeastRows = 2;
  return column.kind == ColumnKind::text ? why_no_classes(table, place, kLeastRows) : "";
}

/// Returns why a predictable column is an unlikely target, or "" if it is a likely one.
std::string why_unlikely(const TableProfile& table, size_t place) {
  const ColumnProfile& column = table.columns[place];
  const ColumnMeaning meaning = meaning_of(table, place);
  if (meaning == ColumnMeaning::row_number || meaning == ColumnMeaning::id)
    return why_no_feature(column, meaning);
  if (is_coordinate(table, place)) return "it is a coordinate";
  if (has_consecutive_numbers(table, column)) return "it contains each number of a range once, like an id";
  constexpr int64_t kUsualRows = 5;
  return column.kind == ColumnKind::text && column.odd_text.empty() ? why_no_classes(table, place, kUsualRows)
                                                                    : "";
}

size_t find_wanted(const TableProfile& table, const std::string& wanted) {
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (shown(table, i) == wanted) return i;
  std::vector<std::string> names;
  for (size_t i = 0; i < table.columns.size(); ++i) names.push_back(shown(table, i));
  const std::string meant = suggestion(wanted, names);
  throw UserError(fmt::format("--target: there is no column '{}'{} columns are {}", wanted,
                              meant.empty() ? "; the" : meant + " The", fmt::join(names, ", ")));
}

/// Returns all columns except `other`. The most likely target is first.
std::vector<size_t> likely_targets(const TableProfile& table, std::optional<size_t> other) {
  constexpr std::array<std::string_view, 17> kUsual{
      "target", "label",    "labels", "class",    "classes",   "species", "category", "outcome", "y",
      "output", "response", "result", "survived", "diagnosis", "churn",   "quality",  "price"};
  std::vector<size_t> places;
  const auto add = [&](size_t place) {
    if (other != place && std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(place);
  };
  // If the table has x, y and z, the target is more likely z than y.
  const bool has_xyz = has_numbers(table, "x") && has_numbers(table, "z");
  for (const std::string_view name : kUsual)
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (has_name(table.columns[i], name) && !(name == "y" && has_xyz)) add(i);
  for (size_t i = table.columns.size(); i-- > 0;) add(i);
  return places;
}

/// Returns the first column that can be predicted and is not an unlikely target. If there is none, returns
/// the first column that can be predicted.
size_t guess_target(const TableProfile& table, const std::vector<size_t>& places, std::string& note) {
  const auto find = [&](const auto& why) {
    return std::find_if(places.begin(), places.end(), [&](size_t place) { return why(place).empty(); });
  };
  const auto why_not = [&](size_t place) {
    const std::string why = why_unlikely(table, place);
    return why.empty() ? why_no_target(table, place) : why;
  };
  auto found = find(why_not);
  if (found == places.end()) found = find([&](size_t place) { return why_no_target(table, place); });
  if (found == places.end()) {
    constexpr size_t kMostShown = 5;
    std::vector<std::string> all;
    for (size_t i = 0; i < std::min(places.size(), kMostShown); ++i)
      all.push_back(fmt::format("{}: {}", called(table, places[i]), why_no_target(table, places[i])));
    if (places.size() > kMostShown) all.emplace_back("...");
    throw UserError(fmt::format("the table has no column that can be predicted; {}", fmt::join(all, "; ")));
  }
  if (found != places.begin())
    note = fmt::format("{} was not chosen as the target: {}; use --target to choose another column",
                       called(table, places.front()), why_not(places.front()));
  return *found;
}

/// Sets the number of classes, whether some classes are rare, and whether every class has enough rows for all
/// splits.
void plan_classes(const TableProfile& table, TargetPlan& plan) {
  const ColumnProfile& column = table.columns[plan.column];
  plan.classes = static_cast<int64_t>(column.values.size());
  const bool counted = column.least == 0 && column.most == static_cast<double>(plan.classes - 1);
  plan.names_are_numbers = column.kind == ColumnKind::number && !counted;
  const auto [least, most] = std::minmax_element(column.counts.begin(), column.counts.end());
  plan.rare = *most >= kRareClass * *least;
  constexpr int64_t kSplits = 3;
  plan.stratify = *least >= kSplits;
  if (!plan.stratify)
    plan.rare_warning = fmt::format(
        "the class {} has only {}, too few to put one into each of the training, validation and test splits, "
        "so the splits are not stratified",
        quoted_value(column.values[static_cast<size_t>(least - column.counts.begin())]),
        format_plural(*least, "row"));
}

}  // namespace

TargetPlan choose_target(const TableProfile& table, const std::string& wanted, std::optional<size_t> other) {
  TargetPlan plan;
  plan.column = wanted.empty() ? guess_target(table, likely_targets(table, other), plan.note)
                               : find_wanted(table, wanted);
  const ColumnProfile& column = table.columns[plan.column];
  const std::string name = called(table, plan.column);
  if (const std::string why = why_no_target(table, plan.column); !why.empty())
    throw UserError(
        fmt::format("{} cannot be predicted: {}; use --target to choose another column", name, why));
  if (const std::string why = why_no_numbers(column); !why.empty())
    plan.warnings.push_back(
        fmt::format("{} is treated as a column of classes, although most values are numbers: {}", name, why));
  plan.regression = column.kind == ColumnKind::number && !are_labels(column, known_rows(table, plan.column));
  if (!plan.regression) plan_classes(table, plan);
  return plan;
}

}  // namespace dtrain
