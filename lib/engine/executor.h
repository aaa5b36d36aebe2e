// Runs a replica's instructions on one device, in the order of the pipeline schedule.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "collective/collective.h"
#include "data/loader/loader.h"
#include "distribute/microbatches.h"
#include "engine/captured_steps.h"
#include "engine/feed.h"
#include "engine/gradient_sync.h"
#include "engine/replica_plans.h"
#include "engine/watchdog.h"
#include "engine/worker.h"
#include "program/execute.h"

namespace dtrain {

/// The host's request to run one training step.
struct StepOrder {
  const Batch& batch;
  uint64_t seed = 0;
  StepNumbers numbers;
};

/// Seconds spent by a slot's thread, over all steps so far.
struct StepSeconds {
  double copying = 0;   // copying samples to the device, including reading and converting them
  double updating = 0;  // summing gradients and running the optimizer; 0 if a GPU does that asynchronously
};

/// Runs the plans of one slot. To be used by one thread, while the threads of the replica's other slots make
/// the same calls. On a GPU, training and evaluation steps are captured and replayed (CapturedSteps), in the
/// same steps on all replicas. Never captured: predict(), replicas with several slots, the shard levels
/// `gradients` and `parameters`, and training with synchronised layers.
class Executor {
 public:
  /// `member`: communicator of this slot in all replicas. `everyone`: communicator of all slots. Keeps
  /// references to all arguments.
  Executor(ReplicaPlans& plans, int slot, Worker& worker, Collective& member, Collective& everyone);

  int slot() const { return slot_; }
  Worker& worker() { return *worker_; }
  Collective& member() { return member_; }

  /// Computes totals() and the gradient of the mean loss over the whole batch, as far as this replica's
  /// microbatches contribute to it, and hands the gradient to `sync`. An empty microbatch contributes zeros.
  void train(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync);
  /// Computes totals() of this replica's part of the batch.
  void evaluate(const Batch& batch, const Microbatches& microbatches, GradientSync& sync);
  /// Computes this slot's outputs for this replica's part of the batch and writes them into `outputs`, which
  /// are views of the whole batch.
  void predict(const Batch& batch, const Microbatches& microbatches, GradientSync& sync,
               std::span<const View> outputs);

  /// Waits for the totals of the last train() or evaluate() (`back` 0) or of the one before it (`back` 1) and
  /// returns them. Valid until the next call. May be called on any thread while no other call runs.
  std::span<const double> totals(int back = 0);

  /// Returns whether all work of the last step was enqueued. Thread-safe.
  bool launched() const { return launched_; }
  /// `watchdog` is notified while samples are read.
  void set_watchdog(Watchdog* watchdog) { watchdog_ = watchdog; }

  const StepSeconds& step_seconds() const { return step_seconds_; }
  void forget_captured_graphs() { captured_.forget(); }
  /// CapturedSteps::take_advice(). May be called on any thread while no other call runs.
  std::string take_advice() { return captured_.take_advice(); }

  /// Bytes of the slot's gradients.
  size_t gradient_bytes() const;
  /// Device memory, in bytes, that plans for microbatches of these sizes take on this slot, in steps of
  /// `microbatches` microbatches.
  size_t arena_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes, int microbatches);
  /// Bytes of the totals of steps, on the device and on the host.
  size_t totals_bytes() const { return count_ * sizeof(double); }
  size_t host_totals_bytes() const { return 3 * totals_bytes(); }
  /// Bytes that a GPU needs in addition for batches of this size: two staging areas (upper bound: samples as
  /// float32) and the libraries' workspace.
  size_t staging_bytes(const Plan& plan);

 private:
  /// Arena sizes for plans of these microbatch sizes. The plans share one frame memory; each has link buffers
  /// for itself.
  ArenaBytes room_for(Plan::Purpose purpose, const std::set<int64_t>& sizes);
  using StepMode = CapturedSteps::Mode;
  /// Identifies a frame: its plan, whether it adds its gradients to those of earlier microbatches, and its
  /// place among the microbatches in flight.
  using FrameKey = std::tuple<PlanKey, bool, int>;

