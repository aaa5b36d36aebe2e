// dtrain sweep: trains every combination of values and compares the results.
#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "config/load/environment.h"
#include "config/load/load.h"
#include "device/device.h"
#include "processes/launch.h"
#include "run/placement.h"
#include "run/run_config_parser.h"
#include "sweep/sweep_folder.h"
#include "sweep/sweep_plan.h"
#include "sweep/sweep_runner.h"
#include "sweep/sweep_table.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

struct SweepOptions {
  OutputOptions output;
  std::string config, directory;
  std::vector<std::string> sets;
  std::optional<int64_t> seeds, random, cores, jobs;
};

constexpr const char* kSeed = "seed";

/// The plan of a sweep, made from the command line and the configuration.
struct Sweep {
  std::string name;
  SweepIdentity identity;
  size_t settings = 0;
  // A note to the user if the deviations in the table have causes other than the training; otherwise "".
  std::string note;
  std::vector<PlannedRun> runs;
};

/// Returns the seed in the configuration as written, which determines the settings that --random draws.
int64_t written_seed(const ConfigNode& written) {
  const ConfigNode* node = written.find(kSeed);
  int64_t seed = 0;
  if (node && node->is_scalar())
    std::from_chars(node->text().data(), node->text().data() + node->text().size(), seed);
  return seed;
}

/// Returns the number of cores for a run: one per device, or all if any device is a GPU, because only one run
/// at a time uses the GPUs.
int cores_of(const RunConfig& config, const SweepOptions& options) {
  const auto all = static_cast<int64_t>(available_cores().size());
  const std::vector<DeviceId> devices = config.strategy->place(workload_of(config)).devices();
  const bool gpus = std::any_of(devices.begin(), devices.end(),
                                [](DeviceId device) { return device.kind == DeviceId::Kind::gpu; });
  if (gpus) return static_cast<int>(all);
  return static_cast<int>(std::min(all, options.cores.value_or(static_cast<int64_t>(devices.size()))));
}

/// Adds one run per seed with the values of a setting.
void add_runs(const RunConfig& config, const SettingValues& values, const SweepOptions& options,
              std::vector<PlannedRun>& runs) {
  const int cores = cores_of(config, options);
  const auto run_with = [&](int64_t number, bool names_seed) {
    PlannedRun run{"", values, "", cores};
    const std::string seed = std::to_string(number);
    if (names_seed) run.values.emplace_back(kSeed, seed);
    run.name = name_of_setting(run.values);
    run.config = escape_environment(config.resolved.with("name", ConfigNode::scalar(run.name, true))
                                        .with(kSeed, ConfigNode::scalar(seed)))
                     .to_yaml();
    return run;
  };
  const bool varies_seed =
      std::any_of(values.begin(), values.end(), [](const auto& value) { return value.first == kSeed; });
  for (int64_t i = 0; i < options.seeds.value_or(1); ++i) {
    runs.push_back(run_with(config.seed + i, options.seeds.has_value()));
    if (i == 0 && !values.empty() && !varies_seed)
      runs.back().other_name.push_back(run_with(config.seed, !options.seeds));
  }
}

/// Returns a note if runs with different seeds have different validation samples, else "".
std::string note_on_splits(const RunConfig& config) {
  const SplitSpec* split = config.dataset.find("validation");
  if (!split || !split->drawn || split->drawn->seed) return "";
  return "each seed draws a different validation split, so the deviation includes the differences between "
         "splits; with `split: {seed: 1}` all runs use the same split";
}

/// Returns the error message with the values of the setting removed from locations such as "--set KEY=VALUE".
/// Messages that are repeated for each value of a key are then equal.
std::string without_values(std::string message, const SettingValues& values) {
  for (const auto& [key, value] : values) {
    const std::string start = "--set " + key + "=", location = start + value;
    for (size_t at = 0; (at = message.find(location, at)) != std::string::npos; at += start.size())
      message.erase(at + start.size(), value.size());
  }
  return message;
}

