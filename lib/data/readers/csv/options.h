// Options of csv readers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/yaml/scalar.h"
#include "data/columns/column_reading.h"
#include "data/readers/binding.h"
#include "data/readers/csv/table.h"
#include "data/text/token_options.h"

namespace dtrain {

/// Selects a field by its name in the header, or by its index. Negative indices count from the end.
struct CsvColumnRef {
  std::optional<int64_t> index;
  std::string name;
  Mark mark = {};  // location in the configuration
};

template <>
struct Codec<CsvColumnRef> {
  static bool parse(const ConfigNode& node, const std::string& where, CsvColumnRef& out,
                    Diagnostics& diagnostics) {
    if (!node.is_scalar()) return report_unexpected(node, where, "a column's name or index", diagnostics);
    int64_t index = 0;
    out = {{}, "", node.mark()};
    if (!node.quoted() && parse_number(node.text(), index) == std::errc())
      out.index = index;
    else
      out.name = node.text();
    return true;
  }
  static ConfigNode write(const CsvColumnRef& field) {
    return field.index ? Codec<int64_t>::write(*field.index) : Codec<std::string>::write(field.name);
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(json_type("integer")).push(json_type("string"));
    return Json::object().set("anyOf", std::move(choices));
  }
};

/// One field, or a list of fields.
struct CsvColumnRefs : std::vector<CsvColumnRef> {};

/// The columns of a target: one column, which may contain class names, or several columns of numbers.
struct CsvTarget : std::vector<CsvColumnRef> {};

/// One text, or a list of texts.
struct CsvTexts : std::vector<std::string> {};

/// The value that replaces missing values: a number, or the mean or median of the training split.
struct CsvFill {
  std::string written;           // "mean", "median" or the number
  std::optional<double> number;  // unset for mean and median, which are computed over the training split
};

enum class CsvUnknown { error, other };
template <>
inline const EnumNames<CsvUnknown> names_of<CsvUnknown> = {{CsvUnknown::error, "error"},
                                                           {CsvUnknown::other, "other"}};

/// Columns for which an additional 0/1 feature marks missing values.
struct CsvIndicators {
  bool all = false;  // selects all columns of numbers with missing values in the training file
  CsvColumnRefs columns;
};

enum class CsvMissingTarget { error, skip };
template <>
inline const EnumNames<CsvMissingTarget> names_of<CsvMissingTarget> = {{CsvMissingTarget::error, "error"},
                                                                       {CsvMissingTarget::skip, "skip"}};

/// The columns that contain the labels of a sample, if a sample may have several labels. The target has one
/// 0/1 number for each label.
struct CsvLabels {
  CsvColumnRefs columns;               // one column of 0 and 1 for each label
  std::optional<CsvColumnRef> column;  // a column whose texts list any number of labels
  std::string separator = ";";         // the character between two labels of a text

  /// Returns the columns in use.
  CsvTarget used() const { return column ? CsvTarget{{*column}} : CsvTarget{columns}; }
  static const Schema<CsvLabels>& schema();
};

/// A column of text, which is converted to the ids of its tokens.
struct CsvTextColumn : TokenOptions {
  std::optional<int64_t> length;  // number of tokens in a row; unset to use the length of the model's input

  static const Schema<CsvTextColumn>& schema();
};

/// The options of the csv reader. Options that earlier versions did not have must be empty by default.
/// Otherwise `dtrain resume` would report for a run of an earlier version that its data has changed.
struct CsvOptions {
  std::string file;
  std::optional<CsvTarget> target;
  Named<CsvTarget> targets;
  std::optional<CsvLabels> labels;
  bool header = false;
  std::string delimiter = ",";
  CsvColumnRefs columns, drop, categories;
  Named<CsvColumnRefs> inputs;
  CsvUnknown unknown = CsvUnknown::error;
  std::optional<CsvFill> fill;
  std::optional<CsvColumnRef> id, weight;
  std::optional<CsvMissingTarget> missing_target;
  Named<std::vector<DatePart>> dates;
  std::optional<bool> dayfirst;
  CsvColumnRefs amounts;
  std::optional<CsvIndicators> indicators;
  CsvTexts na_values;
  std::optional<std::string> decimal, thousands, comment;
  Named<CsvTextColumn> text;

  CsvFormat format() const;
  /// Returns the columns of all targets, labels included.
  std::vector<CsvColumnRef> target_columns() const;
};

const Schema<CsvOptions>& csv_schema();
/// Returns the column of text that an input reads, as a key of options.text. Returns null if the input reads
/// no column of text. The input reads the column that `inputs` names for it, or else the column with the name
/// of the input. If only one column of text and one int32 input remain after these rules, the remaining input
/// reads the remaining column.
const std::string* text_of_input(const CsvOptions& options, const std::vector<TensorSpec>& inputs,
                                 const TensorSpec& input);
/// Checks that a delimiter is one character, or "whitespace".
Check<std::string> csv_delimiter_check();
/// Converts the option `delimiter` to CsvFormat::delimiter. The text must have passed csv_delimiter_check().
char csv_delimiter(const std::string& text);

}  // namespace dtrain
