#include "csv_look.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

using Row = std::vector<std::string>;
using ColumnKind = LookedAtColumn::Kind;

std::string trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// As the csv reader takes it.
bool is_gap(const std::string& text) {
  constexpr std::array<std::string_view, 9> kGaps{"", "na", "n/a", "nan", "null", "none", "nil", "-", "?"};
  std::string lower = text;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::find(kGaps.begin(), kGaps.end(), lower) != kGaps.end();
}

/// Digits in three groups between one of "-/.", perhaps with a time behind them.
bool is_date(const std::string& text) {
  size_t groups = 0, at = 0;
  char between = 0;
  while (groups < 3) {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at == begin || at - begin > 4) return false;
    if (++groups == 3) break;
    if (at == text.size() || (text[at] != '-' && text[at] != '/' && text[at] != '.')) return false;
    if (between != 0 && text[at] != between) return false;
    between = text[at++];
  }
  return at == text.size() || text[at] == ' ' || text[at] == 'T';
}

/// Reads a file's rows: quotes ("a ""b""", also over several lines), CRLF, and a byte order mark.
class RowReader {
 public:
  RowReader(const std::string& path, char delimiter)
      : file_(path, std::ios::binary), path_(path), delimiter_(delimiter) {
    if (!file_) throw UserError(fmt::format("{}: cannot be read", path));
    std::array<char, 3> mark{};
    file_.read(mark.data(), mark.size());
    if (std::string_view(mark.data(), 3) == "\xef\xbb\xbf") return;
    file_.clear();
    file_.seekg(0);
  }

  /// False at the end. Empty lines are passed over.
  bool next(Row& row) {
    for (std::string line; std::getline(file_, line);) {
      ++line_;
      if (line.find('\0') != std::string::npos)
        throw UserError(fmt::format("{}:{}: expected text in columns, found binary data", path_, line_));
      while (std::count(line.begin(), line.end(), '"') % 2 == 1) {
        std::string more;
        if (!std::getline(file_, more)) break;
        ++line_;
        line += "\n" + more;
      }
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      split(line, row);
      return true;
    }
    return false;
  }
  int64_t line() const { return line_; }

 private:
  void split(const std::string& line, Row& row) const {
    row.clear();
    std::string cell;
    bool quoted = false, was_quoted = false;
    const auto finish = [&] { row.push_back(was_quoted ? cell : trimmed(cell)); };
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
        cell += line[++i];
      } else if (c == '"' && (quoted || trimmed(cell).empty())) {
        if (!quoted) cell.clear();
        quoted = !quoted;
        was_quoted = true;
      } else if (c == delimiter_ && !quoted) {
        finish();
        cell.clear();
        was_quoted = false;
      } else {
        cell += c;
      }
    }
    finish();
  }

  std::ifstream file_;
  const std::string path_;
  const char delimiter_;
  int64_t line_ = 0;
};

/// The one that most of the first line's cells are between.
char delimiter_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  char best = ',';
  for (const char c : {';', '\t', '|'})
    if (std::count(line.begin(), line.end(), c) > std::count(line.begin(), line.end(), best)) best = c;
  return best;
}

/// Collects a column's values.
class Look {
 public:
  void add(const std::string& text) {
    if (is_gap(text)) {
      ++column_.gaps;
      gaps_.insert(text);
      return;
    }
    ++seen_;
    if (const auto number = number_in(text)) {
      if (!any_number_ || *number < column_.least) column_.least = *number;
      if (!any_number_ || *number > column_.most) column_.most = *number;
      column_.whole = column_.whole && *number == std::floor(*number);
      any_number_ = true;
      sum_ += *number;
      ++numbers_;
    } else {
      ++(is_date(text) ? dates_ : texts_);
    }
    constexpr size_t kMostHashes = 5'000'000;
    if (column_.distinct && hashes_.size() < kMostHashes)
      column_.distinct = hashes_.insert(std::hash<std::string>()(text)).second;
    if (const auto known = counts_.find(text); known != counts_.end()) {
      ++known->second;
    } else if (counts_.size() < LookedAtTable::kMostValues) {
      counts_[text] = 1;
    } else {
      column_.many_values = true;
    }
  }

  LookedAtColumn finish(std::string name) {
    column_.name = std::move(name);
    column_.kind = seen_ == 0     ? ColumnKind::empty
                   : texts_ > 0   ? ColumnKind::text
                   : dates_ == 0  ? ColumnKind::number
                   : !any_number_ ? ColumnKind::date
                                  : ColumnKind::text;
    for (const auto& [value, count] : counts_) {
      column_.values.push_back(value);
      column_.counts.push_back(count);
    }
    if (seen_ == 0) column_.distinct = false;
    if (numbers_ > 0) column_.mean = sum_ / static_cast<double>(numbers_);
    column_.gap_spellings = static_cast<int64_t>(gaps_.size());
    return std::move(column_);
  }

 private:
  LookedAtColumn column_;
  int64_t seen_ = 0, texts_ = 0, dates_ = 0;
  int64_t numbers_ = 0;
  double sum_ = 0;
  bool any_number_ = false;
  std::map<std::string, int64_t> counts_;
  std::unordered_set<size_t> hashes_;
  std::unordered_set<std::string> gaps_;
};

/// Names are no numbers, and all different.
bool is_header(const Row& row) {
  std::unordered_set<std::string> names;
  for (const std::string& cell : row)
    if (number_in(cell) || is_date(cell) || !names.insert(cell).second) return false;
  return true;
}

}  // namespace

LookedAtTable look_at_csv(const std::string& path) {
  LookedAtTable table;
  table.delimiter = delimiter_of(path);
  RowReader reader(path, table.delimiter);
  Row first, row;
  if (!reader.next(first)) throw UserError(fmt::format("{}: expected a table, found an empty file", path));
  table.header = is_header(first);
  std::vector<Look> looks(first.size());
  for (bool more = !table.header || reader.next(row); more; more = reader.next(row)) {
    const Row& now = row.empty() ? first : row;  // without a header the first row is one of data
    if (now.size() != first.size())
      throw UserError(fmt::format("{}:{}: expected {} columns, as the first line has, found {}", path,
                                  reader.line(), first.size(), now.size()));
    for (size_t i = 0; i < now.size(); ++i) looks[i].add(now[i]);
    ++table.rows;
  }
  if (table.rows == 0) throw UserError(fmt::format("{}: expected rows of data, found a header only", path));
  for (size_t i = 0; i < looks.size(); ++i)
    table.columns.push_back(looks[i].finish(table.header ? first[i] : ""));
  return table;
}

}  // namespace dtrain
