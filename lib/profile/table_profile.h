// What a CSV file seems to hold, for `dtrain new`. Values are told apart as the csv reader does it
// (data/readers/csv_values.h); whether the first line is a header is a guess, which the configuration then
// states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/column_profile.h"
#include "profile/table_format.h"

namespace dtrain {

struct TableProfile {
  bool header = false;
  TableFormat format;
  CsvNotation notation;               // of numbers and missing values
  int64_t rows = 0;                   // without the header
  std::vector<std::string> warnings;  // faults of the file as a whole
  std::vector<ColumnProfile> columns;
};

/// Reads the whole file. Throws UserError where it cannot be read as text in columns, where the header has a
/// name twice.
TableProfile profile_csv(const std::string& path);

}  // namespace dtrain
