// Reads tables in delimited text: numbers, and texts that stand for numbers.
#pragma once

#include <string>
#include <vector>

#include "data/readers/csv_plan.h"

namespace dtrain {

/// The index of `name` among `names`. Throws UserError where it is none of them.
size_t place_of_column(const std::string& path, const std::string& name,
                       const std::vector<std::string>& names);

/// The same for several names; the error names all that are missing.
std::vector<size_t> places_of_columns(const std::string& path, const std::vector<std::string>& wanted,
                                      const std::vector<std::string>& names);

/// Reads a whole file (.gz or plain) into memory, on all cores. Blank lines are passed over; values may be
/// quoted as in RFC 4180. Throws UserError "path:line:column: expected ..., found ..." for what is no finite
/// number and no category, for lines of other widths, for a header that has a name twice, and where all rows
/// are left out.
CsvColumns read_csv(const std::string& path, const CsvFormat& format, const PlanCsv& plan);

}  // namespace dtrain
