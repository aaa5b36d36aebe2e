// dtrain evaluate: computes the loss and metrics of a trained model.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "commands.h"
#include "data/given_file.h"
#include "data/splits/data_identity.h"
#include "print/evaluation_report.h"
#include "run/heads.h"
#include "run/row_weights.h"
#include "run/run_plan.h"
#include "run/thresholds.h"
#include "runs/saved_model.h"
#include "train/errors_in_units.h"
#include "train/sample_check.h"
#include "train/saved_threshold.h"
#include "train/trainer.h"
#include "train/worst_samples.h"

namespace dtrain {

namespace {

struct EvaluateOptions : ModelOptions, InputOptions {
  OutputOptions output;
  std::string split;
  bool per_class = false;
  std::optional<int64_t> errors;
};

/// Returns the requested split, else test, else validation.
std::string choose_split(const DatasetSpec& dataset, const EvaluateOptions& options) {
  std::string name = options.split;
  if (name.empty()) name = dataset.test ? "test" : "validation";
  if (dataset.find(name)) return name;
  std::string there;
  for (const char* split : kSplitNames)
    if (dataset.find(split)) there += fmt::format("{}{}", there.empty() ? "" : ", ", split);
  throw UserError(
      fmt::format("{}: its dataset has no '{}' split; --split takes one of: {}", options.path, name, there));
}

/// Adds the per-class report to every output that predicts classes.
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
  throw UserError(fmt::format("{}: --per-class requires a classification loss", options.path));
}

/// Adds the report at the threshold of each output of two classes.
std::vector<std::string> add_threshold_reports(SavedRun& run) {
  std::vector<std::string> names;
  for (size_t head = 0; head < run.config.heads.size(); ++head)
    if (const auto threshold = saved_threshold(run, head)) {
      const std::string prefix = run.config.heads.size() > 1 ? name_of_output(run.config, head) + "_" : "";
      names.push_back(prefix + "at_threshold");
      add_metric(run.config, head, names.back(), make_threshold_report(*threshold));
    }
  return names;
}

/// Removes the thresholds that would be best for these samples; the model uses the saved ones.
void drop_thresholds(const RunConfig& config, Measures& measures) {
  const auto& goal = config.train.threshold;
  if (!goal || goal->kind == ThresholdGoal::Kind::fixed) return;
  for (size_t head = 0; head < config.heads.size(); ++head)
    std::erase_if(measures.numbers,
                  [&](const auto& number) { return number.first == name_of_threshold(config, head); });
}

/// Adds results that need each sample's prediction: errors in the data's units, and --errors.
void inspect_predictions(const RunPlan& plan, const Checkpoint& checkpoint,
                         const std::shared_ptr<const Dataset>& data, const Loader& loader,
                         const std::optional<int64_t>& worst_count, const std::atomic<int>& stop,
                         Findings& found) {
  const RunConfig& config = plan.config;
  ErrorsInUnits in_units(config);
  std::optional<WorstSamples> worst;
  std::vector<PredictionVisitor*> visitors;
  if (in_units.needs_predictions()) visitors.push_back(&in_units);
  if (worst_count) visitors.push_back(&worst.emplace(config, *data, static_cast<size_t>(*worst_count)));
  if (!visitors.empty()) {
    const int64_t batch_size = std::min(config.train.batch_size, std::max<int64_t>(loader.samples(), 1));
    const auto engine = engine_for_inference(plan, checkpoint, Plan::Purpose::prediction, batch_size, loader);
    if (!visit_predictions(config, *engine, data, batch_size, visitors, [&] { return stop != 0; }))
      throw Interrupted(stop, "stopped");
  }
  found.in_units = in_units.results(found.measures.numbers);
  if (!worst) return;
  found.errors = Errors{worst->take(), data->has_ids(), data->id_title()};
}

/// Returns a split that this one is drawn from, or that is drawn from it, or "" if there is none.
std::string of_the_same_file(const DatasetSpec& dataset, const std::string& split) {
  if (const auto& drawn = dataset.find(split)->drawn) return drawn->of;
  for (const char* name : kSplitNames)
    if (const SplitSpec* other = dataset.find(name); other && other->drawn && other->drawn->of == split)
      return name;
  return "";
}

/// Warns about changed files, which may contain samples of the training split. If training did not open the
/// split, compares with the split that shares its file.
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
    print_warning(fmt::format("the data of '{}' have changed since training: {}", split, change));
}

