#include "profile/table_profile.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "profile/table_header.h"

namespace dtrain {

namespace {

/// Throws UserError for files that users often pass instead of a text table, such as Excel workbooks.
void reject_other_formats(const CsvText& text) {
  const std::string_view start(text.begin(),
                               static_cast<size_t>(std::min<ptrdiff_t>(text.end() - text.begin(), 4)));
  const auto refuse = [&](const std::string& found) {
    throw UserError(fmt::format("{}: expected text in columns, found {}", text.path(), found));
  };
  if (start == "PK\x03\x04")
    refuse(text.path().ends_with(".zip") ? "a ZIP archive; unpack it"
                                         : "an Excel workbook (or another ZIP archive); save it as CSV");
  if (start == "\xd0\xcf\x11\xe0") refuse("an Excel workbook; save it as CSV");
  if (start == "\x93NUM") refuse("a NumPy array; use the reader 'npy' in a configuration");
  if (start == "\x89HDF") refuse("an HDF5 file; use the reader 'hdf5' in a configuration");
  if (start == "\x89PNG" || start.starts_with("\xff\xd8\xff"))
    refuse("an image; give a folder that contains a subfolder of images for each class");
}

void reject_binary(const CsvText& text) {
  const char* const zero = std::find(text.begin(), text.end(), '\0');
  if (zero != text.end()) text.fail_line(zero, "expected text in columns, found binary data");
}

/// Returns the first line that is not UTF-8, or null if there is none.
const char* find_not_utf8(const CsvText& text) {
  for (const char *line = text.begin(), *next = nullptr; line < text.end(); line = next) {
    next = text.next_line(line);
    if (!is_utf8({line, static_cast<size_t>(next - line)})) return line;
  }
  return nullptr;
}

std::string warn_of_bytes(const CsvText& text, const char* at) {
  return fmt::format("{}:{}: this line is not UTF-8; if the file is Latin-1, convert it: {}", text.path(),
                     text.line_of(at), piped("iconv -f latin1 -t utf8", text.path(), "utf8.csv"));
}

/// Returns the first 200 rows from `p` on, or all of them if there are fewer.
std::vector<TableRow> first_rows(const CsvText& text, const char* p) {
  constexpr size_t kMost = 200;
  CsvFields fields(text);
  std::vector<TableRow> rows;
  while (p < text.end() && rows.size() < kMost) rows.push_back(take_table_row(text, fields, p));
  return rows;
}

/// Profiles the rows from `p` on. Each row must have as many fields as there are profilers.
void profile_rows(const CsvText& text, const char* p, std::vector<ColumnProfiler>& profilers, int64_t& rows) {
  CsvFields fields(text);
  for (; p < text.end(); ++rows) {
    const char* const line = p;
    size_t found = 0;
    p = read_table_row(text, fields, p, [&](const CsvField& field) {
      if (found < profilers.size()) profilers[found].add(field.text, field.at);
      ++found;
    });
    if (found != profilers.size())
      text.fail_line(line,
                     fmt::format("expected {} as in the first line, found {}",
                                 format_plural(static_cast<int64_t>(profilers.size()), "column"), found));
  }
}

/// The name that the csv reader gives to the column of row names. R writes this column without a name.
constexpr const char* kRowNames = "row.names";

/// Returns true if `first` is a header. If the table has an unnamed column of row names, also inserts the
/// name kRowNames into `first`.
bool take_header(const CsvText& text, const std::vector<TableRow>& below, TableRow& first) {
  const bool has_row_names =
      !below.empty() && below.front().size() == first.size() + 1 && !below.front().back().text.empty();
  if (has_row_names) first.insert(first.begin(), {kRowNames, first.front().at});
  return is_table_header(text, first, below) || has_row_names;
}

/// Settings for reading texts that are not plain numbers.
struct TableReading {
  CsvNotation notation;
  std::set<size_t> amounts;  // column indices
};

TableProfile profile_text(const CsvText& text, const TableReading& reading) {
  const CsvValues values(reading.notation);
  const char* const begin = text.skip_blank(text.begin());
  const char* p = begin;
  CsvFields fields(text);
  TableRow first = take_table_row(text, fields, p);
  TableProfile table;
  table.header = take_header(text, first_rows(text, p), first);
  table.notation = reading.notation;
  std::vector<ColumnProfiler> profilers;
  for (size_t i = 0; i < first.size(); ++i) profilers.emplace_back(values, reading.amounts.contains(i));
  profile_rows(text, table.header ? p : begin, profilers, table.rows);
  for (size_t i = 0; i < profilers.size(); ++i)
    table.columns.push_back(profilers[i].finish(table.header ? first[i].text : "", text));
  return table;
}

/// Returns true if some column has decimal commas and none has decimal points.
bool has_only_decimal_commas(const TableProfile& table) {
  bool has_commas = false;
  for (const ColumnProfile& column : table.columns) {
    if (column.has_points && !column.has_comma_thousands) return false;
    has_commas =
        has_commas || (column.kind == ColumnProfile::Kind::text && column.comma_numbers > column.amounts &&
                       is_most(column.comma_numbers + column.numbers, column));
  }
  return has_commas;
}

/// Adds the notation that the profile has found to the settings. Returns true if the settings have changed.
bool improve(const TableProfile& table, TableReading& reading) {
  if (reading.notation.decimal == '.' && has_only_decimal_commas(table)) {
    reading.notation.decimal = ',';
    if (std::any_of(table.columns.begin(), table.columns.end(),
                    [](const ColumnProfile& column) { return column.has_comma_thousands; }))
      reading.notation.thousands = '.';
    return true;
  }
  bool improved = false;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    auto& names = reading.notation.na_values;
    for (const std::string& name : column.missing_names)
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
        improved = true;
      }
    if (column.are_amounts && reading.amounts.insert(i).second) improved = true;
  }
  return improved;
}

}  // namespace

TableProfile profile_csv(const std::string& path) {
  const TableFormat format = detect_format(path);
  const CsvText text(path, format.delimiter, format.comment);
  reject_other_formats(text);
  reject_binary(text);
  if (text.skip_blank(text.begin()) == text.end())
    throw UserError(fmt::format("{}: expected a table, found an empty file", path));
  TableReading reading;
  TableProfile table = profile_text(text, reading);
  while (improve(table, reading)) table = profile_text(text, reading);
  table.format = format;
  if (table.rows == 0) throw UserError(fmt::format("{}: expected rows of data, found only a header", path));
  if (const char* const line = find_not_utf8(text)) table.warnings.push_back(warn_of_bytes(text, line));
  return table;
}

}  // namespace dtrain
