// Checks that a table has the columns that the options name.
#pragma once

#include <vector>

#include "data/located_error.h"
#include "data/readers/csv/options.h"
#include "data/readers/csv/plan.h"

namespace dtrain {

/// Adds an error to `errors` for each of these columns that the table does not have, with the location of the
/// column in the configuration. If all names are missing because the table has no header or uses a different
/// delimiter, throws UserError about the first of them instead.
void find_columns(const CsvStart& start, const std::vector<CsvColumnRef>& columns, ErrorCollector& errors);

/// Throws one LocatedError about all columns that the options name and the table does not have. If the facts
/// of the training file are known, checks only the columns that are read from the other files. Does not check
/// files that the configuration does not name.
void check_columns(const CsvOptions& options, const ReadRequest& request, const CsvStart& start);

}  // namespace dtrain
