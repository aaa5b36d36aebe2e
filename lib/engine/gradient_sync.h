// How the replicas' gradients become one update, and where parameters and the optimizer's slots are kept.
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
#include "nn/plan.h"

namespace dtrain {

/// The state's arrays have names: this one, and those of Update::slots() ("momentum", "velocity").
inline constexpr std::string_view kParameters = "parameters";

/// One object for the workers of one slot in all replicas; each worker's thread calls with its own worker. A
/// training step's order: begin, ready (as backward goes on; in pipelines, and with several microbatches in a
/// graph, never), complete, end. Evaluation and prediction call begin only.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  /// Where the gradients are summed, as people are told: "in one memory".
  virtual std::string_view where() const = 0;
  /// What people should know of it before the run; "" for nothing.
  virtual std::string advice() const { return ""; }
  /// The parameters that a worker computes with.
  virtual const ParameterMemory& memory_of(const Worker& worker) const = 0;

  // The state. Between steps it is read and written here by name and by range (of the layout: [0, size) for
  // the parameters, [0, trained) for a slot), whole, shared or in parts as it may be kept.

  /// Bytes that a worker has of the state; what several share counts with the first of them.
  struct StateBytes {
    size_t parameters = 0, slots = 0;
    size_t gradients = 0;  // besides the worker's own
  };
  virtual StateBytes state_bytes(const Worker& worker) const = 0;
  /// What the gradients' sum takes of the host's memory besides what workers on the CPU have.
  virtual size_t host_bytes() const { return 0; }
  /// A worker's part of the parameters, zeros; on any thread.
  virtual void allocate_parameters(Worker& worker) = 0;
  /// A worker's part of the slots, as they begin; on the worker's thread.
  virtual void allocate_slots(Worker& worker) = 0;
  /// Whether the host must copy the state to see it.
  virtual bool on_gpu() const = 0;
  /// A whole array where it lies in the host's memory; empty where it does not.
  virtual std::span<float> host_view(std::string_view array) = 0;
  virtual void read_state(std::string_view array, Range range, float* to) = 0;
  virtual void write_state(std::string_view array, Range range, const float* from) = 0;
  /// Part of the last step's gradient as the update took it: of the global batch, clipped (where
  /// the rule is LAMB's, its directions, which take the gradient's place). `range` is within [0,
  /// with_gradient). False where this process has not made a step yet.
  virtual bool read_gradient(Range range, float* to) = 0;
  /// After the last write_state(), on each worker's thread: makes anew what follows from the parameters.
  virtual void finish_writing(Worker& worker) = 0;

  /// Where the state that the worker has no whole of is gathered and reduced; null where it has it all.
  virtual StateShards* shards_of(const Worker& /*worker*/) { return nullptr; }

  /// Called first in a step, an evaluation and a prediction: then memory_of() holds the present parameters.
  /// `trains`: in a step.
  virtual void begin(Worker&, bool /*trains*/) {}
  /// The gradients below `end` have been enqueued. Captured with the computation, as complete() is.
  virtual void ready(Worker&, int64_t /*end*/) {}
  /// All gradients have been enqueued, those among them that ready() was not called for.
  virtual void complete(Worker&) {}
  /// CUDA has refused to capture the work that called ready() and complete(): both are called again.
  virtual void drop_captured(Worker&) {}
  /// The step's last thing, not captured: members may meet. `replicas`: of this slot. `everyone`: all slots
  /// of all replicas, the same group where there is one slot.
  virtual void end(Worker&, Collective& /*replicas*/, Collective& /*everyone*/) {}
  /// Whether steps need no host thread to end, so that the next may be enqueued behind one that computes.
  virtual bool runs_ahead() const { return false; }
  /// To be called by the thread that waits for the devices; throws Aborted where their sums were aborted.
  virtual void check() {}
  /// Ends the sums that devices wait for. Any thread; returns at once.
  virtual void abort() noexcept {}
  /// The text of an error of the sums that no call reports; "" where there is none. Any thread.
  virtual std::string failure() { return ""; }
};

/// The workers and parameters that a gradient sync is for, and how it is to keep them.
struct GradientSyncRequest {
  std::span<Worker* const> workers;      // of one slot, by replica
  std::span<Collective* const> members;  // of the group of these, by replica
  const ModelLayout& model;
  int slot = 0;
  const Update& update;  // of that slot's parameters
  ShardLevel sharded = ShardLevel::none;
  int64_t bucket_bytes = 0;  // how much of the gradient NCCL sums at a time, while backward goes on
  World& world;

  const ParameterLayout& layout() const { return model.on(slot); }
  bool has_other_slots() const { return model.slots() > 1; }
};

/// The one for the workers' devices: one that keeps parts, where that is asked for; or else none to meet (one
/// replica of one slot), the memory that all of them share, NCCL (a GPU each), or else the host's memory.
/// Refers to all that the request does, but for the list of workers.
std::unique_ptr<GradientSync> make_gradient_sync(const GradientSyncRequest& request);

}  // namespace dtrain
