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
#include "engine/worker.h"
#include "nn/parameters.h"
#include "program/state_shards.h"
#include "program/update_program.h"

namespace dtrain {

/// One object serves the workers of one slot in all replicas; each worker's thread passes its own worker. The
/// instructions of an UpdateProgram call it; a function that the program of this reducer does not need throws
/// std::logic_error.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  /// Where gradients are summed, in words for the user: "in one memory".
  virtual std::string_view where() const = 0;
  virtual GradientReduction reduction() const = 0;
  /// Returns the range of gradients of which a replica gets the sum.
  virtual Range share_of(int rank) const = 0;
  /// Returns the first element of a worker's share of the summed gradient, after the reduction.
  virtual float* sum_of(Worker& worker) = 0;

  /// Bytes in the worker's memory, in addition to its own gradients.
  virtual size_t gradient_bytes(const Worker& /*worker*/) const { return 0; }
  /// Bytes in the worker's memory for arrays in transfer.
  virtual size_t staging_bytes() const { return 0; }
  /// Bytes of host memory, in addition to the memory of CPU workers.
  virtual size_t host_bytes() const { return 0; }
  /// Allocates staging_bytes(). Any thread.
  virtual void allocate_staging(Worker& /*worker*/) {}
  /// Allocates gradient_bytes(). On the worker's thread.
  virtual void allocate_gradients(Worker& /*worker*/) {}

  /// To be called before each training step.
  virtual void begin(Worker& /*worker*/) {}
  /// The worker's view of sharded state; null if the state is replicated.
  virtual StateShards* shards_of(const Worker& /*worker*/) { return nullptr; }

  virtual void all_reduce(Worker& worker, Range range);
  virtual void all_reduce_row_weights(Worker& worker);
  virtual void join(Worker& worker);
  virtual void reduce_scatter(Worker& worker, Collective& replicas);
  virtual void gather_updated(Worker& worker, Collective& replicas);

  /// Throws Aborted if reductions on devices were aborted. To be called by the thread that waits for the
  /// devices.
  void check();
  /// Aborts reductions that devices wait for. Any thread; returns at once.
  void abort() noexcept;
  /// Returns the text of a reduction error that no call reports; "" if none. Any thread.
  std::string failure();

 protected:
  /// Joins the workers, one GPU each, into an NCCL group.
  void join_nccl(std::span<Worker* const> workers, World& world);
  DeviceCollective& nccl(const Worker& worker) { return *nccl_[static_cast<size_t>(worker.rank())]; }

 private:
  std::vector<std::unique_ptr<DeviceCollective>> nccl_;  // by rank; empty without NCCL
};

/// For one replica: its gradient is the sum.
std::unique_ptr<GradientReducer> make_single_reducer(const ParameterLayout& layout);
/// For replicas in one memory (the host's or one GPU's): each sums one share. Also for one replica whose
/// other slots hold parts of the gradient.
std::unique_ptr<GradientReducer> make_shared_memory_reducer(const ParameterLayout& layout,
                                                            std::span<Worker* const> workers);
/// For one GPU per replica: NCCL sums the gradients bucket by bucket.
std::unique_ptr<GradientReducer> make_nccl_reducer(const ParameterLayout& layout,
                                                   std::span<Worker* const> workers, World& world);
/// For any mixture of devices: gradients are summed in host memory, which works on every machine but is slow.
/// `on_host`: by replica, the worker on a CPU that sums and updates for it; the replica's own worker if that
/// is on a CPU.
std::unique_ptr<GradientReducer> make_staged_reducer(const ParameterLayout& layout,
                                                     std::span<Worker* const> workers,
                                                     std::span<Worker* const> on_host);
/// For sharded state. CPU replicas exchange shards in host memory; GPUs, one per replica, by NCCL. `members`:
/// of the communicator of the workers. Keeps references to all arguments. Throws UserError if there are GPUs
/// but no NCCL.
std::unique_ptr<GradientReducer> make_sharded_reducer(const ParameterLayout& layout,
                                                      const ShardedStore& store,
                                                      std::span<Worker* const> workers,
                                                      std::span<Collective* const> members, ShardLevel level,
                                                      World& world);

/// Returns how many additional floats each GPU needs as staging for other replicas' parameters or sums of
/// gradients: a layer and a bucket of gradients, or all statistics. 0 for level `optimizer`, which gathers
/// and reduces in place.
int64_t staging_floats(const ParameterLayout& layout, ShardLevel level);

}  // namespace dtrain
