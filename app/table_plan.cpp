#include "table_plan.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
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

void plan_target(const TableProfile& table, TablePlan& plan) {
  const ColumnProfile& target = table.columns[plan.target];
  if (target.kind == ColumnProfile::Kind::empty || target.kind == ColumnProfile::Kind::date)
    throw UserError(fmt::format("{} cannot be predicted: it holds {}; --target names another",
                                called(table, plan.target),
                                target.kind == ColumnProfile::Kind::date ? "dates" : "nothing"));
  if (target.missing > 0)
    plan.notes.push_back(
        fmt::format("{} of the target, {}, have no value: fit will refuse them, remove those rows first",
                    format_plural(target.missing, "row"), called(table, plan.target)));
  constexpr double kMostClassNumbers = 20;
  const bool few = !target.many_values && target.values.size() <= 20;
  const bool counts = target.kind == ColumnProfile::Kind::number && target.whole && target.least >= 0 &&
                      target.most <= kMostClassNumbers && few;
  plan.regression = target.kind == ColumnProfile::Kind::number && !counts;
  if (plan.regression) return;
  if (target.many_values)
    throw UserError(
        fmt::format("{} has more than {} different texts, which are no classes; --target names another",
                    called(table, plan.target), TableProfile::kMostValues));
  plan.classes = static_cast<int64_t>(target.values.size());
  // Numbers are classes as they are where they count from 0; else they are the classes' names.
  const bool counted = target.least == 0 && target.most == static_cast<double>(plan.classes - 1);
  plan.names_of_target = target.kind == ColumnProfile::Kind::number && !counted;
  const auto [least, most] = std::minmax_element(target.counts.begin(), target.counts.end());
  constexpr int64_t kRare = 3;
  plan.rare = *most > kRare * *least;
}

}  // namespace dtrain
