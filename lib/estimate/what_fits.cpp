#include "estimate/what_fits.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "distribute/branches.h"
#include "distribute/largest_batch.h"
#include "distribute/strategies/stages.h"
#include "engine/engine.h"
#include "engine/update/gradient_reducer.h"
#include "estimate/pipeline_estimate.h"
#include "estimate/step_estimate.h"
#include "run/run_plan.h"

namespace dtrain {

namespace {

/// Returns the configuration of a strategy for devices of the given type. It is called twice: with the type
/// of the machine's devices, to show the strategy to the user, and with CPU, because the run is planned on
/// CPU devices.
using MakeStrategy = std::function<ConfigNode(DeviceId::Kind)>;

ConfigNode device_names(DeviceId::Kind kind, int count) {
  std::vector<ConfigNode> names;
  for (int i = 0; i < count; ++i) names.push_back(ConfigNode::scalar(DeviceId{kind, i}.str()));
  return ConfigNode::sequence(std::move(names));
}

ConfigNode strategy_node(std::string_view kind, std::vector<ConfigNode::Entry> options) {
  return ConfigNode::mapping({ConfigNode::entry(kind, ConfigNode::mapping(std::move(options)))});
}

ConfigNode number_node(int64_t number) {
  return ConfigNode::scalar(std::to_string(number));
}

/// Returns the size of a sample, in bytes, while it is uploaded to a device. Values are uploaded as float32
/// or in their stored type.
int64_t sample_bytes(const RunConfig& config) {
  int64_t bytes = 0;
  std::vector<TensorSpec> columns = config.graph.input_specs();
  for (const TensorSpec& target : config.targets()) columns.push_back(target);
  for (const TensorSpec& column : columns)
    bytes += column.shape.elements() * static_cast<int64_t>(bytes_of(column.dtype));
  return bytes;
}

/// Converts a memory plan for the CPU to the number of bytes that a GPU needs. For 16-bit types, activations
/// need half the bytes, and there is an additional copy of the parameters. Three kinds of memory exist only
/// on GPUs and are added: two staging areas for samples, the workspace of the libraries, and `passing` floats
/// of staging for sharded state. At the level `parameters`, the activations in the plan include the gathered
/// parameters, which remain float32.
int64_t gpu_bytes(const MemoryPlan& plan, const RunConfig& config, ShardLevel level, int64_t passing) {
  constexpr int64_t kWorkspace = int64_t{64} << 20;
  const auto element = static_cast<int64_t>(bytes_of(gpu_math(config.train).type));
  constexpr int64_t kFloat = sizeof(float);
  int64_t bytes = static_cast<int64_t>(plan.total()) + 2 * plan.microbatch * sample_bytes(config) +
                  kWorkspace + passing * kFloat;
  if (element == kFloat) return bytes;
  bytes += static_cast<int64_t>(plan.parameters) * element / kFloat;
  const int64_t gathered = level == ShardLevel::parameters ? passing * kFloat : 0;
  const int64_t activations = std::max<int64_t>(0, static_cast<int64_t>(plan.activations) - gathered);
  return bytes - activations * (kFloat - element) / kFloat;
}

/// Marks the layers of each use of a block as one recomputed segment. Returns the names of the uses.
std::vector<std::string> recompute_blocks(Graph& graph) {
  std::vector<std::string> blocks;
  for (GraphNode& node : graph.nodes) {
    if (node.block.empty()) continue;
    if (blocks.empty() || blocks.back() != node.block) blocks.push_back(node.block);
    node.recompute = static_cast<int>(blocks.size()) - 1;
  }
  return blocks;
}

/// Tries all strategies on one machine.
class Trials {
 public:
  Trials(const RunConfig& config, const Machine& machine) : config_(config), machine_(machine) {
    // Removes all `device:` options, so that every strategy accepts the model.
    for (GraphNode& node : config_.graph.nodes) node.device.reset();
    const auto& nodes = config_.graph.nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [](const GraphNode& node) { return node.recompute >= 0; }))
      return;
    RunConfig recomputing = config_;
    blocks_ = recompute_blocks(recomputing.graph);
    if (!blocks_.empty()) recomputing_ = std::move(recomputing);
  }

