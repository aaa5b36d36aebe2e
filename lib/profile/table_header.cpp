#include "profile/table_header.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "data/readers/csv/dates.h"
#include "data/readers/csv/values.h"
#include "profile/column_profile.h"

namespace dtrain {

namespace {

bool is_number_or_date(const TableCell& cell) {
  return csv_number(cell.text) || is_csv_date(cell.text) || is_comma_number(cell.text);
}

/// Returns the first cell whose text also occurs in an earlier cell. Returns null if all texts are different.
const TableCell* find_again(const TableRow& row) {
  std::unordered_set<std::string> met;
  for (const TableCell& cell : row)
    if (!met.insert(cell.text).second) return &cell;
  return nullptr;
}

/// Returns the cells of a column that are not empty. Returns an empty vector if any of them is neither a
/// number nor a date.
std::vector<const TableCell*> numbers_below(const std::vector<TableRow>& rows, size_t column) {
  std::vector<const TableCell*> cells;
  for (const TableRow& row : rows) {
    if (column >= row.size() || is_csv_gap(row[column].text)) continue;
    if (!is_number_or_date(row[column])) return {};
    cells.push_back(&row[column]);
  }
  return cells;
}

/// Returns true if a cell with a number or a date is unlike the values below it. Examples are a date above
/// numbers, or a year above small numbers.
bool is_unlike(const TableCell& cell, const std::vector<const TableCell*>& below) {
  constexpr size_t kEnough = 10;
  const auto number = csv_number(cell.text);
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const TableCell* other : below) {
    const auto value = csv_number(other->text);
    if (!value) return number.has_value();
    least = std::min(least, *value);
    most = std::max(most, *value);
  }
  const double spread = most - least;
  return !number || below.size() < kEnough ? !number : *number < least - spread || *number > most + spread;
}

bool has_value(const std::vector<TableRow>& rows, size_t column, const std::string& text) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const TableRow& row) { return column < row.size() && row[column].text == text; });
}

/// Returns true if the row may contain column names. The names may also be numbers, such as years, but such
/// numbers must be different integers.
bool may_be_names(const TableRow& row) {
  return std::all_of(row.begin(), row.end(),
                     [](const TableCell& cell) {
                       const auto number = csv_number(cell.text);
                       return is_csv_date(cell.text) ||
                              (number ? *number == std::floor(*number) : !is_comma_number(cell.text));
                     }) &&
         (!find_again(row) || std::none_of(row.begin(), row.end(), is_number_or_date));
}

bool is_header(const TableRow& first, const std::vector<TableRow>& below) {
  if (below.empty()) return std::none_of(first.begin(), first.end(), is_number_or_date);
  if (!may_be_names(first)) return false;
  int64_t texts = 0, values = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    if (is_csv_gap(first[i].text)) continue;
    const auto numbers = numbers_below(below, i);
    const bool is_number = is_number_or_date(first[i]);
    if (!is_number && !numbers.empty()) return true;
    if (is_number && numbers.empty()) continue;
    ++texts;
    if (is_number ? !is_unlike(first[i], numbers) : has_value(below, i, first[i].text)) ++values;
  }
  return 2 * values < texts;
}

}  // namespace

TableRow take_table_row(const CsvText& text, CsvFields& fields, const char*& p) {
  TableRow row;
  p = read_table_row(text, fields, p, [&](const CsvField& field) {
    row.push_back({std::string(field.text), field.at});
  });
  return row;
}

bool is_table_header(const CsvText& text, const TableRow& first, const std::vector<TableRow>& below) {
  if (!is_header(first, below)) return false;
  if (const TableCell* again = find_again(first))
    text.fail(again->at,
              fmt::format("{} in the first line, which looks like a header; give each column its own name",
                          again->text.empty() ? "a second column has no name"
                                              : "the column '" + again->text + "' appears twice"));
  return true;
}

}  // namespace dtrain
