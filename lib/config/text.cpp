#include "config/text.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace dtrain {

namespace {

/// yaml-cpp holds the tokens of a whole flow collection in memory before it hands out the first.
constexpr size_t kMaxFlowMarks = 1'000'000;

bool is_control(unsigned char c) {
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

}  // namespace

std::optional<TextMistake> find_text_mistake(std::string_view text) {
  if (text.size() > kMaxConfigBytes)
    return TextMistake{
        1, 1, fmt::format("expected a configuration of at most {} MiB, found more", kMaxConfigBytes >> 20)};
  int line = 1;
  size_t line_start = 0, flow_marks = 0;
  bool indentation = true, tab = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto here = [&](std::string message) {
      return TextMistake{line, static_cast<int>(at - line_start) + 1, std::move(message)};
    };
    const size_t length = utf8_length(text.substr(at, 4));
    if (length == 0)
      return here(fmt::format("expected UTF-8 text, found the byte 0x{:02x}", static_cast<unsigned char>(c)));
    if (is_control(static_cast<unsigned char>(c)))
      return here(
          fmt::format("expected text, found the control character 0x{:02x}", static_cast<unsigned char>(c)));
    if (c == '[' || c == '{' || c == ',') {
      if (++flow_marks > kMaxFlowMarks)
        return here(fmt::format("more than {} brackets and commas", kMaxFlowMarks));
    }
    if (c == '\t' && indentation) tab = true;
    if (c != ' ' && c != '\t') {
      // A tab on a blank or comment line hurts nobody.
      if (indentation && tab && c != '\n' && c != '\r' && c != '#')
        return here("a tab in the indentation; use spaces");
      indentation = false;
    }
    at += length;
    if (c == '\n') {
      ++line;
      line_start = at;
      indentation = true;
      tab = false;
    }
  }
  return std::nullopt;
}

}  // namespace dtrain
