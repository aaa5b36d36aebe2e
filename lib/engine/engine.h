// The replicas of a run in this process, under any strategy (one replica for `single`).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/exit_deadline.h"
#include "collective/team.h"
#include "data/loader/loader.h"
#include "device/device.h"
#include "distribute/strategy.h"
#include "engine/gradient_sync.h"
#include "engine/replica.h"
#include "engine/update/update.h"
#include "engine/watchdog.h"
#include "nn/parameters.h"
#include "program/plan.h"
#include "run/run_plan.h"

namespace dtrain {

/// Estimated memory of one device, in bytes, before any allocation.
struct MemoryPlan {
  DeviceId device;
  int replica = 0, slot = 0;  // the replica's rank, and the device's index in the replica
  int64_t share = 0;          // samples of a full batch that this replica processes
  int64_t microbatch = 0;     // the largest number of these that are processed at a time
  int threads = 1;
  size_t parameters = 0, optimizer_slots = 0, gradients = 0, activations = 0;
  size_t staging = 0;  // batches during upload to a GPU, and the workspace of GPU libraries
  size_t data = 0;     // samples kept on a GPU
  size_t metrics = 0;  // accumulators of losses and metrics
  size_t total() const {
    return parameters + optimizer_slots + gradients + activations + staging + data + metrics;
  }
};

/// Sums over a global batch: the accumulators of all heads (count_totals), and the number of samples.
struct BatchTotals {
  std::vector<double> sums;
  int64_t samples = 0;
};

/// Parameters and optimizer state (slots in the optimizer's order) in host memory.
struct HostArrays {
  std::span<float> values;
  std::vector<std::span<float>> slots;
};

/// The replicas of this process, with one thread per slot. To be owned and called by one thread, which also
/// serves as the thread of replica 0's first slot. In a step, every replica computes the gradient of the
/// global mean loss over its part of the batch, and each slot's gradient sync (engine/gradient_sync.h)
/// combines the gradients into one update.
class Replicas {
 public:
  /// Keeps references to the plan.
  explicit Replicas(const RunPlan& plan);
  ~Replicas();

  int size() const { return static_cast<int>(replicas_.size()); }
  const Placement& placement() const { return placement_; }

  /// Starts a step. `step`: global index, from 0. Requires allocate() for training. At most most_pending() +
  /// 1 steps may be running.
  void launch(const Batch& batch, int64_t step, double learning_rate);
  /// Waits for the oldest running step and returns its totals, valid until the next call.
  const BatchTotals& finish();
  /// Number of running steps.
  int pending() const { return static_cast<int>(pending_.size()); }
  /// Time that this thread has spent in all steps so far.
  const StepSeconds& step_seconds() const { return replicas_.front()->executor(0).step_seconds(); }
  /// How many steps may be running when the next one is launched, so that devices need not wait for the host.
  int most_pending() const;

  /// Whether parameters and optimizer state are those of the last finished step; false after any failure
  /// except of reading samples.
  bool intact() const { return intact_; }

  // The functions below must not be called while steps are running, unless stated otherwise.

  /// Computes loss and metrics of one batch in inference mode.
  const BatchTotals& evaluate(const Batch& batch);
  /// Computes the outputs of one batch in row-major order and writes them into `outputs`: one view per
  /// output, of shape [batch.size(), ...].
  void predict(const Batch& batch, std::span<const View> outputs);

  /// Layout of the whole model, independent of its placement.
  const ParameterLayout& layout() const { return layout_.whole(); }
  /// Reads part of an array of the state. `array`: kParameters or the name of a slot. `range`: in the layout.
  void read_state(std::string_view array, Range range, float* to);
  /// Call finish_writing() once after the last call.
  void write_state(std::string_view array, Range range, const float* from);
  void finish_writing();
  /// See GradientSync::read_gradient().
  bool read_gradient(Range range, float* to);
  /// Returns the name of the first weight with a non-finite element; "" if all are finite.
  std::string first_weight_not_finite();
  /// Returns the whole state in host memory: the state itself if it is there, else a copy that stays valid
  /// until the next call.
  HostArrays download();
  /// Returns a copy of the current state, which is unaffected by later steps and valid until the next call.
  /// Returns nullopt if there is too little memory for it.
  std::optional<HostArrays> snapshot();
  size_t snapshot_bytes() const;
  bool has_room_for_snapshot() const;
  /// Sets the bytes of samples that each GPU replica keeps (cache: device), for the memory plan.
  void plan_data(size_t bytes) { data_bytes_ = bytes; }
  /// Sets the largest batch size, for the memory plan.
  void plan_samples(int64_t most) { most_samples_ = most; }
  /// Sets the bytes of samples that the host will keep but has not read yet, for the memory plan.
  void plan_host(size_t bytes) { host_bytes_ = bytes; }
  /// Sets the host memory for reading samples ahead, for the memory plan.
  void plan_read_ahead(const ReadAheadMemory& memory) { read_ahead_ = memory; }
  /// Throws UserError if the host or a GPU has too little memory for `purpose` with batches of this size. The
  /// message states the planned and the available memory, where the latter comes from, and which batch would
  /// fit. Allocates nothing.
  void check_memory(Plan::Purpose purpose, int64_t batch_size);
  /// Returns a warning if the plan fits into host memory only by swapping or by displacing others' memory;
  /// otherwise "".
  std::string memory_advice(Plan::Purpose purpose, int64_t batch_size);
  /// Allocates the parameters and, for training, the optimizer state, after check_memory(). To be called
  /// once, before functions that use the state.
  void allocate(Plan::Purpose purpose, int64_t batch_size);
  /// Initializes the parameters by their initializers and the run's seed.
  void initialize();

