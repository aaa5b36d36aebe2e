// What is known of a table in delimited text, and what is to be read of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/columns/source_columns.h"
#include "data/readers/csv_values.h"

namespace dtrain {

struct CsvFormat {
  char delimiter = ',';  // or kBlanksDelimit (csv_text.h)
  /// Whether the first line is a header. Unset: it is, where it has names and no numbers.
  std::optional<bool> header = false;
  /// Begins the rest of a line that is passed over. Unset: there are no comments.
  std::optional<char> comment = {};
  CsvNotation notation = {};
};

/// How the values of one field of the lines are numbers: each is an index into a table of texts.
struct CsvCategory {
  /// The table: as it is known, or else (null) all values of the file, sorted: by number where all are
  /// numbers.
  std::optional<std::vector<std::string>> values;
  /// Whether what is not in the table is `other`: index 0, before the table's, or none of the 0/1 features.
  bool other = false;
  /// Whether there is a table at all. It depends on all values of the file, but for those that say that there
  /// is none.
  enum class When { always, some_are_names, all_are_names };
  When when = When::always;
};

/// A field of the lines that goes into a column of the data set.
struct CsvElement {
  size_t field = 0;
  std::optional<double> gap;  // what stands for a value that is not there; unset: that is an error
};

/// Which fields of a line make up one column. A row of the column has the shape [elements], or Shape{} where
/// it is a scalar. Among float32 values a field of dates has a feature for each part, and an indicator of
/// missing values comes after the features of its field. A field of categories is one element, its index, in
/// an int32 column and as a scalar; among float32 values it is as many features of 0 and 1 as there are
/// categories.
struct CsvPart {
  std::vector<CsvElement> fields;
  /// Or int32, where every value must be an integer. read_csv() makes float64 of float32 where that would
  /// lose digits that tell the rows apart.
  DType dtype = DType::float32;
  bool scalar = false;
  std::string advice_for_gap = {};  // for whoever has a value that is not there, where that is an error
};

/// What the beginning of a file shows.
struct CsvStart {
  std::string path;
  std::vector<std::string> names;  // empty without a header
  std::vector<std::string> first;  // the values of the first row
  /// Whether the first column has the rows' names, for which the header has no name, as R writes tables.
  bool has_row_names = false;
  size_t width() const { return first.size(); }
};

/// What is to be read of a file.
struct CsvPlan {
  std::vector<CsvPart> parts;
  std::map<size_t, CsvCategory> categories;  // by field
  std::map<size_t, ColumnReading> readings;  // by field, of those that are not read in the default way
  bool day_first = false;                    // of dates whose column leaves their order open
  std::set<size_t> required;                 // fields without whose values a row is left out
  std::optional<size_t> weight, id;          // fields
  /// What messages add where text stands in the place of a number; "": nothing.
  std::string advice;
};

/// Decides what is to be read of a file that begins so. Called once.
using PlanCsv = std::function<CsvPlan(const CsvStart& start)>;

struct CsvColumns {
  Columns parts;  // of the plan
  std::shared_ptr<const Column> weights, names;
  std::map<size_t, std::vector<std::string>> categories;  // by field, the tables that were used
  std::map<size_t, ColumnReading> readings;               // of the plan, in full
  int64_t left_out = 0;                                   // rows that miss a required value
};

}  // namespace dtrain
