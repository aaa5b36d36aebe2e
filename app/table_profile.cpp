#include "table_profile.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text_hash.h"
#include "base/utf8.h"
#include "data/readers/csv_dates.h"
#include "data/readers/csv_text.h"
#include "data/readers/csv_values.h"

namespace dtrain {

namespace {

using ColumnKind = ColumnProfile::Kind;

struct Cell {
  std::string text;
  const char* at = nullptr;  // in the file
};
using Row = std::vector<Cell>;

/// Digits with a comma among them, and perhaps points: "5,1", "-1.234,56", "1,234".
bool is_comma_number(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos || comma == 0 || comma + 1 == text.size()) return false;
  const std::string_view whole = text.substr(0, comma), fraction = text.substr(comma + 1);
  if (!std::all_of(fraction.begin(), fraction.end(), is_digit)) return false;
  if (std::all_of(whole.begin(), whole.end(), is_digit)) return true;
  // Points between thousands: "1.234.567".
  for (size_t i = 0; i < whole.size(); ++i)
    if ((whole.size() - i) % 4 == 0 ? whole[i] != '.' : !is_digit(whole[i])) return false;
  return is_digit(whole.front());
}

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

/// Collects a column's values.
class ColumnProfiler {
 public:
  void add(std::string_view text, const char* at) {
    if (is_csv_missing_name(text)) {
      ++column_.missing;
      return;
    }
    // Among numbers it stands for a missing value, among texts it is one like others.
    if (is_csv_gap(text))
      ++missing_numbers_;
    else if (const auto number = csv_number(text))
      add_number(*number);
    else
      add_text(text, at);
    constexpr size_t kMostHashes = 5'000'000;
    if (column_.distinct && hashes_.size() < kMostHashes)
      column_.distinct = hashes_.insert(TextHash()(text)).second;
    if (!column_.many_values) count(text);
  }

  bool has(const std::string& text) const { return counts_.contains(text); }
  /// Nothing but numbers and dates, whatever the first line says.
  bool is_of_numbers() const { return column_.texts == dates_ && (column_.numbers > 0 || dates_ > 0); }

  ColumnProfile finish(std::string name, const CsvText& file) {
    column_.name = std::move(name);
    column_.kind = column_.texts > (column_.numbers > 0 ? 0 : dates_) ? ColumnKind::text
                   : dates_ > 0                                       ? ColumnKind::date
                   : column_.numbers > 0                              ? ColumnKind::number
                                                                      : ColumnKind::empty;
    const bool has_commas =
        column_.comma_numbers > 0 && is_most(column_.comma_numbers + column_.numbers, column_);
    if (has_commas || (column_.texts > 0 && is_most(column_.numbers, column_))) {
      const Cell& odd = has_commas ? comma_ : text_;
      column_.odd_text = odd.text;
      column_.odd_line = file.line_of(odd.at);
    }
    if (column_.kind != ColumnKind::text) {
      column_.missing += missing_numbers_;
      std::erase_if(counts_, [](const auto& value) { return is_csv_gap(value.first); });
    }
    const std::map<std::string_view, int64_t> sorted(counts_.begin(), counts_.end());
    for (const auto& [value, count] : sorted) {
      column_.values.emplace_back(value);
      column_.counts.push_back(count);
    }
    if (column_.kind == ColumnKind::empty) column_.distinct = false;
    if (column_.numbers > 0) column_.deviation = std::sqrt(squares_ / static_cast<double>(column_.numbers));
    return std::move(column_);
  }

 private:
  void add_number(double number) {
    column_.least = column_.numbers == 0 ? number : std::min(column_.least, number);
    column_.most = column_.numbers == 0 ? number : std::max(column_.most, number);
    column_.whole = column_.whole && number == std::floor(number);
    ++column_.numbers;
    const double from_mean = number - column_.mean;
    column_.mean += from_mean / static_cast<double>(column_.numbers);
    squares_ += from_mean * (number - column_.mean);
  }

  void add_text(std::string_view text, const char* at) {
    if (column_.texts++ == 0) text_ = {std::string(text), at};
    if (is_csv_date(text)) ++dates_;
    if (is_comma_number(text) && column_.comma_numbers++ == 0) comma_ = {std::string(text), at};
  }

