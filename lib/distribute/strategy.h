// Strategies, which determine how a run is distributed over devices.
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

/// The option `devices`: a list of device names, or `auto` (all GPUs, or the CPU if there are no GPUs).
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

/// The arrays that are sharded among the replicas. Each level also shards the arrays of the previous levels.
/// The levels are the stages 1 to 3 of Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training
/// Trillion Parameter Models", 2020.
enum class ShardLevel { none, optimizer, gradients, parameters };
template <>
inline const EnumNames<ShardLevel> names_of<ShardLevel> = {{ShardLevel::optimizer, "optimizer"},
                                                           {ShardLevel::gradients, "gradients"},
                                                           {ShardLevel::parameters, "parameters"}};

/// The devices on which a run computes. A "slot" is the index of a device within a replica.
struct Placement {
  /// The devices, indexed by replica and slot.
  std::vector<std::vector<DeviceId>> replicas;
  /// The slot of each node of the graph. Empty if all nodes are on slot 0.
  std::vector<int> slots;
  /// Number of microbatches into which a replica's part of a batch is divided. The microbatches are in the
  /// pipeline at the same time; `schedule` determines their order.
  int64_t microbatches = 1;
  PipelineSchedule schedule = PipelineSchedule::sequential;
  ShardLevel sharded = ShardLevel::none;
  /// Whether the slots of each replica are divided among the processes of a run. In this case, a process has
  /// the same slots of every replica. Otherwise each process has whole replicas.
  bool divides_replicas = false;

  /// Returns the slot of a node of the graph.
  int slot_of(int node) const { return slots.empty() ? 0 : slots[static_cast<size_t>(node)]; }
  std::vector<DeviceId> devices() const;  // devices of all replicas
  /// Returns the devices that compute a node: one device for each replica, without duplicates.
  std::vector<DeviceId> devices_of(int node) const;
};

/// The work for which a strategy chooses devices: a model and its training.
struct Workload {
  const Graph& graph;        // empty if the model failed to parse
  int64_t batch_size = 1;    // samples processed at a time, over all replicas
  int64_t slot_bytes = 0;    // bytes of optimizer state per element of a trained parameter
  size_t element_bytes = 4;  // bytes per element of the compute type
  /// Measures the layer times and the memory of a device, for microbatches of `samples` samples. `sharing`:
  /// number of threads that use the device's memory, one for each stage (all CPU devices share memory and
  /// cores). If the function is null, typical values are used instead.
  std::function<PipelineDevice(DeviceId device, int64_t samples, int sharing)> measure = nullptr;
  /// Rank of the process for which devices are chosen, and the number of processes.
  int process = 0, processes = 1;
  /// Whether the run trains the model. A run that only uses a trained model may have fewer processes than the
  /// options of the strategy name.
  bool trains = false;
};

/// Chooses the devices of a run. Strategies are immutable.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Returns the placement. If a device is missing (the message lists the existing ones) or the options do
  /// not match the model, reports an error and returns a placement without replicas. If the model failed to
  /// parse, only devices() of the result may be used.
  virtual Placement place(const Workload& work, Diagnostics& diagnostics) const = 0;
  /// Like the other place(), but throws UserError instead of reporting errors.
  Placement place(const Workload& work) const;
  /// Returns the strategy to store in `config.yaml`, {kind: options}. Choices that place() made automatically
  /// are written out, and `device:` options of layers are moved to the strategy's options. The result leads
  /// to the same placement. Returns null if nothing changes.
  virtual ConfigNode settled(const Graph& /*graph*/, const Placement& /*placement*/) const { return {}; }
  /// Returns the names of the options that place() chooses automatically.
  virtual std::vector<std::string_view> open_options() const { return {}; }
  /// Returns the number of bytes of gradients that GPUs reduce in one call during backward.
  virtual int64_t bucket_bytes() const { return int64_t{25} << 20; }
};

template <>
const Registry<Strategy>& registry<Strategy>();

}  // namespace dtrain
