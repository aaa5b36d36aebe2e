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

/// The conversion of the texts of one field to indices into a table of texts.
struct CsvCategory {
  /// The table if it is already known. If unset, the table is made from all texts of the field in the file,
  /// sorted (numerically if all texts are numbers).
  std::optional<std::vector<std::string>> values;
  /// Whether texts that are not in the table are accepted. Their index is 0, and the indices of the table
  /// begin at 1. With 0/1 features, all features of these texts are 0.
  bool other = false;
  /// The condition under which the field has a table: always, or only if some or all of its values in the
  /// file (without missing values) are names. A field without a table has numbers.
  enum class When { always, some_are_names, all_are_names };
  When when = When::always;
  /// The character between the values of one text, if a text may have several values. Each of these values is
  /// in the table. Only for 0/1 features.
  std::optional<char> separator = {};
};

/// A field that goes into a column of the data set.
struct CsvElement {
  size_t field = 0;
  std::optional<double> gap;  // value stored for a missing value; unset if a missing value is an error
};

/// The conversion of the texts of one field to token ids.
struct CsvTokens {
  TokenOptions options;
  std::shared_ptr<const Tokenizer> tokenizer;  // null if read_csv() must learn the vocabulary from the file
};

/// The fields of a line that make up one column of the data set. A row of the column has the shape
/// [elements], or Shape{} if the column is a scalar. In an int32 column and in a scalar, each field becomes
/// one element; a field of categories becomes the index of the category. In other columns, a field of dates
/// becomes one feature for each part of the date, a field of categories becomes one 0/1 feature for each
/// category, and the indicator of missing values follows the features of its field.
struct CsvPart {
  std::vector<CsvElement> fields;
  /// float32, or int32 if every value must be an integer. read_csv() changes float32 to float64 if float32
  /// would lose digits that distinguish rows.
  DType dtype = DType::float32;
  bool scalar = false;
  std::string advice_for_gap = {};  // appended to the error about a missing value
  /// Number of token ids in a row if the part consists of one field of CsvPlan::texts; 0 for all other parts.
  int64_t tokens = 0;
};

/// The first lines of a file.
struct CsvStart {
  std::string path;
  std::vector<std::string> names;  // empty if the file has no header
  std::vector<std::string> first;  // the values of the first row
  /// Whether the first column contains row names. R writes such tables, with a header that has no name for
  /// this column.
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
  std::set<size_t> required;                 // a row is left out if one of these fields has no value
  std::optional<size_t> weight, id;          // indices of fields
  std::optional<size_t> series, time;        // fields that order the rows of windows
  /// Advice that is appended to an error about a text in a field of numbers; may be "".
  std::string advice;
};

/// Returns the plan for a file with these first lines. read_csv() calls it once.
using PlanCsv = std::function<CsvPlan(const CsvStart& start)>;

struct CsvColumns {
  Columns parts;  // one column for each part of the plan
  std::shared_ptr<const Column> weights, names;
  /// Columns that order the rows of windows; null if the plan has none. `series` holds texts, like `names`.
  /// `times` holds float64 numbers; if the column has dates, the numbers are days.
  std::shared_ptr<const Column> series, times;
  std::map<size_t, std::vector<std::string>> categories;  // tables that were used, indexed by field
  std::map<size_t, ColumnReading> readings;  // CsvPlan::readings, completed with facts from the file
  std::map<size_t, LearnedTokens> tokens;    // indexed by field of text
  int64_t left_out = 0;                      // rows without a required value
};

}  // namespace dtrain
