// Interprets the columns of a table for `dtrain new`.
#pragma once

#include <string>
#include <vector>

#include "profile/table_profile.h"

namespace dtrain {

enum class ColumnMeaning {
  empty,
  constant,    // all rows that have a value have the same one
  row_number,  // counts the rows, or is the index that pandas writes
  id,          // names the rows: all values differ
  date,
  odd_numbers,  // numbers, but for a few texts or commas
  free_text,    // sentences
  many_texts,   // more different texts than a feature each would be good for
  categories,
  number,
  amount,  // numbers with a currency, a percent sign or commas between thousands
};

ColumnMeaning meaning_of(const TableProfile& table, size_t column);
/// Returns the name of a meaning for the printed table of columns: "number", "free text".
const char* kind_of(ColumnMeaning meaning);
/// Why a column of this meaning is no feature: "it is empty"; "" where it is one.
std::string why_no_feature(const ColumnProfile& column, ColumnMeaning meaning);

/// The features to make of a column of dates, as the csv reader calls them; those that would be the same in
/// all rows are left out.
std::vector<std::string> parts_of_dates(const DateSpan& dates);

/// What keeps a column of numbers from being one: "it has 981 numbers and 1 text ('unknown' in line 602)"; ""
/// for any other column.
std::string why_no_numbers(const ColumnProfile& column);

/// The text as --target calls a column.
std::string shown(const TableProfile& table, size_t column);
/// Returns the column's name for use in a sentence: "'age'", "column 3".
std::string called(const TableProfile& table, size_t column);
/// Returns the column as the configuration writes it: its name, or its index in a table without a header.
std::string yaml_column(const TableProfile& table, size_t column);
/// The value as a sentence quotes it: of a long one the beginning.
std::string quoted_value(const std::string& value);

}  // namespace dtrain
