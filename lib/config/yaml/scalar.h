// The meaning of plain (unquoted) YAML scalars.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace dtrain {

/// Parses all of `text` as a decimal number. Returns std::errc() if it fits in V, result_out_of_range if it
/// is a number outside V's range (including infinities), and invalid_argument if it is not a number.
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

/// Like parse_number, but also accepts a division such as 1/255.
std::errc parse_real(std::string_view text, double& out);
std::errc parse_real(std::string_view text, float& out);
/// Returns the shortest text that is parsed as this finite number. YAML 1.1 parsers also read it as this
/// number, e.g. 1.0e-07.
std::string real_text(double value);
std::string real_text(float value);

/// Parses true, True, TRUE, false, False and FALSE, as in YAML 1.2.
std::optional<bool> parse_bool(std::string_view text);
/// Returns true if the text is a finite decimal number or a division of two such numbers.
bool reads_as_number(std::string_view text);
/// Returns true if the text is "", "~", or "null" in one of its capitalizations.
bool reads_as_null(std::string_view text);
/// Returns true if dtrain or another YAML parser may read the unquoted text as something other than a string
/// (yes, on, .inf, ...). Also returns true for every text that begins like a number.
bool reads_as_other_than_string(std::string_view text);
/// Returns true if the text can be written without quotes, even inside [] and {}, and is parsed as the same
/// scalar.
bool plain_is_safe(std::string_view text);

}  // namespace dtrain
