#include "data/json_lines.h"

#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace dtrain {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";

/// Formats a value as a field of delimited text.
std::string field_of(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = "\"";
  for (const char c : value.as_string()) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

class TableMaker {
 public:
  explicit TableMaker(const std::string& name) : name_(name) {}

  void add(std::string_view line, size_t number) {
    const Json value = parse(line, number);
    if (rows_.empty()) has_header_ = value.is_object();
    if (has_header_ ? !value.is_object() : !value.is_array())
      fail(number, fmt::format("expected {} as in the first line", has_header_ ? "an object" : "an array"));
    std::vector<std::string>& row = rows_.emplace_back();
    if (!has_header_) {
      for (const Json& one : value.items()) row.push_back(checked(one, "", number));
      return;
    }
    for (const auto& [key, one] : value.entries()) {
      const size_t column = columns_.try_emplace(key, keys_.size()).first->second;
      if (column == keys_.size()) keys_.push_back(key);
      if (row.size() <= column) row.resize(column + 1);
      row[column] = checked(one, key, number);
    }
  }

  TableText table() const {
    TableText table{"", has_header_};
    if (has_header_) {
      std::vector<std::string> titles;
      for (const std::string& key : keys_) titles.push_back(field_of(Json(key)));
      append(table.text, titles, keys_.size());
    }
    for (const auto& row : rows_) append(table.text, row, has_header_ ? keys_.size() : row.size());
    return table;
  }

 private:
  [[noreturn]] void fail(size_t line, const std::string& message) const {
    throw UserError(fmt::format("{}:{}: {}", name_, line, message));
  }
  Json parse(std::string_view line, size_t number) const {
    try {
      return Json::parse(line);
    } catch (const UserError& error) {
      fail(number, fmt::format("expected a line of JSON: {}", error.what()));
    }
  }
  std::string checked(const Json& value, const std::string& key, size_t line) const {
    if (value.is_object() || value.is_array())
      fail(line, fmt::format("expected a number or a text{}, found {}",
                             key.empty() ? "" : fmt::format(" for '{}'", key),
                             value.is_object() ? "an object" : "an array"));
    return field_of(value);
  }
  static void append(std::string& text, const std::vector<std::string>& row, size_t width) {
    for (size_t i = 0; i < width; ++i) {
      if (i > 0) text += ',';
      if (i < row.size()) text += row[i];
    }
    text += '\n';
  }

  const std::string& name_;
  bool has_header_ = false;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, size_t> columns_;  // by key
  std::vector<std::vector<std::string>> rows_;       // of fields
};

}  // namespace

bool is_json_lines(std::string_view start) {
  const size_t first = start.find_first_not_of(kSpaces);
  return first != std::string_view::npos && (start[first] == '{' || start[first] == '[');
}

TableText table_of_json_lines(std::string_view text, const std::string& name) {
  TableMaker maker(name);
  size_t number = 1;
  for (size_t at = 0, end; at < text.size(); at = end + 1, ++number) {
    end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.find_first_not_of(kSpaces) != std::string_view::npos) maker.add(line, number);
  }
  return maker.table();
}

}  // namespace dtrain
