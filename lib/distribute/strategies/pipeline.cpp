#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/text.h"
#include "collective/range.h"
#include "distribute/layer_times.h"
#include "distribute/strategies/common.h"
#include "distribute/strategies/stages.h"
#include "distribute/strategies/table.h"

namespace dtrain {

/// The option `stages`: either `auto`, or a list with the first layer of each stage except the first stage.
struct StageList {
  bool automatic = true;
  std::vector<ConfigNode> names;  // each is a scalar
};

template <>
struct Codec<StageList> {
  static bool parse(const ConfigNode& node, const std::string& where, StageList& out,
                    Diagnostics& diagnostics) {
    out = {};
    if (node.is_scalar() && node.text() == "auto") return true;
    out.automatic = false;
    out.names = node.is_sequence() ? node.items() : std::vector<ConfigNode>{node};
    bool good = true;
    for (const ConfigNode& name : out.names)
      if (!name.is_scalar())
        good = report_unexpected(
            name, where,
            "'auto', or a list of layer names (the first layer of each stage except the first stage)",
            diagnostics);
    return good;
  }
  static ConfigNode write(const StageList& value) {
    if (value.automatic) return ConfigNode::scalar("auto");
    std::vector<ConfigNode> names;
    for (const ConfigNode& name : value.names) names.push_back(string_node(name.text()));
    return ConfigNode::sequence(std::move(names));
  }
  static Json schema() {
    return Json::object().set("anyOf", Json::array()
                                           .push(Json::object().set("const", "auto"))
                                           .push(json_type("string"))
                                           .push(json_type("array").set("items", json_type("string"))));
  }
};

template <>
inline const EnumNames<PipelineSchedule> names_of<PipelineSchedule> = {
    {PipelineSchedule::one_f_one_b, "1f1b"}, {PipelineSchedule::gpipe, "gpipe"}};

/// The `across:` option.
enum class PipelineAcross { devices, processes };
template <>
inline const EnumNames<PipelineAcross> names_of<PipelineAcross> = {{PipelineAcross::devices, "devices"},
                                                                   {PipelineAcross::processes, "processes"}};

namespace {

/// Upper limit for the number of microbatches. A limit is necessary because a stage may have to keep the
/// activations of all microbatches.
constexpr int64_t kMostMicrobatches = 65536;
/// Number of microbatches per stage if the user does not set `microbatches`. With four, stages of equal time
/// are idle for less than a fifth of the time (Huang et al., "GPipe", 2019).
constexpr int64_t kMicrobatchesPerStage = 4;

struct PipelineOptions {
  DeviceList devices;
  StageList stages;
  std::optional<int64_t> microbatches;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int64_t replicas = 1;
  PipelineAcross across = PipelineAcross::devices;
};

const Schema<PipelineOptions>& pipeline_schema() {
  static const auto schema =
      Schema<PipelineOptions>(
          "Pipeline parallelism. The model is divided into stages, one per device. The stages work on "
          "different microbatches of a batch at the same time.")
          .example("{devices: [\"cpu:0\", \"cpu:1\"], stages: auto, microbatches: 8}")
          .optional(
              "devices", &PipelineOptions::devices,
              "the devices, one for each stage. The devices of the first replica come first. `auto` means "
              "all GPUs, or the CPU if there are no GPUs. With `across: processes`, each name is a device of "
              "the process that has the stage, and `auto` means the devices of all processes",
              at_most(kMostReplicas))
          .optional(
              "stages", &PipelineOptions::stages,
              "the name of the first layer of each stage except the first stage, in the model's order. For "
              "example, `[conv_3, dense_1]` makes three stages. `auto` divides the model so that the slowest "
              "stage is as fast as possible and every stage fits into the memory of its device")
          .optional("microbatches", &PipelineOptions::microbatches,
                    "number of microbatches into which each replica's share of a batch is divided. The "
                    "gradient does not depend on it, except in models with batch normalization. By default, "
                    "it is four times the number of stages",
                    between<std::optional<int64_t>>(1, kMostMicrobatches))
          .optional("schedule", &PipelineOptions::schedule,
                    "the order in which a stage processes microbatches. `1f1b` begins the backward pass of a "
                    "microbatch as soon as possible. A stage then keeps the activations of at most as many "
                    "microbatches as there are stages. `gpipe` computes all forward passes before the first "
                    "backward pass")
          .optional("replicas", &PipelineOptions::replicas,
                    "number of pipelines. Each pipeline gets an equal part of the devices and computes a "
                    "share of each batch",
                    between<int64_t>(1, kMostReplicas))
          .optional(
              "across", &PipelineOptions::across,
              "how a run with several processes is divided. With `devices`, each process has its own "
              "pipelines on its own devices and computes a share of each batch. With `processes`, the stages "
              "are divided among the processes in order, so each process has a part of the model");
  return schema;
}

class Pipeline final : public Strategy {
 public:
  Pipeline(const PipelineOptions& options, ConfigNode written)
      : options_(options), written_(std::move(written)) {}