  void count(std::string_view text) {
    if (const auto known = counts_.find(text); known != counts_.end())
      ++known->second;
    else if (counts_.size() < TableProfile::kMostValues)
      counts_.emplace(text, 1);
    else
      column_.many_values = true;
  }

  ColumnProfile column_;
  int64_t dates_ = 0, missing_numbers_ = 0;
  double squares_ = 0;  // of the numbers' distances from their mean, summed
  Cell text_, comma_;   // the first of each
  std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>> counts_;
  std::unordered_set<size_t> hashes_;
};

/// Names are no numbers.
bool may_be_header(const Row& row) {
  return std::none_of(row.begin(), row.end(), [](const Cell& cell) {
    return csv_number(cell.text) || is_csv_date(cell.text) || is_comma_number(cell.text);
  });
}

/// The first cell that has the text of one before it; null where all differ.
const Cell* find_again(const Row& row) {
  std::unordered_set<std::string> met;
  for (const Cell& cell : row)
    if (!met.insert(cell.text).second) return &cell;
  return nullptr;
}

/// Whether a first row that has a text twice is a header all the same: it stands above numbers, or none of
/// its texts is a value of its column.
bool is_above(const Row& row, const std::vector<ColumnProfiler>& columns) {
  bool is_name = true;
  for (size_t i = 0; i < row.size(); ++i) {
    if (is_csv_gap(row[i].text)) continue;
    if (columns[i].is_of_numbers()) return true;
    is_name = is_name && !columns[i].has(row[i].text);
  }
  return is_name;
}

[[noreturn]] void refuse_again(const CsvText& text, const Cell& name) {
  text.fail(name.at, fmt::format("{} in the header, which the first line is taken for; give each column a "
                                 "name of its own",
                                 name.text.empty() ? "a second column has no name"
                                                   : "the column '" + name.text + "' stands twice"));
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

/// Calls visit(field) for each field of the row at `p`; returns where the next one begins.
template <class Visit>
const char* read_row(const CsvText& text, CsvFields& fields, const char* p, const Visit& visit) {
  for (CsvField field; !field.last;) {
    p = fields.read(p, field);
    visit(field);
  }
  return text.skip_blank(p);
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

}  // namespace

bool is_most(int64_t values, const ColumnProfile& column) {
  return 10 * values >= 9 * (column.numbers + column.texts);
}

TableProfile profile_csv(const std::string& path) {
  TableProfile table;
  table.delimiter = delimiter_of(path);
  const CsvText text(path, table.delimiter);
  refuse_other_formats(text);
  refuse_binary(text);
  CsvFields fields(text);
  const char* const begin = text.skip_blank(text.begin());
  if (begin == text.end()) throw UserError(fmt::format("{}: expected a table, found an empty file", path));
  Row first;
  const char* p = read_row(text, fields, begin, [&](const CsvField& field) {
    first.push_back({std::string(field.text), field.at});
  });
  table.header = may_be_header(first);
  if (!table.header) p = begin;
  const Cell* const again = table.header ? find_again(first) : nullptr;
  std::vector<ColumnProfiler> profilers(first.size());
  for (; p < text.end(); ++table.rows) {
    const char* const line = p;
    size_t found = 0;
    p = read_row(text, fields, p, [&](const CsvField& field) {
      if (found < profilers.size()) profilers[found].add(field.text, field.at);
      ++found;
    });
    if (found != first.size())
      text.fail_line(
          line, fmt::format("expected {} columns, as the first line has, found {}", first.size(), found));
  }
  if (again && is_above(first, profilers)) refuse_again(text, *again);
  if (again) {
    table.header = false;
    for (size_t i = 0; i < first.size(); ++i) profilers[i].add(first[i].text, first[i].at);
    ++table.rows;
  }
  if (table.rows == 0) throw UserError(fmt::format("{}: expected rows of data, found a header only", path));
  for (size_t i = 0; i < profilers.size(); ++i)
    table.columns.push_back(profilers[i].finish(table.header ? first[i].text : "", text));
  if (const char* const line = find_not_utf8(text)) table.warnings.push_back(warn_of_bytes(text, line));
  refuse_decimal_commas(text, table);
  return table;
}

}  // namespace dtrain
