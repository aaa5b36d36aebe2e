// The table of columns that `dtrain new` prints.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"
#include "profile/new_config.h"
#include "profile/table_plan.h"

namespace dtrain {

namespace {

using Use = ColumnRole::Use;

/// Describes how the network uses a feature that is a number or a date.
std::string feature_of(const TablePlan& plan, const TableProfile& table, size_t place) {
  const ColumnProfile& column = table.columns[place];
  std::string text = "feature";
  if (plan.columns[place].meaning == ColumnMeaning::date)
    text = fmt::format("{}", fmt::join(parts_of_dates(column.dates), ", "));
  if (column.missing == 0) return text;
  const std::vector<size_t> marked = plan.indicators(table);
  text += "; missing values become the median";
  if (std::find(marked.begin(), marked.end(), place) != marked.end()) text += ", with an indicator";
  return text;
}

std::string use_of(const TableProfile& table, const TablePlan& plan, size_t place) {
  const ColumnProfile& column = table.columns[place];
  const ColumnRole& planned = plan.columns[place];
  switch (planned.use) {
    case Use::target:
      return (plan.target.regression ? "target: a number"
                                     : fmt::format("target: {} classes", format_count(plan.target.classes))) +
             (column.missing > 0 ? "; rows without a target are left out" : "");
    case Use::id:
      return "id: written with predictions";
    case Use::time:
      return "time of the rows";
    case Use::series:
      return fmt::format("name of one of {} time series", format_count(plan.series->series));
    case Use::left_out:
      return "left out: " + planned.why;
    case Use::feature:
      if (planned.meaning == ColumnMeaning::categories)
        return format_plural(static_cast<int64_t>(column.values.size()), "feature") + " of 0 and 1";
      return planned.meaning == ColumnMeaning::free_text ? "its words" : feature_of(plan, table, place);
  }
  return "";
}

std::string distinct_of(const ColumnProfile& column) {
  if (column.distinct) return "all";
  return column.many_values ? fmt::format("> {}", format_count(ColumnProfile::kMostValues))
                            : format_count(static_cast<int64_t>(column.values.size()));
}

std::string name_of(const TableProfile& table, size_t place) {
  constexpr size_t kShown = 40;  // bytes
  return one_line(shortened(shown(table, place), kShown));
}

/// A row of the printed table. It describes one column, or several similar columns.
struct ColumnRow {
  std::string name, kind, missing, distinct, use;

  bool is_like(const ColumnRow& other) const {
    return kind == other.kind && missing == other.missing && use == other.use;
  }
};

ColumnRow row_of(const TableProfile& table, const TablePlan& plan, size_t place) {
  const ColumnProfile& column = table.columns[place];
  return {name_of(table, place), kind_of(plan.columns[place].meaning), format_count(column.missing),
          distinct_of(column), one_line(use_of(table, plan, place))};
}

}  // namespace

std::string table_of_columns(const TableProfile& table, const TablePlan& plan) {
  using Align = Table::Align;
  constexpr size_t kManyColumns = 30, kAlike = 4;
  std::vector<ColumnRow> rows;
  for (size_t i = 0; i < table.columns.size(); ++i) rows.push_back(row_of(table, plan, i));
  Table text({{"column"}, {"kind"}, {"missing", Align::right}, {"distinct", Align::right}, {"use"}});
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end].is_like(rows[i])) ++end;
    if (rows.size() <= kManyColumns || end - i < kAlike) {
      end = i + 1;
      text.add({rows[i].name, rows[i].kind, rows[i].missing, rows[i].distinct, rows[i].use});
    } else {
      const std::string names = fmt::format("{} to {} ({})", rows[i].name, rows[end - 1].name,
                                            format_count(static_cast<int64_t>(end - i)));
      text.add({names, rows[i].kind, rows[i].missing, "", rows[i].use});
    }
    i = end;
  }
  return text.str();
}

Json json_of_columns(const TableProfile& table, const TablePlan& plan) {
  Json all = Json::array();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    Json json = Json::object();
    json.set("column", shown(table, i))
        .set("kind", kind_of(plan.columns[i].meaning))
        .set("missing", column.missing)
        .set("use", use_of(table, plan, i));
    if (!column.many_values) json.set("distinct", static_cast<int64_t>(column.values.size()));
    all.push(std::move(json));
  }
  return all;
}

}  // namespace dtrain
