// How a run is laid over devices, as the configuration says it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.h"
#include "device/device.h"
#include "device/written_device.h"
#include "distribute/auto_stages.h"
#include "distribute/schedule.h"
#include "nn/graph.h"

namespace dtrain {

/// `devices:` - `auto` (all GPUs; the CPU where there is none) or a list of names.
struct DeviceList {
  std::vector<WrittenDevice> devices;  // empty: auto
};

template <>
struct Codec<DeviceList> {
  static bool parse(const ConfigNode& node, const std::string& where, DeviceList& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const DeviceList& value);
  static Json schema();
};

/// What is sharded over the replicas; every level has those before it, too (Rajbhandari et
/// al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020: stages 1 to 3).
enum class ShardLevel { none, optimizer, gradients, parameters };
template <>
inline const EnumNames<ShardLevel> names_of<ShardLevel> = {{ShardLevel::optimizer, "optimizer"},
                                                           {ShardLevel::gradients, "gradients"},
                                                           {ShardLevel::parameters, "parameters"}};

/// Which devices compute what.
struct Placement {
  /// The devices of each replica, by rank; of one replica, by slot.
  std::vector<std::vector<DeviceId>> replicas;
  /// The slot of each node of the graph; empty where all are on slot 0.
  std::vector<int> slots;
  /// How many microbatches a replica's share is cut into, which are in the pipeline together, and their
  /// order.
  int64_t microbatches = 1;
  PipelineSchedule schedule = PipelineSchedule::sequential;
  ShardLevel sharded = ShardLevel::none;

  std::vector<DeviceId> devices() const;  // all replicas'
  /// Those that compute a node, one a replica, each once.
  std::vector<DeviceId> devices_of(int node) const;
};

/// What a strategy lays over devices: a model, and what training makes of it.
struct Workload {
  const Graph& graph;        // without nodes where the model is not known
  int64_t batch_size = 1;    // samples on their way at a time, over all replicas
  int64_t slot_bytes = 0;    // of the optimizer's state, for each trained number
  size_t element_bytes = 4;  // of the compute type
  /// What a device can do for batches of so many samples, where so many threads share its memory (the CPU's
  /// devices have one memory, and its cores); null: what is typical of such a device.
  std::function<PipelineDevice(DeviceId device, int64_t samples, int sharing)> measure = nullptr;
};

/// Immutable.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Reports devices that do not exist here, saying what there is, and what does not go with the model; there
  /// are no replicas then. Of a model that is not known, nothing is looked at that needs it, and the
  /// placement is good for nothing but its devices.
  virtual Placement place(const Workload& work, Diagnostics& diagnostics) const = 0;
  /// The same; throws UserError.
  Placement place(const Workload& work) const;
  /// The strategy as `config.yaml` has it, {kind: options}, with the choices that it leaves to place() made,
  /// and the places that layers name for themselves written among its own; null where there is nothing of
  /// the sort. For what it can place.
  virtual ConfigNode settled(const Workload& /*work*/) const { return {}; }
  /// The options that it leaves to place() to choose.
  virtual std::vector<std::string_view> open_options() const { return {}; }
  /// How much of the gradient GPUs sum at a time while backward goes on.
  virtual int64_t bucket_bytes() const { return int64_t{25} << 20; }
};

template <>
const Registry<Strategy>& registry<Strategy>();

}  // namespace dtrain
