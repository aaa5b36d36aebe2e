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
  /// If the model needs_divisors(): by head, the factor that converts the gradient of a mean over rows to the
  /// gradient of a mean weighted by row weights. Else empty.
  std::vector<float> loss_factors = {};
};

/// Seconds spent by a slot's thread, over all steps so far.
struct StepSeconds {
  double copying = 0;   // copying samples to the device, including reading and converting them
  double updating = 0;  // summing gradients and running the optimizer; 0 if a GPU does that asynchronously
};

/// Runs the plans of one slot. To be used by one thread, while the threads of the replica's other slots make
/// the same calls. On a GPU, steps of training and evaluation are captured and replayed (CapturedSteps); all
/// replicas capture the same steps. Some steps are never captured: those of predict(), of replicas with
/// several slots and of the shard levels `gradients` and `parameters`, and training steps with synchronized
/// layers.
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

  /// Waits for the totals of the last call of train() or evaluate() (`back` 0) or of the call before it
  /// (`back` 1) and returns them. Valid until the next call. May be called on any thread while no other call
  /// runs.
  std::span<const double> totals(int back = 0) { return buffers_.totals(back); }

  /// Returns whether all work of the last step was enqueued. Thread-safe.
  bool launched() const { return launched_; }
  /// `watchdog` is notified while samples are read.
  void set_watchdog(Watchdog* watchdog) { watchdog_ = watchdog; }
  /// Lets steps end between two instructions when `world` reports that another process has failed.
  void set_world(const World& world) { world_ = &world; }

  const StepSeconds& step_seconds() const { return step_seconds_; }
  /// See CapturedSteps::take_advice(). May be called on any thread while no other call runs.
  std::string take_advice() { return captured_.take_advice(); }

  /// Returns the bytes of the slot's gradients.
  size_t gradient_bytes() const;
  /// Returns the bytes of device memory that plans for microbatches of each of these sizes and lengths take
  /// on this slot, in steps of `microbatches` microbatches.
  size_t arena_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes, const std::set<int64_t>& lengths,
                     int microbatches);
  /// Returns the bytes of host memory for the values that the plans of arena_bytes() send to and receive from
  /// other processes.
  size_t transfer_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes,
                        const std::set<int64_t>& lengths);
  /// Return the bytes of the totals of steps, on the device and on the host.
  size_t totals_bytes() const { return buffers_.bytes(); }
  size_t host_totals_bytes() const { return buffers_.host_bytes(); }
  /// Returns the bytes that a GPU needs in addition for the batches of `plan`: two staging areas (upper
  /// bound: samples as float32) and the libraries' workspace.
  size_t staging_bytes(const Plan& plan);

 private:
  using StepMode = CapturedSteps::Mode;
  using Part = Plan::Part;

  StepMode next_mode(const BatchKind& kind);
  /// Waits for the threads of all `slots`. This is required before any call in which one GPU waits for
  /// another, because no thread may allocate memory while a GPU waits (collective.h). If a slot's memory has
  /// moved or a capture was rejected, all slots drop their captured graphs.
  void synchronize_slots(Collective& slots);

  /// Throws Error if other processes have planned other transfers between slots than this process. The
  /// transfers depend on the devices and the number of cores.
  void compare_transfers(const BatchKind& kind, const Microbatches& microbatches);
  void begin(const StepNumbers& numbers, std::span<const float> loss_factors, const BatchKind& kind,
             const Microbatches& microbatches);
  /// Gathers samples that are kept on the device into the frame, unless it is null. Part of the captured
  /// graph.
  void gather(const Batch& batch, Range samples, const Frame* frame);
  /// Adds the penalties of regularizers to the totals, and copies the totals to the host. Part of the
  /// captured graph.
  void fetch_totals();
  void update_on_device();
  void update_on_host();
  /// Returns a frame with all pointers bound and with the batch's samples in this slot's columns; null for an
  /// empty microbatch. `overlaps`: the backward pass starts the all-reduces of the gradients.
  Frame* load(const Batch& batch, Range samples, Plan::Purpose purpose, int index, bool overlaps = false);
  /// Sets the gradients to zero, for a step whose first microbatch has no rows; later microbatches then have
  /// no rows either.
  void clear_gradients();
  /// Runs the frame's plan, which adds its gradients to those of earlier microbatches. Without a frame,
  /// contributes zeros and takes part in the collective calls of other replicas' layers.
  void compute(Frame* frame, const StepInfo& info, bool accumulates);
  void train_microbatch(const StepRequest& request, Range samples, int index, int count, StepMode mode);
  /// Runs the microbatches of one step: by the schedule if the replica has several slots, otherwise in order.
  void train_microbatches(const StepRequest& request, const Microbatches& microbatches);
  void train_by_schedule(const StepRequest& request, const Microbatches& microbatches);
  /// Runs forward for a frame; without one, takes part in the collective calls of a microbatch of which only
  /// other replicas have rows.
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
  const bool has_penalties_;  // whether the last total is for the penalties
  FramePool frames_;
  CapturedSteps captured_;
  Buffer wide_;                  // staging for an output converted to float32 on its way to the host
  std::set<BatchKind> started_;  // kinds of batches that have run before, including the current one
  bool first_time_ = true;       // whether the current kind of batch runs for the first time
  StepSeconds step_seconds_;
  Watchdog* watchdog_ = nullptr;
  const World* world_ = nullptr;
  std::atomic<bool> launched_{true};
};

}  // namespace dtrain
