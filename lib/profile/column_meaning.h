// Interprets the columns of a table for `dtrain new`.
#pragma once

#include <string>
#include <vector>

#include "profile/table_profile.h"

namespace dtrain {

enum class ColumnMeaning {
  empty,
  constant,    // all rows with a value have the same value
  row_number,  // the number of the row, or the index that pandas writes
  id,          // identifies the row; all values are different
  date,
  odd_numbers,  // numbers mixed with a few texts or commas
  free_text,    // sentences
  many_texts,   // short texts with too many different values for one-hot encoding
  categories,
  number,
  amount,  // numbers with a currency symbol, a percent sign or thousands separators
};

ColumnMeaning meaning_of(const TableProfile& table, size_t column);
/// Returns the name of a meaning in the printed table of columns, e.g. "number" or "free text".
const char* kind_of(ColumnMeaning meaning);
/// Returns why a column with this meaning is not a feature, e.g. "it is empty", or "" if it is a feature.
std::string why_no_feature(const ColumnProfile& column, ColumnMeaning meaning);

/// Returns the features that the csv reader should derive from a column of dates. They have the names that
/// the reader's options use. Features that would have the same value in every row are omitted.
std::vector<std::string> parts_of_dates(const DateSpan& dates);

/// Returns the reason why a column that contains mostly numbers is not numeric, e.g. "it has 981 numbers and
/// 1 text ('unknown' in line 602)". Returns "" for any other column.
std::string why_no_numbers(const ColumnProfile& column);

/// Returns the value of --target that selects the column.
std::string shown(const TableProfile& table, size_t column);
/// Returns the column's name for use within a sentence, e.g. "'age'" or "column 3".
std::string called(const TableProfile& table, size_t column);
/// Returns the text by which the configuration refers to the column: its name, or its index if the table has
/// no header.
std::string yaml_column(const TableProfile& table, size_t column);
/// Returns the value in quotes for use within a sentence. Long values are shortened.
std::string quoted_value(const std::string& value);

}  // namespace dtrain