  using Strategy::place;
  Placement place(const Workload& work, Diagnostics& diagnostics) const override {
    const size_t before = diagnostics.count();
    reject_layers_devices(work.graph, "pipeline", diagnostics);
    const std::vector<DeviceId> devices =
        divides() ? divided_devices(work, diagnostics) : present_devices(options_.devices, diagnostics);
    const size_t stages = count_stages(devices.size(), diagnostics);
    Placement placement;
    if (!options_.stages.automatic && stages > 0) check_number_of_names(stages, diagnostics);
    if (!options_.stages.automatic && !work.graph.nodes.empty())
      placement.slots = named_stages(work.graph, options_.stages.names, diagnostics);
    if (stages == 0 || devices.empty()) return {};

    for (size_t first = 0; first < devices.size(); first += stages)
      placement.replicas.emplace_back(devices.begin() + static_cast<std::ptrdiff_t>(first),
                                      devices.begin() + static_cast<std::ptrdiff_t>(first + stages));
    placement.microbatches =
        options_.microbatches.value_or(kMicrobatchesPerStage * static_cast<int64_t>(stages));
    placement.schedule = options_.schedule;
    placement.divides_replicas = divides();
    if (options_.stages.automatic && !work.graph.nodes.empty())
      placement.slots = chosen_stages(work, placement, diagnostics);
    if (diagnostics.count() != before) return {};
    if (stages == 1) placement.slots.clear();
    return placement;
  }

  ConfigNode settled(const Graph& graph, const Placement& placement) const override {
    if (open_options().empty()) return {};
    PipelineOptions chosen = options_;
    if (chooses_devices())
      for (const DeviceId device : placement.devices()) chosen.devices.devices.push_back({device, {}});
    if (options_.stages.automatic && !placement.slots.empty())
      for (const std::string& name : stage_names(graph, placement.slots))
        chosen.stages.names.push_back(string_node(name));
    chosen.stages.automatic = false;
    return resolved_kind("pipeline", written_.mark(), pipeline_schema().write(chosen));
  }
  std::vector<std::string_view> open_options() const override {
    std::vector<std::string_view> open;
    if (chooses_devices()) open.emplace_back("devices");
    if (options_.stages.automatic) open.emplace_back("stages");
    return open;
  }

 private:
  bool divides() const { return options_.across == PipelineAcross::processes; }
  /// Returns whether the number of stages depends on the number of processes. In this case, settled() stores
  /// the devices in the configuration, so that a resumed run has the same stages.
  bool chooses_devices() const { return divides() && options_.devices.devices.empty(); }

  /// Returns the devices of the stages of all processes, replica by replica. Only the devices of this process
  /// must exist on this machine. For `auto`, assumes that all processes have the same devices as this
  /// process. Returns an empty list if a device does not exist.
  std::vector<DeviceId> divided_devices(const Workload& work, Diagnostics& diagnostics) const {
    const std::vector<WrittenDevice>& named = options_.devices.devices;
    const auto replicas = static_cast<size_t>(options_.replicas);
    std::vector<DeviceId> all;
    if (named.empty()) {
      const std::vector<DeviceId> here = present_devices(options_.devices, diagnostics);
      if (here.size() % replicas != 0) return here;  // count_stages() reports the error
      const size_t each = here.size() / replicas;
      for (size_t replica = 0; replica < replicas; ++replica)
        for (int process = 0; process < work.processes; ++process)
          for (size_t i = 0; i < each; ++i) all.push_back(here[replica * each + i]);
      return all;
    }
    const auto stages = static_cast<int64_t>(std::max<size_t>(named.size() / replicas, 1));
    const Range own = part_of(stages, work.process, work.processes);
    bool good = true;
    for (const WrittenDevice& device : named) {
      const int64_t stage = std::ssize(all) % stages;
      if (stage >= own.begin && stage < own.end) good = check_present(device, diagnostics) && good;
      all.push_back(device.id);
    }
    return good ? all : std::vector<DeviceId>();
  }

  /// Returns the number of stages per replica. If the devices cannot be divided evenly among the replicas,
  /// reports an error and returns 0. `present`: number of devices that the option `devices: auto` resolves
  /// to.
  size_t count_stages(size_t present, Diagnostics& diagnostics) const {
    const auto replicas = static_cast<size_t>(options_.replicas);
    const size_t devices = options_.devices.devices.empty() ? present : options_.devices.devices.size();
    if (devices % replicas == 0) return devices / replicas;
    diagnostics.error(place_in(written_, {"replicas"}),
                      fmt::format("pipeline: {} device{} cannot be divided evenly among {} replicas; change "
                                  "'devices' or 'replicas'",
                                  devices, devices == 1 ? "" : "s", replicas));
    return 0;
  }

