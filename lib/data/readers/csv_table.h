// Reads tables of numbers in delimited text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/column.h"

namespace dtrain {

/// Says which fields of a line make up one column of the data set. A row of the column has the shape
/// [fields.size()], or Shape{} where it is a scalar.
struct CsvPart {
  std::vector<size_t> fields;
  DType dtype = DType::float32;  // or int32, where every value must be an integer
  bool scalar = false;
};

struct CsvFormat {
  char delimiter = ',';
  /// Whether the first line is a header. Unset: it is, where it has names and no numbers.
  std::optional<bool> header = false;
};

/// Chooses the columns of a file. Called once, with the number of its fields and their names (empty without a
/// header).
using ChooseParts = std::function<std::vector<CsvPart>(size_t width, const std::vector<std::string>& names)>;

/// The names in the first line, where that is a header; else none. Throws UserError for a header that has a
/// name twice.
std::vector<std::string> read_csv_names(const std::string& path, const CsvFormat& format);

/// The index of `name` among `names`. Throws UserError where it is none of them.
size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names);

/// Reads a whole file (.gz or plain) into memory. Blank lines are passed over; values may be quoted. Throws
/// UserError "path:line:column: expected ..., found ..." for anything that is no finite number, for lines of
/// other widths, and for a header that has a name twice.
Columns read_csv(const std::string& path, const CsvFormat& format, const ChooseParts& choose);

}  // namespace dtrain
