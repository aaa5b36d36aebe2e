// What the text of one value says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

/// A finite number, or nothing.
std::optional<double> csv_number(std::string_view text);
/// One of the ways to say that there is no value: nothing at all, NA, null, ?, ...
bool is_csv_gap(std::string_view text);
/// Whether a text says so where names may stand: only what tables write for a missing value, as they write
/// it.
bool is_csv_missing_name(std::string_view text);
/// Neither a number (nan and inf are numbers here) nor a gap.
bool is_csv_name(std::string_view text);

/// How a file writes its numbers and its missing values.
struct CsvNotation {
  char decimal = '.';
  std::optional<char> thousands;
  std::vector<std::string> na_values;  // texts that mean a missing value, besides the usual ones
};

/// What texts say in a file of one notation. Any thread may ask.
class CsvValues {
 public:
  explicit CsvValues(CsvNotation notation = {});

  /// As the free functions above.
  std::optional<double> number(std::string_view text) const {
    return is_plain_ ? csv_number(text) : number_of_notation(text);
  }
  bool is_gap(std::string_view text) const { return is_csv_gap(text) || is_na_value(text); }
  bool is_missing_name(std::string_view text) const { return is_csv_missing_name(text) || is_na_value(text); }
  bool is_name(std::string_view text) const;
  /// A number with a currency sign or code, thousands separators, a percent sign, in parentheses where it is
  /// negative; or nothing. Thousands are separated as the notation says, else by the comma or point that is
  /// not the decimal one; in any case also by blanks and apostrophes.
  std::optional<double> amount(std::string_view text) const;

  /// Whether some number means a missing value, and whether this one does.
  bool has_na_numbers() const { return !na_numbers_.empty(); }
  bool is_na_number(double number) const;
  char decimal() const { return notation_.decimal; }
  /// Which option would make a number of the text, as a sentence; "" where none would. `column`: its name.
  std::string advice(std::string_view text, const std::string& column) const;

 private:
  bool is_na_value(std::string_view text) const;
  std::optional<double> number_of_notation(std::string_view text) const;

  CsvNotation notation_;
  bool is_plain_;  // numbers are what csv_number() reads
  std::vector<double> na_numbers_;
};

}  // namespace dtrain
