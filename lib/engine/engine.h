// Executes the steps of a run on the devices of this process, under any strategy.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/exit_deadline.h"
#include "data/loader/loader.h"
#include "device/device.h"
#include "engine/executor.h"
#include "engine/memory_planner.h"
#include "engine/replica.h"
#include "engine/replica_totals.h"
#include "engine/slot_threads.h"
#include "engine/state/model_state.h"
#include "engine/step_weights.h"
#include "engine/update/process_totals.h"
#include "engine/update/slot_state.h"
#include "engine/update/update.h"
#include "engine/watchdog.h"
#include "nn/parameters.h"
#include "run/run_plan.h"

namespace dtrain {

/// Sums over a global batch, and the number of samples in this batch. The sums are the accumulators of all
/// heads (losses and metrics). If the model has regularizers, the last sum is their penalty times the number
/// of samples (count_totals()).
struct BatchTotals {
  std::vector<double> sums;
  int64_t samples = 0;
};

/// Divides a replica's part of a batch into microbatches. `rank`: the replica's rank among the replicas of
/// this process. Pipelines also use microbatches for evaluation and prediction. A batch for prediction is
/// divided among the replicas of this process only.
Microbatches microbatches_of(const RunPlan& plan, int rank, Plan::Purpose purpose, int64_t batch_size);

/// The replicas of the model in this process (one for `single`), with one thread per slot. To be owned and
/// called by one thread, which also serves as the thread of replica 0's first slot. In a step, every replica
/// computes the gradient of the global mean loss over its part of the batch, and each slot's update combines
/// the gradients and updates the parameters (engine/update/slot_state.h).
class Engine {
 public:
  /// Keeps a reference to the plan. If `trains` is false, the engine cannot run training steps. In this case,
  /// NCCL connects the GPUs only if the state is sharded.
  explicit Engine(const RunPlan& plan, bool trains = true);
  ~Engine();

  /// Number of replicas.
  int size() const { return threads_.replicas(); }
  /// Parameters and optimizer state; not to be used while steps are running.
  ModelState& state() { return state_; }
  const ModelState& state() const { return state_; }
  const ParameterLayout& layout() const { return layout_.whole(); }
  ShardLevel shard_level() const { return plan_.placement.sharded; }
  /// The memory of the devices; not to be used while steps are running.
  MemoryPlanner& memory() { return memory_; }
  const MemoryPlanner& memory() const { return memory_; }

  /// Checks the memory (MemoryPlanner::check()), then allocates the parameters and, for training, the
  /// optimizer state. To be called once, before functions that use the state.
  void allocate(Plan::Purpose purpose, int64_t batch_size);
  /// Initializes the parameters with their initializers and the run's seed.
  void initialize();
  /// Sets the step at which the optimizer state of some weights was created. `since`: for each of these
  /// weights (by path), the number of steps that the run had done at that time. The optimizer state of all
  /// other weights was created at the start of the run. To be called before the first step.
  void set_slots_since(const std::map<std::string, int64_t>& since);

  /// Starts a step. `step`: global index, from 0. Requires allocate() for training. At most most_pending()
  /// steps may be running when this function is called.
  void launch(const Batch& batch, int64_t step, double learning_rate);
  /// Waits for the oldest running step and returns its totals, which are valid until the next call.
  const BatchTotals& finish();
  /// Number of running steps.
  int pending() const { return static_cast<int>(pending_.size()); }
  /// Returns the maximum number of steps that may be running when launch() is called. The maximum is 1 if a
  /// step can be prepared while the devices compute the previous step, and 0 otherwise.
  int most_pending() const { return slots_[0]->runs_ahead() ? 1 : 0; }
  /// Returns the seconds that the calling thread has spent in the steps of this run, by activity.
  const StepSeconds& step_seconds() const { return replicas_.front()->executors().front()->step_seconds(); }
  /// Returns true if the parameters and the optimizer state are those of the last finished step. After a
  /// failure, returns true only if reading samples failed, or another process failed, before any replica
  /// updated its parameters.
  bool intact() const { return intact_; }
  /// Tells the engine that all results are saved. If the GPUs do not respond when the engine is destroyed,
  /// the process then ends with a warning instead of an error.
  void set_saved() { saved_ = true; }

