// dtrain check: validates everything that fit needs, then shows the plan of the run.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/process_group.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "data/columns/column.h"
#include "data/located_error.h"
#include "engine/engine.h"
#include "estimate/step_time.h"
#include "generate/step_model.h"
#include "print/fit_table.h"
#include "print/memory_table.h"
#include "print/model_table.h"
#include "print/plan_table.h"
#include "print/schedule_view.h"
#include "processes/processes.h"
#include "run/learning_rate.h"
#include "run/record/epoch_tables.h"
#include "run/run_config_parser.h"
#include "run/run_plan.h"
#include "runs/training.h"
#include "train/checked_splits.h"
#include "train/data_agreement.h"
#include "train/evaluation/evaluation.h"
#include "train/pretrained_loading.h"
#include "train/shared_run.h"

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

/// The facts about a run that `dtrain check` shows.
struct CheckedRun {
  std::vector<CheckedSplit> splits;  // the run's splits, without their data
  int64_t steps_per_epoch = 0;
  int64_t last_batch = 0;  // samples in the last batch of an epoch
  std::vector<MemoryPlan> replicas;
  std::string reduction_place;
  size_t snapshot = 0;
  size_t read_ahead = 0;  // bytes of host memory for prefetched batches
  TableBytes tables;      // memory and disk space for the metrics that are tables
  // Lengths to which training batches are truncated; empty if they are not truncated.
  std::vector<int64_t> lengths;
  // Number of positions that are computed in the first epoch, divided by the number of positions of all
  // samples. It is below 1 if batches are truncated.
  double computed = 1;
  std::vector<int64_t> last_shares;      // number of samples of the last batch on each replica
  std::optional<StepTime> step_time;     // time of a step, if requested
  std::optional<ScheduleView> schedule;  // schedule of a pipeline, if requested
  std::string instructions;              // the first replica's plan as text, if requested
  Json instructions_json;

  int64_t steps(const RunConfig& config) const { return steps_per_epoch * config.train.epochs; }
};

/// Sets `lengths` and `computed` of `run`, for a run that truncates its training batches by length.
void take_lengths(const RunConfig& config, const SampleLengths& lengths, CheckedRun& run) {
  if (const std::string warning = lengths.warning(); !warning.empty()) print_warning(warning);
  const int64_t batch = config.train.batch_size;
  const auto samples = static_cast<int64_t>(lengths.which.size());
  const std::vector<int64_t> order =
      config.dataset.shuffle ? order_by_length(lengths, batch, static_cast<uint64_t>(config.seed), 0)
                             : row_numbers(0, samples);
  run.lengths = lengths.distinct;
  run.computed = static_cast<double>(computed_positions(lengths, order, batch)) /
                 static_cast<double>(samples * lengths.positions);
}

/// Checks the data and plans the memory of the run. Stores the facts about the data in the plan's
/// configuration. `cache` is the configured cache. Its options are checked, but no cache file is written.
CheckedRun check_run(RunPlan& plan, const Configured<Cache>& cache, const CheckOptions& options) {
  const RunConfig& config = plan.config;
  CheckedRun run;
  if (options.schedule && !options.measure) run.schedule = view_schedule(plan, nullptr);
  run.splits = check_splits(plan.config, cache, print_warning);
  std::map<std::string, DataIdentity> identities;
  for (const CheckedSplit& split : run.splits)
    if (split.data) identities[split.name] = split.data->identity();
  check_data_agree(plan.world, identities);
  const int64_t samples = run.splits[0].samples, batch = config.train.batch_size;
  run.steps_per_epoch = (samples + batch - 1) / batch;
  run.last_batch = samples - (run.steps_per_epoch - 1) * batch;
  if (const std::string warning = warning_of_zero_rate(config, run.steps_per_epoch); !warning.empty())
    print_warning(warning);
  Engine engine(plan);
  size_t on_devices = 0, on_host = 0;
  int64_t most = 0;
  const bool kept = cache.name == "device" || cache.name == "memory";
  ReadAheadMemory ahead;
  std::set<int64_t> lengths;
  for (CheckedSplit& split : run.splits) {
    if (!split.data) continue;
    if (const auto its = lengths_of(config, *split.data)) {
      lengths.merge(its->cut());
      if (split.name == "train") take_lengths(config, *its, run);
    }
    ahead += read_ahead_memory(*split.data, {.batch_size = batch, .prefetch = config.dataset.prefetch},
                               kept || split.data->in_memory());
    on_devices += split.data->stored_bytes();
    if (!split.data->lies_in_memory()) on_host += split.data->stored_bytes();
    most = std::max(most, split.samples);
  }
  engine.memory().set_data({.on_gpu = cache.name == "device" ? on_devices : 0,
                            .on_host = kept ? on_host : 0,
                            .most_samples = most,
                            .read_ahead = ahead,
                            .lengths = std::move(lengths)});
  run.read_ahead = ahead.bytes(std::min(batch, most));
  engine.memory().check(Plan::Purpose::training, batch);
  if (const std::string advice = engine.memory().advice(Plan::Purpose::training, batch); !advice.empty())
    print_warning(advice);
  for (const std::string& warning : engine.memory().training_plan(batch).warnings()) print_warning(warning);
  for (CheckedSplit& split : run.splits) split.data.reset();
  run.replicas = engine.memory().plan(Plan::Purpose::training, batch);
  if (saves_on_the_way(config, config.train.epochs, run.steps_per_epoch))
    run.snapshot = engine.state().snapshot_bytes();
  run.tables = table_bytes(config);
  run.reduction_place = engine.reduction_place();
  for (int rank = 0; rank < plan.ranks.local(); ++rank)
    run.last_shares.push_back(part_of(run.last_batch, plan.ranks.first() + rank, plan.ranks.total()).size());
  if (options.schedule && options.measure) run.schedule = view_schedule(plan, &engine);
  if (options.plan) {
    const Plan& training = engine.memory().training_plan(batch);
    run.instructions = plan_text(training, engine.update_program(), plan.placement.replicas[0]);
    run.instructions_json = plan_json(training, engine.update_program(), plan.placement.replicas[0]);
  }
  return run;
}

