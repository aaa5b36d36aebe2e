// Strategies: how the configuration distributes a run over devices.
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

/// The `devices:` option: `auto` (all GPUs; the CPU if there are none) or a list of names.
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

/// The arrays that are sharded among the replicas; each level includes the previous ones (Rajbhandari et al.,
/// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020: stages 1 to 3).
enum class ShardLevel { none, optimizer, gradients, parameters };
template <>
inline const EnumNames<ShardLevel> names_of<ShardLevel> = {{ShardLevel::optimizer, "optimizer"},
                                                           {ShardLevel::gradients, "gradients"},
                                                           {ShardLevel::parameters, "parameters"}};

/// Assignment of a run to devices. A "slot" is the index of a device within a replica.
struct Placement {
  /// Devices by replica and slot.
  std::vector<std::vector<DeviceId>> replicas;
  /// The slot of each node of the graph; empty if all are on slot 0.
  std::vector<int> slots;
  /// Number of microbatches into which a replica's part of a batch is divided. They are in the pipeline
  /// together, in the order of `schedule`.
  int64_t microbatches = 1;
  PipelineSchedule schedule = PipelineSchedule::sequential;
  ShardLevel sharded = ShardLevel::none;
  /// Whether the slots of each replica are divided among the processes of a run, the same slots of all
  /// replicas to one process. Otherwise each process has whole replicas.
  bool divides_replicas = false;

  std::vector<DeviceId> devices() const;  // devices of all replicas
  /// Returns the devices that compute a node, one per replica, without duplicates.
  std::vector<DeviceId> devices_of(int node) const;
};

/// The work that a strategy places: a model and its training.
struct Workload {
  const Graph& graph;        // empty if the model failed to parse
  int64_t batch_size = 1;    // samples processed at a time, over all replicas
  int64_t slot_bytes = 0;    // bytes of optimizer state per element of a trained parameter
  size_t element_bytes = 4;  // bytes of an element of the compute type
  /// Measures a device for batches of `samples` samples. `sharing`: number of threads that share its memory
  /// (CPU devices share memory and cores). If the function is null, typical values are used.
  std::function<PipelineDevice(DeviceId device, int64_t samples, int sharing)> measure = nullptr;
  /// Rank of the process whose devices are placed, and the number of processes.
  int process = 0, processes = 1;
  /// Whether these processes train. A trained model may be used by fewer processes than its options name.
  bool trains = false;
};

/// Places runs on devices. Immutable.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Returns the placement. Reports missing devices (and lists the existing ones) and conflicts with the
  /// model; the result then has no replicas. If the model failed to parse, only devices() of the result is
  /// meaningful.
  virtual Placement place(const Workload& work, Diagnostics& diagnostics) const = 0;
  /// Like the other place(), but throws UserError instead of reporting errors.
  Placement place(const Workload& work) const;
  /// Returns the strategy for `config.yaml`, {kind: options}, with the automatic choices of a placement by
  /// place(), and with layers' `device:` options moved into its options. The result makes the same placement.
  /// Null if there is nothing to change.
  virtual ConfigNode settled(const Graph& /*graph*/, const Placement& /*placement*/) const { return {}; }
  /// Returns the names of the options that place() chooses automatically.
  virtual std::vector<std::string_view> open_options() const { return {}; }
  /// Returns the bytes of gradients that GPUs reduce at a time during backward.
  virtual int64_t bucket_bytes() const { return int64_t{25} << 20; }
};

template <>
const Registry<Strategy>& registry<Strategy>();

}  // namespace dtrain
