// Interprets the columns of a table for `dtrain new`.
#pragma once

#include <string>
#include <vector>

#include "profile/table_profile.h"

namespace dtrain {

enum class ColumnMeaning {
  empty,
  constant,    // all rows with a value have the same value
  row_number,  // counts the rows, or is the index that pandas writes
  id,          // identifies the rows: all values differ
  date,
  odd_numbers,  // numbers with a few texts or commas
  free_text,    // sentences
  many_texts,   // short texts, too many different ones for one feature each
  categories,
  number,
  amount,  // numbers with a currency, a percent sign or thousands separators
};

ColumnMeaning meaning_of(const TableProfile& table, size_t column);
/// Returns the name of a meaning for the printed table of columns: "number", "free text".
const char* kind_of(ColumnMeaning meaning);
/// Returns why a column with this meaning is not a feature, e.g. "it is empty", or "" if it is a feature.
std::string why_no_feature(const ColumnProfile& column, ColumnMeaning meaning);

/// Returns the features of a date column, by their names in the csv reader. Omits features that would be
/// constant.
std::vector<std::string> parts_of_dates(const DateSpan& dates);

/// Returns why a column of mostly numbers is not numeric: "it has 981 numbers and 1 text ('unknown' in line
/// 602)". Returns "" for any other column.
std::string why_no_numbers(const ColumnProfile& column);

/// Returns the column as --target names it.
std::string shown(const TableProfile& table, size_t column);
/// Returns the column's name for use in a sentence: "'age'", "column 3".
std::string called(const TableProfile& table, size_t column);
/// Returns the column as the configuration writes it: its name, or its index in a table without a header.
std::string yaml_column(const TableProfile& table, size_t column);
/// Returns the value in quotes for a sentence, shortened if it is long.
std::string quoted_value(const std::string& value);

}  // namespace dtrain
