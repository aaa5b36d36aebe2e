// Analyzes a CSV file for `dtrain new`. Values are classified in the same way as by the csv reader
// (data/readers/csv/values.h). The program can only guess whether the first line is a header; the generated
// configuration states the result.
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
  CsvNotation notation;               // format of numbers and missing values
  int64_t rows = 0;                   // number of rows without the header
  std::vector<std::string> warnings;  // problems that concern the whole file
  std::vector<ColumnProfile> columns;
};

/// Reads the whole file. Throws UserError if it is not text in columns, or if the header repeats a name.
TableProfile profile_csv(const std::string& path);

}  // namespace dtrain
