#include "data/readers/csv_options.h"

#include <cmath>

namespace dtrain {

template <>
struct Codec<CsvColumnRefs> {
  static bool parse(const ConfigNode& node, const std::string& where, CsvColumnRefs& out,
                    Diagnostics& diagnostics) {
    out.clear();
    if (node.is_sequence()) return Codec<std::vector<CsvColumnRef>>::parse(node, where, out, diagnostics);
    out.emplace_back();
    return Codec<CsvColumnRef>::parse(node, where, out.back(), diagnostics);
  }
  static ConfigNode write(const CsvColumnRefs& fields) {
    return Codec<std::vector<CsvColumnRef>>::write(fields);
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(Codec<CsvColumnRef>::schema()).push(Codec<std::vector<CsvColumnRef>>::schema());
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

Schema<CsvOptions> make_csv_schema() {
  Schema<CsvOptions> schema(
      "Text (.gz or plain), a sample a line: numbers between delimiters, and texts that stand for classes "
      "and "
      "categories. Columns are called by their name in the header, or by their index, negative from the "
      "end.");
  schema.example("{file: train.csv, header: true, target: class, categories: [colour], fill: mean}");
  schema.required("file", &CsvOptions::file, "the file")
      .optional("target", &CsvOptions::target,
                "the column of the only target; texts are classes, numbered in the order of their names")
      .optional("targets", &CsvOptions::targets, "the column of each target, by output name")
      .optional("header", &CsvOptions::header,
                "the first line holds the columns' names; validation, test and predicted files that have "
                "them, too, "
                "are read by them, whatever their order")
      .optional("delimiter", &CsvOptions::delimiter, "what stands between the numbers", one_character())
      .optional("columns", &CsvOptions::columns,
                "the columns that make the model's only input, in this order; all that have no other use "
                "where not given")
      .optional("drop", &CsvOptions::drop, "columns that are not read")
      .optional(
          "inputs", &CsvOptions::inputs,
          "the column, or a list of them, of each model input, by name; one input that is not named has "
          "all others")
      .optional(
          "categories", &CsvOptions::categories,
          "columns whose values are names: a feature of 0 and 1 for each value, sorted, or its index in "
          "an int32 input; of a target, class names even where they look like numbers")
      .optional("unknown", &CsvOptions::unknown,
                "what becomes of a category that the training file does not have: error; or other, index 0 "
                "(the file's own begin at 1), or none of the features")
      .optional("fill", &CsvOptions::fill,
                "what stands for a value that is missing: mean or median (of the training split's), or a "
                "number; an error where not given")
      .optional("id", &CsvOptions::id, "the column that names the samples, in predictions and messages")
      .optional("weight", &CsvOptions::weight,
                "the column of numbers, at least 0, that the samples' losses are multiplied by")
      .rule([](const CsvOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
        if (options.target && !options.targets.empty())
          diagnostics.error(node, "give either 'target' (one) or 'targets' (several, by name), not both");
        if (!options.columns.empty() && !options.inputs.empty())
          diagnostics.error(node, "give either 'columns' (of one input) or 'inputs' (several, by name)");
        if (!options.columns.empty() && !options.drop.empty())
          diagnostics.error(node, "give either 'columns' (those to read) or 'drop' (those not to), not both");
      });
  return schema;
}

}  // namespace

Check<std::string> one_character() {
  return {"one character", [](const std::string& text) { return text.size() == 1; },
          Json::object().set("minLength", 1).set("maxLength", 1)};
}

const Schema<CsvOptions>& csv_schema() {
  static const Schema<CsvOptions> schema = make_csv_schema();
  return schema;
}

}  // namespace dtrain
