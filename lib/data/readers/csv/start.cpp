#include "data/readers/csv/start.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "data/readers/csv/values.h"

namespace dtrain {

namespace {

/// Returns true if the first line is a header. If `format` does not determine this, the line is a header if
/// it has a name and no number. A line with both names and numbers counts as data, so the names are reported
/// as errors when the line is read.
bool is_header(const CsvFormat& format, const CsvValues& values, const std::vector<std::string>& fields) {
  if (format.header) return *format.header;
  return std::any_of(fields.begin(), fields.end(), [&](const auto& text) { return values.is_name(text); }) &&
         std::none_of(fields.begin(), fields.end(), [&](const auto& text) { return values.number(text); });
}

std::vector<std::string> texts_of_row(const CsvText& text, const char*& p) {
  std::vector<std::string> all;
  CsvFields fields(text);
  CsvField field;
  do {
    p = fields.read(p, field);
    all.emplace_back(field.text);
  } while (!field.last);
  return all;
}

void check_names(const CsvText& text, const char* p) {
  std::unordered_set<std::string> met;
  CsvFields fields(text);
  CsvField field;
  do {
    p = fields.read(p, field);
    if (!met.emplace(field.text).second)
      text.fail(field.at,
                fmt::format("expected a different name for each column, found '{}' again{}",
                            field.text.substr(0, 40),
                            csv_number(field.text)
                                ? "; if the first line has data instead of names, set 'header: false'"
                                : ""));
  } while (!field.last);
}

}  // namespace

CsvStart read_csv_start(CsvText& text, const CsvValues& values, const CsvFormat& format, const char*& rows) {
  CsvStart start;
  start.path = text.path();
  rows = text.skip_blank(text.begin());
  if (rows == text.end()) return start;
  const char* behind = rows;
  std::vector<std::string> fields = texts_of_row(text, behind);
  if (!is_header(format, values, fields)) {
    start.first = std::move(fields);
    if (start.width() == 1) rows = text.keep_blank_lines(false);
    return start;
  }
  check_names(text, rows);
  start.names = std::move(fields);
  rows = behind = text.skip_blank(behind);
  if (rows == text.end()) return start;
  start.first = texts_of_row(text, behind);
  // If the last value is empty, it comes from an additional delimiter at the end of the row, and the file has
  // no row names.
  if (start.names.size() + 1 == start.first.size() && !start.first.back().empty()) {
    start.has_row_names = true;
    start.names.insert(start.names.begin(), "row.names");
  }
  if (start.first.size() != start.names.size())
    text.fail_line(rows, fmt::format("expected {} as in the first line, found {}",
                                     format_plural(static_cast<int64_t>(start.names.size()), "value"),
                                     start.first.size()));
  if (start.width() == 1) rows = text.keep_blank_lines(true);
  return start;
}

}  // namespace dtrain
