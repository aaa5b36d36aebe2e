// Finds the columns that options select in a table.
#pragma once

#include <string>
#include <vector>

#include "data/readers/csv/options.h"
#include "data/readers/csv/plan.h"

namespace dtrain {

/// Returns the index of the column that `field` selects. Throws UserError if the file has no such column or
/// no header.
size_t place_of_field(const CsvStart& start, const CsvColumnRef& field);
/// Returns the column to which a key of an option (such as `dates`) refers: the column with this name or, if
/// no column has this name, the column with this index. `mark` is the location of the key.
CsvColumnRef column_of_key(const CsvStart& start, const std::string& key, const Mark& mark = {});
/// Returns the columns that the options select for each target of the request. Throws UserError if the
/// options do not fit the request.
std::vector<CsvTarget> wanted_targets(const CsvOptions& options, const ReadRequest& request);

}  // namespace dtrain
