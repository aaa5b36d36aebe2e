// What one device computes of a replica: the instructions of its slot, in the schedule's order.
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
#include "nn/plan.h"

namespace dtrain {

/// A step as the host describes it.
struct StepOrder {
  const Batch& batch;
  uint64_t seed = 0;
  StepNumbers numbers;
};

/// Seconds of a slot's thread, in all steps so far.
struct StepSeconds {
  double copying = 0;   // samples to the device, with what is read and converted on the way
  double updating = 0;  // summing gradients, and the optimizer; 0 where a GPU does so by itself
};

/// Used by one thread, while those of the replica's other slots make the same calls. On a GPU, steps of
/// training and evaluation are captured and replayed (CapturedSteps), in the same steps on all replicas.
/// Never captured are predict(), replicas of several slots, the shard levels `gradients` and `parameters`,
/// and training with synchronised layers.
class Executor {
 public:
  /// `member`: of the group of this slot in all replicas. `everyone`: of that of all slots. Refers to all.
  Executor(ReplicaPlans& plans, int slot, Worker& worker, Collective& member, Collective& everyone);

  int slot() const { return slot_; }
  Worker& worker() { return *worker_; }
  Collective& member() { return member_; }

  /// The gradient of the mean loss over the whole batch as far as this replica's microbatches of it go, and
  /// totals(), and what the gradient sync makes of them. An empty microbatch gives zeros.
  void train(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync);
  /// totals() of the share.
  void evaluate(const Batch& batch, const Microbatches& microbatches, GradientSync& sync);
  /// This slot's outputs of the share, into these views of the whole batch.
  void predict(const Batch& batch, const Microbatches& microbatches, GradientSync& sync,
               std::span<const View> outputs);

  /// Waits for the totals of the train() or evaluate() before the last one, or of the last: `back` 1 or 0.
  /// Valid until the next call. Any thread, while none of these calls runs.
  std::span<const double> totals(int back = 0);

  /// Whether the last step has been given to the device as a whole. Any thread.
  bool launched() const { return launched_; }
  /// `watchdog` is told of the samples that are read.
  void set_watchdog(Watchdog* watchdog) { watchdog_ = watchdog; }

  const StepSeconds& step_seconds() const { return step_seconds_; }
  void forget_captured_graphs() { captured_.forget(); }
  /// CapturedSteps::take_advice(). Any thread, while none of these calls runs.
  std::string take_advice() { return captured_.take_advice(); }

  /// The bytes that the slot's gradients take.
  size_t gradient_bytes() const;
  /// What plans for microbatches of these sizes take of the slot's memory, in bytes, where a step has so
  /// many.
  size_t arena_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes, int microbatches);
  /// What the totals of steps take, in bytes: on the device, and of the host's memory.
  size_t totals_bytes() const { return count_ * sizeof(double); }
  size_t host_totals_bytes() const { return 3 * totals_bytes(); }
  /// What a GPU has besides, for batches of this share: two staging areas (of float32 samples at most), and
  /// the libraries' workspace.
  size_t staging_bytes(const Plan& plan);

 private:
  /// Of plans for microbatches of these sizes: they have the memory of frames in turn, and links of their
  /// own.
  ArenaBytes room_for(Plan::Purpose purpose, const std::set<int64_t>& sizes);
  using StepMode = CapturedSteps::Mode;
  /// What a frame is for: its plan, whether its gradients are to be added to those of microbatches before it,
  /// and in which of the places for microbatches under way it lies.
  using FrameKey = std::tuple<PlanKey, bool, int>;

  StepMode next_mode(const BatchKind& kind);
  /// A barrier over all slots before anything that makes one GPU wait for another: after it nobody may
  /// allocate (collective.h). Where the memory of one has moved, or one's capture was refused, all drop their
  /// captured graphs.
  void meet();

  void begin(const StepNumbers& numbers);
  void begin(GradientSync& sync, const BatchKind& kind);
  /// What the host says of the step comes to the device; and the totals come to the host. Captured.
  void send_numbers();
  /// The samples that are kept on the device come into the frame, where there is one. Captured.
  void gather(const Batch& batch, Range samples, const Frame* frame);
  void fetch_totals();
  void clear_totals();
  void complete(GradientSync& sync);
  /// Room for the plans of these microbatches, of which as many as may be are under way at once.
  void make_room(Plan::Purpose purpose, const Microbatches& microbatches);
  /// The number of microbatches that there is room for at once.
  size_t places(Plan::Purpose purpose, int microbatches) const;
  void grow(Buffer& memory, size_t bytes);
  /// A frame with every pointer in place and the batch's samples in the slot's columns.
  Frame& load(const Batch& batch, Range samples, Plan::Purpose purpose, GradientSync& sync, int index);
  FrameKey frame_key(Plan::Purpose purpose, Range samples, int index) const;
  /// What a step begins with where its first microbatch has no rows: the later ones have none either.
  void clear_gradients();
  /// Runs the frame's plan, which adds its gradients to those of the microbatches before; zeros without a
  /// frame, which others' layers are met with.
  void compute(Frame* frame, const StepInfo& info, bool accumulated,
               const std::function<void(int64_t)>& on_ready);
  void train_microbatch(const StepOrder& order, Range samples, int index, int count, StepMode mode,
                        GradientSync& sync);
  /// The slot's tasks of a step, where there are several slots.
  void train_microbatches(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync);
  void train_by_schedule(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync);
  /// Without rows of a microbatch, of which other replicas have some: what they do together.
  void meet_absent(Plan::Purpose purpose, Plan::Part part);
  void forward(const StepOrder& order, Range samples, int index, GradientSync& sync);
  void backward(Range samples, int index);
  /// Waits until the other slots have what was sent from this place.
  void release(int place);
  void release_all();
  /// CapturedSteps::capture(), and what a refusal means for the gradient sync.
  void capture(int index, GradientSync& sync, const std::function<void()>& work);
  void download_output(const View& mine, Range samples, const View& whole);

  ReplicaPlans& plans_;
  const int slot_;
  Worker* const worker_;
  Collective &member_, &everyone_;
  StateShards* shards_ = nullptr;
  std::set<BatchKind> started_;  // that have been computed, or are now
  bool first_time_ = true;       // for the kind of batch that is computed now
  Feed feed_;
  // Two of what goes to and fro, as one step is described while the one before computes.
  Buffer arena_, shared_, totals_, host_numbers_, host_totals_;
  Buffer wide_;  // an output as float32, on its way to the host
  std::array<std::unique_ptr<Event>, 2> done_;
  StepSeconds step_seconds_;
  Watchdog* watchdog_ = nullptr;
  std::atomic<bool> launched_{true};
  size_t count_;            // of totals
  size_t frame_bytes_ = 0;  // from one place for a microbatch under way to the next
  size_t turn_ = 0;         // of what there are two of
  std::map<FrameKey, Frame> frames_;
  std::vector<const Frame*> sent_;  // the frame that may have sent something, by place
  bool moved_ = false;              // the memory, since the last meet()
  CapturedSteps captured_;
};

}  // namespace dtrain