/// Reads the configuration of every setting. Throws UserError with the errors of all settings. An error that
/// is the same for several values of a key is reported only once.
Sweep plan_sweep(const SweepOptions& options) {
  reject_wrong_configuration(options.config);
  const SweepSets sets = parse_sweep_sets(options.sets);
  const bool varies_seed = std::any_of(sets.varied.begin(), sets.varied.end(),
                                       [](const VariedKey& key) { return key.key == kSeed; });
  if (varies_seed && options.seeds)
    throw UserError("--seeds and several values of `seed` cannot be combined; give only one of them");
  if (sets.varied.empty() && !options.seeds)
    throw UserError("a sweep needs at least one key with several values; give --set KEY=A,B,C or --seeds N");
  Diagnostics diagnostics;
  const ConfigNode written = load_config(options.config, sets.fixed, diagnostics);
  diagnostics.throw_if_errors();
  Sweep sweep;
  std::vector<std::string> mistakes;
  std::set<std::string> reported, warned;
  for (const SettingValues& values : sweep_settings(sets.varied, options.random, written_seed(written))) {
    std::vector<std::string> all = sets.fixed;
    for (const auto& [key, value] : values) all.push_back(key + "=" + value);
    try {
      const RunConfig config = load_run_config(options.config, all, ConfigUse::training);
      for (const std::string& warning : config.warnings)
        if (warned.insert(warning).second) print_warnings({warning});
      sweep.name = config.name;
      add_runs(config, values, options, sweep.runs);
      if (varies_seed || options.seeds.value_or(1) > 1) sweep.note = note_on_splits(config);
      ++sweep.settings;
    } catch (const UserError& error) {
      if (reported.insert(without_values(error.what(), values)).second) mistakes.emplace_back(error.what());
    }
  }
  if (!mistakes.empty()) throw UserError(fmt::format("{}", fmt::join(mistakes, "\n")));
  sweep.identity = identify_sweep(sweep.name, written.to_yaml(), sets.varied);
  return sweep;
}

std::string describe_sweep(const Sweep& sweep, const SweepFolder& folder, size_t to_train) {
  const auto count = [](size_t number) { return static_cast<int64_t>(number); };
  return fmt::format(
      "{}: {}, {}, {} to train; saved in {}", sweep.name, format_plural(count(sweep.settings), "setting"),
      format_plural(count(sweep.runs.size()), "run"), format_count(count(to_train)), folder.path());
}

/// Returns e.g. "learning_rate=0.003,seed=2: best val_loss 0.3121 at epoch 7".
std::string describe_result(const std::string& name, const SweepRun& result) {
  std::string text = name + ": ";
  if (result.failed) return text + "failed: " + result.note;
  if (!result.best) return text + (result.finished ? "finished" : "stopped");
  text += fmt::format("best {} {} at epoch {}", result.best->monitor, format_value(result.best->value),
                      format_count(result.best->epoch));
  return result.finished ? text : text + ", stopped";
}

void write_tables(const SweepFolder& folder, const std::vector<SweepRun>& results) {
  folder.write("sweep.csv", sweep_csv(results));
  std::string lines;
  const Json settings = sweep_json(results);
  for (const Json& setting : settings.items()) lines += setting.dump() + "\n";
  folder.write("sweep.jsonl", lines);
}

Json to_json(const SweepFolder& folder, const std::vector<PlannedRun>& runs,
             const std::vector<SweepRun>& results) {
  Json list = Json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    const SweepRun& result = results[i];
    Json values = Json::object();
    for (const auto& [key, value] : result.values) values.set(key, value);
    Json run = Json::object().set("path", folder.run_path(runs[i])).set("values", std::move(values));
    run.set("state", result.failed ? "failed" : result.finished ? "finished" : "stopped");
    run.set("value", result.best ? Json(result.best->value) : Json());
    run.set("epoch", result.best ? Json(result.best->epoch) : Json());
    if (result.failed) run.set("note", result.note);
    list.push(std::move(run));
  }
  return Json::object()
      .set("directory", folder.path())
      .set("monitor", monitored_value(results))
      .set("settings", sweep_json(results))
      .set("runs", std::move(list));
}

