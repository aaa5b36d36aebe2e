// One replica of the model: the workers that compute it, its plans by what they are for, its totals.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "collective/collective.h"
#include "data/loader.h"
#include "nn/plan.h"
#include "train/feed.h"
#include "train/gradient_sync.h"
#include "train/microbatches.h"
#include "train/worker.h"

namespace dtrain {

/// A step as the host describes it.
struct StepOrder {
  const Batch& batch;
  uint64_t seed = 0;
  StepNumbers numbers;
};

/// Seconds of a replica's thread, in all steps so far.
struct StepSeconds {
  double copying = 0;   // samples to the device, with what is read and converted on the way
  double updating = 0;  // summing gradients, and the optimizer; 0 where a GPU does so by itself
};

/// Has a worker for each of its devices, by slot. Used by one thread. A GPU's work for a batch size is done
/// by plain calls the first time, so that all that libraries load, choose and allocate is there; captured the
/// second time, in one graph a step (a microbatch of the share, where it has several); and replayed from then
/// on. All replicas do so in the same steps. Where layers meet the other replicas, which they do by way of
/// the host, training is never captured.
class Replica {
 public:
  /// `slots`: of each node of the graph; empty where all are on slot 0. `member`: of the group of all
  /// replicas. Refers to all but the workers.
  Replica(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
          std::span<const int> slots, std::vector<std::unique_ptr<Worker>> workers, Collective& member);

  int rank() const { return workers_[0]->rank(); }
  std::span<const std::unique_ptr<Worker>> workers() const { return workers_; }
  /// The first slot's, which the data come to.
  Worker& worker() { return *workers_[0]; }

  /// The gradient of the mean loss over the whole batch as far as this replica's microbatches of it go, and
  /// totals(), and what the gradient sync makes of them. An empty microbatch gives zeros.
  void train(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync);
  /// totals() of the share.
  void evaluate(const Batch& batch, Range share, GradientSync& sync);
  /// The outputs of the share, into these views of the whole batch.
  void predict(const Batch& batch, Range share, GradientSync& sync, std::span<const View> outputs);

  /// Waits for the totals of the train() or evaluate() before the last one, or of the last: `back` 1 or 0.
  /// Valid until the next call. Any thread, while none of these calls runs.
  std::span<const double> totals(int back = 0);

  const StepSeconds& step_seconds() const { return step_seconds_; }
  void forget_captured_graphs() { captured_graphs_.clear(); }
  const Plan& plan(const PlanKey& key);
  /// What the gradients of a slot take, in bytes.
  size_t gradient_bytes(int64_t microbatches) const;
  /// What the totals of steps take, in bytes: on the replica's devices, and of the host's memory.
  size_t totals_bytes() const { return memory_.size() * count_ * sizeof(double); }
  size_t host_totals_bytes() const { return 2 * totals_bytes() + count_ * sizeof(double); }
  /// What a GPU has besides, for batches of this share: two staging areas (of float32 samples at most), and
  /// the libraries' workspace.
  size_t staging_bytes(const PlanKey& key);

 private:
  /// What is the same whenever work is repeated: what it is for, how many samples, the first one's place, the
  /// global batch, the microbatch's number.
  using WorkKey = std::tuple<PlanKey, int64_t, int64_t, int>;
  /// How the work for batches of a size is done: plainly, while it is captured, or from the captured graph.
  enum class StepMode { eager, capture, replay };

  /// One slot's memory of its worker's device. Two of what goes to and fro, as one step is described while
  /// the one before computes.
  struct SlotMemory {
    Buffer arena, totals, microbatch_gradients, host_numbers, host_totals;
    std::array<std::unique_ptr<Event>, 2> done;
  };

  StepMode next_mode(Plan::Purpose purpose, int64_t batch_size);
  /// The replicas meet before anything that makes one's GPU wait for another's: from here on nobody allocates
  /// any more (collective.h). And where the memory of one has moved, all forget what they captured.
  void meet();

  void begin(const StepNumbers& numbers);
  void end();
  void clear_totals();
  void complete(GradientSync& sync);
  void grow_arena(size_t slot, size_t bytes);
  /// A frame with every pointer in place and the batch's samples in its columns. `accumulated`: its gradients
  /// go to the slots' microbatch_gradients, to be added to those of the microbatches before.
  Frame& load(const Batch& batch, Range samples, Plan::Purpose purpose, GradientSync& sync, bool accumulated);
  float* gradients(size_t slot, bool accumulated);
  /// Runs the frame's plan, and adds its gradients to those of the microbatches before; zeros without a
  /// frame, which others' layers are met with.
  void compute(Frame* frame, const StepInfo& info, bool accumulated,
               const std::function<void(int64_t)>& on_ready);
  void train_microbatch(const StepOrder& order, Range samples, int index, int count, StepMode mode,
                        GradientSync& sync);
  /// What was captured under this key, or else the work itself.
  void run(const WorkKey& key, const std::function<void()>& work);
  void download_output(const View& mine, Worker& worker, Range share, const View& whole);

  const Graph& graph_;
  const ParameterLayout& layout_;
  std::span<const Head> heads_;
  std::span<const int> slots_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Collective& member_;
  Collective* met_by_layers_;  // in training; null where none does
  std::vector<Ops*> ops_;      // of the workers
  Feed feed_;
  std::vector<SlotMemory> memory_;
  StepSeconds step_seconds_;
  size_t count_;     // of totals
  size_t turn_ = 0;  // of what there are two of
  std::vector<double> totals_;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;
  std::map<std::pair<PlanKey, bool>, Frame> frames_;  // by plan, and whether the gradients are accumulated
  bool moved_ = false;                                // an arena, since the replicas met
  std::map<PlanKey, StepMode> modes_;                 // by purpose and size of the whole batch
  std::map<WorkKey, std::unique_ptr<CapturedGraph>> captured_graphs_;
};

}  // namespace dtrain