MemoryView memory_view(const RunPlan& plan, const CheckedRun& run) {
  return {plan.config.graph, plan.placement, run.replicas, run.last_shares, plan.ranks.first()};
}

/// The memory plans of all replicas, from all processes.
struct MemoryOfProcesses {
  std::string text;
  Json replicas = Json::array();
};

/// Collects the memory tables of all processes. All processes must call it.
MemoryOfProcesses gather_memory(const RunPlan& plan, const CheckedRun& run) {
  World& world = plan.world;
  const MemoryView view = memory_view(plan, run);
  if (world.size() == 1) return {memory_text(view), replicas_json(view)};
  const std::string name = process_name(host_name(), world.rank(), world.size());
  Json mine = replicas_json(view);
  MemoryOfProcesses all;
  for (const std::string& text : world.all_gather_texts(fmt::format("{}\n{}", name, memory_text(view))))
    all.text += (all.text.empty() ? "" : "\n") + text;
  const Json facts = Json::object()
                         .set("process", world.rank())
                         .set("machine", host_name())
                         .set("replicas", std::move(mine));
  for (const std::string& text : world.all_gather_texts(facts.dump())) {
    const Json its = Json::parse(text);
    for (Json replica : its.at("replicas").items()) {
      replica.set("process", its.at("process")).set("machine", its.at("machine"));
      all.replicas.push(std::move(replica));
    }
  }
  return all;
}

/// Returns e.g. "sharded, 4 replicas, each with a part of the optimizer's slots (2 processes)".
std::string strategy_text(const RunPlan& plan) {
  std::string text =
      fmt::format("{}, {}", plan.config.strategy.name, placement_text(plan.placement_of_all()));
  if (plan.world.size() > 1)
    text += fmt::format(" ({}{} processes)", plan.has_divided_replicas() ? "divided among " : "",
                        plan.world.size());
  return text;
}

