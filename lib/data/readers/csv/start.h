// The first lines of a table: its header, and the first row.
#pragma once

#include "data/readers/csv/plan.h"
#include "data/readers/csv/text.h"

namespace dtrain {

/// Reads the header, if the file has one, and the first row. Sets `rows` to the beginning of the first row,
/// or to the end of the text if the file has no rows. If the number of names is one less than the number of
/// values in the first row, the file was written by R: the first column contains row names, and gets the name
/// "row.names". If the table has only one column, blank lines are rows, too, but CsvStart::first is the first
/// row that is not blank. Throws UserError for any other difference between the number of names and the
/// number of values, and for a duplicate name.
CsvStart read_csv_start(CsvText& text, const CsvValues& values, const CsvFormat& format, const char*& rows);

}  // namespace dtrain
