#include "train/history.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

void check_record(const Json& record) {
  for (const char* key : {"epoch", "step"})
    if (const int64_t value = record.at(key).as_int(); value < 0)
      throw UserError(fmt::format("the history's '{}' is {}", key, value));
}

}  // namespace

History History::parse(std::string lines) {
  History history;
  history.text_ = std::move(lines);
  const std::string_view text = history.text_;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    if (end == std::string_view::npos)
      throw UserError(fmt::format("the history's last line has no end: '{}'", text.substr(at, 60)));
    history.last_ = Json::parse(text.substr(at, end - at));
    history.last_line_ = at;
    check_record(history.last_);
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
