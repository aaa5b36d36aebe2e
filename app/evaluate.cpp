// dtrain evaluate: loss and metrics of a trained model.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "commands.h"
#include "console.h"
#include "options.h"
#include "saved_model.h"
#include "signals.h"
#include "text.h"
#include "train/heads.h"
#include "train/placement.h"
#include "train/row_weights.h"
#include "train/trainer.h"
#include "train/worst_samples.h"

namespace dtrain {

namespace {

struct EvaluateOptions {
  OutputOptions output;
  std::string path, split;
  std::vector<std::string> sets;
  bool best = false;
  bool per_class = false;
  std::optional<int64_t> errors;
};

/// The split asked for, else test, else validation.
std::string choose_split(const DatasetSpec& dataset, const EvaluateOptions& options) {
  std::string name = options.split;
  if (name.empty()) name = dataset.test ? "test" : "validation";
  if (dataset.find(name)) return name;
  std::string there;
  for (const char* split : kSplitNames)
    if (dataset.find(split)) there += fmt::format("{}{}", there.empty() ? "" : ", ", split);
  throw UserError(
      fmt::format("{}: its data set has no '{}' split; --split takes one of: {}", options.path, name, there));
}

std::string name_of_output(const RunConfig& config, size_t head) {
  return config.graph.layer_name(config.heads[head].output.node);
}

/// The table of classes that --per-class shows for one output.
struct ClassTable {
  size_t head;
  std::string name;  // in Measures::tables
};

/// Adds what --per-class shows to every output that has classes.
std::vector<ClassTable> add_class_reports(RunConfig& config, const EvaluateOptions& options) {
  std::vector<ClassTable> tables;
  for (size_t i = 0; i < config.heads.size(); ++i) {
    const Head& head = config.heads[i];
    if (!head.loss->tells_classes()) continue;
    const std::string prefix = config.heads.size() > 1 ? name_of_output(config, i) + "_" : "";
    tables.push_back({i, prefix + "per_class"});
    add_metric(config, i, tables.back().name, make_class_report());
  }
  if (!tables.empty()) return tables;
  throw UserError(fmt::format("{}: --per-class is for losses of classes", options.path));
}

const ClassTable* find_table(const std::vector<ClassTable>& tables, const std::string& name) {
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const ClassTable& table) { return table.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

/// The reports' classes get the names that the data have for them.
void name_classes(Measures& measures, const std::vector<ClassTable>& tables, const RunConfig& config,
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

/// A confusion matrix under the names of its classes: a line for each target, a column for each prediction.
/// Any other array, or a matrix that is too wide to be read, stays in brackets.
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

/// A value as text; an array is cut to what a line takes.
std::string short_text(const Json& value) {
  constexpr size_t kMost = 40;
  std::string text = value.is_number() && !value.is_int() ? format_value(value.as_double()) : text_of(value);
  return shortened(std::move(text), kMost);
}

/// The samples that --errors shows.
struct Errors {
  std::vector<WorstSample> samples;
  bool has_ids = false;  // else their ids are their rows
  std::string id_title;
};

/// Classes get the names that the data have for them.
void name_classes(Errors& errors, const RunConfig& config, const DataFacts& facts) {
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
    // The column of ids may have any name, also that of what follows.
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

void print_measures(const RunConfig& config, const std::string& split, int64_t samples,
                    const Measures& measures, const DataFacts& facts, const std::vector<ClassTable>& tables,
                    const std::optional<Errors>& errors) {
  std::string text = fmt::format("{}, {}:", split, format_plural(samples, "sample"));
  for (const auto& [name, value] : measures.numbers)
    text += fmt::format("  {} {}", name, format_value(value));
  text += "\n";
  if (const auto numbers = in_units_of_data(config, measures.numbers); !numbers.empty()) {
    text += "in the unit of the data:";
    for (const auto& [name, value] : numbers) text += fmt::format("  {} {}", name, format_value(value));
    text += "\n";
  }
  for (const auto& [name, value] : measures.tables)
    text += find_table(tables, name) ? table_of(name, value) : matrix_of(config, facts, name, value);
  if (errors) text += text_of(config, *errors);
  print_text(text);
}

/// The samples with the largest losses, by a model that is loaded anew.
Errors find_errors(const SavedRun& run, const std::shared_ptr<const Dataset>& data, const Loader& loader,
                   int64_t count, const std::atomic<int>& stop) {
  const int64_t batch_size = std::min(run.config.train.batch_size, std::max<int64_t>(loader.samples(), 1));
  const auto replicas = replicas_for_inference(run, Plan::Purpose::prediction, batch_size, loader);
  auto worst = worst_samples(run.config, *replicas, data, batch_size, static_cast<size_t>(count),
                             [&] { return stop != 0; });
  if (!worst) throw Interrupted(stop, "stopped");
  return {std::move(*worst), data->has_ids(), data->id_title()};
}

/// A split that this one is drawn of, or that is drawn of it; "" where there is none.
std::string of_the_same_file(const DatasetSpec& dataset, const std::string& split) {
  if (const auto& drawn = dataset.find(split)->drawn) return drawn->of;
  for (const char* name : kSplitNames)
    if (const SplitSpec* other = dataset.find(name); other && other->drawn && other->drawn->of == split)
      return name;
  return "";
}

/// Samples that were trained on may be among those of files that have changed. A split that training did not
/// open is told by the one that it is drawn of.
void warn_of_other_data(const SavedRun& run, const std::string& split, const Dataset& data) {
  const auto known = saved_state(run.checkpoint).data;
  DataIdentity now = data.identity();
  auto before = known.find(split);
  if (before == known.end()) {
    before = known.find(of_the_same_file(run.config.dataset, split));
    if (before == known.end()) return;
    now.from = before->second.from;
    now.to = before->second.to;
    now.drawn = before->second.drawn;
  }
  if (const std::string change = describe_change(before->second, now); !change.empty())
    print_warning(fmt::format("the data of '{}' are others than in training: {}", split, change));
}

void evaluate(const EvaluateOptions& options) {
  const std::atomic<int>& stop = catch_signals().stop;
  SavedRun run = load_saved_model(options.path, options.sets, options.best);
  RunConfig& config = run.config;
  const std::string split = choose_split(config.dataset, options);
  std::vector<ClassTable> tables;
  if (options.per_class) tables = add_class_reports(config, options);
  place_replicas(config);  // what this machine cannot do is said before the data are opened
  const auto data = open_samples(config, *config.dataset.find(split), false);
  for (const std::string& warning : data->warnings()) print_warning(warning);
  warn_of_other_data(run, split, *data);
  Loader loader(data, {.batch_size = config.train.batch_size, .prefetch = config.dataset.prefetch});
  auto replicas = replicas_for_inference(run, Plan::Purpose::evaluation, config.train.batch_size, loader);
  auto measures = evaluate_split(config, *replicas, loader, [&] { return stop != 0; });
  if (!measures) throw Interrupted(stop, "stopped");
  replicas.reset();  // its memory is the next one's
  name_classes(*measures, tables, config, data->facts());
  std::optional<Errors> errors;
  if (options.errors) errors = find_errors(run, data, loader, *options.errors, stop);
  if (errors) name_classes(*errors, config, data->facts());
  if (options.output.json) {
    Json result = Json::object();
    measures->add_to(result);
    Json in_units = Json::object();
    for (const auto& [name, value] : in_units_of_data(config, measures->numbers)) in_units.set(name, value);
    if (!in_units.entries().empty()) result.set("in_units_of_data", std::move(in_units));
    if (errors) result.set("errors", json_of(config, *errors));
    print_json(result.set("samples", loader.samples()));
  } else if (options.output.text()) {
    print_measures(config, split, loader.samples(), *measures, data->facts(), tables, errors);
  }
}

}  // namespace

void add_evaluate(CommandLine& line) {
  Command command = line.add_command("evaluate", "Loss and metrics of a trained model on a split");
  const auto options = std::make_shared<EvaluateOptions>();
  command.add_option("PATH", options->path, "A run directory (its newest checkpoint), or one checkpoint file")
      .required();
  command
      .add_option("--split", options->split,
                  "train, validation or test (test where not given, validation where there is no test split)")
      .one_of({kSplitNames.begin(), kSplitNames.end()});
  command.add_flag("--per-class", options->per_class,
                   "Support, precision, recall and F1 score of each class, too");
  command
      .add_option(
          "--errors", options->errors,
          "The N samples with the largest losses, too: name (or row, from 0), loss, target, prediction")
      .at_least(1)
      .type_name("N");
  add_best_option(command, options->best);
  add_set_option(command, options->sets);
  add_output_options(command, options->output);
  command.callback([options] { evaluate(*options); });
}

}  // namespace dtrain
