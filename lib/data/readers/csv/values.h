// Interprets the text of one value, such as a number or a mark for a missing value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

/// Returns the number that a text represents, or nullopt if the text is not a finite number.
std::optional<double> csv_number(std::string_view text);
/// Returns true if a text usually marks a missing value: "", NA, null, ? and some others. Ignores upper and
/// lower case.
bool is_csv_gap(std::string_view text);
/// Like is_csv_gap(), but for columns of names. Accepts fewer texts, and distinguishes upper and lower case.
/// For example, it accepts NA and None, which programs write, but not na, none or -, which may be names.
bool is_csv_missing_name(std::string_view text);
/// Returns true if a text is neither a number (nan and inf count as numbers) nor a mark for a missing value.
bool is_csv_name(std::string_view text);

/// The notation of numbers and missing values in a file.
struct CsvNotation {
  char decimal = '.';
  std::optional<char> thousands;
  std::vector<std::string> na_values;  // texts for a missing value, in addition to the usual ones
};

/// Interprets texts in the notation of a file. Safe to use from several threads.
class CsvValues {
 public:
  explicit CsvValues(CsvNotation notation = {});

  /// The following functions do the same as csv_number() and the other functions above, but for numbers and
  /// missing values in this notation.
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

  /// Returns true if some of the texts that mark a missing value are numbers, such as -999. is_na_number()
  /// returns true for these numbers.
  bool has_na_numbers() const { return !na_numbers_.empty(); }
  bool is_na_number(double number) const;
  char decimal() const { return notation_.decimal; }
  /// Returns advice that names the option with which the text would be read as a number, or "" if no option
  /// helps. `column` is the name of the column that has the text.
  std::string advice(std::string_view text, const std::string& column) const;

 private:
  bool is_na_value(std::string_view text) const;
  std::optional<double> number_of_notation(std::string_view text) const;

  CsvNotation notation_;
  bool is_plain_;  // true if csv_number() reads all numbers of this notation
  std::vector<double> na_numbers_;
};

}  // namespace dtrain
