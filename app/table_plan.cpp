#include "table_plan.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/utf8.h"
#include "new_config.h"
#include "text.h"

namespace dtrain {

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string shown(const TableProfile& table, size_t column) {
  return table.header ? table.columns[column].name : std::to_string(column);
}

std::string called(const TableProfile& table, size_t column) {
  if (!table.header) return "column " + shown(table, column);
  const std::string name = shown(table, column);
  return name.empty() ? "the column without a name" : "'" + name + "'";
}

namespace {

constexpr size_t kShown = 40;  // bytes of a value

}  // namespace

std::string yaml_column(const TableProfile& table, size_t column) {
  return table.header ? yaml_string(shown(table, column)) : shown(table, column);
}

size_t find_target(const TableProfile& table, const std::string& wanted, std::optional<size_t> other) {
  if (!wanted.empty()) {
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (shown(table, i) == wanted) return i;
    std::vector<std::string> names;
    for (size_t i = 0; i < table.columns.size(); ++i) names.push_back(shown(table, i));
    throw UserError(
        fmt::format("--target: no column '{}'; the columns are {}", wanted, fmt::join(names, ", ")));
  }
  constexpr std::array<std::string_view, 17> kUsual{
      "target", "label",    "labels", "class",    "classes",   "species", "category", "outcome", "y",
      "output", "response", "result", "survived", "diagnosis", "churn",   "quality",  "price"};
  for (const std::string_view name : kUsual)
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (other != i && lower(table.columns[i].name) == name) return i;
  const size_t last = table.columns.size() - 1;
  return other == last && last > 0 ? last - 1 : last;
}

std::string why_no_numbers(const ColumnProfile& column) {
  if (column.kind != ColumnProfile::Kind::text || column.odd_text.empty()) return "";
  const std::string odd = fmt::format("'{}' in line {}", shortened(column.odd_text, kShown), column.odd_line);
  if (!is_most(column.numbers, column))
    return fmt::format("its numbers are written with commas ({}), which dtrain does not read", odd);
  return fmt::format("it has {} and {} ({}{})", format_plural(column.numbers, "number"),
                     format_plural(column.texts, "text"), column.texts > 1 ? "the first is " : "", odd);
}

namespace {

/// Throws UserError where the target cannot be a class.
void check_classes(const TableProfile& table, size_t place, int64_t rows) {
  const ColumnProfile& target = table.columns[place];
  const auto classes = static_cast<int64_t>(target.values.size());
  if (target.many_values || classes > rows / 2)
    throw UserError(fmt::format(
        "{} cannot be predicted: it has {}{} different texts in {}, too many to be classes; --target names "
        "another column",
        called(table, place), target.many_values ? "more than " : "", format_count(classes),
        format_plural(rows, "row")));
}

}  // namespace

void plan_target(const TableProfile& table, TablePlan& plan) {
  const ColumnProfile& target = table.columns[plan.target];
  if (target.kind == ColumnProfile::Kind::empty || target.kind == ColumnProfile::Kind::date)
    throw UserError(fmt::format("{} cannot be predicted: it holds {}; --target names another",
                                called(table, plan.target),
                                target.kind == ColumnProfile::Kind::date ? "dates" : "nothing"));
  const int64_t rows = table.rows - target.missing;
  if (!target.many_values && target.values.size() == 1)
    throw UserError(fmt::format(
        "{} cannot be predicted: all rows{} have the same there, '{}', so that there is nothing to learn; "
        "--target names another column",
        called(table, plan.target), target.missing > 0 ? " that have a value" : "",
        shortened(target.values[0], kShown)));
  if (target.missing > 0)
    plan.notes.push_back(
        fmt::format("the target, {}, has no value in {}, which fit will refuse: remove what has none first",
                    called(table, plan.target), format_plural(target.missing, "row")));
  constexpr double kMostClassNumbers = 20;
  const bool few = !target.many_values && target.values.size() <= 20;
  const bool counts = target.kind == ColumnProfile::Kind::number && target.whole && target.least >= 0 &&
                      target.most <= kMostClassNumbers && few &&
                      static_cast<int64_t>(target.values.size()) <= rows / 2;
  plan.regression = target.kind == ColumnProfile::Kind::number && !counts;
  if (plan.regression) return;
  if (const std::string why = why_no_numbers(target); !why.empty()) {
    if (!few || !is_most(target.numbers, target))
      throw UserError(
          fmt::format("{} cannot be predicted as a number: {}; correct that, or name another "
                      "column: --target",
                      called(table, plan.target), why));
    plan.notes.push_back(
        fmt::format("{} is taken for classes, though most are numbers: {}", called(table, plan.target), why));
  }
  check_classes(table, plan.target, rows);
  plan.classes = static_cast<int64_t>(target.values.size());
  // Numbers are classes as they are where they count from 0; else they are the classes' names.
  const bool counted = target.least == 0 && target.most == static_cast<double>(plan.classes - 1);
  plan.names_of_target = target.kind == ColumnProfile::Kind::number && !counted;
  const auto [least, most] = std::minmax_element(target.counts.begin(), target.counts.end());
  constexpr int64_t kRare = 3;
  plan.rare = *most > kRare * *least;
  constexpr int64_t kSplits = 3;
  plan.stratify = *least >= kSplits;
  if (!plan.stratify)
    plan.notes.push_back(fmt::format(
        "the class '{}' has {}, too few for training, validation and test: these are not stratified",
        shortened(target.values[static_cast<size_t>(least - target.counts.begin())], kShown),
        format_plural(*least, "row")));
}

}  // namespace dtrain
