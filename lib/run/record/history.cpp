#include "run/record/history.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

void check_record(const Json& record) {
  for (const char* key : {"epoch", "step"})
    if (const int64_t value = record.at(key).as_int(); value < 0)
      throw UserError(fmt::format("the history's '{}' must be at least 0, but it is {}", key, value));
}

bool has_tables(const Json& record) {
  const Json::Object& entries = record.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return entry.second.is_array(); });
}

/// Moves the tables of a record to a new record with the same epoch and step, and returns the new record.
Json split_tables(Json& record) {
  Json numbers = Json::object();
  Json tables = Json::object().set("epoch", record.at("epoch")).set("step", record.at("step"));
  for (const auto& [key, value] : record.entries()) (value.is_array() ? tables : numbers).set(key, value);
  record = std::move(numbers);
  return tables;
}

}  // namespace

History History::parse(std::string_view lines, const TakeTables& take) {
  History history;
  for (size_t at = 0, end; at < lines.size(); at = end + 1) {
    end = lines.find('\n', at);
    if (end == std::string_view::npos)
      throw UserError(fmt::format("the last line of the history has no newline: '{}'", lines.substr(at, 60)));
    Json record = Json::parse(lines.substr(at, end - at));
    check_record(record);
    history.last_line_ = history.text_.size();
    if (has_tables(record)) {
      Json tables = split_tables(record);
      if (take) take(std::move(tables));
      history.text_ += record.dump() + "\n";
    } else {
      history.text_ += lines.substr(at, end + 1 - at);
    }
    history.last_ = std::move(record);
  }
  return history;
}

void History::push(const Json& record) {
  check_record(record);
  last_line_ = text_.size();
  text_ += record.dump() + "\n";
  last_ = record;
}

}  // namespace dtrain
