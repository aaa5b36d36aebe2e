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
  double least = 0, most = 0, mean = 0;
  std::vector<std::string> values;  // the different ones, sorted; at most kMostValues
  std::vector<int64_t> counts;      // how many rows have each
  bool many_values = false;         // there are more
  bool distinct = true;             // no value comes twice
};

struct TableProfile {
  static constexpr size_t kMostValues = 1000;
  bool header = false;
  char delimiter = ',';
  int64_t rows = 0;  // without the header
  std::vector<ColumnProfile> columns;
};

/// Reads the whole file: categories count. Throws UserError where it cannot be read as text in columns.
TableProfile profile_csv(const std::string& path);

}  // namespace dtrain
