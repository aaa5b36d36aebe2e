// The first lines of a table: its header, and the first row.
#pragma once

#include "data/readers/csv_plan.h"
#include "data/readers/csv_text.h"

namespace dtrain {

/// Reads the header, if there is one, and the first row, at which `rows` points then; at the text's end where
/// there is no row. A header with one name fewer than the first row has values is R's: the first column has
/// the rows' names, and is called "row.names". Throws UserError for another header that does not fit the
/// row, and for a name that comes twice.
CsvStart read_csv_start(const CsvText& text, const CsvValues& values, const CsvFormat& format,
                        const char*& rows);

}  // namespace dtrain