/// Warns about files used for training: metrics on them say nothing about new samples.
void warn_of_trained_files(const SavedRun& run, const GivenFiles& given) {
  const auto known = saved_state(run.checkpoint).data;
  const auto trained = known.find("train");
  if (trained == known.end()) return;
  for (const GivenFile& file : given) {
    if (file_type(file.path()) != FileType::file) continue;
    const DataIdentity::File now = identify_files({file.path()}).front();
    for (const DataIdentity::File& before : trained->second.files)
      if (before.bytes == now.bytes && before.digest == now.digest)
        print_warning(
            fmt::format("{}: the model was trained on samples of this file ({}), so the numbers below "
                        "say little about new samples",
                        file.name(), before.name));
  }
}

/// Opens the samples of the split or of --input. Records their name for the report.
std::shared_ptr<const Dataset> open_data(const SavedRun& run, const EvaluateOptions& options,
                                         Findings& found) {
  const RunConfig& config = run.config;
  if (options.inputs.empty()) {
    if (options.header || !options.delimiter.empty())
      throw UserError("--header and --delimiter require --input");
    found.split = choose_split(config.dataset, options);
    auto data = open_samples(config, *config.dataset.find(found.split), false);
    warn_of_other_data(run, found.split, *data);
    return data;
  }
  found.inputs = find_given_paths(options.inputs);
  const GivenFiles given = open_given_files(found.inputs);
  warn_of_trained_files(run, given);
  auto data = with_weights(
      open_labelled(given, config.dataset, config.graph.input_specs(), config.targets(), options.text()),
      config, nullptr);
  check_samples(config, *data, "evaluated");
  return data;
}

void evaluate(const EvaluateOptions& options, World& world) {
  SavedRun run = load_saved_model(options);
  RunConfig& config = run.config;
  config.require_train(run.checkpoint.path());
  if (options.inputs.empty()) config.require_dataset(run.checkpoint.path());
  if (options.errors && config.heads[0].mask)
    throw UserError(
        fmt::format("{}: --errors does not support models whose outputs have a mask of padding: it compares "
                    "losses of whole samples",
                    run.checkpoint.path()));
  Findings found;
  if (options.per_class) found.tables = add_class_reports(config, options);
  found.thresholds = add_threshold_reports(run);
  const RunPlan plan = plan_run(config, world);  // reports missing devices before the data are opened
  print_warnings(plan.warnings);
  const auto data = open_data(run, options, found);
  for (const std::string& warning : data->warnings()) print_warning(warning);
  const std::atomic<int>& stop = catch_signals().stop;
  Loader loader(data, {.batch_size = config.train.batch_size, .prefetch = config.dataset.prefetch});
  found.samples = loader.samples();
  auto engine =
      engine_for_inference(plan, run.checkpoint, Plan::Purpose::evaluation, config.train.batch_size, loader);
  auto measures = evaluate_split(config, *engine, loader, [&] { return stop != 0; });
  if (!measures) throw Interrupted(stop, "stopped");
  for (const Measures::Uncertain& number : measures->uncertain) print_warning(number.describe());
  engine.reset();  // frees memory for the next engine
  found.measures = *std::move(measures);
  drop_thresholds(config, found.measures);
  inspect_predictions(plan, run.checkpoint, data, loader, options.errors, stop, found);
  name_classes(found, config, data->facts());
  if (options.output.json)
    print_json(findings_as_json(run, data->facts(), found));
  else if (options.output.text())
    print_text(findings_as_text(run, data->facts(), found));
}

}  // namespace

void add_evaluate(CommandLine& line, World& world) {
  Command command = line.add_command(
      "evaluate", "Compute loss and metrics of a trained model on a split or a labelled file");
  const auto options = std::make_shared<EvaluateOptions>();
  add_model_options(command, *options, "evaluate");
  command
      .add_option("--split", options->split,
                  "train, validation or test (default: test, or validation if there is no test split)")
      .one_of({kSplitNames.begin(), kSplitNames.end()});
  command
      .add_option("--input,-i", options->inputs,
                  "Files with inputs and targets, in the format of the run's own data; also patterns "
                  "('*.csv') and - (standard input). For images, a folder that is arranged like the run's: a "
                  "folder for each class, or the two parallel folders of images and targets")
      .type_name("PATH")
      .excludes(command.option("--split"));
  add_text_options(command, *options);
  command.add_flag("--per-class", options->per_class,
                   "Also show support, precision, recall and F1 score of each class");
  command
      .add_option(
          "--errors", options->errors,
          "Also show the N samples with the largest losses: name (or row, from 0), loss, target, prediction")
      .at_least(1)
      .type_name("N");
  add_output_options(command, options->output);
  command.callback([options, &world] { evaluate(*options, world); });
}

}  // namespace dtrain
