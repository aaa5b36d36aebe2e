#include "profile/prose.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "data/readers/csv/dates.h"
#include "data/readers/csv/values.h"
#include "data/text/text_file.h"
#include "profile/column_profile.h"

namespace dtrain {

namespace {

using SplitLine = std::vector<std::string_view>;

constexpr std::string_view kBlanksOfLine = " \t\r";

/// Returns the lines that begin in the first 64 KiB of the text and have at least two characters.
std::vector<std::string_view> first_lines_of(std::string_view text) {
  constexpr size_t kLooked = size_t{1} << 16;
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < std::min(text.size(), kLooked);) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at + 1) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanksOfLine);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanksOfLine) + 1 - begin);
}

/// Splits a line at the delimiter. Several adjacent blanks count as one delimiter. Blanks at the start and at
/// the end of the line and of each value are removed.
SplitLine split_line(std::string_view line, char delimiter) {
  SplitLine values;
  if (delimiter == ' ') line = without_blanks(line);
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(delimiter, at), line.size());
    if (delimiter != ' ' || end > at) values.push_back(without_blanks(line.substr(at, end - at)));
    at = end + 1;
  }
  return values;
}

/// Returns the split lines that have the most frequent number of values. Returns an empty vector if this
/// number is one, or if fewer than nine tenths of the lines have it.
std::vector<SplitLine> rows_of_lines(const std::vector<std::string_view>& lines, char delimiter) {
  std::map<size_t, std::vector<SplitLine>> by_count;
  for (const std::string_view line : lines) {
    SplitLine values = split_line(line, delimiter);
    by_count[values.size()].push_back(std::move(values));
  }
  for (auto& [count, rows] : by_count)
    if (count > 1 && 10 * rows.size() >= 9 * lines.size()) return std::move(rows);
  return {};
}

/// Returns true if nearly all values of the column are numbers, dates or amounts. The first row may be a
/// header.
bool is_numeric_column(const std::vector<SplitLine>& rows, size_t column) {
  const CsvValues notation;
  size_t numbers = 0, others = 0;
  for (size_t i = rows.size() > 1 ? 1 : 0; i < rows.size(); ++i) {
    const std::string_view value = rows[i][column];
    if (is_csv_gap(value)) continue;
    const bool is_number =
        csv_number(value) || is_csv_date(value) || is_comma_number(value) || notation.amount(value);
    ++(is_number ? numbers : others);
  }
  return numbers > 0 && numbers >= 9 * others;
}

/// Returns true if the column has few different values, each of which is a single word. The first row may be
/// a header.
bool is_column_of_categories(const std::vector<SplitLine>& rows, size_t column) {
  constexpr size_t kMostCategories = 50;
  std::set<std::string_view> different;
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string_view value = rows[i][column];
    if (value.empty() || value.find(' ') != std::string_view::npos) return false;
    different.insert(value);
    if (different.size() > kMostCategories) return false;
  }
  return !different.empty() && 2 * different.size() <= rows.size() - 1;
}

/// Returns true if any column has the property.
template <class Property>
bool some_column(const std::vector<SplitLine>& rows, const Property& has) {
  for (size_t column = 0; column < rows.front().size(); ++column)
    if (has(rows, column)) return true;
  return false;
}

/// Returns true if the row consists of different identifiers, at least one of which is not an ordinary word,
/// such as "sepal_length" or "x1".
bool has_header_of_identifiers(const SplitLine& row) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_sign = [&](char c) { return c == '_' || is_digit(c); };
  bool has_unusual = false;
  for (std::string_view name : row) {
    if (name.size() > 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    if (name.empty() || !(is_letter(name.front()) || name.front() == '_')) return false;
    if (!std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || is_sign(c) || c == '.' || c == '-'; }) ||
        name.ends_with('.'))
      return false;
    has_unusual = has_unusual || std::any_of(name.begin(), name.end(), is_sign);
  }
  return has_unusual && std::set<std::string_view>(row.begin(), row.end()).size() == row.size();
}

/// Returns true if most delimiters are not followed by a blank. In prose, commas and semicolons are followed
/// by blanks.
bool has_tight_delimiters(const std::vector<std::string_view>& lines, char delimiter) {
  size_t tight = 0, all = 0;
  for (const std::string_view line : lines)
    for (size_t i = line.find(delimiter); i != std::string_view::npos && i + 1 < line.size();
         i = line.find(delimiter, i + 1)) {
      ++all;
      if (kBlanksOfLine.find(line[i + 1]) == std::string_view::npos) ++tight;
    }
  return 2 * tight > all;
}

/// Returns true if most lines have values that are aligned with several blanks. Two blanks after the end of a
/// sentence do not count.
bool has_aligned_values(const std::vector<std::string_view>& lines) {
  constexpr std::string_view kEnds = ".!?:;,\"')";
  size_t aligned = 0;
  for (std::string_view line : lines) {
    line = without_blanks(line);
    for (size_t at = line.find("  "); at != std::string_view::npos; at = line.find("  ", at)) {
      if (kEnds.find(line[at - 1]) == std::string_view::npos) {
        ++aligned;
        break;
      }
      at = line.find_first_not_of(' ', at);
    }
  }
  return 2 * aligned > lines.size();
}

/// Returns true if the lines are the rows of a table whose values are separated by `delimiter`.
bool is_table_of(const std::vector<std::string_view>& lines, char delimiter) {
  const std::vector<SplitLine> rows = rows_of_lines(lines, delimiter);
  if (rows.empty()) return false;
  if (some_column(rows, is_numeric_column) || has_header_of_identifiers(rows.front())) return true;
  switch (delimiter) {
    case ' ':
      return has_aligned_values(lines);
    case '\t':  // in prose, a tab may indent lines
      return !std::all_of(rows.begin(), rows.end(), [](const SplitLine& row) { return row[0].empty(); });
    case '|':
      return true;
    default:
      return has_tight_delimiters(lines, delimiter) || some_column(rows, is_column_of_categories);
  }
}

}  // namespace

bool has_ending_of_text(const std::string& path) {
  return in_small_letters(path).ends_with(".txt");
}

bool is_prose(const std::string& path) {
  if (!has_ending_of_text(path)) return false;
  const TextFile file(path);
  if (file.text().find('\0') != std::string_view::npos) return false;
  const std::vector<std::string_view> lines = first_lines_of(file.text());
  constexpr size_t kShortLine = 128;
  if (lines.size() < 2) return !lines.empty() && lines.front().size() > kShortLine;
  constexpr std::string_view kDelimiters = ",;\t| ";
  return std::none_of(kDelimiters.begin(), kDelimiters.end(),
                      [&](char delimiter) { return is_table_of(lines, delimiter); });
}

}  // namespace dtrain
