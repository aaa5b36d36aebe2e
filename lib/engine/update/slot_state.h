// The state of one slot in all replicas: the storage of its parameters, the sums of its gradients, and its
// updates.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/collective.h"
#include "collective/world.h"
#include "distribute/strategy.h"
#include "engine/state/parameter_store.h"
#include "engine/update/gradient_norm.h"
#include "engine/update/gradient_reducer.h"
#include "engine/update/last_gradient.h"
#include "engine/update/update.h"
#include "engine/update/worker_update.h"
#include "engine/worker.h"
#include "nn/parameters.h"
#include "program/update_program.h"

namespace dtrain {

/// The workers and the parameters of a slot. All lists are indexed by replica.
struct SlotStateRequest {
  std::vector<Worker*> workers = {};
  // One communicator for each worker of the slot. It connects the workers of this process or, if the state is
  // sharded among GPUs, the workers of all processes.
  std::vector<Collective*> replicas = {};
  // One communicator for each worker. It connects all slots of all replicas of this process. If the state is
  // sharded or on GPUs, or if each replica is split across processes, it connects all slots of all processes
  // instead.
  std::vector<Collective*> everyone = {};
  const ModelLayout& model;
  int slot = 0;
  const Update& update;  // the update of the slot's parameters
  ShardLevel sharded = ShardLevel::none;
  bool trains = true;               // whether gradients will be summed
  ProcessTotals* totals = nullptr;  // totals of all slots; null if there is only one process
  int64_t bucket_bytes = 0;         // gradient bytes that NCCL or a process sends at a time during backward
  ReplicaRanks ranks;               // ranks of the workers among the workers of all processes
  World& world;

  const ParameterLayout& layout() const { return model.on(slot); }
  bool has_other_slots() const { return model.slots() > 1; }
};

/// Stores a slot's state and updates it. The constructor chooses a store and a reducer. If sharding is
/// requested, both work on sharded state. Otherwise, the devices determine where gradients are summed:
/// without communication (one replica with one slot), in shared memory, by NCCL (one GPU per worker), over
/// several processes, or in host memory. In a step, each worker's thread calls begin(), runs its plans, and
/// then runs the parts of its update program.
class SlotState {
 public:
  explicit SlotState(const SlotStateRequest& request);

  ParameterStore& store() { return *store_; }
  const ParameterStore& store() const { return *store_; }
  GradientReducer& reducer() { return *reducer_; }
  const GradientReducer& reducer() const { return *reducer_; }
  const Update& update() const { return request_.update; }
  const UpdateProgram& program(int rank) const { return programs_[static_cast<size_t>(rank)]; }
  /// Returns the interface that runs the all-reduces of a backward pass (SlotArrays::update).
  ParameterUpdate& worker_update(int rank) { return updates_[static_cast<size_t>(rank)]; }
  /// Returns the number of floats in each bucket that the backward pass all-reduces; 0 if the backward pass
  /// must not all-reduce gradients.
  int64_t overlapped_bucket() const;

  /// Returns advice for the user before the run; "" if none.
  std::string advice() const;
  /// Returns true if the host has no work at the end of a step, so that the next step can be enqueued while
  /// this step computes.
  bool runs_ahead() const;
  /// Bytes in a worker's memory.
  struct Bytes {
    size_t parameters = 0, slots = 0;
    size_t gradients = 0;  // bytes of gradients, not including Worker::gradients()
  };
  Bytes bytes(const Worker& worker) const;
  /// Returns the bytes of host memory that the slot needs in addition to the memory of CPU workers.
  size_t host_bytes() const { return store_->host_bytes() + reducer_->host_bytes(); }
  void allocate_parameters(Worker& worker);
  void allocate_slots(Worker& worker);

  /// Must be called first in a step, an evaluation or a prediction. Afterwards, the worker's memory contains
  /// the current parameters.
  void begin(Worker& worker, bool trains);
  /// Enqueues an operation that adds the penalties of regularizers to *total (device memory). Each replica
  /// adds the penalties of a different part of the parameters. To be called between begin() and the update.
  void add_penalties(Worker& worker, double* total);
  void run(const std::vector<Instruction>& instructions, const Worker& worker);

  /// Copies a part of the last step's gradient in the form that the update used: summed over the global
  /// batch, scaled and clipped. (If the optimizer is LAMB or adafactor, copies the update directions instead,
  /// because they replace the gradient.) `range` must be within [0, with_gradient). Returns false if this
  /// process has not run a step yet.
  bool read_gradient(Range range, float* to) const { return last_.read(request_.update, range, to); }

 private:
  enum class Exchange { none, shared_memory, processes, nccl, staged, sharded };
  static Exchange choose(const SlotStateRequest& request);
  void make_host_workers();
  void make_parts();
  /// `store`: see ProcessReducerRequest.
  ProcessReducerRequest over_processes(std::vector<Range> shares, const ShardedStore* store) const;
  UpdateRequest update_request(int rank) const;
  /// Returns whether a worker's share of the summed gradient is counted in sums over all replicas. Returns
  /// false if another replica has the same share, because each share must be counted once.
  bool counts_share(int rank) const;
  int64_t bucket_floats() const;

  const SlotStateRequest request_;
  const Exchange exchange_;
  std::vector<std::unique_ptr<Worker>> host_workers_;  // CPU workers that update parameters for GPUs
  std::vector<Worker*> updating_;                      // indexed by replica: the worker that updates
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<GradientReducer> reducer_;
  std::optional<GradientNorm> norm_;
  LastGradient last_;
  std::vector<WorkerUpdate> updates_;    // indexed by replica
  std::vector<UpdateProgram> programs_;  // indexed by replica
};

}  // namespace dtrain
