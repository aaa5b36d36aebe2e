#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dtrain {

std::string format_count(int64_t count) {
  std::string text = std::to_string(count);
  const size_t sign = count < 0 ? 1 : 0;
  for (size_t place = text.size(); place > sign + 3;) text.insert(place -= 3, ",");
  return text;
}

std::string format_value(double value) {
  if (std::isnan(value)) return "nan";  // regardless of the sign
  const double size = std::abs(value);
  return size == 0 || (size >= 1e-3 && size < 1e6) ? fmt::format("{:.4f}", value)
                                                   : fmt::format("{:.4g}", value);
}

std::string format_duration(double seconds) {
  constexpr int64_t kDay = 24;
  constexpr double kMost = 9999.0 * kDay * 3600;
  const auto total = static_cast<int64_t>(std::lround(std::clamp(seconds, 0.0, kMost)));
  const int64_t hours = total / 3600, minutes = total / 60 % 60;
  if (hours > 99) return fmt::format("{} d {} h", hours / kDay, hours % kDay);
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60)
                   : fmt::format("{}:{:02}", minutes, total % 60);
}

std::string shell_word(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 ||
           std::string_view("-_./+=,:").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string word = "'";
  for (const char c : text) c == '\'' ? word += "'\\''" : word += c;
  return word + "'";
}

std::string piped(const std::string& command, const std::string& file, const std::string& to) {
  const std::string path = shell_word(file);
  return file.ends_with(".gz") ? fmt::format("zcat {} | {} > {}", path, command, to)
                               : fmt::format("{} {} > {}", command, path, to);
}

std::string format_plural(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = visible_in_line(column.title);
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = visible_in_line(cell);
  rows_.push_back(std::move(row));
}

std::string Table::str() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(columns_[i].title.size());
    for (const auto& row : rows_) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::left ? fmt::format("{:<{}}", cell(i), widths[i])
                                               : fmt::format("{:>{}}", cell(i), widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](size_t i) { return columns_[i].title; });
  add_line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) add_line([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace dtrain
