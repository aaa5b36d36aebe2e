// The first lines of a table: its header, and the first row.
#pragma once

#include "data/readers/csv/plan.h"
#include "data/readers/csv/text.h"

namespace dtrain {

/// Reads the header, if there is one, and the first row. Sets `rows` to the beginning of that row, or to the
/// end of the text if there is none. A header with one name fewer than the first row has values was written
/// by R: the first column has row names and is called "row.names". If the table has one column, its blank
/// lines become rows, and CsvStart::first is the first row that is not blank. Throws UserError for any other
/// header that does not fit the row, and for a duplicate name.
CsvStart read_csv_start(CsvText& text, const CsvValues& values, const CsvFormat& format, const char*& rows);

}  // namespace dtrain
