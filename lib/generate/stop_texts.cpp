#include "generate/stop_texts.h"

#include <algorithm>
#include <utility>

namespace dtrain {

namespace {

/// Returns the length of the longest proper prefix of `stop` that is also a suffix of `text`.
size_t begun_at_end(std::string_view text, std::string_view stop) {
  for (size_t count = std::min(text.size(), stop.size() - 1); count > 0; --count)
    if (text.ends_with(stop.substr(0, count))) return count;
  return 0;
}

}  // namespace

std::string StopTexts::add(std::string_view part) {
  held_ += part;
  size_t begin = std::string::npos, end = std::string::npos, kept = 0;
  for (const std::string& text : texts_) {
    kept = std::max(kept, begun_at_end(held_, text));
    const size_t at = held_.find(text);
    if (at == std::string::npos || std::pair(at + text.size(), at) >= std::pair(end, begin)) continue;
    begin = at;
    end = at + text.size();
  }
  found_ = begin != std::string::npos;
  std::string passed = held_.substr(0, found_ ? begin : held_.size() - kept);
  held_.erase(0, found_ ? held_.size() : passed.size());
  return passed;
}

std::string StopTexts::finish() {
  return std::exchange(held_, {});
}

}  // namespace dtrain
