// Reads tables in delimited text. The values are numbers, or texts that are converted to numbers.
#pragma once

#include <string>
#include <vector>

#include "data/readers/csv/plan.h"

namespace dtrain {

/// Returns the index of `name` in `names`. Throws UserError if `names` does not contain it.
size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names);

/// Returns true if the file has only one column and the name of this column contains a common delimiter. Such
/// a file was probably read with the wrong delimiter.
bool has_other_delimiter(const std::vector<std::string>& names);

/// Like place_of_column(), for several names; the error lists all missing names.
std::vector<size_t> places_of_columns(const std::string& path, const std::vector<std::string>& wanted,
                                      const std::vector<std::string>& names);

/// Reads a whole file (.gz or plain) into memory, on all cores. Values may be quoted as in RFC 4180. Skips
/// blank lines; but if the table has only one column, a blank line between two rows is a missing value.
/// Throws UserError ("path:line:column: expected ..., found ...") for a value that is neither a finite number
/// nor a category (with one line for the first such value of each column, up to ten columns), for a line with
/// a different number of values, for a duplicate name in the header, and if all rows are left out.
CsvColumns read_csv(const std::string& path, const CsvFormat& format, const PlanCsv& plan);

}  // namespace dtrain
