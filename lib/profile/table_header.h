// Detects whether the first row of a table contains column names, for `dtrain new`.
#pragma once

#include <string>
#include <vector>

#include "data/readers/csv/text.h"

namespace dtrain {

struct TableCell {
  std::string text;
  const char* at = nullptr;  // position in the file
};
using TableRow = std::vector<TableCell>;

/// Calls visit(field) for each field of the row at `p`. Returns the position of the next row.
template <class Visit>
const char* read_table_row(const CsvText& text, CsvFields& fields, const char* p, const Visit& visit) {
  for (CsvField field; !field.last;) {
    p = fields.read(p, field);
    visit(field);
  }
  return text.skip_blank(p);
}

/// Returns the row at position `p`, and sets `p` to the position of the next row.
TableRow take_table_row(const CsvText& text, CsvFields& fields, const char*& p);

/// Returns true if the row `first` is a header. The function compares this row with the rows `below` it.
/// Throws UserError if the header contains the same name twice.
bool is_table_header(const CsvText& text, const TableRow& first, const std::vector<TableRow>& below);

}  // namespace dtrain
