#include "config/yaml/scalar.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace dtrain {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

template <class V>
std::errc parse_division(std::string_view text, V& out) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return parse_number(text, out);
  std::string_view above = text.substr(0, slash), below = text.substr(slash + 1);
  while (above.ends_with(' ')) above.remove_suffix(1);
  while (below.starts_with(' ')) below.remove_prefix(1);
  double dividend = 0, divisor = 0;
  if (parse_number(above, dividend) != std::errc() || parse_number(below, divisor) != std::errc())
    return std::errc::invalid_argument;
  out = static_cast<V>(dividend / divisor);
  return std::isfinite(out) ? std::errc() : std::errc::result_out_of_range;
}

/// Adds a decimal point to numbers with an exponent, because YAML 1.1 would parse 1e-07 as a string.
std::string with_point(std::string text) {
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos) text.insert(exponent, ".0");
  return text;
}

}  // namespace

std::errc parse_real(std::string_view text, double& out) {
  return parse_division(text, out);
}

std::errc parse_real(std::string_view text, float& out) {
  return parse_division(text, out);
}

std::string real_text(double value) {
  return with_point(fmt::format("{}", value));
}

std::string real_text(float value) {
  return with_point(fmt::format("{}", value));
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

bool reads_as_number(std::string_view text) {
  double number;
  return parse_real(text, number) == std::errc();
}

bool reads_as_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

bool reads_as_other_than_string(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kWords = {
      "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf", ".nan", "<<", "="};
  if (reads_as_null(text)) return true;
  if (text.size() <= 5 && std::find(kWords.begin(), kWords.end(), lower(text)) != kWords.end()) return true;
  // Quotes every text that begins like a number, because some YAML parsers do not treat 1e400, 0x10, 1_000,
  // 12:30, 2001-12-14 or 1/255 as a string.
  const size_t sign = text.find_first_not_of("+-.");
  return sign != std::string_view::npos &&
         ((text[sign] >= '0' && text[sign] <= '9') || (sign > 0 && text[sign] == '_'));
}

bool plain_is_safe(std::string_view text) {
  if (reads_as_null(text) || text == "=" || text.starts_with("---") || text.starts_with("...")) return false;
  // The characters that an unquoted scalar may contain; the checks below forbid some of them in certain
  // positions. Many other characters have a special meaning in YAML.
  const auto harmless = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) || byte >= 0x80 ||
           std::string_view("_-./+$ :=()^;").find(c) != std::string_view::npos;
  };
  if (!std::all_of(text.begin(), text.end(), harmless)) return false;
  if (text.find(": ") != std::string_view::npos || text.front() == ' ' || text.front() == ':') return false;
  if (text.back() == ' ' || text.back() == ':') return false;
  return text.front() != '-' || (text.size() > 1 && text[1] != ' ' && text[1] != '-');
}

}  // namespace dtrain
