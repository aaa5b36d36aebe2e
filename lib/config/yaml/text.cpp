#include "config/yaml/text.h"

#include <cctype>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dtrain {

namespace {

/// Maximum number of brackets and commas in a text. This limits memory use, because yaml-cpp buffers all
/// tokens of a flow collection before it returns the first one.
constexpr size_t kMaxFlowMarks = 1'000'000;
constexpr size_t kShownCharacters = 60;  // maximum length of a text in a message

bool is_control(unsigned char c) {
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

}  // namespace

std::string with_blank(std::string_view text) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  size_t end = 0;
  while (end < text.size() && is_letter(text[end])) ++end;
  if (end == 0 || std::isdigit(static_cast<unsigned char>(text[0])) || end + 1 >= text.size() ||
      text[end] != ':')
    return "";
  // If one of these characters follows the colon, no space is missing: a space or tab separates a key from
  // its value, and "::" and ":/" occur in namespaces and URLs.
  constexpr std::string_view kOther = " \t:/";
  if (kOther.find(text[end + 1]) != std::string_view::npos) return "";
  return fmt::format("{}: {}", text.substr(0, end), text.substr(end + 1));
}

std::string advice_for_colon(const ConfigNode& node) {
  const std::string meant = node.is_scalar() && !node.quoted() ? with_blank(node.text()) : "";
  return meant.empty()
             ? ""
             : fmt::format("; a space is missing after the colon: '{}'", shortened(meant, kShownCharacters));
}

std::vector<TextMistake> keys_without_blank(std::string_view text, int count) {
  std::vector<TextMistake> found;
  size_t at = 0;
  for (int number = 1; number <= count && at < text.size(); ++number) {
    const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    const std::string_view content = text.substr(at, end - at);
    at = std::min(text.find('\n', end), text.size() - 1) + 1;
    const size_t first = content.find_first_not_of(' ');
    if (first == std::string_view::npos || content[first] == '#') continue;
    const std::string meant = with_blank(content.substr(first));
    if (meant.empty())
      found.clear();
    else
      found.push_back(
          {number, static_cast<int>(first) + 1,
           fmt::format("a space is missing after the colon: '{}'", shortened(meant, kShownCharacters))});
  }
  return found;
}

size_t quote_of_scalar(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    at = text.find_first_of(" \t\r\n", at);
    if (at != std::string_view::npos) at = text.find_first_not_of(" \t\r\n", at);
  }
  return at < text.size() && (text[at] == '"' || text[at] == '\'') ? at : std::string_view::npos;
}

size_t closing_quote(std::string_view text, size_t first) {
  const char quote = text[first];
  for (size_t at = first + 1; at < text.size(); ++at) {
    const bool is_pair = quote == '\'' && text.substr(at, 2) == "''";
    if ((quote == '"' && text[at] == '\\') || is_pair)
      ++at;
    else if (text[at] == quote)
      return at;
  }
  return std::string_view::npos;
}

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
        return here(fmt::format("expected at most {} brackets and commas, found more", kMaxFlowMarks));
    }
    if (c == '\t' && indentation) tab = true;
    if (c != ' ' && c != '\t') {
      // A tab on a blank or comment line is harmless.
      if (indentation && tab && c != '\n' && c != '\r' && c != '#')
        return here("expected spaces in the indentation, found a tab");
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
