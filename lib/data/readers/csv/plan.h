// Describes a table in delimited text, and the parts of the table to read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/columns/source_columns.h"
#include "data/readers/csv/values.h"
#include "data/text/tokenizer.h"

namespace dtrain {

struct CsvFormat {
  char delimiter = ',';  // or kBlanksDelimit (text.h)
  /// Whether the first line is a header. Unset: it is a header if it has names and no numbers.
  std::optional<bool> header = false;
  /// First character of a comment, which is skipped up to the end of its line. Unset: there are no comments.
  std::optional<char> comment = {};
  CsvNotation notation = {};
};

/// The conversion of one field's texts to numbers: indices into a table of texts.
struct CsvCategory {
  /// The known table, or null for all values in the file, sorted (by number if all are numbers).
  std::optional<std::vector<std::string>> values;
  /// Whether texts that are not in the table count as `other`: they get index 0, before the indices of the
  /// table, or none of the 0/1 features.
  bool other = false;
  /// Whether the field has a table at all. Depends on all of its values in the file that are not missing.
  enum class When { always, some_are_names, all_are_names };
  When when = When::always;
  /// Separates the values of one text, each of which is in the table. Only for 0/1 features.
  std::optional<char> separator = {};
};

/// A field that goes into a column of the data set.
struct CsvElement {
  size_t field = 0;
  std::optional<double> gap;  // value stored for a missing value; unset if a missing value is an error
};

/// The conversion of one field's texts to ids of tokens.
struct CsvTokens {
  TokenOptions options;
  std::shared_ptr<const Tokenizer> tokenizer;  // null if read_csv() must learn it from the file
};

/// The fields of a line that make up one column. A row of the column has the shape [elements], or Shape{} if
/// it is a scalar. In a float32 column a field of dates becomes one feature for each part, and an indicator
/// of missing values follows the features of its field. A field of categories becomes one element, its index,
/// in an int32 column and as a scalar; in a float32 column it becomes one 0/1 feature for each category.
struct CsvPart {
  std::vector<CsvElement> fields;
  /// float32, or int32 if every value must be an integer. read_csv() changes float32 to float64 if it would
  /// lose digits that distinguish rows.
  DType dtype = DType::float32;
  bool scalar = false;
  std::string advice_for_gap = {};  // appended to the error about a missing value
  /// For a part of one field of CsvPlan::texts: the number of ids in a row. 0 for all other parts.
  int64_t tokens = 0;
};

/// The first lines of a file.
struct CsvStart {
  std::string path;
  std::vector<std::string> names;  // empty without a header
  std::vector<std::string> first;  // the values of the first row
  /// Whether the first column holds row names without a name in the header, as in tables that R writes.
  bool has_row_names = false;
  size_t width() const { return first.size(); }
};

/// The parts of a CSV file to read.
struct CsvPlan {
  std::vector<CsvPart> parts;
  std::map<size_t, CsvCategory> categories;  // indexed by field
  std::map<size_t, ColumnReading> readings;  // indexed by field, for fields not read in the default way
  std::map<size_t, CsvTokens> texts;         // indexed by field
  bool day_first = false;                    // whether the day is first in dates of ambiguous order
  std::set<size_t> required;                 // a row without one of these fields' values is left out
  std::optional<size_t> weight, id;          // indices of fields
  std::optional<size_t> series, time;        // indices of fields, for rows that become windows
  /// Appended to errors about text instead of a number, unless it is "".
  std::string advice;
};

/// Returns the plan for a file with this beginning. Called once.
using PlanCsv = std::function<CsvPlan(const CsvStart& start)>;

struct CsvColumns {
  Columns parts;  // one column for each part of the plan
  std::shared_ptr<const Column> weights, names;
  /// `series` holds texts like `names`; `times` holds float64 numbers, which are days for a column of dates.
  std::shared_ptr<const Column> series, times;
  std::map<size_t, std::vector<std::string>> categories;  // tables that were used, by field
  std::map<size_t, ColumnReading> readings;  // readings of the plan, completed by facts found in the file
  std::map<size_t, LearnedTokens> tokens;    // indexed by field of text
  int64_t left_out = 0;                      // rows without a required value
};

}  // namespace dtrain
