// Meaning of the text of one value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

/// Returns a finite number, or nullopt.
std::optional<double> csv_number(std::string_view text);
/// Returns true for the usual texts for a missing value: the empty text, NA, null, ?, ... in any case.
bool is_csv_gap(std::string_view text);
/// Like is_csv_gap(), for texts that may be names: accepts only the exact texts that tables write for missing
/// values.
bool is_csv_missing_name(std::string_view text);
/// Returns true if a text is neither a number (nan and inf count as numbers) nor a gap.
bool is_csv_name(std::string_view text);

/// The notation of numbers and missing values in a file.
struct CsvNotation {
  char decimal = '.';
  std::optional<char> thousands;
  std::vector<std::string> na_values;  // texts for a missing value, in addition to the usual ones
};

/// Interprets the texts of a file with one notation. Safe to use from several threads.
class CsvValues {
 public:
  explicit CsvValues(CsvNotation notation = {});

  /// Do the same as the free functions above, in this notation.
  std::optional<double> number(std::string_view text) const {
    return is_plain_ ? csv_number(text) : number_of_notation(text);
  }
  bool is_gap(std::string_view text) const { return is_csv_gap(text) || is_na_value(text); }
  bool is_missing_name(std::string_view text) const { return is_csv_missing_name(text) || is_na_value(text); }
  bool is_name(std::string_view text) const;
  /// Returns the number in a text that may have a currency sign or code, thousands separators, a percent
  /// sign, or parentheses for a negative number; nullopt for anything else. If the notation has no thousands
  /// separator, the separator is the comma or point that is not the decimal separator. Spaces and apostrophes
  /// always separate thousands.
  std::optional<double> amount(std::string_view text) const;

  /// Returns true if any number marks a missing value. is_na_number() tests one number.
  bool has_na_numbers() const { return !na_numbers_.empty(); }
  bool is_na_number(double number) const;
  char decimal() const { return notation_.decimal; }
  /// Returns a sentence that names the option with which the text would be a number; "" if there is no such
  /// option. `column` is the name of the text's column.
  std::string advice(std::string_view text, const std::string& column) const;

 private:
  bool is_na_value(std::string_view text) const;
  std::optional<double> number_of_notation(std::string_view text) const;

  CsvNotation notation_;
  bool is_plain_;  // csv_number() reads all numbers
  std::vector<double> na_numbers_;
};

}  // namespace dtrain
