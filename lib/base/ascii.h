// Kinds of ASCII characters, independent of the locale.
#pragma once

namespace dtrain {

constexpr bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns true for a space, a tab, a line break, and the other characters that isspace() accepts in the C
/// locale.
constexpr bool is_ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace dtrain
