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
};

template <>
struct Codec<CsvColumnRef> {
  static bool parse(const ConfigNode& node, const std::string& where, CsvColumnRef& out,
                    Diagnostics& diagnostics) {
    if (!node.is_scalar()) return report_unexpected(node, where, "a column's name or index", diagnostics);
    int64_t index = 0;
    out = {};
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

/// One field, or a list of them.
struct CsvColumnRefs : std::vector<CsvColumnRef> {};

/// The columns of a target: one, whose values may be classes; or several columns of numbers.
struct CsvTarget : std::vector<CsvColumnRef> {};

/// One text, or a list of them.
struct CsvTexts : std::vector<std::string> {};

/// Value that replaces missing values: a number, or the training split's mean or median.
struct CsvFill {
  std::string written;           // "mean", "median" or the number
  std::optional<double> number;  // unset if it is computed over the training split
};

enum class CsvUnknown { error, other };
template <>
inline const EnumNames<CsvUnknown> names_of<CsvUnknown> = {{CsvUnknown::error, "error"},
                                                           {CsvUnknown::other, "other"}};

/// Columns whose missing values get a 0/1 feature.
struct CsvIndicators {
  bool all = false;  // selects all columns of numbers with missing values in the training file
  CsvColumnRefs columns;
};

enum class CsvMissingTarget { error, skip };
template <>
inline const EnumNames<CsvMissingTarget> names_of<CsvMissingTarget> = {{CsvMissingTarget::error, "error"},
                                                                       {CsvMissingTarget::skip, "skip"}};

/// The columns that name the labels of a sample, which may have several. The target is 0 or 1 for each label.
struct CsvLabels {
  CsvColumnRefs columns;               // one for each label, with 0 and 1
  std::optional<CsvColumnRef> column;  // the column with texts that have any number of labels
  std::string separator = ";";         // separates the labels of a text

  /// Returns the columns in use.
  CsvTarget used() const { return column ? CsvTarget{{*column}} : CsvTarget{columns}; }
  static const Schema<CsvLabels>& schema();
};

/// A column of text that becomes the ids of its tokens.
struct CsvTextColumn : TokenOptions {
  std::optional<int64_t> length;  // maximum length of a row; unset for the length of the model's input

  static const Schema<CsvTextColumn>& schema();
};

/// The options of the csv reader. Options that earlier versions lack are empty by default. Otherwise resuming
/// an old run would report other data.
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
/// Returns the key of the text column that an input reads: the column that `inputs` names for it; the column
/// of the input's name; or the only column that is left, for the only int32 input that is left. Null if the
/// input reads no text.
const std::string* text_of_input(const CsvOptions& options, const std::vector<TensorSpec>& inputs,
                                 const TensorSpec& input);
/// Checks that a delimiter is one character, or "whitespace".
Check<std::string> csv_delimiter_check();
/// Returns the value of CsvFormat::delimiter for a text that passes the check.
char csv_delimiter(const std::string& text);

}  // namespace dtrain
