#include "print/evaluation_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"
#include "data/given_file.h"
#include "run/heads.h"
#include "run/row_weights.h"

namespace dtrain {

namespace {

const ClassTable* find_table(const std::vector<ClassTable>& tables, const std::string& name) {
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const ClassTable& table) { return table.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

/// Adds the data's class names to the reports.
void name_report(Measures& measures, const std::vector<ClassTable>& tables, const RunConfig& config,
                 const DataFacts& facts) {
  for (auto& [name, report] : measures.tables) {
    const ClassTable* table = find_table(tables, name);
    if (!table) continue;
    const std::vector<std::string> names = class_names(config, facts, table->head);
    Json named = Json::array();
    for (size_t c = 0; c < report.items().size(); ++c) {
      Json row = report.items()[c];
      if (c < names.size()) row.set("class", names[c]);
      named.push(std::move(row));
    }
    report = std::move(named);
  }
}

/// Replaces class indices with the data's class names.
void name_errors(Errors& errors, const RunConfig& config, const DataFacts& facts) {
  for (size_t head = 0; head < config.heads.size(); ++head) {
    const std::vector<std::string> names = class_names(config, facts, head);
    const auto size = static_cast<int64_t>(names.size());
    for (WorstSample& sample : errors.samples)
      for (const char* key : {"target", "prediction"})
        if (const Json value = sample.outputs[head].at(key);
            value.is_int() && value.as_int() >= 0 && value.as_int() < size)
          sample.outputs[head].set(key, names[static_cast<size_t>(value.as_int())]);
  }
}

std::string text_of(const Json& value) {
  return value.is_string() ? visible_in_line(value.as_string()) : value.dump();
}

std::string table_of(const std::string& name, const Json& report) {
  size_t width = 8;
  for (const Json& row : report.items()) width = std::max(width, text_of(row.at("class")).size());
  std::string text = fmt::format("\n{}\n{:>{}}  {:>10}  {:>9}  {:>9}  {:>9}\n", name, "class", width,
                                 "support", "precision", "recall", "f1_score");
  for (const Json& row : report.items())
    text += fmt::format("{:>{}}  {:>10}  {:>9.4f}  {:>9.4f}  {:>9.4f}\n", text_of(row.at("class")), width,
                        row.at("support").dump(), row.at("precision").as_double(),
                        row.at("recall").as_double(), row.at("f1_score").as_double());
  return text;
}

/// Formats a confusion matrix with class names: one row per target, one column per prediction. Formats other
/// arrays, and matrices too wide to read, in brackets.
std::string matrix_of(const RunConfig& config, const DataFacts& facts, const std::string& name,
                      const Json& matrix) {
  constexpr size_t kMostClasses = 12, kMostName = 16;
  const size_t classes = matrix.items().size();
  const bool is_square = std::all_of(matrix.items().begin(), matrix.items().end(), [&](const Json& row) {
    return row.is_array() && row.items().size() == classes;
  });
  const auto metric = find_metric(config, name);
  if (!is_square || !metric || classes > kMostClasses) return fmt::format("{} {}\n", name, matrix.dump());
  std::vector<std::string> names =
      class_names(config, facts, static_cast<size_t>(metric->head - config.heads.data()));
  for (size_t c = names.size(); c < classes; ++c) names.push_back(std::to_string(c));
  std::vector<Table::Column> columns{{"target"}};
  for (std::string& class_name : names) {
    class_name = shortened(class_name, kMostName);
    columns.push_back({class_name, Table::Align::right});
  }
  Table table(std::move(columns));
  for (size_t target = 0; target < classes; ++target) {
    std::vector<std::string> row{names[target]};
    for (const Json& count : matrix.items()[target].items()) row.push_back(count.dump());
    table.add(std::move(row));
  }
  return fmt::format("\n{}, predictions in columns\n{}", name, table.str());
}

/// Formats a value, shortened to fit in a line.
std::string short_text(const Json& value) {
  constexpr size_t kMost = 40;
  std::string text = value.is_number() && !value.is_int() ? format_value(value.as_double()) : text_of(value);
  return shortened(std::move(text), kMost);
}

std::string text_of(const RunConfig& config, const Errors& errors) {
  size_t width = 8;
  for (const WorstSample& sample : errors.samples) width = std::max(width, visible_in_line(sample.id).size());
  std::string text = fmt::format("\nlargest losses\n{:>{}}  {:>10}\n", errors.id_title, width, "loss");
  for (const WorstSample& sample : errors.samples) {
    text += fmt::format("{:>{}}  {:>10}", visible_in_line(sample.id), width, format_value(sample.loss));
    for (size_t i = 0; i < sample.outputs.size(); ++i) {
      if (sample.outputs.size() > 1) text += "  " + name_of_output(config, i) + ":";
      text += fmt::format("  target {}  prediction {}", short_text(sample.outputs[i].at("target")),
                          short_text(sample.outputs[i].at("prediction")));
    }
    text += "\n";
  }
  return text;
}

Json json_of(const RunConfig& config, const Errors& errors) {
  Json all = Json::array();
  for (const WorstSample& sample : errors.samples) {
    Json one = Json::object();
    // The key of the id is always "id", and the name of the id column is the value of "id_title". The name of
    // the column cannot be a key, because it may be equal to one of the keys below.
    if (errors.has_ids)
      one.set("id", sample.id).set("id_title", errors.id_title);
    else
      one.set("row", int64_t{std::stoll(sample.id)});
    one.set("loss", sample.loss);
    if (sample.outputs.size() == 1) {
      for (const auto& [key, value] : sample.outputs[0].entries()) one.set(key, value);
    } else {
      for (size_t i = 0; i < sample.outputs.size(); ++i)
        one.set(name_of_output(config, i), sample.outputs[i]);
    }
    all.push(std::move(one));
  }
  return all;
}

/// Returns the class names: one list, or one list per output for a model with several outputs. Returns null
/// if the data have no names.
Json classes_as_json(const RunConfig& config, const DataFacts& facts) {
  Json by_output = Json::object();
  for (size_t head = 0; head < config.heads.size(); ++head) {
    Json names = Json::array();
    for (const std::string& name : class_names(config, facts, head)) names.push(name);
    if (names.items().empty()) continue;
    if (config.heads.size() == 1) return names;
    by_output.set(name_of_output(config, head), std::move(names));
  }
  return by_output.entries().empty() ? Json() : by_output;
}

}  // namespace

std::string name_of_output(const RunConfig& config, size_t head) {
  return config.graph.layer_name(config.heads[head].output.node);
}

void name_classes(Findings& found, const RunConfig& config, const DataFacts& facts) {
  name_report(found.measures, found.tables, config, facts);
  if (found.errors) name_errors(*found.errors, config, facts);
}

namespace {

/// Returns the name of the split, or of the input files.
std::string name_of_samples(const Findings& found) {
  if (!found.split.empty()) return found.split;
  std::vector<std::string> names = found.inputs;
  std::replace(names.begin(), names.end(), std::string(kStandardStream), std::string("standard input"));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string findings_as_text(const SavedRun& run, const DataFacts& facts, const Findings& found) {
  const RunConfig& config = run.config;
  std::string text = checkpoint_as_text(run);
  const auto add_numbers = [&](const auto& numbers) {
    for (const auto& [name, value] : numbers) text += fmt::format("  {} {}", name, format_value(value));
    text += "\n";
  };
  text += fmt::format("{}, {}", name_of_samples(found), format_plural(found.samples, "sample"));
  if (!found.in_units.empty()) {
    text += fmt::format(", {}:", in_units_of_targets(config));
    add_numbers(found.in_units);
    text += "computed on the transformed target, as in training";
  }
  text += ":";
  add_numbers(found.measures.numbers);
  for (const auto& [name, value] : found.measures.tables)
    if (std::find(found.thresholds.begin(), found.thresholds.end(), name) != found.thresholds.end()) {
      text += name + ":";
      for (const auto& [score, number] : value.entries())
        text += fmt::format("  {} {}", score, format_value(number.as_double()));
      text += "\n";
    }
  for (const auto& [name, value] : found.measures.tables)
    if (!value.is_object())
      text += find_table(found.tables, name) ? table_of(name, value) : matrix_of(config, facts, name, value);
  if (found.errors) text += text_of(config, *found.errors);
  return text;
}

Json findings_as_json(const SavedRun& run, const DataFacts& facts, const Findings& found) {
  Json result = Json::object();
  found.measures.add_to(result);
  Json in_units = Json::object();
  for (const auto& [name, value] : found.in_units) in_units.set(name, value);
  if (!in_units.entries().empty()) result.set("in_units_of_data", std::move(in_units));
  if (found.errors) result.set("errors", json_of(run.config, *found.errors));
  result.set("samples", found.samples);
  if (!found.split.empty()) result.set("split", found.split);
  if (found.split.empty()) result.set("inputs", Json(Json::Array(found.inputs.begin(), found.inputs.end())));
  result.set("checkpoint", checkpoint_as_json(run));
  if (Json classes = classes_as_json(run.config, facts); !classes.is_null())
    result.set("classes", std::move(classes));
  return result;
}

}  // namespace dtrain