  std::vector<Candidate> run() {
    const int devices = machine_.devices;
    try_one("single", [](DeviceId::Kind kind) {
      return strategy_node("single",
                           {ConfigNode::entry("device", ConfigNode::scalar(DeviceId{kind, 0}.str()))});
    });
    if (devices > 1) try_several(devices);
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.samples_per_second() > b.samples_per_second();
    });
    return std::move(candidates_);
  }

 private:
  void try_several(int devices) {
    try_one("mirrored", [=](DeviceId::Kind kind) {
      return strategy_node("mirrored", {ConfigNode::entry("devices", device_names(kind, devices))});
    });
    for (const auto& [level, name] : names_of<ShardLevel>)
      try_one(fmt::format("sharded, {}", name), [=, name = name](DeviceId::Kind kind) {
        return strategy_node("sharded", {ConfigNode::entry("devices", device_names(kind, devices)),
                                         ConfigNode::entry("level", ConfigNode::scalar(std::string(name)))});
      });
    for (const int microbatches : {2, 4, 8}) try_pipeline(devices, 1, microbatches * devices);
    if (devices % 2 == 0 && devices > 2) try_pipeline(devices / 2, 2, 2 * devices);
    try_placed(devices);
  }

  /// Tries a pipeline whose stages are chosen automatically for the machine's devices. The tried
  /// configuration states the chosen stages explicitly, as layer names in the option `stages`.
  void try_pipeline(int stages, int replicas, int microbatches) {
    const int64_t share = (config_.train.batch_size + replicas - 1) / replicas;
    // More microbatches than samples are of no use. Other calls of this function try fewer microbatches.
    if (microbatches > share && microbatches > 2 * stages) return;
    Placement placement;
    for (int i = 0; i < stages * replicas; ++i) {
      if (i % stages == 0) placement.replicas.emplace_back();
      placement.replicas.back().push_back({machine_.kind, i});
    }
    placement.microbatches = microbatches;
    placement.schedule = PipelineSchedule::one_f_one_b;
    // CPU devices share the host's memory, so each gets an equal part of it.
    std::vector<PipelineDevice> devices = pipeline_devices(placement);
    for (PipelineDevice& device : devices)
      device.bytes =
          machine_.kind == DeviceId::Kind::gpu ? machine_.bytes : machine_.bytes / (stages * replicas);
    StageCut cut =
        auto_stages(config_.graph, devices, pipeline_work(config_, placement, config_.train.batch_size));
    if (cut.outcome == StageCut::Outcome::too_few_layers) return;
    settle_stages(config_.graph, cut.stages);
    std::vector<ConfigNode> names;
    for (const std::string& name : stage_names(config_.graph, cut.stages))
      names.push_back(ConfigNode::scalar(name));
    const std::string name =
        fmt::format("pipeline, {}{} microbatches", replicas > 1 ? fmt::format("{} replicas, ", replicas) : "",
                    microbatches);
    try_one(name, [=](DeviceId::Kind kind) {
      std::vector<ConfigNode::Entry> options{
          ConfigNode::entry("devices", device_names(kind, stages * replicas)),
          ConfigNode::entry("stages", ConfigNode::sequence(names)),
          ConfigNode::entry("microbatches", number_node(microbatches))};
      if (replicas > 1) options.push_back(ConfigNode::entry("replicas", number_node(replicas)));
      return strategy_node("pipeline", std::move(options));
    });
  }

  /// Tries to place the branches of the model on several devices. Does nothing if the model has no
  /// independent branches, or if several devices are not faster than one.
  void try_placed(int devices) {
    Placement placement;
    placement.replicas.emplace_back();
    for (int i = 0; i < devices; ++i) placement.replicas.back().push_back({machine_.kind, i});
    PipelineWork work = pipeline_work(config_, placement, config_.train.batch_size);
    work.seconds_per_byte = 1 / machine_.link;
    const StageProblem problem = stage_problem(config_.graph, pipeline_devices(placement), work);
    const std::vector<int> slots = place_branches(problem), alone(slots.size(), 0);
    constexpr double kWorthIt = 0.9;
    if (branches_seconds(problem, slots) > kWorthIt * branches_seconds(problem, alone)) return;
    try_one("placed", [=, this](DeviceId::Kind kind) {
      return strategy_node("placed", {ConfigNode::entry("layers", said_places(slots, kind))});
    });
  }

  /// Returns the option `layers` of the strategy `placed`. It contains the device of each layer that is not
  /// on the device of its first input, and of each layer that reads a model input.
  ConfigNode said_places(std::span<const int> slots, DeviceId::Kind kind) const {
    const Graph& graph = config_.graph;
    std::vector<ConfigNode::Entry> places;
    for (size_t i = 0; i < slots.size(); ++i) {
      const GraphNode& node = graph.nodes[i];
      if (!node.layer || node.is_activation_of_previous) continue;
      const auto input = static_cast<size_t>(node.inputs[0].node);
      if (!graph.nodes[input].layer || slots[input] != slots[i])
        places.emplace_back(string_node(node.name), string_node(DeviceId{kind, slots[i]}.str()));
    }
    return ConfigNode::mapping(std::move(places));
  }

  void try_one(const std::string& name, const MakeStrategy& make) {
    candidates_.push_back(try_with(config_, name, make));
    const Candidate& plain = candidates_.back();
    const bool fits = plain.fits && plain.batch_size == config_.train.batch_size;
    if (fits || !plain.refusal.empty() || !recomputing_) return;
    candidates_.push_back(try_with(*recomputing_, name + ", recompute", make));
    candidates_.back().recomputed = blocks_;
  }

  /// Tries a strategy. The run is planned on CPU devices, which compute in float32, instead of on the
  /// machine's devices.
  Candidate try_with(const RunConfig& config, const std::string& name, const MakeStrategy& make) const {
    Candidate candidate{.name = name, .strategy = make(machine_.kind), .device = {}, .refusal = {}};
    RunConfig stand_in = config;
    stand_in.train.precision = Precision::float32;
    try {
      Diagnostics diagnostics;
      stand_in.strategy = registry<Strategy>().parse(make(DeviceId::Kind::cpu), diagnostics);
      diagnostics.throw_if_errors();
      // Plans a single process that has all devices, because the machine need not exist.
      RunPlan plan = plan_run(std::move(stand_in), single_process());
      {
        Engine engine(plan);
        find_batch(candidate, engine);
      }
      plan.config = config;  // restores the precision of the run; the plan for CPU devices had to be float32
      if (candidate.fits)
        candidate.step_seconds = estimate_step_seconds(plan, candidate.batch_size, machine_);
    } catch (const UserError& error) {
      candidate.refusal = error.what();
    }
    return candidate;
  }

  void find_batch(Candidate& candidate, Engine& engine) const {
    candidate.batch_size = config_.train.batch_size;
    if (machine_.kind == DeviceId::Kind::cpu)
      candidate.copy_bytes = static_cast<int64_t>(engine.memory().copy_bytes());
    const auto excess_of = [&](int64_t batch) {
      measure(candidate, engine, batch);
      return static_cast<double>(candidate.bytes + candidate.copy_bytes - machine_.bytes);
    };
    const double excess = excess_of(candidate.batch_size);
    candidate.fits = excess <= 0;
    if (candidate.fits) return;
    const int64_t most = largest_batch(excess_of, candidate.batch_size, excess);
    candidate.fits = most > 0;
    candidate.batch_size = std::max<int64_t>(most, 1);
    measure(candidate, engine, candidate.batch_size);
  }

  /// Sets the memory use of the candidate. On CPUs, it is the sum over all devices, because they share the
  /// host's memory. On GPUs, it is the memory use of the fullest GPU. Only the GPUs of the first replica are
  /// examined, because no replica needs more memory than the first.
  void measure(Candidate& candidate, Engine& engine, int64_t batch) const {
    candidate.bytes = 0;
    if (machine_.kind == DeviceId::Kind::cpu) {
      candidate.device = "the host";
      for (const MemoryPlan& plan : engine.memory().plan(Plan::Purpose::training, batch))
        candidate.bytes += static_cast<int64_t>(plan.total());
      return;
    }
    const ShardLevel level = engine.shard_level();
    for (const MemoryPlan& plan : engine.memory().plan(Plan::Purpose::training, batch, 1)) {
      const int64_t bytes = gpu_bytes(plan, config_, level, staging_floats(engine.layout(), level));
      if (bytes <= candidate.bytes) continue;
      candidate.bytes = bytes;
      candidate.device = DeviceId{DeviceId::Kind::gpu, plan.device.index}.str();
    }
  }

  RunConfig config_;
  const Machine& machine_;
  std::vector<std::string> blocks_;
  // The configuration in which the blocks in blocks_ are recomputed; nullopt if nothing can be recomputed.
  std::optional<RunConfig> recomputing_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<Candidate> what_fits(const RunConfig& config, const Machine& machine) {
  if (machine.kind == DeviceId::Kind::cpu && config.train.precision != Precision::float32)
    throw UserError(located(config.place({"train", "precision"}),
                            fmt::format("precision {} needs GPUs, but this machine has no GPU that can be "
                                        "used; use --memory to estimate for a machine with GPUs",
                                        Codec<Precision>::write(config.train.precision).text())));
  return Trials(config, machine).run();
}

}  // namespace dtrain
