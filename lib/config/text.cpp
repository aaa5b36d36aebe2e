#include "config/text.h"

#include <fmt/format.h>

namespace dtrain {

namespace {

/// yaml-cpp holds the tokens of a whole flow collection in memory before it hands out the first.
constexpr size_t kMaxFlowMarks = 1'000'000;

/// The length of the UTF-8 sequence at the front (no overlong forms, no surrogates), or 0 where there is
/// none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !continues(1)) return 0;
  if (first < 0xE0) return 2;
  if (!continues(2)) return 0;
  if (first < 0xF0) return (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ? 0 : 3;
  if (!continues(3)) return 0;
  return (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ? 0 : 4;
}

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
