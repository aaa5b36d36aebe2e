#include "data/readers/csv_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "data/readers/decimal.h"

namespace dtrain {

std::optional<double> csv_number(std::string_view text) {
  double value = 0;
  if (read_decimal(text.data(), text.data() + text.size(), value) == text.data() + text.size() &&
      !text.empty())
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_csv_gap(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kGaps = {"",     "na",  "n/a", "nan", "null",
                                                            "none", "nil", "-",   "?"};
  if (text.size() > 4) return false;
  return std::find(kGaps.begin(), kGaps.end(), in_small_letters(std::string(text))) != kGaps.end();
}

bool is_csv_missing_name(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kMissing = {"",     "NA",   "N/A",  "NaN", "nan",
                                                               "null", "NULL", "None", "?"};
  return text.size() <= 4 && std::find(kMissing.begin(), kMissing.end(), text) != kMissing.end();
}

bool is_csv_name(std::string_view text) {
  double value = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool number = error != std::errc::invalid_argument && end == digits.data() + digits.size();
  return !number && !is_csv_gap(text);
}

bool is_csv_date(std::string_view text) {
  text = text.substr(0, text.find_first_of(" T"));
  if (text.size() < 6 || text.size() > 10) return false;
  for (const char separator : {'-', '/', '.'}) {
    if (std::count(text.begin(), text.end(), separator) != 2) continue;
    return std::all_of(text.begin(), text.end(),
                       [&](char c) { return c == separator || (c >= '0' && c <= '9'); });
  }
  return false;
}

}  // namespace dtrain
