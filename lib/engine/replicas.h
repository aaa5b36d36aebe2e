// The replicas of a run in this process, under any strategy (one, for `single`), able to make a step.
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
#include "engine/update.h"
#include "engine/watchdog.h"
#include "nn/parameters.h"
#include "nn/plan.h"
#include "run/run_config.h"

namespace dtrain {

/// What a device will hold, in bytes, before anything is allocated there.
struct MemoryPlan {
  DeviceId device;
  int replica = 0, slot = 0;  // the replica's rank, and the device's place in it
  int64_t share = 0;          // samples of a full batch
  int64_t microbatch = 0;     // of these, the most that come to it at a time
  int threads = 1;
  size_t parameters = 0, optimizer_slots = 0, gradients = 0, activations = 0;
  size_t staging = 0;  // batches on their way to a GPU, and its libraries' workspace
  size_t data = 0;     // samples that a GPU keeps
  size_t metrics = 0;  // sums of losses and metrics
  size_t total() const {
    return parameters + optimizer_slots + gradients + activations + staging + data + metrics;
  }
};

/// Sums over a global batch: the heads' totals (Plan::count_totals), and how many samples.
struct BatchTotals {
  std::vector<double> sums;
  int64_t samples = 0;
};

/// Parameters, and the optimizer's slots in its order, in host memory.
struct HostArrays {
  std::span<float> values;
  std::vector<std::span<float>> slots;
};

/// The replicas of this process, with a thread for each of their slots. Owned and called by one thread, which
/// is that of replica 0's first slot as well. A step: every replica computes the gradient of its share of the
/// global mean loss, and each slot's gradient sync (engine/gradient_sync.h) makes one update of them.
class Replicas {
 public:
  Replicas(const RunConfig& config, Placement placement, World& world = single_process());
  ~Replicas();

  int size() const { return static_cast<int>(replicas_.size()); }
  const Placement& placement() const { return placement_; }

  /// Begins a step; `step` is the global one, from 0. After allocate(training). At most most_pending() + 1
  /// steps may be under way.
  void launch(const Batch& batch, int64_t step, double learning_rate);
  /// Waits for the oldest step that is under way. Valid until the next call.
  const BatchTotals& finish();
  /// Steps under way.
  int pending() const { return static_cast<int>(pending_.size()); }
  /// What this thread has spent in all steps so far.
  const StepSeconds& step_seconds() const { return replicas_.front()->executor(0).step_seconds(); }
  /// How many steps may be under way when the next is launched, so that devices need not wait for the host.
  int most_pending() const;

  /// Whether the parameters and slots are those that the last finished step left: false once anything but
  /// reading samples has failed.
  bool intact() const { return intact_; }

  // None of the following while steps are under way.

  /// Loss and metrics of one batch, as at inference.
  const BatchTotals& evaluate(const Batch& batch);
  /// The outputs of one batch, plain and in order, into `outputs` (one view an output, of shape
  /// [batch.size(), ...]).
  void predict(const Batch& batch, std::span<const View> outputs);

  /// Of the whole model, wherever its parameters are.
  const ParameterLayout& layout() const { return layout_.whole(); }
  /// Part of an array of the state, by its name: kParameters or a slot's. `range` is of the layout.
  void read_state(std::string_view array, Range range, float* to);
  /// To be followed by finish_writing(), once after the last call.
  void write_state(std::string_view array, Range range, const float* from);
  void finish_writing();
  /// As GradientSync::read_gradient().
  bool read_gradient(Range range, float* to);
  /// The name of the first weight that has an element which is no finite number; "" where all are.
  std::string first_weight_not_finite();
  /// All of the state, to be read by the host: where it lies, or else a copy of now, which stays as it is
  /// until the next one.
  HostArrays download();
  /// A copy of now, which stays as it is until the next one while steps go on. Nothing where there is no
  /// memory to spare for it.
  std::optional<HostArrays> snapshot();
  size_t snapshot_bytes() const;
  bool has_room_for_snapshot() const;
  /// What the samples will take that each of the GPUs' replicas keeps (cache: device), for the plan.
  void plan_data(size_t bytes) { data_bytes_ = bytes; }
  /// No batch will have more samples than this, for the plan.
  void plan_samples(int64_t most) { most_samples_ = most; }
  /// What the host will hold besides, for the plan: samples that are not read yet.
  void plan_host(size_t bytes) { host_bytes_ = bytes; }
  /// What reading the samples ahead will take of the host, for the plan.
  void plan_read_ahead(const ReadAheadMemory& memory) { read_ahead_ = memory; }
  /// Throws UserError where the host or a GPU has not the memory for `purpose` with batches of this size:
  /// what was planned, what there is and who says so, and which batch would fit. Asks for nothing of that
  /// memory.
  void check_memory(Plan::Purpose purpose, int64_t batch_size);
  /// What to know of a plan that the host can hold only by taking memory from others or swapping; "" as a
  /// rule.
  std::string memory_advice(Plan::Purpose purpose, int64_t batch_size);
  /// The memory of the parameters, and for training of the slots, once check_memory() has nothing against it;
  /// to be called once, before anything else is asked for.
  void allocate(Plan::Purpose purpose, int64_t batch_size);
  /// Parameters by their initializers and the run's seed.
  void initialize();