  /// Sets the number of steps done when the optimizer state of these weights (by path) was created. The state
  /// of other weights is as old as the run. To be called before the first step.
  void set_slots_since(const std::map<std::string, int64_t>& since);

  /// Whether a moving average of the weights is kept (train.callbacks: ema).
  bool has_average() const { return update().has_average(); }
  /// Sets the average, if any, to the current weights.
  void begin_average();
  /// Swaps the weights and their average, if any. To be called once before and once after an evaluation.
  void swap_average();

  /// The gradient sync of the first slot.
  const GradientSync& gradient_sync() const { return *syncs_[0]; }
  /// Advice for the user, before the run, about how gradients are summed.
  std::vector<std::string> advice() const;
  /// Returns messages for the user about the steps since the last call, such as devices that continue without
  /// CUDA graphs; "" if none. May be called while steps are running.
  std::string take_advice();
  /// The first replica's plan of its first microbatch in a training step.
  const Plan& training_plan(int64_t batch_size);

  /// Returns the seconds of each node for `samples` samples, by slot. The first replica's devices measure all
  /// layers in parallel (layer_times.h). Does not need allocate().
  std::vector<std::vector<double>> measure_layers(int64_t samples, double most_seconds);

  /// The current state of float16 loss scaling.
  GradientScale gradient_scale();
  void set_gradient_scale(const GradientScale& scale);

  /// Returns the memory for `purpose` with batches of this size, by replica and slot, for the first
  /// `replicas` replicas.
  std::vector<MemoryPlan> memory(Plan::Purpose purpose, int64_t batch_size,
                                 int replicas = std::numeric_limits<int>::max());
  /// Additional host memory for training: copies of the state and sums of gradients.
  size_t copy_bytes() const;
  /// Returns the allocated memory of each device, in the same order.
  std::vector<MemoryUse> memory_use() const;

 private:
  /// One array of the state.
  struct StateArray {
    std::string name;
    int64_t size = 0;  // floats
    Buffer copy;       // in host memory, allocated on first use
  };

  int slots() const { return layout_.slots(); }
  /// Returns the executor of a team member: that of its slot in its replica.
  Executor& executor_of(const Collective& member);
  GradientSync& sync_of(const Executor& executor) { return *syncs_[static_cast<size_t>(executor.slot())]; }
  /// The update options that are the same for all slots.
  const Update& update() const { return updates_[0]; }
  void lay_replicas();
  void make_groups();
  void make_syncs();
  /// Returns a whole array if it is contiguous in host memory; else an empty span.
  std::span<float> host_view(std::string_view array);
  /// The part of a batch that rank `rank` processes, and its division into microbatches. Pipelines use
  /// microbatches for evaluation and prediction, too.
  Range share_of(int rank, int64_t batch_size) const;
  Microbatches microbatches_of(int rank, Plan::Purpose purpose, int64_t batch_size) const;
  using StepWork = std::function<void(Executor&, const Microbatches&, GradientSync&)>;
  /// Runs work(collective) on every slot's thread. If the watchdog knows of a failure, throws that in
  /// preference to any other error.
  void run(const std::function<void(Collective&)>& work);
  void run_step(Plan::Purpose purpose, int64_t batch_size, const StepWork& work);
  bool has_finite_weights(Range range);
  HostArrays host_arrays(const std::function<std::span<float>(StateArray&)>& place);
  std::span<float> copy_of(StateArray& array);
  const BatchTotals& collect(int64_t samples, int back);
  void watch_devices();
  /// Returns the first failure that a GPU or NCCL reports; "" if there is none. Any thread.
  std::string find_failure();
  /// Returns the error message for a run that stalls.
  std::string describe_stall() const;
  /// Makes every thread that waits for another slot, replica or process throw Aborted. Any thread; returns at
  /// once.
  void abort_all() noexcept;
  /// Like abort_all(), but ends the process with this error if GPUs do not return. Any thread.
  void give_up(const std::string& why) noexcept;
  MemoryPlan memory_of(Executor& executor, Plan::Purpose purpose, int64_t batch_size);
  /// Planned use of one memory (the host's or a GPU's).
  struct Demand;
  std::vector<Demand> demands(Plan::Purpose purpose, int64_t batch_size);
  Demand scarcest(Plan::Purpose purpose, int64_t batch_size);
  std::string most_of_it(const Demand& demand) const;

  ExitDeadline deadline_;  // the first member: its time limit covers the destruction of all others
  const RunConfig& config_;
  const Placement& placement_;
  const bool on_gpu_;  // whether any device is a GPU
  World& world_;
  const World::LocalRanks ranks_;
  ModelLayout layout_;
  std::deque<Update> updates_;  // by slot
  const bool spin_;             // each slot's thread has a core for itself
  Team team_;
  /// By slot: the communicator of its replicas; empty: the team itself.
  std::vector<std::vector<std::unique_ptr<Collective>>> groups_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<GradientSync>> syncs_;  // by slot
  std::vector<StateArray> state_;  // the parameters and, once allocated, the optimizer state
  std::deque<int64_t> pending_;    // number of samples of each running step, oldest first
  BatchTotals totals_;
  std::atomic<int64_t> step_{0};  // number of the last launched step, from 1
  size_t data_bytes_ = 0, host_bytes_ = 0;
  ReadAheadMemory read_ahead_;
  int64_t most_samples_ = std::numeric_limits<int64_t>::max();
  bool intact_ = true;
  std::atomic<bool> aborted_{false};
  std::unique_ptr<Watchdog> watchdog_;  // the last member, because it reads the others; null on CPUs
};

}  // namespace dtrain
