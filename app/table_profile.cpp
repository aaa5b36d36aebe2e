#include "table_profile.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"
#include "data/readers/csv_text.h"
#include "data/readers/csv_values.h"

namespace dtrain {

namespace {

using Row = std::vector<std::string>;
using ColumnKind = ColumnProfile::Kind;

/// The one that stands most often in the first line.
char delimiter_of(const std::string& path) {
  const CsvText text(path, ',');
  const char* first = text.skip_blank(text.begin());
  const std::string_view line(first, static_cast<size_t>(text.next_line(first) - first));
  char best = ',';
  for (const char c : {';', '\t', '|'})
    if (std::count(line.begin(), line.end(), c) > std::count(line.begin(), line.end(), best)) best = c;
  return best;
}

/// Collects a column's values.
class ColumnProfiler {
 public:
  void add(const std::string& text) {
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
      ++(is_csv_date(text) ? dates_ : texts_);
    constexpr size_t kMostHashes = 5'000'000;
    if (column_.distinct && hashes_.size() < kMostHashes)
      column_.distinct = hashes_.insert(std::hash<std::string>()(text)).second;
    if (const auto known = counts_.find(text); known != counts_.end()) {
      ++known->second;
    } else if (counts_.size() < TableProfile::kMostValues) {
      counts_[text] = 1;
    } else {
      column_.many_values = true;
    }
  }

  ColumnProfile finish(std::string name) {
    column_.name = std::move(name);
    column_.kind = texts_ > 0 || (dates_ > 0 && numbers_ > 0) ? ColumnKind::text
                   : dates_ > 0                               ? ColumnKind::date
                   : numbers_ > 0                             ? ColumnKind::number
                                                              : ColumnKind::empty;
    if (column_.kind != ColumnKind::text) {
      column_.missing += missing_numbers_;
      std::erase_if(counts_, [](const auto& value) { return is_csv_gap(value.first); });
    }
    for (const auto& [value, count] : counts_) {
      column_.values.push_back(value);
      column_.counts.push_back(count);
    }
    if (column_.kind == ColumnKind::empty) column_.distinct = false;
    if (numbers_ > 0) column_.mean = sum_ / static_cast<double>(numbers_);
    return std::move(column_);
  }

 private:
  void add_number(double number) {
    column_.least = numbers_ == 0 ? number : std::min(column_.least, number);
    column_.most = numbers_ == 0 ? number : std::max(column_.most, number);
    column_.whole = column_.whole && number == std::floor(number);
    sum_ += number;
    ++numbers_;
  }

  ColumnProfile column_;
  int64_t numbers_ = 0, texts_ = 0, dates_ = 0, missing_numbers_ = 0;
  double sum_ = 0;
  std::map<std::string, int64_t> counts_;
  std::unordered_set<size_t> hashes_;
};

/// Names are no numbers, and all different.
bool is_header(const Row& row) {
  std::unordered_set<std::string> names;
  for (const std::string& cell : row)
    if (csv_number(cell) || is_csv_date(cell) || !names.insert(cell).second) return false;
  return true;
}

/// The fields of the row at `p`, which is moved to the next one.
Row read_row(const CsvText& text, CsvFields& fields, const char*& p) {
  Row row;
  const char* const begin = p;
  for (CsvField field; !field.last;) {
    p = fields.read(p, field);
    if (field.text.find('\0') != std::string_view::npos)
      text.fail_line(begin, "expected text in columns, found binary data");
    row.emplace_back(field.text);
  }
  p = text.skip_blank(p);
  return row;
}

}  // namespace

TableProfile profile_csv(const std::string& path) {
  TableProfile table;
  table.delimiter = delimiter_of(path);
  const CsvText text(path, table.delimiter);
  CsvFields fields(text);
  const char* p = text.skip_blank(text.begin());
  if (p == text.end()) throw UserError(fmt::format("{}: expected a table, found an empty file", path));
  const char* const begin = p;
  const Row first = read_row(text, fields, p);
  table.header = is_header(first);
  if (!table.header) p = begin;
  std::vector<ColumnProfiler> profilers(first.size());
  while (p < text.end()) {
    const char* const line = p;
    const Row row = read_row(text, fields, p);
    if (row.size() != first.size())
      text.fail_line(line, fmt::format("expected {} columns, as the first line has, found {}", first.size(),
                                       row.size()));
    for (size_t i = 0; i < row.size(); ++i) profilers[i].add(row[i]);
    ++table.rows;
  }
  if (table.rows == 0) throw UserError(fmt::format("{}: expected rows of data, found a header only", path));
  for (size_t i = 0; i < profilers.size(); ++i)
    table.columns.push_back(profilers[i].finish(table.header ? first[i] : ""));
  return table;
}

}  // namespace dtrain