  /// The steps that were done when the slots of these weights (by path) began; those of others are as old as
  /// the run. Ahead of the first step.
  void set_slots_since(const std::map<std::string, int64_t>& since);

  /// Whether a running average of the weights is kept (train.callbacks: ema).
  bool has_average() const { return update().has_average(); }
  /// Where one is kept, it begins as the weights are now.
  void begin_average();
  /// Where one is kept, it becomes the weights, and the weights stand in its place: once before an
  /// evaluation, once after it.
  void swap_average();

  /// Of the first slot.
  const GradientSync& gradient_sync() const { return *syncs_[0]; }
  /// What people should know before the run of how the replicas' gradients are summed.
  std::vector<std::string> advice() const;
  /// What people should know of the steps since the last call: where devices have gone on without CUDA
  /// graphs; "" for nothing. Also while steps are under way.
  std::string take_advice();
  /// The first replica's plan for its first microbatch of a training step.
  const Plan& training_plan(int64_t batch_size);

  /// Seconds of each node for so many samples, by slot: the first replica's devices measure all layers at
  /// once (layer_times.h). Needs no allocate().
  std::vector<std::vector<double>> measure_layers(int64_t samples, double most_seconds);

  /// What float16's loss scaling has come to.
  GradientScale gradient_scale();
  void set_gradient_scale(const GradientScale& scale);

  /// What `purpose` with such batches takes, by replica and slot; of the first `replicas` only.
  std::vector<MemoryPlan> memory(Plan::Purpose purpose, int64_t batch_size,
                                 int replicas = std::numeric_limits<int>::max());
  /// What training takes of the host's memory besides, for copies of the state and sums of gradients.
  size_t copy_bytes() const;
  /// What has been allocated of each device's memory, in the same order.
  std::vector<MemoryUse> memory_use() const;

 private:
  /// An array of the state.
  struct StateArray {
    std::string name;
    int64_t size = 0;  // floats
    Buffer copy;       // in host memory, made when it is first needed
  };

  int slots() const { return layout_.slots(); }
  /// The executor of a member of the team: of its slot of its replica.
  Executor& executor_of(const Collective& member);
  GradientSync& sync_of(const Executor& executor) { return *syncs_[static_cast<size_t>(executor.slot())]; }
  /// What does not depend on slots.
  const Update& update() const { return updates_[0]; }
  void lay_replicas();
  void make_groups();
  void make_syncs();
  /// A whole array where it lies in the host's memory in one piece; empty where it does not.
  std::span<float> host_view(std::string_view array);
  /// Of a batch, of which other processes have theirs. Pipelines evaluate and predict it in microbatches,
  /// too.
  Range share_of(int rank, int64_t batch_size) const;
  Microbatches microbatches_of(int rank, Plan::Purpose purpose, int64_t batch_size) const;
  using StepWork = std::function<void(Executor&, const Microbatches&, GradientSync&)>;
  /// work(collective) on every slot's thread. Throws what the watchdog knows of a failure, before any other
  /// error.
  void run(const std::function<void(Collective&)>& work);
  void run_step(Plan::Purpose purpose, int64_t batch_size, const StepWork& work);
  bool has_finite_weights(Range range);
  HostArrays host_arrays(const std::function<std::span<float>(StateArray&)>& place);
  std::span<float> copy_of(StateArray& array);
  const BatchTotals& collect(int64_t samples, int back);
  void watch_devices();
  /// The first failure that a GPU or NCCL reports, "" where there is none. Any thread.
  std::string find_failure();
  /// The error of a run that stalls.
  std::string describe_stall() const;
  /// Lets whoever waits for another slot, replica or process throw Aborted. Any thread; returns at once.
  void abort_all() noexcept;
  /// The same where GPUs may never return; then the process ends with this error. Any thread.
  void give_up(const std::string& why) noexcept;
  MemoryPlan memory_of(Executor& executor, Plan::Purpose purpose, int64_t batch_size);
  /// What one memory will hold, the host's or a GPU's.
  struct Demand;
  std::vector<Demand> demands(Plan::Purpose purpose, int64_t batch_size);
  Demand scarcest(Plan::Purpose purpose, int64_t batch_size);
  std::string most_of_it(const Demand& demand) const;

  ExitDeadline deadline_;  // the first member: all others are destroyed in its time
  const RunConfig& config_;
  const Placement placement_;
  const bool on_gpu_;  // any device is a GPU
  World& world_;
  const World::LocalRanks ranks_;
  ModelLayout layout_;
  std::deque<Update> updates_;  // by slot
  const bool spin_;             // each slot's thread has a core of its own
  Team team_;
  std::vector<std::vector<std::unique_ptr<Collective>>> groups_;  // by slot, of its replicas; empty: the team
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<GradientSync>> syncs_;  // by slot
  std::vector<StateArray> state_;                     // the parameters, and once they are allocated the slots
  std::deque<int64_t> pending_;                       // the steps' samples, the oldest first
  BatchTotals totals_;
  std::atomic<int64_t> step_{0};  // the number of the one that was launched last, from 1
  size_t data_bytes_ = 0, host_bytes_ = 0;
  ReadAheadMemory read_ahead_;
  int64_t most_samples_ = std::numeric_limits<int64_t>::max();
  bool intact_ = true;
  std::atomic<bool> aborted_{false};
  std::unique_ptr<Watchdog> watchdog_;  // the last member: it looks at the others. Null on CPUs
};

}  // namespace dtrain
