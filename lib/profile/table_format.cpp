#include "profile/table_format.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "data/readers/csv/text.h"
#include "profile/column_profile.h"

namespace dtrain {

namespace {

/// Returns the first 50 lines that are not blank, or all of them if there are fewer.
std::vector<std::string_view> first_lines(const CsvText& text) {
  constexpr size_t kMost = 50;
  std::vector<std::string_view> lines;
  for (const char* p = text.skip_blank(text.begin()); p < text.end() && lines.size() < kMost;) {
    const char* next = text.next_line(p);
    std::string_view line(p, static_cast<size_t>(next - p));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    lines.push_back(line);
    p = text.skip_blank(next);
  }
  return lines;
}

/// Returns true if the line has commas and all of them are decimal commas in values between delimiters, as in
/// "5,1;3,5;setosa".
bool has_decimal_commas(std::string_view line, char delimiter) {
  if (line.find(delimiter) == std::string_view::npos || line.find(',') == std::string_view::npos)
    return false;
  for (;;) {
    const size_t end = line.find(delimiter);
    const std::string_view part = line.substr(0, end);
    const auto commas = std::count(part.begin(), part.end(), ',');
    if (commas > 1 || (commas == 1 && !is_comma_number(part))) return false;
    if (end == std::string_view::npos) return true;
    line.remove_prefix(end + 1);
  }
}

/// Returns the number of values in a line whose values are separated by blanks. Quoted values may contain
/// blanks.
size_t count_between_blanks(std::string_view line) {
  size_t count = 0;
  bool is_quoted = false, is_value = false;
  for (const char c : line) {
    const bool is_blank = (c == ' ' || c == '\t') && !is_quoted;
    if (c == '"') is_quoted = !is_quoted;
    if (!is_blank && !is_value) ++count;
    is_value = !is_blank;
  }
  return count;
}

/// Returns true if all lines have the same number of values when they are split at blanks. The first line may
/// have one value fewer, because R writes such headers.
bool is_between_blanks(const std::vector<std::string_view>& lines) {
  if (lines.size() < 2) return false;
  const size_t count = count_between_blanks(lines[1]), first = count_between_blanks(lines[0]);
  return count >= 2 && (first == count || first + 1 == count) &&
         std::all_of(lines.begin() + 1, lines.end(),
                     [&](std::string_view line) { return count_between_blanks(line) == count; });
}

/// Returns the delimiter that occurs most often in the first line. Commas may be decimal commas instead of
/// delimiters. Returns kBlanksDelimit if the values are separated only by blanks.
char delimiter_of(const std::vector<std::string_view>& lines) {
  if (lines.empty()) return ',';
  const std::string_view line = lines.front();
  const auto count = [&](char c) { return std::count(line.begin(), line.end(), c); };
  char best = ',';
  for (const char c : {';', '\t', '|'}) {
    if (has_decimal_commas(line, c)) return c;
    if (count(c) > count(best)) best = c;
  }
  return count(best) == 0 && is_between_blanks(lines) ? kBlanksDelimit : best;
}

size_t values_of(std::string_view line, char delimiter) {
  return delimiter == kBlanksDelimit
             ? count_between_blanks(line)
             : static_cast<size_t>(std::count(line.begin(), line.end(), delimiter)) + 1;
}

}  // namespace

std::string yaml_delimiter(char delimiter) {
  return delimiter == kBlanksDelimit ? "whitespace" : Json(std::string(1, delimiter)).dump();
}

TableFormat detect_format(const std::string& path) {
  const CsvText text(path, ',');
  const std::vector<std::string_view> lines = first_lines(text);
  for (const char c : {'#', '%'}) {
    std::vector<std::string_view> rows = lines;
    std::erase_if(rows, [&](std::string_view line) { return line.front() == c; });
    const size_t comments = lines.size() - rows.size();
    const char delimiter = delimiter_of(rows);
    // If there is only one line that looks like a comment, it may be the header.
    if (comments == 0 || rows.empty() ||
        (comments == 1 && lines.front().front() == c &&
         values_of(lines.front(), delimiter) == values_of(rows.front(), delimiter)))
      continue;
    for (const std::string_view row : rows)
      if (const size_t at = row.find(c); at != std::string_view::npos)
        text.fail(row.data() + at, fmt::format("expected a value without '{0}', because other lines start "
                                               "with it and look like comments; remove these lines: {1}",
                                               c, piped(fmt::format("grep -v '^{}'", c), path, "rows.csv")));
    return {delimiter, c};
  }
  return {delimiter_of(lines), std::nullopt};
}

}  // namespace dtrain