  StepMode next_mode(const BatchKind& kind);
  /// Barrier over all slots, required before any call in which one GPU waits for another: after it no thread
  /// may allocate memory (collective.h). If a slot's memory has moved or a capture was rejected, all slots
  /// drop their captured graphs.
  void meet();

  void begin(const StepNumbers& numbers);
  void begin(GradientSync& sync, const BatchKind& kind);
  /// Uploads the step's scalars; part of the captured graph.
  void send_numbers();
  /// Gathers samples that are kept on the device into the frame, unless it is null. Part of the captured
  /// graph.
  void gather(const Batch& batch, Range samples, const Frame* frame);
  void fetch_totals();
  void clear_totals();
  void complete(GradientSync& sync);
  /// Allocates memory for the plans of these microbatches, with as many in flight as the schedule allows.
  void make_room(Plan::Purpose purpose, const Microbatches& microbatches);
  /// Number of microbatches that have memory at the same time.
  size_t places(Plan::Purpose purpose, int microbatches) const;
  void grow(Buffer& memory, size_t bytes);
  /// Returns a frame with all pointers bound and with the batch's samples in this slot's columns.
  Frame& load(const Batch& batch, Range samples, Plan::Purpose purpose, GradientSync& sync, int index);
  FrameKey frame_key(Plan::Purpose purpose, Range samples, int index) const;
  /// Zeros the gradients, for a step whose first microbatch has no rows (and so neither have the later ones).
  void clear_gradients();
  /// Runs the frame's plan, which adds its gradients to those of earlier microbatches. Without a frame,
  /// contributes zeros and takes part in the collective calls of other replicas' layers.
  void compute(Frame* frame, const StepInfo& info, bool accumulated,
               const std::function<void(int64_t)>& on_ready);
  void train_microbatch(const StepOrder& order, Range samples, int index, int count, StepMode mode,
                        GradientSync& sync);
  /// Runs the slot's tasks of one step; for replicas with several slots.
  void train_microbatches(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync);
  void train_by_schedule(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync);
  /// Takes part in the collective calls of a microbatch of which only other replicas have rows.
  void meet_absent(Plan::Purpose purpose, Plan::Part part);
  void forward(const StepOrder& order, Range samples, int index, GradientSync& sync);
  void backward(Range samples, int index);
  /// Waits until the other slots have received the data sent from this place.
  void release(int place);
  void release_all();
  /// Calls CapturedSteps::capture(), and tells the gradient sync if the capture was rejected.
  void capture(int index, GradientSync& sync, const std::function<void()>& work);
  void download_output(const View& mine, Range samples, const View& whole);

  ReplicaPlans& plans_;
  const int slot_;
  Worker* const worker_;
  Collective &member_, &everyone_;
  StateShards* shards_ = nullptr;
  std::set<BatchKind> started_;  // kinds of batches that have run before, including the current one
  bool first_time_ = true;       // whether the current kind of batch runs for the first time
  Feed feed_;
  // Host buffers and events exist twice, so that one step can be prepared while the previous one computes.
  Buffer arena_, shared_, totals_, host_numbers_, host_totals_;
  Buffer wide_;  // staging for an output converted to float32 on its way to the host
  std::array<std::unique_ptr<Event>, 2> done_;
  StepSeconds step_seconds_;
  Watchdog* watchdog_ = nullptr;
  std::atomic<bool> launched_{true};
  size_t count_;            // number of totals
  size_t frame_bytes_ = 0;  // bytes from one place for a microbatch in flight to the next
  size_t turn_ = 0;         // index (0 or 1) into the double buffers
  std::map<FrameKey, Frame> frames_;
  std::vector<const Frame*> sent_;  // by place: the frame that may have sent data
  bool moved_ = false;              // whether memory was reallocated since the last meet()
  CapturedSteps captured_;
};

}  // namespace dtrain
