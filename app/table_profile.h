// What a CSV file seems to hold, for `dtrain new`. Values are told apart as the csv reader does it
// (data/readers/csv_values.h); whether the first line is a header is a guess, which the configuration then
// states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

struct ColumnProfile {
  enum class Kind {
    number,
    text,
    date,   // "2026-01-31", "31.01.2026 12:00"
    empty,  // nothing in any row
  };
  std::string name;  // "" without a header
  Kind kind = Kind::empty;
  int64_t missing = 0;  // rows without a value, as the csv reader takes it
  bool whole = true;    // of numbers: all are whole
  double least = 0, most = 0, mean = 0, deviation = 0;
  int64_t numbers = 0;        // rows with a number
  int64_t texts = 0;          // rows with what is neither a number nor a gap
  int64_t comma_numbers = 0;  // of the texts: "5,1", "1,234"
  std::string odd_text;       // the first text that keeps a column of numbers from being one; "" elsewhere
  int64_t odd_line = 0;       // where that stands
  std::vector<std::string> values;  // the different ones, sorted; at most kMostValues
  std::vector<int64_t> counts;      // how many rows have each; too few where there are more
  bool many_values = false;         // there are more
  bool distinct = true;             // no value comes twice
};

struct TableProfile {
  static constexpr size_t kMostValues = 1000;
  bool header = false;
  char delimiter = ',';
  int64_t rows = 0;                   // without the header
  std::vector<std::string> warnings;  // what had better be done about the file itself
  std::vector<ColumnProfile> columns;
};

/// Whether at least 9 of 10 of a column's values are such.
bool is_most(int64_t values, const ColumnProfile& column);

/// Reads the whole file: categories count. Throws UserError where it cannot be read as text in columns,
/// where the header has a name twice, and where numbers between semicolons and the like have decimal commas.
TableProfile profile_csv(const std::string& path);

}  // namespace dtrain