Json to_json(const RunPlan& plan, const CheckedRun& run, MemoryOfProcesses memory) {
  const RunConfig& config = plan.config;
  const auto bytes = [](size_t count) { return static_cast<int64_t>(count); };
  Json samples = Json::object();
  for (const CheckedSplit& split : run.splits) samples.set(split.name, split.samples);
  Json layers = Json::array();
  for (const LayerRow& row : layer_rows(config.graph)) {
    Json devices = Json::array();
    for (const std::string& device : devices_of(plan.placement, row)) devices.push(device);
    layers.push(Json::object().set("name", row.name).set("devices", std::move(devices)));
  }
  const int64_t trainable = config.graph.count_parameters(true);
  Json time;  // null
  if (run.step_time)
    time = Json::object()
               .set("step_seconds", run.step_time->seconds)
               .set("measured_steps", run.step_time->steps)
               .set("seconds", run.step_time->seconds * static_cast<double>(run.steps(config)));
  Json lengths = Json::array();
  for (const int64_t length : run.lengths) lengths.push(length);
  return Json::object()
      .set("name", config.name)
      .set("parameters", trainable + config.graph.count_parameters(false))
      .set("trainable_parameters", trainable)
      .set("samples", std::move(samples))
      .set("batch_size", config.train.batch_size)
      .set("last_batch", run.last_batch)
      .set("steps_per_epoch", run.steps_per_epoch)
      .set("lengths", std::move(lengths))
      .set("computed_positions", run.computed)
      .set("epochs", config.train.epochs)
      .set("steps", run.steps(config))
      .set("time", std::move(time))
      .set("strategy", config.strategy.name)
      .set("reduction_place", run.reduction_place)
      .set("snapshot", bytes(run.snapshot))
      .set("read_ahead", bytes(run.read_ahead))
      .set("tables", bytes(run.tables.memory))
      .set("tables_on_disk", bytes(run.tables.disk))
      .set("generate_cache", kept_bytes(config))
      .set("replicas", std::move(memory.replicas))
      .set("layers", std::move(layers));
}

std::string to_text(const RunPlan& plan, const CheckedRun& run, const std::string& memory) {
  const RunConfig& config = plan.config;
  std::string data;
  for (const CheckedSplit& split : run.splits)
    data += fmt::format("{}{} {}", data.empty() ? "" : ", ", split.name, format_count(split.samples));
  const int64_t trainable = config.graph.count_parameters(true);
  std::string text = fmt::format("model     {}, {} trained\ndata      {} samples\n",
                                 format_plural(trainable + config.graph.count_parameters(false), "parameter"),
                                 format_count(trainable), data);
  text += fmt::format("steps     {} per epoch, {} in {}; batches of {}, the last of {}\n",
                      format_count(run.steps_per_epoch), format_count(run.steps(config)),
                      format_plural(config.train.epochs, "epoch"), format_count(config.train.batch_size),
                      format_count(run.last_batch));
  if (!run.lengths.empty())
    text += fmt::format("lengths   {}; truncated batches have {:.0f}% of the positions of the samples\n",
                        fmt::join(run.lengths, ", "), 100 * run.computed);
  if (run.step_time)
    text +=
        fmt::format("time      {:.4g} ms per step (mean of {}), {} in total, without validation and saving\n",
                    run.step_time->seconds * 1e3, format_count(run.step_time->steps),
                    format_duration(run.step_time->seconds * static_cast<double>(run.steps(config))));
  text += fmt::format("strategy  {}{}\n\n", strategy_text(plan),
                      plan.ranks.total() > 1 ? "; gradients are summed " + run.reduction_place : "");
  text += memory;
  if (!plan.placement.slots.empty()) text += "\n" + layer_table(config.graph, plan.placement);
  if (run.snapshot > 0)
    text += fmt::format(
        "\nSaving needs another {} of host memory for a copy that is written in the background.\n",
        format_bytes(run.snapshot));
  if (run.read_ahead > 0)
    text +=
        fmt::format("\nPrefetching batches needs another {} of host memory.\n", format_bytes(run.read_ahead));
  if (run.tables.memory > 0)
    text += fmt::format(
        "\nMetrics that are tables, such as a confusion matrix, need up to another {} of host memory, and "
        "about {} in every checkpoint.\n",
        format_bytes(run.tables.memory), format_bytes(run.tables.disk));
  if (const int64_t kept = kept_bytes(config); kept > 0)
    text += fmt::format("\n`dtrain generate` caches {} of keys and values for each text.\n",
                        format_bytes(static_cast<uint64_t>(kept)));
  if (run.schedule) text += "\n" + schedule_text(*run.schedule, static_cast<int>(terminal_width()));
  return text;
}

/// Parses the value of --memory or --bandwidth. `unit`: name of the unit in the error message, in the plural,
/// such as "bytes".
std::optional<int64_t> parse_amount(const char* option, const std::string& text, const char* unit) {
  if (text.empty()) return std::nullopt;
  const std::optional<uint64_t> bytes = parse_bytes(text);
  if (!bytes || *bytes == 0)
    throw UserError(fmt::format("{}: expected a positive number of {}, such as 24GB or 512MiB, found '{}'",
                                option, unit, text));
  return static_cast<int64_t>(*bytes);
}

