// Statistics of one column of a table, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/text_hash.h"
#include "data/readers/csv/dates.h"
#include "data/readers/csv/text.h"
#include "data/readers/csv/values.h"

namespace dtrain {

/// The range of the dates in a column. The features of the column depend on it.
struct DateSpan {
  // Number of dates that have a day, and number of texts that are only the name of a month.
  int64_t days = 0, months = 0;
  int least_year = 0, most_year = 0, least_month = 0, most_month = 0;
  bool has_times = false;

  void add(const CsvDate& date);
};

struct ColumnProfile {
  enum class Kind {
    number,
    text,
    date,   // such as "2026-01-31", "Jan 31 2026 12:00", "January" or 20260131
    empty,  // no row has a value
  };
  static constexpr size_t kMostValues = 1000;
  static constexpr size_t kMostSampled = 8000;

  std::string name;  // "" without a header
  Kind kind = Kind::empty;
  int64_t missing = 0;  // rows in which the csv reader finds no value
  bool whole = true;    // all numbers are integers
  // Whether the numbers are consecutive integers from 0 or 1, from the first row to the last.
  bool counts_up = true;
  double least = 0, most = 0, mean = 0, deviation = 0;  // statistics of the numbers
  int64_t numbers = 0;                                  // rows with a number
  int64_t texts = 0;                                    // rows with neither a number nor a missing value
  int64_t comma_numbers = 0;                            // texts like "5,1" or "1,234"
  int64_t amounts = 0;                                  // texts like "$62,199" or "4.2%"
  bool are_amounts = false;                             // whether all texts are amounts
  bool is_amount = false;   // whether the statistics include amounts, read as numbers
  bool has_points = false;  // whether any number has a decimal point
  // Whether any number has points and a comma, such as "1.234,56".
  bool has_comma_thousands = false;
  DateSpan dates;        // range of the dates, for a column of dates
  double words = 0;      // average number of words of a text
  std::string odd_text;  // the first text in a column of mostly numbers; "" in other columns
  int64_t odd_line = 0;  // the line of odd_text
  /// Texts that mark missing values in a column of numbers, dates or amounts, such as "unknown". A text that
  /// is repeated among numbers also counts as such a mark. Empty if the column also has other texts.
  std::vector<std::string> missing_names;
  std::vector<std::string> values;  // the different values, sorted; at most kMostValues
  std::vector<int64_t> counts;      // the number of rows with each value
  bool many_values = false;         // whether there are more than kMostValues different values
  bool distinct = true;             // whether all values are different
  /// The values of some rows. The rows are the same for every column. An element is the number, or a hash of
  /// the text, or NaN for a missing value. The sample has at least kMostSampled / 2 evenly spaced rows, or
  /// all rows if the table has fewer.
  std::vector<double> sample;
};

/// Returns true if the count `values` is at least nine tenths of the number of values in the column.
bool is_most(int64_t values, const ColumnProfile& column);

/// Returns true for a number with a decimal comma, or with commas and points as separators: "5,1",
/// "-1.234,56", "1,234".
bool is_comma_number(std::string_view text);

/// Collects statistics of a column's values, row by row.
class ColumnProfiler {
 public:
  /// `values` parses the texts of the column. If `is_amount` is true, amounts are read as numbers, too.
  ColumnProfiler(const CsvValues& values, bool is_amount) : values_(&values), is_amount_(is_amount) {}
  /// Adds the value of the next row. `at` is the value's position in the file.
  void add(std::string_view text, const char* at);
  /// Returns the statistics of all values. `file` is the file that contains the values.
  ColumnProfile finish(std::string name, const CsvText& file);

 private:
  struct Cell {
    std::string text;
    const char* at = nullptr;
  };

  double add_value(std::string_view text, const char* at);
  std::optional<double> number_of(std::string_view text) const;
  void add_number(double number, std::string_view text);
  double add_text(std::string_view text, const char* at);
  void add_date_or_amount(std::string_view text);
  void add_to_sample(double value);
  void count(std::string_view text);
  ColumnProfile::Kind kind() const;
  /// Returns true if most values of the column are numbers, and all other values are one repeated text. This
  /// text then marks missing values, even if it is not one of the usual marks.
  bool has_marker() const;

  const CsvValues* values_;
  bool is_amount_;
  ColumnProfile column_;
  int64_t rows_ = 0, stride_ = 1;  // the sample contains every `stride_`-th row
  int64_t missing_numbers_ = 0, words_ = 0, named_missing_ = 0;
  DateSpan compact_,
      seconds_;         // ranges of dates if the numbers are read as dates like 20260131, or as Unix times
  double squares_ = 0;  // sum of squared distances of the numbers from their mean
  std::string other_text_;  // the first text that is not one of the usual marks of missing values
  bool has_one_other_text_ = true;
  Cell text_, comma_;  // the first text, and the first one with a comma
  std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>> counts_;
  std::unordered_set<size_t> hashes_;  // hashes of the values; empty after the first duplicate
  // Hashes of texts such as "none", which are missing values if the column has numbers.
  std::set<double> gaps_;
};

}  // namespace dtrain