  // The functions below must not be called while steps are running, unless stated otherwise.

  /// Computes the loss and the metrics of one batch in inference mode.
  const BatchTotals& evaluate(const Batch& batch);
  /// Computes the outputs of one batch without the other processes, and writes them in row-major order into
  /// `outputs`: one view per output, of shape [batch.size(), ...].
  void predict(const Batch& batch, std::span<const View> outputs);

  /// Return the update program of this process's first slot in its first replica, and a phrase for the user
  /// that says where the gradients of this slot are summed.
  const UpdateProgram& update_program() const { return slots_[0]->program(0); }
  std::string_view reduction_place() const { return slots_[0]->reducer().where(); }
  /// Returns advice for the user, before the run, about how gradients are summed.
  std::vector<std::string> advice() const;
  /// Returns messages for the user about the steps since the last call, such as devices that continue without
  /// CUDA graphs; "" if none. May be called while steps are running.
  std::string take_advice();
  /// Returns the allocated memory of each device, by replica and slot.
  std::vector<MemoryUse> memory_use() const;
  /// Returns the seconds that each node takes for `samples` samples, by slot. Each device of the first
  /// replica measures all layers (layer_times.h), in parallel with the other devices. Slots of other
  /// processes get the times of this process's first slot. Does not need allocate().
  std::vector<std::vector<double>> measure_layers(int64_t samples, double most_seconds);

 private:
  using SlotWork = std::function<void(int rank, int slot)>;

  Executor& executor(int rank, int slot) { return replicas_[static_cast<size_t>(rank)]->executor(slot); }
  /// Runs work(rank, slot) on every slot's thread. Exceptions of the threads are rethrown. If the watchdog
  /// has found a failure, throws this failure instead, except if samples could not be read.
  void run(const SlotWork& work);
  /// Like run(), but for the work of a step. Also updates intact_.
  void run_step(Plan::Purpose purpose, const SlotWork& work);
  const BatchTotals& collect(Plan::Purpose purpose, int64_t samples, int back);
  void watch_devices();
  void watch_processes();
  /// Returns the first failure that a GPU, NCCL or another process reports; "" if there is none. Thread-safe.
  std::string find_failure();
  /// Returns the error message for a run that stalls.
  std::string describe_stall() const;
  /// Makes every thread that waits for another slot or replica throw Aborted. In other processes, waiting
  /// threads throw ProcessFailed(why). `is_user_error`: see World::abort(). Thread-safe; returns at once.
  void abort_all(const std::string& why, bool is_user_error) noexcept;
  /// Like abort_all(), but also ends the process with this error if GPU calls do not return in time.
  /// Thread-safe.
  void give_up(const std::string& why) noexcept;

  // The first member, because its time limit covers the destruction of all other members.
  ExitDeadline deadline_;
  const RunPlan& plan_;
  World& world_;
  ModelLayout layout_;
  // The order of the members below matters, because they are destroyed in reverse: captured graphs before the
  // NCCL communicators that they use, and plans before the cuDNN handles with which they were made.
  SlotThreads threads_;
  std::unique_ptr<ProcessTotals> process_totals_;  // null if there is one process
  std::deque<Update> updates_;                     // indexed by slot, including those of other processes
  std::vector<std::unique_ptr<SlotState>> slots_;  // indexed by slot of this process
  std::vector<std::unique_ptr<Replica>> replicas_;
  ModelState state_;
  ReplicaTotals replica_totals_;
  MemoryPlanner memory_;
  StepWeights step_weights_;
  std::deque<int64_t> pending_;  // number of samples of each running step, oldest first
  BatchTotals totals_;
  std::atomic<int64_t> step_{0};  // number of the last launched step, from 1
  bool intact_ = true, saved_ = false;
  std::atomic<bool> aborted_{false};
  std::unique_ptr<Watchdog> watchdog_;  // null on CPUs; the last member, because it reads the other members
};

}  // namespace dtrain
