#include "data/readers/csv/options.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "data/readers/csv/text.h"

namespace dtrain {

/// Codec of a list. If the list has only one item, it may be written as this item, without brackets.
template <class List>
struct OneOrListCodec {
  using Item = typename List::value_type;

  static bool parse(const ConfigNode& node, const std::string& where, List& out, Diagnostics& diagnostics) {
    out.clear();
    if (node.is_sequence()) return Codec<std::vector<Item>>::parse(node, where, out, diagnostics);
    out.emplace_back();
    return Codec<Item>::parse(node, where, out.back(), diagnostics);
  }
  static ConfigNode write(const List& items) { return Codec<std::vector<Item>>::write(items); }
  static Json schema() {
    Json choices = Json::array();
    choices.push(Codec<Item>::schema()).push(Codec<std::vector<Item>>::schema());
    return Json::object().set("anyOf", std::move(choices));
  }
};

template <>
struct Codec<CsvColumnRefs> : OneOrListCodec<CsvColumnRefs> {};

/// A single column is written without brackets, because earlier versions wrote it in this way.
template <>
struct Codec<CsvTarget> : OneOrListCodec<CsvTarget> {
  static bool parse(const ConfigNode& node, const std::string& where, CsvTarget& out,
                    Diagnostics& diagnostics) {
    if (!OneOrListCodec<CsvTarget>::parse(node, where, out, diagnostics)) return false;
    return !out.empty() || report_unexpected(node, where, "a column or a list of columns", diagnostics);
  }
  static ConfigNode write(const CsvTarget& target) {
    return target.size() == 1 ? Codec<CsvColumnRef>::write(target.front())
                              : OneOrListCodec<CsvTarget>::write(target);
  }
};

/// A number in the list is kept as text, exactly as it is written.
template <>
struct Codec<CsvTexts> : OneOrListCodec<CsvTexts> {};

template <>
struct Codec<CsvIndicators> {
  static bool parse(const ConfigNode& node, const std::string& where, CsvIndicators& out,
                    Diagnostics& diagnostics) {
    out = {};
    const bool is_bool =
        node.is_scalar() && !node.quoted() && (node.text() == "true" || node.text() == "false");
    if (is_bool) return Codec<bool>::parse(node, where, out.all, diagnostics);
    return Codec<CsvColumnRefs>::parse(node, where, out.columns, diagnostics);
  }
  static ConfigNode write(const CsvIndicators& indicators) {
    return indicators.columns.empty() ? Codec<bool>::write(indicators.all)
                                      : Codec<CsvColumnRefs>::write(indicators.columns);
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(Codec<bool>::schema()).push(Codec<CsvColumnRefs>::schema());
    return Json::object().set("anyOf", std::move(choices));
  }
};

template <>
struct Codec<CsvFill> {
  static bool parse(const ConfigNode& node, const std::string& where, CsvFill& out,
                    Diagnostics& diagnostics) {
    double number = 0;
    out = {};
    if (node.is_scalar() && (node.text() == "mean" || node.text() == "median")) {
      out.written = node.text();
      return true;
    }
    if (!node.is_scalar() || parse_real(node.text(), number) != std::errc() ||
        !std::isfinite(static_cast<float>(number)))
      return report_unexpected(node, where, "mean, median or a number", diagnostics);
    out.written = node.text();
    out.number = number;
    return true;
  }
  static ConfigNode write(const CsvFill& fill) { return ConfigNode::scalar(fill.written); }
  static Json schema() {
    Json choices = Json::array();
    choices.push(json_type("number"))
        .push(Json::object().set("enum", Json::array().push("mean").push("median")));
    return Json::object().set("anyOf", std::move(choices));
  }
};

namespace {

Check<std::optional<std::string>> optional_character() {
  return {"one character", [](const std::optional<std::string>& text) { return !text || text->size() == 1; },
          Json::object().set("minLength", 1).set("maxLength", 1)};
}

/// Reports characters that would have two meanings. The decimal separator may be the delimiter, because a
/// number with this character can be quoted.
void check_characters(const CsvOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
  const std::string decimal = options.decimal.value_or(".");
  for (const auto& [name, text] :
       {std::pair("decimal", options.decimal), std::pair("thousands", options.thousands)})
    if (text && std::string_view("0123456789+-eE\"\n").find(*text) != std::string_view::npos)
      diagnostics.error(
          node, fmt::format(
                    "{}: expected a character other than a digit, +, -, e, E, a quote or a line break, found "
                    "'{}'",
                    name, *text == "\n" ? "\\n" : *text));
  if (options.thousands == decimal)
    diagnostics.error(
        node,
        fmt::format("'decimal' and 'thousands' are both '{}'; give them different characters", decimal));
  if (options.comment && (*options.comment == options.delimiter || *options.comment == "\""))
    diagnostics.error(node, "comment: expected a character that is neither the delimiter nor a quote");
  for (const auto& [column, parts] : options.dates)
    if (parts.empty())
      diagnostics.error(
          node,
          fmt::format("dates: give at least one feature for the column '{}', for example [days]", column));
}

Schema<CsvLabels> make_labels_schema() {
  Schema<CsvLabels> schema(
      "The labels of a sample, if a sample may have several labels. The target has one number for each "
      "label: 1 if the sample has the label, else 0.");
  schema
      .optional("columns", &CsvLabels::columns,
                "one column of 0 and 1 for each label. The names of the columns are the labels")
      .optional("column", &CsvLabels::column,
                "in place of `columns`: one column whose texts list the labels of each row, such as "
                "`red;round`. An empty text means that the row has no labels")
      .optional("separator", &CsvLabels::separator,
                "the character between the labels in the texts of `column`",
                Check<std::string>{"one character", [](const std::string& text) { return text.size() == 1; },
                                   Json::object().set("minLength", 1).set("maxLength", 1)})
      .rule([](const CsvLabels& labels, const ConfigNode& node, Diagnostics& diagnostics) {
        if (labels.column.has_value() == !labels.columns.empty())
          diagnostics.error(
              node, "labels: give either 'columns' (columns of 0 and 1) or 'column' (a column of texts)");
      })
      .positional("columns");
  return schema;
}

/// Adds the options that say how the values of columns are read.
void add_value_options(Schema<CsvOptions>& schema) {
  schema
      .optional(
          "dates", &CsvOptions::dates,
          "columns of dates, each with the list of features to make from its dates, such as `{start: [year, "
          "month]}`. The features are year, month, day, weekday (Monday is 0), hour, minute, day_of_year, "
          "and days (the number of days since 1970-01-01 in UTC, with the time of day as a fraction)")
      .optional("dayfirst", &CsvOptions::dayfirst,
                "for `dates`: whether the day comes before the month, so that 02/01/2026 is January 2 "
                "(`true`) or February 1 (`false`). The option is used only if no date of the column has a "
                "day above 12, which determines the order. Default: false (as in pandas)")
      .optional("amounts", &CsvOptions::amounts,
                "columns of numbers written with a currency, thousands separators, a percent sign (4.2% is "
                "read as 4.2), or parentheses for negative numbers")
      .optional("indicators", &CsvOptions::indicators,
                "columns that get an additional feature, which is 1 if the value is missing and 0 otherwise. "
                "`true` selects all columns of numbers that have missing values in the training file")
      .optional("na_values", &CsvOptions::na_values,
                "additional texts that mark a missing value, such as `unknown` or -999. Empty values, NA, "
                "null, ? and a few other texts always mark a missing value (as in pandas)")
      .optional("decimal", &CsvOptions::decimal,
                "the decimal separator of all numbers, such as `,`. Default: `.`", optional_character())
      .optional("thousands", &CsvOptions::thousands, "the thousands separator of all numbers. Default: none",
                optional_character())
      .optional("comment", &CsvOptions::comment,
                "the character that starts a comment. A comment ends at the end of its line. Default: none",
                optional_character())
      .optional("text", &CsvOptions::text,
                "columns of text, each with options for its tokens. The token ids of a column are the values "
                "of an int32 input of the model: the input to which `inputs` assigns the column, the input "
                "with the name of the column, or the only remaining int32 input");
}

/// Reports options that exclude each other.
void check_exclusive(const CsvOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
  if (options.target && !options.targets.empty())
    diagnostics.error(node,
                      "give either 'target' (for the only target) or 'targets' (for several targets, "
                      "by name), not both");
  if (options.labels && (options.target || !options.targets.empty()))
    diagnostics.error(node, "give either 'labels' (for several labels per sample) or a target, not both");
  if (!options.columns.empty() && !options.inputs.empty())
    diagnostics.error(node,
                      "give either 'columns' (for the only input) or 'inputs' (for several inputs, by "
                      "name), not both");
  if (!options.columns.empty() && !options.drop.empty())
    diagnostics.error(
        node, "give either 'columns' (the columns to read) or 'drop' (the columns to ignore), not both");
}

Schema<CsvOptions> make_csv_schema() {
  Schema<CsvOptions> schema(
      "A table in a text file (plain or .gz), with one sample per line. The values of a line are separated "
      "by a delimiter. They are numbers, names of classes or categories, dates, or texts. Columns are "
      "selected by their name in the header or by their index, which begins at 0. Negative indices count "
      "from the end.");
  schema.example("{file: train.csv, header: true, target: class, categories: [colour], fill: mean}");
  schema.required("file", &CsvOptions::file, "path of the file")
      .optional("target", &CsvOptions::target,
                "the column of the only target. Texts in this column are class names, which are sorted and "
                "numbered from 0. For an output with several numbers, give a list of columns of numbers")
      .optional("targets", &CsvOptions::targets, "the column or columns of each target, by output name")
      .optional("labels", &CsvOptions::labels,
                "in place of `target`, if a sample may have several labels: the columns with the labels")
      .optional("header", &CsvOptions::header,
                "whether the first line contains the names of the columns. If validation, test and "
                "prediction files have a header, too, columns are found by name and may be in any order")
      .optional("delimiter", &CsvOptions::delimiter,
                "the character between values, or `whitespace` for any number of spaces and tabs",
                csv_delimiter_check())
      .optional("columns", &CsvOptions::columns,
                "the columns of the model's only input, in this order. Default: all columns that no other "
                "option uses")
      .optional("drop", &CsvOptions::drop, "columns to ignore")
      .optional("inputs", &CsvOptions::inputs,
                "the column or the list of columns of each model input, by input name. One input may be "
                "omitted; it gets all remaining columns")
      .optional("categories", &CsvOptions::categories,
                "columns of categories. They are one-hot encoded: each category, in sorted order, becomes "
                "one 0/1 feature. In an int32 input, the value is the index of the category instead. If the "
                "column of a target is listed, its values are class names even if they look like numbers")
      .optional("unknown", &CsvOptions::unknown,
                "what to do with a category that does not occur in the training file. `error` ends the run "
                "with an error. `other` sets all 0/1 features of the column to 0; in an int32 input, it "
                "gives the category index 0, and the indices of the known categories begin at 1")
      .optional("fill", &CsvOptions::fill,
                "the replacement for missing numbers: `mean` or `median` (of the column in the training "
                "split), or a number. Without this option, a missing number is an error")
      .optional("id", &CsvOptions::id, "the column whose values name the samples in predictions and messages")
      .optional("weight", &CsvOptions::weight,
                "the column of sample weights: numbers of at least 0 that multiply the losses of the samples")
      .optional("missing_target", &CsvOptions::missing_target,
                "what to do with a row without a target. `error` ends the run with an error; `skip` leaves "
                "the row out and does not count it in row numbers. Default: error");
  add_value_options(schema);
  schema.rule(check_characters).rule(check_exclusive);
  return schema;
}

}  // namespace

Check<std::string> csv_delimiter_check() {
  return {"one character or 'whitespace'",
          [](const std::string& text) { return text.size() == 1 || text == "whitespace"; },
          Json::object().set("pattern", "^(.|whitespace)$")};
}

char csv_delimiter(const std::string& text) {
  return text == "whitespace" ? kBlanksDelimit : text[0];
}

CsvFormat CsvOptions::format() const {
  const auto character = [](const std::optional<std::string>& written) {
    return written ? std::optional((*written)[0]) : std::nullopt;
  };
  return {csv_delimiter(delimiter),
          header,
          character(comment),
          {character(decimal).value_or('.'), character(thousands), na_values}};
}

std::vector<CsvColumnRef> CsvOptions::target_columns() const {
  std::vector<CsvColumnRef> all;
  const auto add = [&all](const CsvTarget& some) { all.insert(all.end(), some.begin(), some.end()); };
  if (target) add(*target);
  for (const auto& [name, some] : targets) add(some);
  if (labels) add(labels->used());
  return all;
}

const Schema<CsvLabels>& CsvLabels::schema() {
  static const Schema<CsvLabels> all = make_labels_schema();
  return all;
}

const Schema<CsvTextColumn>& CsvTextColumn::schema() {
  static const auto all = [] {
    Schema<CsvTextColumn> schema("Options for the tokens of a column of text.");
    add_token_fields(schema);
    schema.optional("length", &CsvTextColumn::length,
                    "number of tokens of a sample. Longer texts are truncated, and shorter texts are padded "
                    "with id 0. Default: the length of the model's input",
                    between<std::optional<int64_t>>(1, INT32_MAX));
    return schema;
  }();
  return all;
}

const std::string* text_of_input(const CsvOptions& options, const std::vector<TensorSpec>& inputs,
                                 const TensorSpec& input) {
  const auto key_of = [&](const std::string& name) {
    const auto found = std::find_if(options.text.begin(), options.text.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == options.text.end() ? nullptr : &found->first;
  };
  const auto named = [&](const TensorSpec& one) -> const std::string* {
    if (const CsvColumnRefs* columns = options.inputs.find(one.name)) {
      if (columns->size() != 1) return nullptr;
      const CsvColumnRef& column = columns->front();
      return key_of(column.index ? std::to_string(*column.index) : column.name);
    }
    return key_of(one.name);
  };
  if (const std::string* key = named(input)) return key;
  const auto is_left = [&](const TensorSpec& one) {
    return one.dtype == DType::int32 && !options.inputs.find(one.name) && !named(one);
  };
  if (!is_left(input) || std::count_if(inputs.begin(), inputs.end(), is_left) != 1) return nullptr;
  std::vector<const std::string*> left;
  for (const auto& [key, column] : options.text)
    if (std::none_of(inputs.begin(), inputs.end(), [&](const auto& one) {
          const std::string* taken = named(one);
          return taken && *taken == key;
        }))
      left.push_back(&key);
  return left.size() == 1 ? left.front() : nullptr;
}

const Schema<CsvOptions>& csv_schema() {
  static const Schema<CsvOptions> schema = make_csv_schema();
  return schema;
}

}  // namespace dtrain
