// The replicas of a mirrored run (one, for `single`): the model laid on its devices, able to make a step.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/team.h"
#include "data/loader.h"
#include "device/device.h"
#include "nn/parameters.h"
#include "nn/plan.h"
#include "train/gradient_sync.h"
#include "train/replica.h"
#include "train/run_config.h"
#include "train/strategy.h"
#include "train/update.h"

namespace dtrain {

/// What a device will hold, in bytes, before anything is allocated there.
struct MemoryPlan {
  DeviceId device;
  int replica = 0;
  int64_t share = 0;  // samples of a full batch
  int threads = 1;
  size_t parameters = 0, slots = 0, gradients = 0, activations = 0;
  size_t staging = 0;  // batches on their way to a GPU, and its libraries' workspace
  size_t data = 0;     // samples that a GPU keeps
  size_t metrics = 0;  // sums of losses and metrics
  size_t total() const { return parameters + slots + gradients + activations + staging + data + metrics; }
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

/// The replicas of this process. Owned and called by one thread, which is replica 0's as well. A step: every
/// replica computes the gradient of its share of the global mean loss, and the gradient sync
/// (train/gradient_sync.h) makes one update of them.
class Replicas {
 public:
  Replicas(const RunConfig& config, Placement placement, World& world = single_process());
  ~Replicas();

  int size() const { return team_.size(); }
  World& world() const { return world_; }

  /// Begins a step; `step` is the global one, from 0. After allocate(training). At most most_pending() + 1
  /// steps may be under way.
  void launch(const Batch& batch, int64_t step, double learning_rate);
  /// Waits for the oldest step that is under way. Valid until the next call.
  const BatchTotals& finish();
  /// Steps under way.
  int pending() const { return static_cast<int>(pending_.size()); }
  /// What the first replica's thread has spent in all steps so far.
  const StepSeconds& step_seconds() const { return replicas_.front()->step_seconds(); }
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

  const ParameterLayout& layout() const { return layout_; }
  /// Part of an array of the state, by its name: kParameters or a slot's. `range` is of the layout.
  void read_state(std::string_view array, Range range, float* to) { sync_->read_state(array, range, to); }
  /// To be followed by finish_writing(), once after the last call.
  void write_state(std::string_view array, Range range, const float* from) {
    sync_->write_state(array, range, from);
  }
  void finish_writing();
  /// As GradientSync::read_gradient().
  bool read_gradient(Range range, float* to) { return sync_->read_gradient(range, to); }
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

  /// Whether a running average of the weights is kept (train.callbacks: ema).
  bool has_average() const { return update_.has_average(); }
  /// Where one is kept, it begins as the weights are now.
  void begin_average();
  /// Where one is kept, it becomes the weights, and the weights stand in its place: once before an
  /// evaluation, once behind it.
  void swap_average();

  const GradientSync& gradient_sync() const { return *sync_; }
  /// What people should know before the run of how the replicas meet.
  std::vector<std::string> advice() const;
  /// The first replica's plan for its first microbatch of a training step.
  const Plan& training_plan(int64_t batch_size);

  /// What float16's loss scaling has come to.
  GradientScale gradient_scale();
  void set_gradient_scale(const GradientScale& scale);

  /// What that takes, by rank.
  std::vector<MemoryPlan> memory(Plan::Purpose purpose, int64_t batch_size);

 private:
  /// An array of the state.
  struct StateArray {
    std::string name;
    int64_t size = 0;  // floats
    Buffer copy;       // in host memory, made when it is first needed
  };

  Replica& replica_of(const Collective& member) { return *replicas_[static_cast<size_t>(member.rank())]; }
  /// The member's share of a batch, of which other processes have theirs.
  /// Of a batch as it is evaluated and predicted; and as it is trained.
  Range share_of(int rank, int64_t batch_size) const;
  Microbatches microbatches_of(int rank, int64_t batch_size) const;
  void run_step(const std::function<void(Collective&)>& work);
  HostArrays host_arrays(const std::function<std::span<float>(StateArray&)>& place);
  std::span<float> copy_of(StateArray& array);
  const BatchTotals& collect(int64_t samples, int back);
  MemoryPlan memory_of(Replica& replica, Plan::Purpose purpose, int64_t batch_size);
  /// What one memory will hold, the host's or a GPU's.
  struct Demand;
  std::vector<Demand> demands(Plan::Purpose purpose, int64_t batch_size);
  Demand scarcest(Plan::Purpose purpose, int64_t batch_size);
  int64_t largest_batch(Plan::Purpose purpose, int64_t fits, double room, int64_t does_not, double excess);

  const RunConfig& config_;
  const Placement placement_;
  World& world_;
  const World::LocalRanks ranks_;
  ParameterLayout layout_;
  Update update_;
  Team team_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::unique_ptr<GradientSync> sync_;
  std::vector<StateArray> state_;  // the parameters, and once they are allocated the slots
  std::deque<int64_t> pending_;    // the steps' samples, the oldest first
  BatchTotals totals_;
  size_t data_bytes_ = 0, host_bytes_ = 0;
  ReadAheadMemory read_ahead_;
  int64_t most_samples_ = std::numeric_limits<int64_t>::max();
  bool intact_ = true;
};

}  // namespace dtrain