/// Returns the best setting and the command that trains it; "" if there are fewer than two settings or no
/// results.
std::string describe_best(const SweepOptions& options, const std::vector<SweepRun>& results) {
  const std::vector<SweepSetting> settings = settings_of(results);
  if (settings.size() < 2 || !settings.front().mean) return "";
  std::string values, command = "dtrain fit " + shell_word(options.config);
  for (const auto& [key, value] : settings.front().values) values += fmt::format(" {}={}", key, value);
  for (const std::string& set : parse_sweep_sets(options.sets).fixed) command += " --set " + shell_word(set);
  for (const auto& [key, value] : settings.front().values)
    command += " --set " + shell_word(fmt::format("{}={}", key, value));
  return fmt::format("best:{} (mean best {} {}); to train it: {}", values, monitored_value(results),
                     format_value(*settings.front().mean), command);
}

void sweep(const SweepOptions& options) {
  forget_launch();  // each run is a single process, even if a launcher started this one
  Sweep sweep = plan_sweep(options);
  SweepFolder folder(sweep.identity, options.directory);
  folder.begin(sweep.runs);
  Requests& asked = catch_signals();
  size_t ended = 0, to_train = 0;
  const auto on_end = [&](size_t run, const std::vector<SweepRun>& results) {
    write_tables(folder, results);
    if (options.output.quiet) return;
    print_note(
        fmt::format("{}/{}  {}", ++ended, to_train, describe_result(sweep.runs[run].name, results[run])));
  };
  const int64_t most = options.jobs.value_or(static_cast<int64_t>(sweep.runs.size()));
  SweepRunner runner(folder, sweep.runs, static_cast<size_t>(most), asked, on_end);
  to_train = runner.to_train();
  if (!options.output.quiet) print_note(describe_sweep(sweep, folder, to_train));
  if (!options.output.quiet && !sweep.note.empty()) print_note(sweep.note);
  runner.check_first();
  runner.train();
  const std::vector<SweepRun>& results = runner.results();
  write_tables(folder, results);
  if (options.output.json) print_json(to_json(folder, sweep.runs, results));
  if (options.output.text()) print_text(sweep_text(results));
  if (const std::string best = describe_best(options, results);
      options.output.text() && !asked.stop && !best.empty())
    print_note(best);
  if (const int stop = asked.stop) throw Interrupted(stop, "stopped; run the same command again to continue");
  const auto failed =
      std::count_if(results.begin(), results.end(), [](const SweepRun& run) { return run.failed; });
  if (failed > 0)
    throw Error(
        fmt::format("{} of {} failed. Their error messages are in {}/logs. Run the same command again to "
                    "retry the failed runs",
                    failed, format_plural(static_cast<int64_t>(results.size()), "run"), folder.path()));
}

}  // namespace

void add_sweep(CommandLine& line) {
  Command command = line.add_command(
      "sweep", "Train a run for each setting (combination of values), and compare the results");
  const auto options = std::make_shared<SweepOptions>();
  command.add_option("CONFIG", options->config, "The configuration (a YAML file)").required();
  add_set_option(command, options->sets);
  command.option("--set").description(
      "Values for a key, separated by commas, e.g. train.optimizer.adam.learning_rate=0.001,0.003. Every "
      "combination of the values of all keys is trained. A key with a single value has this value in all "
      "runs. The option may be repeated");
  command
      .add_option("--seeds", options->seeds,
                  "Train each setting with N seeds: the configuration's seed and the following ones")
      .at_least(1)
      .type_name("N");
  command
      .add_option("--random", options->random,
                  "Train only N settings. They are drawn at random from all combinations, with the seed of "
                  "the configuration")
      .at_least(1)
      .type_name("N");
  command
      .add_option("--cores", options->cores,
                  "Number of CPU cores for each run (default: one for each CPU device of the run). The last "
                  "bits of the results may depend on this number")
      .at_least(1)
      .type_name("N");
  command
      .add_option("--jobs", options->jobs,
                  "Maximum number of parallel runs (default: as many as the cores of the machine allow)")
      .at_least(1)
      .type_name("N");
  command
      .add_option("--output,-o", options->directory,
                  "The folder of the sweep (default: runs/NAME-sweep; if it contains another sweep, "
                  "runs/NAME-sweep-2, and so on)")
      .type_name("DIR");
  add_output_options(command, options->output);
  command.callback([options] { sweep(*options); });
}

}  // namespace dtrain
