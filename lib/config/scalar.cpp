#include "config/scalar.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace dtrain {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

bool reads_as_number(std::string_view text) {
  double number;
  return parse_number(text, number) == std::errc();
}

bool reads_as_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

bool reads_as_other_than_string(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kWords = {
      "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf", ".nan", "<<", "="};
  if (reads_as_null(text)) return true;
  if (text.size() <= 5 && std::find(kWords.begin(), kWords.end(), lower(text)) != kWords.end()) return true;
  // Whatever begins like a number: 1e400, 0x10, 1_000, 12:30 and dates are numbers to some reader.
  const size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
  const size_t point = sign < text.size() && text[sign] == '.' ? sign + 1 : sign;
  return point < text.size() && text[point] >= '0' && text[point] <= '9' &&
         text.find_first_not_of("0123456789abcdefABCDEFox+-._:") == std::string_view::npos;
}

bool plain_is_safe(std::string_view text) {
  if (reads_as_null(text) || text == "=" || text.starts_with("---") || text.starts_with("...")) return false;
  const auto harmless = [](char c) {  // wherever it stands; what YAML gives a meaning anywhere is quoted
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
