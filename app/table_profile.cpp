#include "table_profile.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "table_header.h"

namespace dtrain {

namespace {

/// Whether the line has commas, which are those of numbers between delimiters: "5,1;3,5;setosa".
bool has_decimal_commas(std::string_view line, char delimiter) {
  if (line.find(delimiter) == std::string_view::npos || line.find(',') == std::string_view::npos)
    return false;
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  for (;;) {
    const size_t end = line.find(delimiter);
    const std::string_view part = line.substr(0, end);
    const auto commas = std::count(part.begin(), part.end(), ',');
    if (commas > 1 || (commas == 1 && !is_comma_number(part))) return false;
    if (end == std::string_view::npos) return true;
    line.remove_prefix(end + 1);
  }
}

/// The one that stands most often in the first line.
char delimiter_of(const std::string& path) {
  const CsvText text(path, ',');
  const char* first = text.skip_blank(text.begin());
  const std::string_view line(first, static_cast<size_t>(text.next_line(first) - first));
  char best = ',';
  for (const char c : {';', '\t', '|'}) {
    if (has_decimal_commas(line, c)) return c;
    if (std::count(line.begin(), line.end(), c) > std::count(line.begin(), line.end(), best)) best = c;
  }
  return best;
}

/// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 ||
           std::string_view("-_./+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string word = "'";
  for (const char c : text) c == '\'' ? word += "'\\''" : word += c;
  return word + "'";
}

/// A command that reads the file, unpacked, and writes another.
std::string piped(const std::string& command, const std::string& file, const std::string& to) {
  const std::string path = shell_word(file);
  return file.ends_with(".gz") ? fmt::format("zcat {} | {} > {}", path, command, to)
                               : fmt::format("{} {} > {}", command, path, to);
}

/// Throws UserError for what is often given in place of a table of text.
void refuse_other_formats(const CsvText& text) {
  const std::string_view start(text.begin(),
                               static_cast<size_t>(std::min<ptrdiff_t>(text.end() - text.begin(), 4)));
  const auto refuse = [&](const std::string& found) {
    throw UserError(fmt::format("{}: expected text in columns, found {}", text.path(), found));
  };
  if (start == "PK\x03\x04")
    refuse(text.path().ends_with(".zip") ? "a ZIP archive; unpack it"
                                         : "an Excel workbook (or another ZIP archive); save it as CSV");
  if (start == "\xd0\xcf\x11\xe0") refuse("an Excel workbook; save it as CSV");
  if (start == "\x93NUM") refuse("a NumPy array; a configuration reads it by 'npy' (docs/reference.md)");
  if (start == "\x89HDF") refuse("HDF5; a configuration reads it by 'hdf5' (docs/reference.md)");
  if (start == "\x89PNG" || start.starts_with("\xff\xd8\xff"))
    refuse("a picture; give the folder that has a folder of pictures for each class");
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
    refuse("UTF-16; convert it: " + piped("iconv -f utf-16 -t utf-8", text.path(), "utf8.csv"));
}

/// Numbers that are written so would all be names.
void refuse_decimal_commas(const CsvText& text, const TableProfile& table) {
  if (table.delimiter == ',') return;
  for (const ColumnProfile& column : table.columns)
    if (column.comma_numbers > 0 && is_most(column.comma_numbers + column.numbers, column))
      throw UserError(
          fmt::format("{}:{}: numbers are written with decimal commas ('{}'), which dtrain does not read; "
                      "convert them to points{}",
                      text.path(), column.odd_line, column.odd_text,
                      column.odd_text.find('.') == std::string::npos
                          ? ": " + piped("sed -E 's/([0-9]),([0-9])/\\1.\\2/g'", text.path(), "points.csv")
                          : ""));
}

void refuse_binary(const CsvText& text) {
  const char* const zero = std::find(text.begin(), text.end(), '\0');
  if (zero != text.end()) text.fail_line(zero, "expected text in columns, found binary data");
}

/// The first line that is no UTF-8; null where all are.
const char* find_not_utf8(const CsvText& text) {
  for (const char *line = text.begin(), *next = nullptr; line < text.end(); line = next) {
    next = text.next_line(line);
    if (!is_utf8({line, static_cast<size_t>(next - line)})) return line;
  }
  return nullptr;
}

std::string warn_of_bytes(const CsvText& text, const char* at) {
  return fmt::format("{}:{}: this is not UTF-8; where it is Latin-1, convert it: {}", text.path(),
                     text.line_of(at), piped("iconv -f latin1 -t utf8", text.path(), "utf8.csv"));
}

/// Rows from `p` on; of many the first ones.
std::vector<TableRow> first_rows(const CsvText& text, const char* p) {
  constexpr size_t kMost = 200;
  CsvFields fields(text);
  std::vector<TableRow> rows;
  while (p < text.end() && rows.size() < kMost) rows.push_back(take_table_row(text, fields, p));
  return rows;
}

/// Profiles the rows from `p` on, each of which must have as many fields as there are profilers.
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
      text.fail_line(
          line, fmt::format("expected {} columns, as the first line has, found {}", profilers.size(), found));
  }
}

}  // namespace

TableProfile profile_csv(const std::string& path) {
  TableProfile table;
  table.delimiter = delimiter_of(path);
  const CsvText text(path, table.delimiter);
  refuse_other_formats(text);
  refuse_binary(text);
  const char* const begin = text.skip_blank(text.begin());
  if (begin == text.end()) throw UserError(fmt::format("{}: expected a table, found an empty file", path));
  CsvFields fields(text);
  const char* p = begin;
  const TableRow first = take_table_row(text, fields, p);
  table.header = is_table_header(text, first, first_rows(text, p));
  std::vector<ColumnProfiler> profilers(first.size());
  profile_rows(text, table.header ? p : begin, profilers, table.rows);
  if (table.rows == 0) throw UserError(fmt::format("{}: expected rows of data, found a header only", path));
  for (size_t i = 0; i < profilers.size(); ++i)
    table.columns.push_back(profilers[i].finish(table.header ? first[i].text : "", text));
  if (const char* const line = find_not_utf8(text)) table.warnings.push_back(warn_of_bytes(text, line));
  refuse_decimal_commas(text, table);
  return table;
}

}  // namespace dtrain
