// Plans the memory of an engine's devices and checks whether enough memory is available.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/loader/loader.h"
#include "engine/memory_plan.h"
#include "engine/replica.h"
#include "engine/slot_threads.h"
#include "engine/state/model_state.h"
#include "run/run_plan.h"

namespace dtrain {

/// The batches of a run and the memory for its samples, as known when the run's memory is planned.
struct DataMemory {
  // Bytes of samples that each replica on a GPU keeps (cache: device).
  size_t on_gpu = 0;
  size_t on_host = 0;  // bytes of samples that the host will keep but has not read yet
  // Number of samples of the largest split, which limits the batch size. The default means that the number is
  // unknown.
  int64_t most_samples = std::numeric_limits<int64_t>::max();
  ReadAheadMemory read_ahead = {};  // host memory for reading samples ahead
  // Lengths of batches with truncated samples (Batch::length).
  std::set<int64_t> lengths = {};
};

/// Computes the memory that an engine will need, without allocating it. To be called by the thread that owns
/// the engine, between steps.
class MemoryPlanner {
 public:
  /// Returns the microbatches of a replica for batches of this size.
  using MicrobatchesOf = std::function<Microbatches(int rank, Plan::Purpose purpose, int64_t batch_size)>;

  /// Keeps references to the plan, the threads, the replicas and the state.
  MemoryPlanner(const RunPlan& plan, SlotThreads& threads, std::span<const std::unique_ptr<Replica>> replicas,
                const ModelState& state, ModelState::RunOnSlots run, MicrobatchesOf microbatches);

  void set_data(const DataMemory& data) { data_ = data; }

  /// Returns the planned memory of each device for `purpose` with batches of this size, ordered by replica
  /// and then by slot. `replicas`: only the first `replicas` replicas are planned.
  std::vector<MemoryPlan> plan(Plan::Purpose purpose, int64_t batch_size,
                               int replicas = std::numeric_limits<int>::max());
  /// Throws UserError if the host or a GPU has too little memory for `purpose` with batches of this size. The
  /// message states the planned memory, the available memory, the limit that determines the available memory,
  /// and the largest batch size that fits.
  void check(Plan::Purpose purpose, int64_t batch_size);
  /// Returns a warning if the plan fits into host memory only by swapping or by displacing the memory of
  /// other programs; otherwise "".
  std::string advice(Plan::Purpose purpose, int64_t batch_size);
  /// Returns the bytes of additional host memory for training: copies of the state and sums of gradients.
  size_t copy_bytes() const;
  /// Returns the plan for the first microbatch of the first replica in a training step.
  const Plan& training_plan(int64_t batch_size);

 private:
  MemoryPlan plan_slot(int rank, int slot, Plan::Purpose purpose, int64_t batch_size);
  HostNeeds host_needs(Plan::Purpose purpose, int64_t batch_size) const;
  std::vector<MemoryDemand> demands(Plan::Purpose purpose, int64_t batch_size);
  /// If replicas have several devices, returns a text that names the device with the largest share of the
  /// demand, such as "; cpu:1 needs the most memory (1.2 GB), for 'head' and 2 more layers".
  std::string most_of_it(const MemoryDemand& demand) const;
  Executor& executor(int rank, int slot) const {
    return replicas_[static_cast<size_t>(rank)]->executor(slot);
  }
  int64_t limited(int64_t batch_size) const { return std::min(batch_size, data_.most_samples); }

  const RunConfig& config_;
  const Placement& placement_;
  SlotThreads& threads_;
  const std::span<const std::unique_ptr<Replica>> replicas_;
  const ModelState& state_;
  const ModelState::RunOnSlots run_;
  const MicrobatchesOf microbatches_of_;
  DataMemory data_;
};

}  // namespace dtrain
