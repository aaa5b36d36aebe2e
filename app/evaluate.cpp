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
#include "cli/process_group.h"
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
#include "runs/training.h"
#include "train/data_agreement.h"
#include "train/evaluation/errors_in_units.h"
#include "train/evaluation/saved_threshold.h"
#include "train/evaluation/worst_samples.h"
#include "train/restored_state.h"
#include "train/sample_check.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

struct EvaluateOptions : ModelOptions, InputOptions {
  OutputOptions output;
  std::string split;
  bool per_class = false;
  std::optional<int64_t> errors;
};

/// Returns the name of the split to evaluate: the value of --split or, without --split, "test". Without a
/// test split, the default is "validation".
std::string choose_split(const DatasetSpec& dataset, const EvaluateOptions& options) {
  std::string name = options.split;
  if (name.empty()) name = dataset.test ? "test" : "validation";
  if (dataset.find(name)) return name;
  std::string there;
  for (const char* split : kSplitNames)
    if (dataset.find(split)) there += fmt::format("{}{}", there.empty() ? "" : ", ", split);
  throw UserError(fmt::format("{}: the run's data set has no '{}' split; --split takes one of: {}",
                              options.path, name, there));
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
  throw UserError(fmt::format("{}: --per-class requires a model with a classification loss", options.path));
}

/// Adds a report of the scores at the saved threshold to every output that has a saved threshold. Returns the
/// names of the reports.
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

/// Removes from `measures` the best thresholds for the evaluated samples, because the model uses the
/// thresholds that were chosen in training.
void drop_thresholds(const RunConfig& config, Measures& measures) {
  const auto& goal = config.train.threshold;
  if (!goal || goal->kind == ThresholdGoal::Kind::fixed) return;
  for (size_t head = 0; head < config.heads.size(); ++head)
    std::erase_if(measures.numbers,
                  [&](const auto& number) { return number.first == name_of_threshold(config, head); });
}

/// Adds results that need each sample's prediction: errors in the data's units, and the samples of --errors.
/// Only process 0 calls this function; it computes the predictions alone.
void inspect_predictions(const RunConfig& config, const Checkpoint& checkpoint,
                         const std::shared_ptr<const Dataset>& data, const Loader& loader,
                         const std::optional<int64_t>& worst_count, const std::atomic<int>& stop,
                         Findings& found) {
  ErrorsInUnits in_units(config);
  std::optional<WorstSamples> worst;
  std::vector<PredictionVisitor*> visitors;
  if (in_units.needs_predictions()) visitors.push_back(&in_units);
  if (worst_count) visitors.push_back(&worst.emplace(config, *data, static_cast<size_t>(*worst_count)));
  if (!visitors.empty()) {
    const RunPlan plan = plan_run(config, single_process());
    const int64_t batch_size = std::min(config.train.batch_size, std::max<int64_t>(loader.samples(), 1));
    const auto engine = engine_for_inference(plan, checkpoint, Plan::Purpose::prediction, batch_size, loader);
    if (!visit_predictions(config, *engine, data, batch_size, visitors, [&] { return stop != 0; }))
      throw Interrupted(stop, "stopped");
  }
  found.in_units = in_units.results(found.measures.numbers);
  if (!worst) return;
  found.errors = Errors{worst->take(), data->has_ids(), data->id_title()};
}

/// Returns the name of a split that reads the same files as `split`: the split from which `split` is drawn,
/// or a split that is drawn from `split`. Returns "" if there is no such split.
std::string of_the_same_file(const DatasetSpec& dataset, const std::string& split) {
  if (const auto& drawn = dataset.find(split)->drawn) return drawn->of;
  for (const char* name : kSplitNames)
    if (const SplitSpec* other = dataset.find(name); other && other->drawn && other->drawn->of == split)
      return name;
  return "";
}

/// Warns if the files of a split have changed since training, because they may now contain samples of the
/// training split. Training does not open every split. If training did not open this split, the split's files
/// are compared with the files of a related split: the split from which this split is drawn, or a split that
/// is drawn from this split.
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
    print_warning(
        fmt::format("the data of the split '{}' have changed since the training: {}", split, change));
}

/// Warns about input files that were used for training, because metrics on these files say little about new
/// samples.
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
            fmt::format("{}: the model was trained on samples of this file ({}), so the results below say "
                        "little about new samples",
                        file.name(), before.name));
  }
}

/// Opens the samples to evaluate: the files of --input or, without --input, a split. Stores the name of the
/// split or of the files in `found`.
std::shared_ptr<const Dataset> open_data(const SavedRun& run, const EvaluateOptions& options,
                                         const World& world, Findings& found) {
  const RunConfig& config = run.config;
  if (options.inputs.empty()) {
    if (options.header || !options.delimiter.empty())
      throw UserError("--header and --delimiter apply only to files that are given with --input");
    found.split = choose_split(config.dataset, options);
    auto data = open_samples(config, *config.dataset.find(found.split), false);
    if (world.writes_files()) warn_of_other_data(run, found.split, *data);
    return data;
  }
  found.inputs = find_given_paths(options.inputs);
  const GivenFiles given = open_given_files(found.inputs);
  if (world.writes_files()) warn_of_trained_files(run, given);
  auto data = with_weights(
      open_labeled(given, config.dataset, config.graph.input_specs(), config.targets(), options.text()),
      config, nullptr);
  check_samples(config, *data, "evaluated");
  return data;
}