  void check_number_of_names(size_t stages, Diagnostics& diagnostics) const {
    const size_t names = options_.stages.names.size();
    if (names + 1 == stages) return;
    if (stages == 1) {
      diagnostics.error(
          place_in(written_, {"stages"}),
          fmt::format(
              "stages: each replica has one device and therefore only one stage, so 'stages' must not "
              "name any layer, but it names {}; add the devices of the other stages to 'devices'",
              names));
      return;
    }
    diagnostics.error(
        place_in(written_, {"stages"}),
        fmt::format(
            "stages: {} devices per replica make {} stages, so 'stages' must name {} (the first layer of "
            "each stage except the first stage), but it names {}; `stages: auto` chooses the layers",
            stages, stages, stages == 2 ? "one layer" : fmt::format("{} layers", stages - 1), names));
  }

  /// Returns the bandwidth, in bytes per second, of the slowest link between typical devices of these types.
  /// If `divided` is true, the devices belong to several processes, so the values are copied through host
  /// memory.
  static double slowest_link(const std::vector<DeviceId>& devices, bool divided) {
    double link = typical_speed(divided ? DeviceId::Kind::cpu : devices[0].kind).link;
    for (const DeviceId& device : devices) link = std::min(link, typical_speed(device.kind).link);
    return link;
  }

  /// Returns the number of stages, over all replicas, whose devices use the same memory as the device of
  /// `stage`. Only stages in the same process count.
  static int count_sharing(const Placement& placement, int64_t stage, int processes) {
    const std::vector<DeviceId>& first = placement.replicas[0];
    const DeviceId device = first[static_cast<size_t>(stage)];
    Range together{0, std::ssize(first)};
    for (int process = 0; process < processes; ++process)
      if (const Range its = part_of(std::ssize(first), process, processes);
          stage >= its.begin && stage < its.end)
        together = its;
    int sharing = 0;
    for (const std::vector<DeviceId>& replica : placement.replicas)
      for (int64_t i = together.begin; i < together.end; ++i) {
        const DeviceId other = replica[static_cast<size_t>(i)];
        if (other == device || (other.kind == device.kind && device.kind == DeviceId::Kind::cpu)) ++sharing;
      }
    return sharing;
  }

  /// Chooses stages for the devices of the first replica. Assumes that the other replicas have equal devices.
  /// If no cut fits into the memory of the devices, returns the cut with the smallest shortage. The memory
  /// plan later reports the shortage in detail.
  std::vector<int> chosen_stages(const Workload& work, const Placement& placement,
                                 Diagnostics& diagnostics) const {
    const auto parts = [](int64_t samples, int64_t count) { return (samples + count - 1) / count; };
    const int64_t share = parts(work.batch_size, std::ssize(placement.replicas));
    const int processes = placement.divides_replicas ? work.processes : 1;
    const PipelineWork of_microbatch{
        .samples = parts(share, placement.microbatches),
        .microbatches = static_cast<int>(placement.microbatches),
        .schedule = placement.schedule,
        .slot_bytes = work.slot_bytes,
        .element_bytes = work.element_bytes,
        .seconds_per_byte = 1 / slowest_link(placement.replicas[0], processes > 1)};
    if (placement.replicas[0].size() == 1) return std::vector<int>(work.graph.nodes.size(), 0);
    std::vector<PipelineDevice> devices;
    for (size_t stage = 0; stage < placement.replicas[0].size(); ++stage) {
      const DeviceId device = placement.replicas[0][stage];
      const int sharing = count_sharing(placement, static_cast<int64_t>(stage), processes);
      devices.push_back(work.measure ? work.measure(device, of_microbatch.samples, sharing)
                                     : PipelineDevice{.device = device, .bytes = {}});
    }
    StageCut cut = auto_stages(work.graph, devices, of_microbatch);
    if (cut.outcome == StageCut::Outcome::too_few_layers)
      diagnostics.error(
          place_in(written_, {"devices"}),
          fmt::format("pipeline: the model cannot be divided into {1} stages, because only {0} can begin a "
                      "stage; use fewer devices per replica",
                      format_plural(cut.possible_starts, "layer"), devices.size()));
    else
      settle_stages(work.graph, cut.stages);
    return std::move(cut.stages);
  }

  PipelineOptions options_;
  ConfigNode written_;  // the strategy's options as written by the user
};

}  // namespace

void add_pipeline(Registry<Strategy>& table) {
  table.add_with("pipeline", pipeline_schema(), [](const PipelineOptions& options, const ConfigNode& node) {
    return std::make_shared<const Pipeline>(options, node);
  });
}

}  // namespace dtrain
