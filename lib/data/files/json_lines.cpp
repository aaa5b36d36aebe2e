#include "data/files/json_lines.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace dtrain {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";

[[noreturn]] void fail(const std::string& name, size_t line, const std::string& message) {
  throw UserError(fmt::format("{}:{}: {}", name, line, message));
}

/// Calls `add(value, line number)` for each line that is not blank.
template <class Add>
void for_each_line(std::string_view text, const std::string& name, Add add) {
  size_t number = 1;
  for (size_t at = 0, end; at < text.size(); at = end + 1, ++number) {
    end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.find_first_not_of(kSpaces) == std::string_view::npos) continue;
    Json value;
    try {
      value = Json::parse(line, Json::RepeatedKeys::error);
    } catch (const UserError& error) {
      fail(name, number, fmt::format("the line cannot be read as JSON; {}", error.what()));
    }
    add(value, number);
  }
}

std::string kind_of(const Json& value) {
  return value.is_object() ? "an object" : value.is_array() ? "an array" : "a single value";
}

void check_is_as_first(const Json& value, bool expects_object, const std::string& name, size_t line) {
  if (expects_object ? !value.is_object() : !value.is_array())
    fail(name, line,
         fmt::format("expected {} as in the first line, found {}", expects_object ? "an object" : "an array",
                     kind_of(value)));
}

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

  void add(const Json& value, size_t number) {
    if (rows_.empty()) has_header_ = value.is_object();
    check_is_as_first(value, has_header_, name_, number);
    std::vector<std::string>& row = rows_.emplace_back();
    if (!has_header_) {
      if (value.items().empty()) fail(name_, number, "expected an array of values, found an empty array");
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
  std::string checked(const Json& value, const std::string& key, size_t line) const {
    if (value.is_object() || value.is_array())
      fail(name_, line,
           fmt::format("expected a number or a string{}, found {}",
                       key.empty() ? "" : fmt::format(" for '{}'", key), kind_of(value)));
    return field_of(value);
  }
  static void append(std::string& text, const std::vector<std::string>& row, size_t width) {
    const bool is_gap = width == 1 && (row.empty() || row[0].empty());
    if (is_gap) text += "\"\"";  // a quoted empty value, because readers skip blank lines at the end
    for (size_t i = 0; i < width; ++i) {
      if (i > 0) text += ',';
      if (i < row.size()) text += row[i];
    }
    text += '\n';
  }

  const std::string& name_;
  bool has_header_ = false;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, size_t> columns_;  // maps keys to column indices
  std::vector<std::vector<std::string>> rows_;       // fields of each row
};

/// Collects the values of one key into an array.
class ArrayMaker {
 public:
  ArrayMaker(const std::string& file, std::string name, const Json& first)
      : file_(file), name_(std::move(name)) {
    for (const Json* value = &first; value->is_array(); value = &value->items().front()) {
      extents_.push_back(static_cast<int64_t>(value->items().size()));
      if (value->items().empty()) break;
    }
  }

  const std::string& name() const { return name_; }

  void add(const Json& value, size_t line) { add(value, 0, line); }

  JsonArray finish(int64_t samples) const {
    JsonArray array;
    array.name = name_;
    array.shape = Shape(extents_).prepended(samples);
    array.type = {integers_ ? StoredType::Kind::signed_integer : StoredType::Kind::real, 8};
    array.data.resize(numbers_.size() * sizeof(double));
    char* at = array.data.data();
    for (const double number : numbers_) {
      const auto integer = static_cast<int64_t>(integers_ ? number : 0);
      std::memcpy(at, integers_ ? static_cast<const void*>(&integer) : &number, sizeof(double));
      at += sizeof(double);
    }
    return array;
  }

 private:
  void add(const Json& value, size_t axis, size_t line) {
    if (axis < extents_.size()) {
      if (!value.is_array() || static_cast<int64_t>(value.items().size()) != extents_[axis])
        refuse(value, axis, line);
      for (const Json& element : value.items()) add(element, axis + 1, line);
    } else if (value.is_number()) {
      // A double cannot hold all integers above 2^53 exactly. If an array has such an integer, its type is
      // float64; an int32 input of a model could not hold the integer anyway.
      integers_ = integers_ && value.is_int() && std::abs(value.as_double()) <= 0x1p53;
      numbers_.push_back(value.as_double());
    } else if (value.is_bool()) {
      numbers_.push_back(value.as_bool() ? 1 : 0);
    } else {
      refuse(value, axis, line);
    }
  }

  [[noreturn]] void refuse(const Json& value, size_t axis, size_t line) const {
    const std::string expected = axis < extents_.size() ? fmt::format("an array of length {}", extents_[axis])
                                                        : std::string("a number");
    const std::string found =
        value.is_array()    ? fmt::format("an array of length {}", value.items().size())
        : value.is_object() ? "an object"
        : value.is_string()
            ? fmt::format("the string {} (JSON lines with arrays must not contain strings)", value.dump())
            : value.dump();
    const std::string reason =
        extents_.empty()
            ? ""
            : fmt::format("; the value in the first line has the shape {}", Shape(extents_).str());
    fail(file_, line,
         fmt::format("expected {}{}, found {}{}", expected,
                     name_.empty() ? "" : fmt::format(" in '{}'", name_), found, reason));
  }

  const std::string& file_;
  std::string name_;
  std::vector<int64_t> extents_;  // extents of a sample
  std::vector<double> numbers_;
  bool integers_ = true;
};

/// Returns the value in the first line that is not empty. Returns nullopt if the line is not JSON.
std::optional<Json> first_of(std::string_view text) {
  const size_t start = std::min(text.find_first_not_of(kSpaces), text.size());
  try {
    return Json::parse(text.substr(start, text.find('\n', start) - start));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

bool may_be_json_lines(std::string_view start) {
  const size_t first = start.find_first_not_of(kSpaces);
  return first != std::string_view::npos && (start[first] == '{' || start[first] == '[');
}

bool is_json_lines(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return false;
  if (text[first] == '[') return first_of(text).has_value();
  const size_t key = text.find_first_not_of(kSpaces, first + 1);
  return text[first] == '{' && key != std::string_view::npos && (text[key] == '"' || text[key] == '}');
}

bool has_nested_arrays(std::string_view text) {
  const std::optional<Json> parsed = first_of(text);
  if (!parsed) return false;  // table_of_json_lines() reports the error
  const Json& first = *parsed;
  const auto is_array = [](const Json& value) { return value.is_array(); };
  if (first.is_array()) return std::any_of(first.items().begin(), first.items().end(), is_array);
  return first.is_object() && std::any_of(first.entries().begin(), first.entries().end(),
                                          [&](const auto& entry) { return is_array(entry.second); });
}

TableText table_of_json_lines(std::string_view text, const std::string& name) {
  TableMaker maker(name);
  for_each_line(text, name, [&](const Json& value, size_t line) { maker.add(value, line); });
  return maker.table();
}

std::vector<JsonArray> arrays_of_json_lines(std::string_view text, const std::string& name) {
  std::vector<ArrayMaker> makers;
  bool has_names = false;
  int64_t samples = 0;
  for_each_line(text, name, [&](const Json& value, size_t line) {
    if (samples++ == 0) {
      has_names = value.is_object();
      if (!has_names) makers.emplace_back(name, "", value);
      if (has_names)
        for (const auto& [key, array] : value.entries()) makers.emplace_back(name, key, array);
    }
    check_is_as_first(value, has_names, name, line);
    if (!has_names) return makers.front().add(value, line);
    for (ArrayMaker& maker : makers) {
      const Json* array = value.find(maker.name());
      if (!array)
        fail(name, line,
             fmt::format("the key '{}' of the first line is missing; expected the same keys in all lines",
                         maker.name()));
      maker.add(*array, line);
    }
    for (const auto& [key, array] : value.entries())
      if (std::none_of(makers.begin(), makers.end(),
                       [&](const ArrayMaker& maker) { return maker.name() == key; }))
        fail(name, line,
             fmt::format("the key '{}' is not in the first line; expected the same keys in all lines", key));
  });
  std::vector<JsonArray> arrays;
  for (const ArrayMaker& maker : makers) arrays.push_back(maker.finish(samples));
  return arrays;
}

}  // namespace dtrain