/// Implements --fit: estimates which strategies fit into the memory of the requested machine, and shows them.
/// Accepts a configuration even if its strategy or its data cannot be used on this machine.
void try_strategies(const CheckOptions& options) {
  const MachineRequest request{.bytes = parse_amount("--memory", options.memory, "bytes"),
                               .devices = options.devices,
                               .link = parse_amount("--bandwidth", options.bandwidth, "bytes per second")};
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

/// Checks that the files of other runs and models that the run loads exist and match the model. If they do
/// not, also checks the data, and throws UserError with all errors.
void check_loaded_files(RunConfig& config) {
  ErrorCollector errors;
  if (config.graph.pretrained) errors.attempt({}, [&] { load_pretrained(config.graph); });
  errors.attempt({}, [&] { load_vocabularies(config, print_warning); });
  if (errors.empty()) return;
  config.dataset.cache = registry<Cache>().make("none");
  errors.attempt({}, [&] { check_splits(config, config.dataset.cache, [](const std::string&) {}); });
  errors.throw_if_errors();
}

/// Process 0 reads the configuration, and sends it to the other processes.
RunConfig load_shared(const CheckOptions& options, World& world) {
  if (!world.writes_files()) return receive_run(world).config;
  reject_wrong_configuration(options.config);
  RunConfig config = load_run_config(options.config, options.sets, ConfigUse::training);
  print_warnings(config.warnings);
  check_loaded_files(config);
  send_run(world, config, "", nullptr);
  return config;
}

void check(const CheckOptions& options, World& world) {
  if (options.fit) return try_strategies(options);
  RunConfig config = load_shared(options, world);
  const auto cache = config.dataset.cache;
  config.dataset.cache = registry<Cache>().make("none");  // do not create a cache file
  RunPlan plan = plan_training(std::move(config), world);
  CheckedRun run = check_run(plan, cache, options);
  if (options.measure) {
    if (cache.name != "file") plan.config.dataset.cache = cache;
    run.step_time = measure_steps(plan, 2.0);
  }
  MemoryOfProcesses memory = gather_memory(plan, run);
  const std::string text = to_text(plan, run, memory.text);
  if (options.output.json) {
    Json json = to_json(plan, run, std::move(memory));
    if (options.plan) json.set("plan", run.instructions_json);
    if (run.schedule) json.set("schedule", schedule_json(*run.schedule));
    print_json(json);
  }
  if (!options.output.text()) return;
  print_text(text);
  if (options.plan) print_text("\n" + run.instructions);
}

}  // namespace

void add_check(CommandLine& line, World& world) {
  Command command = line.add_command("check", "Validate a configuration without training, and show the plan");
  const auto options = std::make_shared<CheckOptions>();
  command.add_option("CONFIG", options->config, "The configuration (a YAML file)").required();
  add_set_option(command, options->sets);
  command.add_flag(
      "--measure", options->measure,
      "Also train for two seconds on the run's devices and data, to estimate how long the run will take");
  command.add_flag("--plan", options->plan,
                   "Also show the training step of the first replica: its instructions, and the memory "
                   "location and lifetime of every buffer");
  command.add_flag(
      "--schedule", options->schedule,
      "Also show the schedule of a pipeline: a table of the stages over time, and the bubble (the fraction "
      "of time in which stages wait). The times are estimates; with --measure, they are measured");
  const Option fit = command
                         .add_flag("--fit", options->fit,
                                   "Instead of the plan, show strategies and batch sizes that fit the memory "
                                   "of the devices, sorted by estimated samples per second. Each is printed "
                                   "as YAML that can be copied into the configuration")
                         .excludes(command.option("--measure"))
                         .excludes(command.option("--plan"))
                         .excludes(command.option("--schedule"));
  command
      .add_option(
          "--memory", options->memory,
          "With --fit: assume GPUs with this amount of memory each, e.g. 24GB. A run can use up to a tenth "
          "less, because CUDA and its libraries also need memory")
      .type_name("BYTES")
      .needs(fit);
  command
      .add_option(
          "--devices", options->devices,
          "With --fit: assume this number of devices (default: the number of this machine's GPUs or, if it "
          "has no GPUs, of the devices in the configuration)")
      .at_least(1)
      .type_name("N")
      .needs(fit);
  command
      .add_option(
          "--bandwidth", options->bandwidth,
          "With --fit: assume this transfer speed between two devices, in bytes per second, e.g. 300GB")
      .type_name("BYTES")
      .needs(fit);
  add_interface_option(command);
  add_output_options(command, options->output);
  command.callback([options, &world] { in_world(world, [&] { check(*options, world); }); });
}

}  // namespace dtrain