/// Throws UserError if the processes do not have the same samples.
void check_same_data(World& world, const Dataset& data, const Findings& found) {
  if (world.size() == 1) return;
  if (found.inputs.empty()) return check_data_agree(world, {{found.split, data.identity()}});
  std::vector<std::string> files = found.inputs;
  std::erase_if(files, [](const std::string& path) { return file_type(path) != FileType::file; });
  DataIdentity identity;
  identity.files = identify_files(files);
  identity.samples = identity.to = data.size();
  check_data_agree(world, {{"--input", std::move(identity)}});
}

/// Returns a stop signal that any process has received; 0 if none has. Must be called by all processes.
int agree_on_stop(World& world, const std::atomic<int>& stop) {
  int64_t signal = stop;
  world.all_reduce_max({&signal, 1});
  return static_cast<int>(signal);
}

/// Computes loss and metrics; each process evaluates the rows of its replicas.
Measures evaluate_samples(const RunPlan& plan, const Checkpoint& checkpoint, Loader& loader,
                          const std::atomic<int>& stop) {
  World& world = plan.world;
  const auto engine =
      engine_for_inference(plan, checkpoint, Plan::Purpose::evaluation, plan.config.train.batch_size, loader);
  int64_t batch = 0;
  int signal = 0;
  auto measures = evaluate_split(plan.config, *engine, loader, [&] {
    world.set_position("evaluating", ++batch);
    signal = agree_on_stop(world, stop);
    return signal != 0;
  });
  if (!measures) throw Interrupted(signal, "stopped");
  return *std::move(measures);
}

void evaluate(const EvaluateOptions& options, World& world) {
  const std::atomic<int>& stop = catch_signals().stop;
  SavedRun run = share_saved_model(options, world);
  RunConfig& config = run.config;
  world.set_peer_timeout(config.train.peer_timeout.seconds());
  world.set_position("reading the data", 0);
  config.require_train(run.checkpoint.path());
  if (options.inputs.empty()) config.require_dataset(run.checkpoint.path());
  const auto has_mask = [](const Head& head) { return head.mask.has_value(); };
  if (options.errors && std::any_of(config.heads.begin(), config.heads.end(), has_mask))
    throw UserError(
        fmt::format("{}: --errors does not support models whose outputs have a padding mask, because it "
                    "compares the losses of whole samples",
                    run.checkpoint.path()));
  Findings found;
  if (options.per_class) found.tables = add_class_reports(config, options);
  found.thresholds = add_threshold_reports(run);
  const RunPlan plan = plan_run(config, world);  // reports missing devices before the data are opened
  print_warnings(plan.warnings);
  const auto data = open_data(run, options, world, found);
  if (world.writes_files())
    for (const std::string& warning : data->warnings()) print_warning(warning);
  check_same_data(world, *data, found);
  Loader loader(data, {.batch_size = config.train.batch_size,
                       .prefetch = config.dataset.prefetch,
                       .rows = own_rows(plan, Plan::Purpose::evaluation)});
  found.samples = loader.samples();
  found.measures = evaluate_samples(plan, run.checkpoint, loader, stop);
  if (!world.writes_files()) return;
  for (const Measures::Uncertain& number : found.measures.uncertain) print_warning(number.describe());
  drop_thresholds(config, found.measures);
  inspect_predictions(config, run.checkpoint, data, loader, options.errors, stop, found);
  name_classes(found, config, data->facts());
  if (options.output.json)
    print_json(findings_as_json(run, data->facts(), found));
  else if (options.output.text())
    print_text(findings_as_text(run, data->facts(), found));
}

/// Evaluates with all processes. If only process 0 has the samples, because they come from its standard
/// input, process 0 evaluates alone.
void evaluate_together(const EvaluateOptions& options, World& world) {
  const bool reads_standard_input =
      std::find(options.inputs.begin(), options.inputs.end(), kStandardStream) != options.inputs.end();
  if (!reads_standard_input) return in_world(world, [&] { evaluate(options, world); });
  if (world.writes_files()) evaluate(options, single_process());
}

}  // namespace

void add_evaluate(CommandLine& line, World& world) {
  Command command = line.add_command(
      "evaluate", "Compute the loss and metrics of a trained model on a split or on files with targets");
  const auto options = std::make_shared<EvaluateOptions>();
  add_model_options(command, *options, "evaluate");
  command
      .add_option("--split", options->split,
                  "The split to evaluate (default: test, or validation if there is no test split)")
      .one_of({kSplitNames.begin(), kSplitNames.end()});
  command
      .add_option("--input,-i", options->inputs,
                  "Evaluate these files instead of a split. The files contain inputs and targets in the "
                  "format of the run's data; patterns ('*.csv') and - (standard input) are also possible. "
                  "For images, give a folder with the same structure as the run's data: a subfolder for each "
                  "class, or two parallel subfolders with images and targets")
      .type_name("PATH")
      .excludes(command.option("--split"));
  add_text_options(command, *options);
  command.add_flag("--per-class", options->per_class,
                   "Also show the support (number of samples), precision, recall and F1 score of each class");
  command
      .add_option("--errors", options->errors,
                  "Also show the N samples with the largest losses. For each, show its name (or its row "
                  "number, from 0), its loss, its target and the prediction")
      .at_least(1)
      .type_name("N");
  add_output_options(command, options->output);
  add_interface_option(command);
  command.callback([options, &world] { evaluate_together(*options, world); });
}

}  // namespace dtrain
