// dtrain check: validates everything that fit needs, then shows the plan of the run.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "engine/replicas.h"
#include "estimate/step_time.h"
#include "print/fit_table.h"
#include "print/memory_table.h"
#include "print/model_table.h"
#include "print/plan_table.h"
#include "print/schedule_view.h"
#include "run/learning_rate.h"
#include "run/placement.h"
#include "run/record/epoch_tables.h"
#include "run/row_weights.h"
#include "run/run_config_parser.h"
#include "train/evaluation.h"
#include "train/pretrained_loading.h"
#include "train/sample_check.h"

namespace dtrain {

namespace {

struct CheckOptions {
  OutputOptions output;
  std::string config;
  std::vector<std::string> sets;
  bool measure = false, plan = false, schedule = false, fit = false;
  // The machine assumed by --fit.
  std::string memory, bandwidth;
  std::optional<int64_t> devices;
};

struct Split {
  std::string name;
  int64_t samples = 0;
  std::shared_ptr<const Dataset>
      data;  // kept open until the plan is made, as the run will; null for the test split
};

/// The plan of a run.
struct RunPlan {
  std::vector<Split> splits;  // the training split comes first
  int64_t steps_per_epoch = 0;
  int64_t last_batch = 0;  // samples in the last batch of an epoch
  Placement placement;
  std::vector<MemoryPlan> replicas;
  std::string gradients_meet;
  size_t snapshot = 0;
  size_t read_ahead = 0;                 // bytes of host memory
  TableBytes tables;                     // of metrics
  std::vector<int64_t> last_shares;      // samples of the last batch, by replica
  std::optional<StepTime> step_time;     // if requested
  std::optional<ScheduleView> schedule;  // if requested
  std::string instructions;              // the first replica's plan as text, if requested
  Json instructions_json;

