// Runs a replica's instructions on one device, in the order of the pipeline schedule.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collective/collective.h"
#include "data/loader/loader.h"
#include "distribute/microbatches.h"
#include "engine/captured_steps.h"
#include "engine/feed.h"
#include "engine/frame_pool.h"
#include "engine/replica_plans.h"
#include "engine/step_buffers.h"
#include "engine/update/slot_state.h"
#include "engine/watchdog.h"
#include "engine/worker.h"

namespace dtrain {

/// The host's request to run one training step.
struct StepRequest {
  const Batch& batch;
  uint64_t seed = 0;
  StepNumbers numbers;
  /// One factor per head. The factor converts the gradient of a mean over rows to the gradient of a mean that
  /// is weighted by the row weights. Empty if needs_divisors() is false for the model.
  std::vector<float> loss_factors = {};
};

/// Seconds spent by a slot's thread, over all steps so far.
struct StepSeconds {
  double copying = 0;   // copying samples to the device, including reading and converting them
  double updating = 0;  // summing gradients and running the optimizer; 0 if a GPU does that asynchronously
};

/// Runs the plans of one slot. To be used by one thread, while the threads of the replica's other slots make
/// the same calls. On a GPU, steps of training and evaluation are captured and replayed (CapturedSteps). All
/// replicas capture the same steps. Some steps are never captured: steps of predict(), steps of replicas with
/// several slots, steps with the shard level `gradients` or `parameters`, and training steps of models with
/// synchronized layers.
class Executor {
 public:
  /// `replicas`: the communicator that joins this slot's executors, one per replica of all processes.
  /// `waiting`: the communicator of all slots whose devices may wait for each other. `here`: the communicator
  /// of all slots of this process. Keeps references to all arguments.
  Executor(ReplicaPlans& plans, int slot, Worker& worker, SlotState& state, Collective& replicas,
           Collective& waiting, Collective& here);

  int slot() const { return slot_; }
  Worker& worker() { return worker_; }
  SlotState& state() { return state_; }

  /// Computes totals() and this replica's part of the gradient of the mean loss over the whole batch, and
  /// updates the parameters. An empty microbatch contributes zeros.
  void train(const StepRequest& request, const Microbatches& microbatches);
  /// Computes totals() of this replica's part of the batch.
  void evaluate(const Batch& batch, const Microbatches& microbatches);
  /// Computes this slot's outputs for this replica's part of the batch and writes them into `outputs`, which
  /// are views of the whole batch.
  void predict(const Batch& batch, const Microbatches& microbatches, std::span<const View> outputs);

  /// Waits for the totals of a call of train() or evaluate() and returns them. `back`: 0 for the last call, 1
  /// for the call before it. The result is valid until the next call. May be called on any thread while no
  /// other call runs.
  std::span<const double> totals(int back = 0) { return buffers_.totals(back); }

  /// Returns the error of the device if it has failed; otherwise "". Thread-safe.
  std::string failure() const { return buffers_.failure(); }
  /// Returns whether all work of the last step was enqueued. Thread-safe.
  bool launched() const { return launched_; }
  /// `watchdog` is notified while samples are read.
  void set_watchdog(Watchdog* watchdog) { watchdog_ = watchdog; }
  /// If `world` reports that another process has failed, steps end before their next instruction.
  void set_world(const World& world) { world_ = &world; }

  const StepSeconds& step_seconds() const { return step_seconds_; }
  /// Returns the message about the last rejected capture (CapturedSteps::take_advice()). May be called on any
  /// thread while no other call runs.
  std::string take_advice() { return captured_.take_advice(); }

