// Sums the gradients of one slot over the replicas.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/collective.h"
#include "collective/world.h"
#include "engine/state/sharded_store.h"
#include "engine/update/process_totals.h"
#include "engine/worker.h"
#include "nn/parameters.h"
#include "program/state_shards.h"
#include "program/update_program.h"

namespace dtrain {

/// Sums gradients for the instructions of an UpdateProgram. Each slot has one reducer, which serves the
/// slot's workers in every replica; each worker's thread passes its own worker. A function throws
/// std::logic_error if the UpdateProgram of this kind of reducer never calls it.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  /// Returns a phrase for the user that says where gradients are summed, such as "in one memory".
  virtual std::string_view where() const = 0;
  virtual GradientReduction reduction() const = 0;
  /// Returns a replica's share: the range of the gradient whose sum the replica gets.
  virtual Range share_of(int rank) const = 0;
  /// Returns a pointer to the first element of the worker's share of the summed gradient. To be used after
  /// the reduction.
  virtual float* sum_of(Worker& worker) = 0;

  /// Returns the bytes of gradients in the worker's memory, not including Worker::gradients().
  virtual size_t gradient_bytes(const Worker& /*worker*/) const { return 0; }
  /// Returns the bytes of staging buffers in the worker's memory.
  virtual size_t staging_bytes(const Worker& /*worker*/) const { return 0; }
  /// Returns the bytes of host memory that the reducer needs in addition to the memory of CPU workers.
  virtual size_t host_bytes() const { return 0; }
  /// Allocates staging_bytes(). May be called on any thread.
  virtual void allocate_staging(Worker& /*worker*/) {}
  /// Allocates gradient_bytes(). To be called on the worker's thread.
  virtual void allocate_gradients(Worker& /*worker*/) {}

  /// Prepares the worker for a training step. To be called before each training step.
  virtual void begin(Worker& /*worker*/) {}
  /// The worker's view of sharded state; null if the state is replicated.
  virtual StateShards* shards_of(const Worker& /*worker*/) { return nullptr; }

  /// Starts to sum a step's totals over all processes, replicas and slots. join() waits for the sums. If
  /// replicas have several slots, all slots must call this function before the first slot calls join(). Some
  /// reducers do nothing here; in this case, the engine sums the totals with World::sum(). `totals`: an array
  /// in the worker's memory, which must not change until the next step.
  virtual void sum_totals(Worker& /*worker*/, std::span<const double> /*totals*/) {}
  /// Returns the totals of the last step; empty if sum_totals() does nothing. Valid until the next step.
  virtual std::span<const double> summed_totals() const { return {}; }

  virtual void all_reduce(Worker& worker, Range range);
  virtual void all_reduce_row_weights(Worker& worker);
  virtual void join(Worker& worker, Collective& replicas);
  virtual void reduce_scatter(Worker& worker, Collective& replicas);
  virtual void gather_updated(Worker& worker, Collective& replicas);

  /// Throws Aborted if reductions on devices were aborted. To be called by the thread that waits for the
  /// devices.
  void check();
  /// Aborts reductions that devices wait for. Thread-safe; returns at once.
  void abort() noexcept;
  /// Returns the message of an asynchronous reduction error that no call has reported yet; "" if there is
  /// none. Thread-safe.
  std::string failure();

 protected:
  /// Creates the NCCL communicators of the workers, which have one GPU each.
  void join_nccl(std::span<Worker* const> workers, World& world);
  DeviceCollective& nccl(const Worker& worker) { return *nccl_[static_cast<size_t>(worker.rank())]; }

 private:
  std::vector<std::unique_ptr<DeviceCollective>> nccl_;  // indexed by rank; empty if NCCL is not used
};

/// Creates the reducer for one replica, whose gradient is already the sum.
std::unique_ptr<GradientReducer> make_single_reducer(const ParameterLayout& layout);
/// Creates the reducer for replicas in one memory (the host's or one GPU's). Each replica sums its share of
/// the gradients (ParameterLayout::shares()). Also used for one replica with several slots, each of which has
/// a part of the gradient.
std::unique_ptr<GradientReducer> make_shared_memory_reducer(std::vector<Range> shares,
                                                            std::span<Worker* const> workers);
/// Creates the reducer for one GPU per replica: NCCL sums the gradients bucket by bucket. If `trains` is
/// false, NCCL does not connect the GPUs, and gradients cannot be summed.
std::unique_ptr<GradientReducer> make_nccl_reducer(const ParameterLayout& layout,
                                                   std::span<Worker* const> workers, World& world,
                                                   bool trains);
/// The arguments of make_process_reducer(), for one slot whose replicas run on CPUs of several processes.
struct ProcessReducerRequest {
  const ParameterLayout& layout;
  int slot = 0;
  std::span<Worker* const> workers;  // workers of this process
  std::vector<Range> shares;         // the part of the parameters that each worker updates
  int64_t bucket = 1;                // number of floats that are exchanged at a time
  ProcessTotals& totals;             // totals of all slots
  ReplicaRanks ranks;                // ranks of the workers among the workers of all processes
  World& world;
  /// The shards of the state with level `optimizer`; null if the state is not sharded, so that each process
  /// updates all parameters.
  const ShardedStore* store = nullptr;
};
/// Creates the reducer for a slot whose replicas belong to several processes. The replicas of a process add
/// their gradients, and the processes exchange these sums bucket by bucket. All processes must create their
/// reducers in the same order.
std::unique_ptr<GradientReducer> make_process_reducer(const ProcessReducerRequest& request);
/// Creates the reducer for any mixture of devices. Gradients are summed in host memory, which works on every
/// machine but is slow. `on_host`: for each replica, the CPU worker that sums the gradients and updates the
/// parameters. For a replica on a CPU, this is the replica's own worker.
std::unique_ptr<GradientReducer> make_staged_reducer(const ParameterLayout& layout, std::vector<Range> shares,
                                                     std::span<Worker* const> workers,
                                                     std::span<Worker* const> on_host);
/// Creates the reducer for sharded state. Replicas on CPUs of one process exchange shards in host memory.
/// Replicas on GPUs of all processes, with one GPU per replica, use NCCL. `members`: the workers'
/// communicators, by replica. Keeps references to all arguments. Throws UserError if there are GPUs, but NCCL
/// was not found.
std::unique_ptr<GradientReducer> make_sharded_reducer(const ParameterLayout& layout,
                                                      const ShardedStore& store,
                                                      std::span<Worker* const> workers,
                                                      std::span<Collective* const> members, ShardLevel level);
/// Creates the reducer for sharded replicas on the CPUs of several processes. `level` is `gradients` or
/// `parameters`.
std::unique_ptr<GradientReducer> make_process_sharded_reducer(const ParameterLayout& layout,
                                                              const ShardedStore& store,
                                                              std::span<Collective* const> members,
                                                              ShardLevel level);

/// Returns the size, in floats, of a staging buffer for the parameters of other replicas or for sums of
/// gradients. On GPUs, each GPU has such a buffer; on CPUs, each process has one. The buffer has room for a
/// layer and a bucket of gradients, or for all statistics if these are larger. Returns 0 for level
/// `optimizer`, because it gathers parameters and reduces gradients in place.
int64_t staging_floats(const ParameterLayout& layout, ShardLevel level);

}  // namespace dtrain
