// Combines the replicas' gradients into one update, and stores parameters and optimizer state.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/collective.h"
#include "collective/world.h"
#include "distribute/strategy.h"
#include "engine/update.h"
#include "engine/worker.h"
#include "program/plan.h"

namespace dtrain {

/// Name of the state's array of parameters. The other arrays are named by Update::slots() ("momentum",
/// "velocity").
inline constexpr std::string_view kParameters = "parameters";

/// One object serves the workers of one slot in all replicas; each worker's thread passes its own worker. A
/// training step calls, in this order: begin, ready (during backward; never in pipelines or for several
/// microbatches in one graph), complete, end. Evaluation and prediction call begin only.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  /// Where gradients are summed, in words for the user: "in one memory".
  virtual std::string_view where() const = 0;
  /// Advice for the user before the run; "" if none.
  virtual std::string advice() const { return ""; }
  /// The parameters that a worker computes with.
  virtual const ParameterMemory& memory_of(const Worker& worker) const = 0;

  // The state. Between steps it is read and written by array name and by range of the layout ([0, size) for
  // parameters, [0, trained) for optimizer state), whether it is replicated, shared or sharded.

  /// Bytes of state in a worker's memory; state shared by several workers counts for the first of them.
  struct StateBytes {
    size_t parameters = 0, slots = 0;
    size_t gradients = 0;  // in addition to the worker's own buffer
  };
  virtual StateBytes state_bytes(const Worker& worker) const = 0;
  /// Bytes of host memory for summing gradients, in addition to the memory of CPU workers.
  virtual size_t host_bytes() const { return 0; }
  /// Allocates a worker's part of the parameters, filled with zeros. Any thread.
  virtual void allocate_parameters(Worker& worker) = 0;
  /// Allocates a worker's part of the optimizer state, with initial values. On the worker's thread.
  virtual void allocate_slots(Worker& worker) = 0;
  /// Whether the state must be copied to be read by the host.
  virtual bool on_gpu() const = 0;
  /// Returns a whole array if it is in host memory; else an empty span.
  virtual std::span<float> host_view(std::string_view array) = 0;
  virtual void read_state(std::string_view array, Range range, float* to) = 0;
  virtual void write_state(std::string_view array, Range range, const float* from) = 0;
  /// Copies part of the last step's gradient as the update used it: of the global batch, and clipped. (LAMB
  /// replaces the gradient by its update directions.) `range` must be within [0, with_gradient). Returns
  /// false if this process has not run a step yet.
  virtual bool read_gradient(Range range, float* to) = 0;
  /// Recomputes data derived from the parameters. To be called on each worker's thread after the last
  /// write_state().
  virtual void finish_writing(Worker& worker) = 0;

  /// The worker's view of sharded state; null if the state is replicated.
  virtual StateShards* shards_of(const Worker& /*worker*/) { return nullptr; }

  /// First call of a step, an evaluation and a prediction; afterwards memory_of() holds the current
  /// parameters. `trains`: true for a training step.
  virtual void begin(Worker&, bool /*trains*/) {}
  /// All gradients below `end` have been enqueued. Part of the captured graph, like complete().
  virtual void ready(Worker&, int64_t /*end*/) {}
  /// All gradients have been enqueued, including those that ready() was not called for.
  virtual void complete(Worker&) {}
  /// CUDA has rejected the capture of the work that called ready() and complete(); both will be called again.
  virtual void drop_captured(Worker&) {}
  /// Last call of a step, not captured; may run collective calls. `replicas`: the communicator of this slot.
  /// `everyone`: that of all slots of all replicas (the same one if there is only one slot).
  virtual void end(Worker&, Collective& /*replicas*/, Collective& /*everyone*/) {}
  /// Whether a step ends without the host, so that the next step can be enqueued while this one computes.
  virtual bool runs_ahead() const { return false; }
  /// Throws Aborted if reductions on devices were aborted. To be called by the thread that waits for the
  /// devices.
  virtual void check() {}
  /// Aborts reductions that devices wait for. Any thread; returns at once.
  virtual void abort() noexcept {}
  /// Returns the text of a reduction error that no call reports; "" if none. Any thread.
  virtual std::string failure() { return ""; }
};

/// The workers and parameters to synchronize, and the storage options.
struct GradientSyncRequest {
  std::span<Worker* const> workers;      // of one slot, by replica
  std::span<Collective* const> members;  // of the communicator of these workers, by replica
  const ModelLayout& model;
  int slot = 0;
  const Update& update;  // for that slot's parameters
  ShardLevel sharded = ShardLevel::none;
  int64_t bucket_bytes = 0;  // gradient bytes that NCCL reduces at a time during backward
  World& world;

  const ParameterLayout& layout() const { return model.on(slot); }
  bool has_other_slots() const { return model.slots() > 1; }
};

/// Returns the implementation for the workers' devices: sharded state if requested; otherwise without
/// communication (one replica with one slot), in shared memory, by NCCL (one GPU per worker), or in host
/// memory. Keeps references to everything in `request` except the list of workers.
std::unique_ptr<GradientSync> make_gradient_sync(const GradientSyncRequest& request);

}  // namespace dtrain
