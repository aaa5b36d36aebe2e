// Numbers in delimited text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/column.h"

namespace dtrain {

/// Which fields of a line make up one column of the data set; Shape{} for a single value, else [fields].
struct CsvPart {
  std::vector<size_t> fields;
  DType dtype = DType::float32;  // or int32: every value must be an integer then
  bool scalar = false;
};

struct CsvFormat {
  char delimiter = ',';
  std::optional<bool> header =
      false;  // none: the first line is a header if there are names in it and no numbers
};

/// Called once, with the fields' number and their names (empty without a header).
using ChooseParts = std::function<std::vector<CsvPart>(size_t width, const std::vector<std::string>& names)>;

/// The names in the first line, where that is a header. Throws UserError for a header that has one twice.
std::vector<std::string> read_csv_names(const std::string& path, const CsvFormat& format);

/// Which of the names it is. Throws UserError where it is none of them.
size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names);

/// Reads a whole file (.gz or plain) into memory. Blank lines are passed over; values may be quoted. Throws
/// UserError "path:line:column: expected ..., found ..." for anything that is no finite number, for lines of
/// other widths, and for a header that has a name twice.
Columns read_csv(const std::string& path, const CsvFormat& format, const ChooseParts& choose);

}  // namespace dtrain
