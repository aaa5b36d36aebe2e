// What the text of a plain (unquoted) YAML scalar means.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace dtrain {

/// Reads all of `text` as a decimal number. Returns std::errc() if it fits V, result_out_of_range if it is a
/// number that V cannot hold (infinities included), invalid_argument if it is none.
template <class V>
std::errc parse_number(std::string_view text, V& out) {
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, out);
  if (error == std::errc::invalid_argument || end != last) return std::errc::invalid_argument;
  if constexpr (std::floating_point<V>) {
    if (!std::isfinite(out)) return std::errc::result_out_of_range;
  }
  return error;
}

/// As parse_number, of a number or of one divided by another: 1/255.
std::errc parse_real(std::string_view text, double& out);
std::errc parse_real(std::string_view text, float& out);
/// The shortest text that reads back as this (finite) value, also where YAML 1.1 is read: 1.0e-07.
std::string real_text(double value);
std::string real_text(float value);

/// true, True, TRUE, false, False and FALSE, as YAML 1.2 has them.
std::optional<bool> parse_bool(std::string_view text);
/// Whether text is a finite decimal number, or one divided by another.
bool reads_as_number(std::string_view text);
/// Whether text is "", "~", or "null" in one of its capitalisations.
bool reads_as_null(std::string_view text);
/// Whether text, unquoted, is no string, here or to other YAML readers (yes, on, .inf, ...), or begins like a
/// number.
bool reads_as_other_than_string(std::string_view text);
/// Whether text can stand unquoted, also inside [] and {}, and reads back as the same scalar.
bool plain_is_safe(std::string_view text);

}  // namespace dtrain