  int64_t steps(const RunConfig& config) const { return steps_per_epoch * config.train.epochs; }
};

/// Larger splits are not checked completely, because that takes long. Training reports errors in the rest
/// when it reads them.
constexpr int64_t kMostSamples = 10'000'000;
constexpr size_t kMostBytes = size_t{1} << 30;  // per column

void look_through(const RunConfig& config, const Dataset& data, const char* name) {
  try {
    if (data.size() <= kMostSamples) check_samples(config, data, fmt::format("called '{}'", name));
    check_readable(data, kMostBytes);
  } catch (const UserError& error) {
    throw UserError(located(config.dataset.find(name)->mark, error.what()));
  }
}

/// Returns true if the split is drawn from one of these, directly or through other splits.
bool is_drawn_from(const DatasetSpec& dataset, const SplitSpec* split, const std::set<std::string>& names) {
  for (; split && split->drawn; split = dataset.find(split->drawn->of))
    if (names.contains(split->drawn->of)) return true;
  return false;
}

/// Opens every split of the dataset. Reports the errors of all splits together.
std::vector<Split> open_splits(RunConfig& config, const Configured<Cache>& cache) {
  DatasetSpec with_cache = config.dataset;
  with_cache.cache = cache;
  std::vector<std::string> mistakes;
  std::set<std::string> failed, said;  // splits that are read alike repeat the same messages
  std::vector<Split> splits;
  for (const char* name : kSplitNames) {
    const SplitSpec* split = config.dataset.find(name);
    if (!split || is_drawn_from(config.dataset, split, failed)) continue;  // would repeat the same errors
    try {
      check_cache(with_cache, name);
      const auto data = open_samples(config, *split, std::string_view(name) == "train");
      for (const std::string& warning : data->warnings())
        if (said.insert(warning).second) print_warning(warning);
      if (config.dataset.facts.empty()) config.dataset.facts = data->facts();
      look_through(config, *data, name);
      if (split == config.dataset.find("train"))
        for (const std::string& warning : class_warnings(config, data->facts())) print_warning(warning);
      splits.push_back({name, data->size(), split == config.dataset.find("test") ? nullptr : data});
    } catch (const UserError& error) {
      if (said.insert(error.what()).second) mistakes.push_back(error.what());
      failed.insert(name);
    }
  }
  if (!mistakes.empty()) throw UserError(fmt::format("{}", fmt::join(mistakes, "\n")));
  return splits;
}

/// `cache` is the configured cache; it is not filled here. Stores the columns of the data in the
/// configuration.
RunPlan make_plan(RunConfig& config, const Configured<Cache>& cache, const CheckOptions& options) {
  RunPlan plan;
  plan.placement = place_for_training(config);
  if (options.schedule && !options.measure) plan.schedule = view_schedule(config, plan.placement, nullptr);
  plan.splits = open_splits(config, cache);
  const int64_t samples = plan.splits[0].samples, batch = config.train.batch_size;
  plan.steps_per_epoch = (samples + batch - 1) / batch;
  plan.last_batch = samples - (plan.steps_per_epoch - 1) * batch;
  if (const std::string warning = warning_of_zero_rate(config, plan.steps_per_epoch); !warning.empty())
    print_warning(warning);
  Replicas replicas(config, plan.placement);
  size_t on_devices = 0, on_host = 0;
  int64_t most = 0;
  const bool kept = cache.name == "device" || cache.name == "memory";
  ReadAheadMemory ahead;
  for (Split& split : plan.splits) {
    if (!split.data) continue;
    ahead += read_ahead_memory(*split.data, {.batch_size = batch, .prefetch = config.dataset.prefetch},
                               kept || split.data->in_memory());
    on_devices += split.data->stored_bytes();
    if (!split.data->lies_in_memory()) on_host += split.data->stored_bytes();
    most = std::max(most, split.samples);
  }
  if (cache.name == "device") replicas.plan_data(on_devices);
  if (kept) replicas.plan_host(on_host);
  replicas.plan_samples(most);
  replicas.plan_read_ahead(ahead);
  plan.read_ahead = ahead.bytes(std::min(batch, most));
  replicas.check_memory(Plan::Purpose::training, batch);
  if (const std::string advice = replicas.memory_advice(Plan::Purpose::training, batch); !advice.empty())
    print_warning(advice);
  for (const std::string& warning : replicas.training_plan(batch).warnings()) print_warning(warning);
  for (Split& split : plan.splits) split.data.reset();
  plan.replicas = replicas.memory(Plan::Purpose::training, batch);
  if (saves_on_the_way(config, config.train.epochs, plan.steps_per_epoch))
    plan.snapshot = replicas.snapshot_bytes();
  plan.tables = table_bytes(config);
  plan.gradients_meet = replicas.gradient_sync().where();
  for (int rank = 0; rank < replicas.size(); ++rank)
    plan.last_shares.push_back(part_of(plan.last_batch, rank, replicas.size()).size());
  if (options.schedule && options.measure) plan.schedule = view_schedule(config, plan.placement, &replicas);
  if (options.plan) {
    const Plan& training = replicas.training_plan(batch);
    plan.instructions = plan_text(training, plan.placement.replicas[0]);
    plan.instructions_json = plan_json(training, plan.placement.replicas[0]);
  }
  return plan;
}

MemoryView memory_view(const RunConfig& config, const RunPlan& plan) {
  return {config.graph, plan.placement, plan.replicas, plan.last_shares};
}

Json to_json(const RunConfig& config, const RunPlan& plan) {
  const auto bytes = [](size_t count) { return static_cast<int64_t>(count); };
  Json samples = Json::object();
  for (const Split& split : plan.splits) samples.set(split.name, split.samples);
  Json layers = Json::array();
  for (const LayerRow& row : layer_rows(config.graph)) {
    Json devices = Json::array();
    for (const std::string& device : devices_of(plan.placement, row)) devices.push(device);
    layers.push(Json::object().set("name", row.name).set("devices", std::move(devices)));
  }
  const int64_t trainable = config.graph.count_parameters(true);
  Json time;  // null
  if (plan.step_time)
    time = Json::object()
               .set("step_seconds", plan.step_time->seconds)
               .set("measured_steps", plan.step_time->steps)
               .set("seconds", plan.step_time->seconds * static_cast<double>(plan.steps(config)));
  return Json::object()
      .set("name", config.name)
      .set("parameters", trainable + config.graph.count_parameters(false))
      .set("trainable_parameters", trainable)
      .set("samples", std::move(samples))
      .set("batch_size", config.train.batch_size)
      .set("last_batch", plan.last_batch)
      .set("steps_per_epoch", plan.steps_per_epoch)
      .set("epochs", config.train.epochs)
      .set("steps", plan.steps(config))
      .set("time", std::move(time))
      .set("strategy", config.strategy.name)
      .set("gradients_meet", plan.gradients_meet)
      .set("snapshot", bytes(plan.snapshot))
      .set("read_ahead", bytes(plan.read_ahead))
      .set("tables", bytes(plan.tables.memory))
      .set("tables_on_disk", bytes(plan.tables.disk))
      .set("replicas", replicas_json(memory_view(config, plan)))
      .set("layers", std::move(layers));
}

std::string to_text(const RunConfig& config, const RunPlan& plan) {
  std::string data;
  for (const Split& split : plan.splits)
    data += fmt::format("{}{} {}", data.empty() ? "" : ", ", split.name, format_count(split.samples));
  const int64_t trainable = config.graph.count_parameters(true);
  std::string text = fmt::format("model     {}, {} trained\ndata      {} samples\n",
                                 format_plural(trainable + config.graph.count_parameters(false), "parameter"),
                                 format_count(trainable), data);
  text += fmt::format("steps     {} per epoch, {} in {}; batches of {}, the last of {}\n",
                      format_count(plan.steps_per_epoch), format_count(plan.steps(config)),
                      format_plural(config.train.epochs, "epoch"), format_count(config.train.batch_size),
                      format_count(plan.last_batch));
  if (plan.step_time)
    text +=
        fmt::format("time      {:.4g} ms per step (mean of {}), {} in total, without validation and saving\n",
                    plan.step_time->seconds * 1e3, format_count(plan.step_time->steps),
                    format_duration(plan.step_time->seconds * static_cast<double>(plan.steps(config))));
  text +=
      fmt::format("strategy  {}, {}{}\n\n", config.strategy.name, placement_text(plan.placement),
                  plan.placement.replicas.size() > 1 ? "; gradients are summed " + plan.gradients_meet : "");
  text += memory_text(memory_view(config, plan));
  if (!plan.placement.slots.empty()) text += "\n" + layer_table(config.graph, plan.placement);
  if (plan.snapshot > 0)
    text += fmt::format(
        "\nSaving needs another {} of host memory for a copy that is written in the background.\n",
        format_bytes(plan.snapshot));
  if (plan.read_ahead > 0)
    text += fmt::format("\nPrefetching batches needs another {} of host memory.\n",
                        format_bytes(plan.read_ahead));
  if (plan.tables.memory > 0)
    text += fmt::format(
        "\nTable metrics need up to another {} of host memory, and about {} of every checkpoint.\n",
        format_bytes(plan.tables.memory), format_bytes(plan.tables.disk));
  if (plan.schedule) text += "\n" + schedule_text(*plan.schedule, static_cast<int>(terminal_width()));
  return text;
}

std::optional<int64_t> parse_amount(const char* option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<uint64_t> bytes = parse_bytes(text);
  if (!bytes || *bytes == 0)
    throw UserError(fmt::format("{}: expected bytes such as 24GB or 512MiB, found '{}'", option, text));
  return static_cast<int64_t>(*bytes);
}

/// Tries strategies for --fit. The configured strategy and data need not work on this machine.
void try_strategies(const CheckOptions& options) {
  const MachineRequest request{.bytes = parse_amount("--memory", options.memory),
                               .devices = options.devices,
                               .link = parse_amount("--bandwidth", options.bandwidth)};
  constexpr int64_t kMostDevices = 64;
  if (options.devices.value_or(1) > kMostDevices)
    throw UserError(fmt::format("--devices: expected at most {}, found {}", kMostDevices, *options.devices));
  const RunConfig config = load_run_config(options.config, options.sets);
  print_warnings(config.warnings);
  const Machine machine = machine_for(config, request);
  const std::vector<Candidate> candidates = what_fits(config, machine);
  if (options.output.json) print_json(fit_json(config, machine, candidates));
  if (options.output.text()) print_text(fit_text(config, machine, candidates));
}

void check(const CheckOptions& options) {
  if (options.fit) return try_strategies(options);
  refuse_wrong_configuration(options.config);
  RunConfig config = load_run_config(options.config, options.sets, ConfigUse::training);
  print_warnings(config.warnings);
  if (config.graph.pretrained) load_pretrained(config.graph);
  const auto cache = config.dataset.cache;
  config.dataset.cache = registry<Cache>().make("none");  // do not create a cache file
  RunPlan plan = make_plan(config, cache, options);
  if (options.measure) {
    if (cache.name != "file") config.dataset.cache = cache;
    plan.step_time = measure_steps(config, 2.0);
  }
  if (options.output.json) {
    Json json = to_json(config, plan);
    if (options.plan) json.set("plan", plan.instructions_json);
    if (plan.schedule) json.set("schedule", schedule_json(*plan.schedule));
    print_json(json);
  }
  if (!options.output.text()) return;
  print_text(to_text(config, plan));
  if (options.plan) print_text("\n" + plan.instructions);
}

}  // namespace

void add_check(CommandLine& line) {
  Command command = line.add_command("check", "Validate a configuration without training, and show the plan");
  const auto options = std::make_shared<CheckOptions>();
  command.add_option("CONFIG", options->config, "The configuration, a YAML file").required();
  add_set_option(command, options->sets);
  command.add_flag(
      "--measure", options->measure,
      "Also train for two seconds on the run's devices and data, to estimate how long the run will take");
  command.add_flag("--plan", options->plan,
                   "Also show the first replica's training step: its instructions, and the place and "
                   "lifetime of every buffer");
  command.add_flag("--schedule", options->schedule,
                   "Also show a pipeline's schedule as a table of time by stage, with the bubble, from "
                   "estimated times, or with --measure from measured ones");
  const Option fit =
      command
          .add_flag("--fit", options->fit,
                    "Instead of the plan, show which strategies and batch sizes fit the available devices, "
                    "ranked by estimated samples per second, each as YAML to paste")
          .excludes(command.option("--measure"))
          .excludes(command.option("--plan"))
          .excludes(command.option("--schedule"));
  command.add_option("--memory", options->memory, "Memory of each GPU assumed by --fit, e.g. 24GB")
      .type_name("BYTES")
      .needs(fit);
  command.add_option("--devices", options->devices, "Number of devices assumed by --fit")
      .at_least(1)
      .type_name("N")
      .needs(fit);
  command
      .add_option("--bandwidth", options->bandwidth,
                  "Bytes per second between two devices assumed by --fit, e.g. 300GB")
      .type_name("BYTES")
      .needs(fit);
  add_output_options(command, options->output);
  command.callback([options] { check(*options); });
}

}  // namespace dtrain
