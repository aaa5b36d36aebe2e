#include "profile/column_meaning.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "base/utf8.h"
#include "profile/new_config.h"

namespace dtrain {

namespace {

using ColumnKind = ColumnProfile::Kind;

bool has_name_of_id(const ColumnProfile& column) {
  constexpr std::array<std::string_view, 10> kNames{"id",  "uuid",    "guid",     "index",     "key",
                                                    "row", "row_num", "rownames", "row.names", "name"};
  const std::string name = in_small_letters(column.name);
  for (const std::string_view one : kNames)
    if (name == one) return true;
  return name.ends_with("_id") || name.ends_with(" id") || name.ends_with(".id") ||
         (column.name.size() > 2 && column.name.ends_with("Id"));
}

/// Returns true if every row has a value and all values differ.
bool is_all_different(const ColumnProfile& column) {
  return column.distinct && column.missing == 0 && column.kind != ColumnKind::empty;
}

bool is_row_number(const TableProfile& table, const ColumnProfile& column) {
  const bool has_name_of_index =
      table.header && (column.name.empty() || column.name.starts_with("Unnamed: "));
  return column.kind == ColumnKind::number && is_all_different(column) &&
         (column.counts_up || (has_name_of_index && column.whole));
}

constexpr double kSentence = 3.5;  // words

bool is_id(const ColumnProfile& column) {
  if (!is_all_different(column)) return false;
  if (has_name_of_id(column)) return column.kind == ColumnKind::text || column.whole;
  return column.kind == ColumnKind::text && column.odd_text.empty() && column.words < kSentence;
}

bool has_few_values(const TableProfile& table, const ColumnProfile& column) {
  constexpr size_t kMostCategories = 50;
  return !column.many_values && column.values.size() <= kMostCategories &&
         2 * static_cast<int64_t>(column.values.size()) <= table.rows;
}

}  // namespace

ColumnMeaning meaning_of(const TableProfile& table, size_t place) {
  const ColumnProfile& column = table.columns[place];
  if (column.kind == ColumnKind::empty) return ColumnMeaning::empty;
  if (!column.many_values && column.values.size() == 1) return ColumnMeaning::constant;
  if (has_name_of_id(column) && is_id(column)) return ColumnMeaning::id;
  if (is_row_number(table, column)) return ColumnMeaning::row_number;
  if (column.kind == ColumnKind::date) return ColumnMeaning::date;
  if (column.kind == ColumnKind::number)
    return column.is_amount ? ColumnMeaning::amount : ColumnMeaning::number;
  if (is_id(column)) return ColumnMeaning::id;
  if (!why_no_numbers(column).empty() && !(has_few_values(table, column) && is_most(column.numbers, column)))
    return ColumnMeaning::odd_numbers;
  if (has_few_values(table, column)) return ColumnMeaning::categories;
  return column.words < kSentence ? ColumnMeaning::many_texts : ColumnMeaning::free_text;
}

const char* kind_of(ColumnMeaning meaning) {
  switch (meaning) {
    case ColumnMeaning::empty:
      return "empty";
    case ColumnMeaning::constant:
      return "constant";
    case ColumnMeaning::row_number:
      return "row number";
    case ColumnMeaning::id:
      return "id";
    case ColumnMeaning::date:
      return "date";
    case ColumnMeaning::odd_numbers:
      return "numbers and texts";
    case ColumnMeaning::free_text:
      return "free text";
    case ColumnMeaning::many_texts:
      return "text";
    case ColumnMeaning::categories:
      return "categories";
    case ColumnMeaning::number:
      return "number";
    case ColumnMeaning::amount:
      return "amount";
  }
  return "";
}

std::string why_no_feature(const ColumnProfile& column, ColumnMeaning meaning) {
  switch (meaning) {
    case ColumnMeaning::empty:
      return "it is empty";
    case ColumnMeaning::constant:
      return "all rows have the same value";
    case ColumnMeaning::row_number:
      return "it contains the numbers of the rows";
    case ColumnMeaning::id:
      return "it identifies the rows";
    case ColumnMeaning::odd_numbers:
      return why_no_numbers(column);
    case ColumnMeaning::free_text:
    case ColumnMeaning::many_texts:
      return fmt::format("it is {} with {} different values",
                         meaning == ColumnMeaning::free_text ? "free text" : "text",
                         column.many_values ? fmt::format("more than {}", ColumnProfile::kMostValues)
                                            : format_count(static_cast<int64_t>(column.values.size())));
    case ColumnMeaning::date:
    case ColumnMeaning::categories:
    case ColumnMeaning::number:
    case ColumnMeaning::amount:
      return "";
  }
  return "";
}

std::vector<std::string> parts_of_dates(const DateSpan& dates) {
  if (dates.months > 0) return {"month"};
  std::vector<std::string> parts;
  const bool has_years = dates.least_year < dates.most_year;
  if (has_years) parts.emplace_back("year");
  if (has_years || dates.least_month < dates.most_month) parts.emplace_back("month");
  parts.emplace_back("weekday");
  if (dates.has_times) parts.emplace_back("hour");
  parts.emplace_back("days");
  return parts;
}

std::string why_no_numbers(const ColumnProfile& column) {
  if (column.kind != ColumnKind::text || column.odd_text.empty()) return "";
  const std::string odd = fmt::format("{} in line {}", quoted_value(column.odd_text), column.odd_line);
  if (!is_most(column.numbers, column))
    return fmt::format(
        "its numbers have decimal commas ({}), but the table also has numbers with decimal points", odd);
  return fmt::format("it has {} and {} ({}{})", format_plural(column.numbers, "number"),
                     format_plural(column.texts, "text"), column.texts > 1 ? "the first is " : "", odd);
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

std::string quoted_value(const std::string& value) {
  constexpr size_t kShown = 40;  // bytes
  return "'" + shortened(value, kShown) + "'";
}

}  // namespace dtrain
