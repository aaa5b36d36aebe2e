// Reads tables in delimited text: numbers, and texts that become numbers.
#pragma once

#include <string>
#include <vector>

#include "data/readers/csv/plan.h"

namespace dtrain {

/// Returns the index of `name` in `names`. Throws UserError if it is not there.
size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names);

/// Like place_of_column(), for several names; the error lists all missing names.
std::vector<size_t> places_of_columns(const std::string& path, const std::vector<std::string>& wanted,
                                      const std::vector<std::string>& names);

/// Reads a whole file (.gz or plain) into memory, on all cores. Skips blank lines, except that a blank line
/// between rows of one column is a missing value; values may be quoted as in RFC 4180. Throws UserError
/// "path:line:column: expected ..., found ..." for a value that is neither a finite number nor a category,
/// for lines of different widths, for a header with a duplicate name, and if all rows are left out.
CsvColumns read_csv(const std::string& path, const CsvFormat& format, const PlanCsv& plan);

}  // namespace dtrain
