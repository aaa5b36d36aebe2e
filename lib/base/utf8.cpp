#include "base/utf8.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace dtrain {

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !continues(1)) return 0;
  if (first < 0xE0) return 2;
  if (!continues(2)) return 0;
  if (first < 0xF0) return (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ? 0 : 3;
  if (!continues(3)) return 0;
  return (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ? 0 : 4;
}

bool is_utf8(std::string_view text) {
  constexpr uint64_t kTops = 0x8080808080808080;
  while (!text.empty()) {
    uint64_t word = kTops;
    if (text.size() >= sizeof word) std::memcpy(&word, text.data(), sizeof word);
    const size_t length = (word & kTops) == 0 ? sizeof word : utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_utf8(std::string& out, uint32_t code_point) {
  const auto push = [&](uint32_t byte) { out += static_cast<char>(byte); };
  const auto push_rest = [&](int shift) { push(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    push_rest(0);
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    push_rest(6);
    push_rest(0);
  } else {
    push(0xF0 | (code_point >> 18));
    push_rest(12);
    push_rest(6);
    push_rest(0);
  }
}

std::string escaped_byte(unsigned char byte) {
  return fmt::format("\\udc{:02x}", static_cast<unsigned>(byte));
}

std::optional<char> byte_of_escape(uint32_t code_point) {
  if (code_point < 0xDC80 || code_point > 0xDCFF) return std::nullopt;
  return static_cast<char>(code_point & 0xFF);
}

std::string shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  text.resize(most);
  return text + "...";
}

namespace {

/// Returns the length of the control character at the start of the text, or 0 if the text does not start with
/// one.
size_t control_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7F) return 1;
  const auto is_c1 = [](unsigned char byte) { return byte >= 0x80 && byte < 0xA0; };
  if (utf8_length(text.substr(0, 4)) == 0) return is_c1(first) ? 1 : 0;
  return first == 0xC2 && is_c1(static_cast<unsigned char>(text[1])) ? 2 : 0;
}

std::string escaped_control(std::string_view control) {
  switch (control[0]) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
  }
  const unsigned byte = static_cast<unsigned char>(control.back());
  return control.size() == 1 ? fmt::format("\\x{:02x}", byte) : fmt::format("\\u{:04x}", byte);
}

std::string escape_controls(std::string_view text, std::string_view kept) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t control = kept.find(text[0]) == std::string_view::npos ? control_length(text) : 0;
    const size_t length = control > 0 ? control : std::max<size_t>(utf8_length(text.substr(0, 4)), 1);
    if (control > 0)
      shown += escaped_control(text.substr(0, length));
    else
      shown += text.substr(0, length);
    text.remove_prefix(length);
  }
  return shown;
}

constexpr std::string_view kLayout = "\n\t";

}  // namespace

std::string visible(std::string_view text) {
  return escape_controls(text, kLayout);
}

std::string visible_in_line(std::string_view text) {
  return escape_controls(text, "");
}

bool is_visible(std::string_view text) {
  while (!text.empty()) {
    if (kLayout.find(text[0]) == std::string_view::npos && control_length(text) > 0) return false;
    text.remove_prefix(std::max<size_t>(utf8_length(text.substr(0, 4)), 1));
  }
  return true;
}

std::string in_small_letters(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace dtrain
