// Whether the first row of a table holds the names of its columns, for `dtrain new`.
#pragma once

#include <string>
#include <vector>

#include "data/readers/csv_text.h"

namespace dtrain {

struct TableCell {
  std::string text;
  const char* at = nullptr;  // its place in the file
};
using TableRow = std::vector<TableCell>;

/// Calls visit(field) for each field of the row at `p`; returns the place of the next row.
template <class Visit>
const char* read_table_row(const CsvText& text, CsvFields& fields, const char* p, const Visit& visit) {
  for (CsvField field; !field.last;) {
    p = fields.read(p, field);
    visit(field);
  }
  return text.skip_blank(p);
}

/// The row at `p`, which becomes the place of the next row.
TableRow take_table_row(const CsvText& text, CsvFields& fields, const char*& p);

/// Whether `first` is a header, judged by the rows below it. Throws UserError where it is one that has a name
/// twice.
bool is_table_header(const CsvText& text, const TableRow& first, const std::vector<TableRow>& below);

}  // namespace dtrain
