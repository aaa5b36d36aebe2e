#include "data/readers/csv/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "data/readers/csv/decimal.h"

namespace dtrain {

std::optional<double> csv_number(std::string_view text) {
  double value = 0;
  if (read_decimal(text.data(), text.data() + text.size(), value) == text.data() + text.size() &&
      !text.empty())
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  // The number is too large for a double, or so small that it rounds to 0; strtod() distinguishes the two.
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
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

namespace {

/// Returns true if `text` consists of groups of digits: one to three in the first group, three in the last,
/// and two or three in each group between them.
bool is_grouped(std::string_view text, char separator) {
  size_t digits = 0, groups = 0;
  for (const char c : text) {
    if (c != separator) {
      if (c < '0' || c > '9') return false;
      ++digits;
    } else if (digits == 0 || digits > 3 || (groups++ > 0 && digits < 2)) {
      return false;
    } else {
      digits = 0;
    }
  }
  return digits == 3 && groups > 0;
}

/// Converts a number to csv_number()'s notation and reads it: removes thousands separators (one of
/// `separators`), and replaces the decimal character with a point.
std::optional<double> number_with(std::string_view text, char decimal, std::string_view separators) {
  std::string plain(text);
  size_t begin = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const size_t end = std::min(text.find_first_of(std::string{decimal, 'e', 'E'}, begin), text.size());
  if (const size_t first = text.find_first_of(separators, begin); first < end) {
    const char separator = text[first];
    if (!is_grouped(text.substr(begin, end - begin), separator)) return std::nullopt;
    std::erase(plain, separator);
  }
  if (decimal != '.') {
    if (plain.find('.') != std::string::npos) return std::nullopt;
    if (const size_t at = plain.find(decimal); at != std::string::npos) plain[at] = '.';
  }
  return csv_number(plain);
}

/// Replaces non-ASCII spaces with ASCII ones.
std::string with_plain_blanks(std::string_view text) {
  std::string plain(text);
  for (const std::string_view blank : {"\u00a0", "\u202f", "\u2009"})
    for (size_t at = 0; (at = plain.find(blank, at)) != std::string::npos;)
      plain.replace(at, blank.size(), " ");
  return plain;
}

void trim_blanks(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
}

/// If the text begins with a currency, returns the length of the currency in bytes; otherwise returns 0.
/// A currency is a sign, optionally after the letters of a country (US$), or a code of three letters (USD).
size_t currency_length(std::string_view text) {
  size_t letters = 0;
  while (letters < text.size() && text[letters] >= 'A' && text[letters] <= 'Z') ++letters;
  if (letters == 3) return 3;
  const std::string_view rest = text.substr(letters);
  if (letters < 3 && rest.starts_with('$')) return letters + 1;
  if (letters > 0) return 0;
  for (const std::string_view sign : {"\u00a2", "\u00a3", "\u00a4", "\u00a5"})
    if (rest.starts_with(sign)) return sign.size();
  // The characters U+20A0 to U+20CF are signs of other currencies.
  return rest.starts_with("\xe2\x82") && rest.size() > 2 && static_cast<unsigned char>(rest[2]) >= 0xa0   ? 3
         : rest.starts_with("\xe2\x83") && rest.size() > 2 && static_cast<unsigned char>(rest[2]) <= 0x8f ? 3
                                                                                                          : 0;
}

/// Removes a currency or a percent sign, with the spaces around it, from the beginning or the end of an
/// amount. Returns false if the amount has none.
bool take_unit(std::string_view& text) {
  size_t front = currency_length(text);
  if (front > 0) {
    text.remove_prefix(front);
    trim_blanks(text);
    return true;
  }
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    trim_blanks(text);
    return true;
  }
  for (size_t bytes = 1; bytes <= 3 && bytes < text.size(); ++bytes)
    if (currency_length(text.substr(text.size() - bytes)) == bytes) {
      text.remove_suffix(bytes);
      trim_blanks(text);
      return true;
    }
  return false;
}

}  // namespace

CsvValues::CsvValues(CsvNotation notation) : notation_(std::move(notation)) {
  is_plain_ = notation_.decimal == '.' && !notation_.thousands;
  for (const std::string& text : notation_.na_values)
    if (const auto value = number(text)) na_numbers_.push_back(*value);
}

std::optional<double> CsvValues::number_of_notation(std::string_view text) const {
  return number_with(text, notation_.decimal,
                     notation_.thousands ? std::string_view(&*notation_.thousands, 1) : std::string_view());
}

bool CsvValues::is_na_number(double number) const {
  return std::find(na_numbers_.begin(), na_numbers_.end(), number) != na_numbers_.end();
}

bool CsvValues::is_na_value(std::string_view text) const {
  if (notation_.na_values.empty()) return false;
  if (std::find(notation_.na_values.begin(), notation_.na_values.end(), text) != notation_.na_values.end())
    return true;
  const auto value = na_numbers_.empty() ? std::nullopt : number(text);
  return value && is_na_number(*value);
}

bool CsvValues::is_name(std::string_view text) const {
  return is_csv_name(text) && !is_na_value(text) && (is_plain_ || !number(text));
}

std::optional<double> CsvValues::amount(std::string_view text) const {
  if (const auto plain = number(text)) return plain;
  const std::string blanks = with_plain_blanks(text);
  std::string_view rest = blanks;
  trim_blanks(rest);
  bool negative = rest.starts_with('(') && rest.ends_with(')');
  if (negative) {
    rest = rest.substr(1, rest.size() - 2);
    trim_blanks(rest);
  }
  const auto take_sign = [&] {
    if (negative || rest.empty() || (rest[0] != '-' && rest[0] != '+')) return;
    negative = rest[0] == '-';
    rest.remove_prefix(1);
    trim_blanks(rest);
  };
  take_sign();
  if (take_unit(rest)) take_sign();
  if (rest.empty() || rest[0] < '0' || rest[0] > '9')
    if (rest.size() < 2 || rest[0] != notation_.decimal) return std::nullopt;
  const std::string separators =
      std::string(1, notation_.thousands.value_or(notation_.decimal == '.' ? ',' : '.')) + " '";
  const auto value = number_with(rest, notation_.decimal, separators);
  return value && negative ? std::optional(-*value) : value;
}

std::string CsvValues::advice(std::string_view text, const std::string& column) const {
  const auto reads = [&](char decimal, std::string_view separators) {
    return number_with(text, decimal, separators).has_value();
  };
  if (notation_.decimal == '.' && !notation_.thousands) {
    if (reads('.', ","))
      return "set 'thousands: \",\"' if the comma separates thousands, or 'decimal: \",\"' if it is a "
             "decimal comma";
    if (reads(',', "")) return "set 'decimal: \",\"' if the comma is a decimal comma";
    if (reads(',', "."))
      return "set 'decimal: \",\"' and 'thousands: \".\"' to read numbers in this notation";
  } else if (notation_.decimal == ',' && !notation_.thousands && reads(',', ".")) {
    return "set 'thousands: \".\"' if the point separates thousands";
  }
  if (!number(text) && amount(text))
    return "set 'amounts: [" + column +
           "]' to read numbers with a currency, a percent sign or thousands separators";
  return "";
}

}  // namespace dtrain