  /// Returns the bytes of the slot's gradients.
  size_t gradient_bytes() const;
  /// Returns the bytes of device memory that this slot needs for the plans of all these microbatch sizes and
  /// sequence lengths, if a step has `microbatches` microbatches.
  size_t arena_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes, const std::set<int64_t>& lengths,
                     int microbatches);
  /// Returns the bytes of host memory for the values that the same plans send to other processes or receive
  /// from them.
  size_t transfer_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes,
                        const std::set<int64_t>& lengths);
  /// Return the bytes that the totals and the scalars of steps take on the device and on the host
  /// (StepBuffers).
  size_t totals_bytes() const { return buffers_.bytes(); }
  size_t host_totals_bytes() const { return buffers_.host_bytes(); }
  /// Returns the additional bytes that a GPU needs for the batches of `plan`: two staging buffers and the
  /// workspace of the GPU libraries. The size of the staging buffers is an upper bound, which assumes samples
  /// in float32.
  size_t staging_bytes(const Plan& plan);

 private:
  using StepMode = CapturedSteps::Mode;
  using Part = Plan::Part;

  StepMode next_mode(const BatchKind& kind);
  /// Waits until the threads of all `slots` have called this function. Must be called before any call in
  /// which one GPU waits for another, because no thread may allocate memory while a GPU waits (collective.h).
  /// If the memory of any slot was reallocated, all slots destroy all their captured graphs. If a capture was
  /// rejected, all slots destroy the captured graphs of the current kind of batch.
  void synchronize_slots(Collective& slots);

  /// Throws Error if another process has planned different transfers between slots. The plans can differ
  /// because they depend on the devices and the number of cores of each process.
  void compare_transfers(const BatchKind& kind, const Microbatches& microbatches);
  void begin(const StepNumbers& numbers, std::span<const float> loss_factors, const BatchKind& kind,
             const Microbatches& microbatches);
  /// Copies samples that are kept on the device into the frame. Does nothing if the frame is null. The copy
  /// is part of the captured graph.
  void gather(const Batch& batch, Range samples, const Frame* frame);
  /// Adds the penalties of regularizers to the totals, and copies the totals to the host. Both are part of
  /// the captured graph.
  void fetch_totals();
  void update_on_device();
  void update_on_host();
  /// Returns a frame for the microbatch. The frame's pointers are bound, and the columns on this slot contain
  /// the samples. Returns null if the microbatch is empty. `overlaps`: whether the backward pass starts the
  /// all-reduces of the gradients, so that they overlap with the backward pass.
  Frame* load(const Batch& batch, Range samples, Plan::Purpose purpose, int index, bool overlaps = false);
  /// Sets the gradients to zero. Used if the first microbatch of a step has no rows. In this case, the later
  /// microbatches have no rows, either.
  void clear_gradients();
  /// Runs the frame's plan, which adds its gradients to those of earlier microbatches. If `frame` is null,
  /// the microbatch has no rows on this replica: its gradients are zeros, but this replica still takes part
  /// in the collective calls that the layers of other replicas make.
  void compute(Frame* frame, const StepInfo& info, bool accumulates);
  void train_microbatch(const StepRequest& request, Range samples, int index, int count, StepMode mode);
  /// Runs the microbatches of one step: by the schedule if the replica has several slots, otherwise in order.
  void train_microbatches(const StepRequest& request, const Microbatches& microbatches);
  void train_by_schedule(const StepRequest& request, const Microbatches& microbatches);
  /// Runs the forward pass of a frame. If `frame` is null, only other replicas have rows of the microbatch:
  /// this replica just takes part in their collective calls.
  void forward(Frame* frame, const StepInfo& info, Plan::Purpose purpose);
  void join_collectives(Plan::Purpose purpose, Part part);
  void train_forward(const StepRequest& request, Range samples, int index);
  void train_backward(Range samples, int index);
  void download_output(const View& mine, Range samples, const View& whole);

  ReplicaPlans& plans_;
  const int slot_;
  Worker& worker_;
  SlotState& state_;
  Collective &replicas_, &waiting_, &here_;
  StateShards* const shards_;
  Feed feed_;
  StepBuffers buffers_;
  const bool has_penalties_;  // whether the last entry of the totals is the penalty
  FramePool frames_;
  CapturedSteps captured_;
  // Staging buffer for an output that is converted to float32 before it is copied to the host.
  Buffer wide_;
  std::set<BatchKind> started_;  // kinds of batches that have run before, including the current one
  bool first_time_ = true;       // whether the current kind of batch runs for the first time
  StepSeconds step_seconds_;
  Watchdog* watchdog_ = nullptr;
  const World* world_ = nullptr;
  std::atomic<bool> launched_{true};
};

}  // namespace dtrain
