// One replica: its plans by batch size, its gradients, its totals.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "collective/collective.h"
#include "data/loader.h"
#include "nn/plan.h"
#include "train/feed.h"
#include "train/gradient_sync.h"
#include "train/worker.h"

namespace dtrain {

/// A step as the host describes it.
struct StepOrder {
  const Batch& batch;
  uint64_t seed = 0;
  int64_t pieces = 1;  // that each share is worked through in
  StepNumbers numbers;
};

/// Used by its own thread. A GPU's work for a batch size is done by plain calls the first time, so that all
/// that libraries load, choose and allocate is there; captured the second time, in one graph a step (a piece
/// of the share, where it has several); and replayed from then on. All replicas do so in the same steps.
class Replica : public Worker {
 public:
  Replica(int rank, const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
          std::unique_ptr<Context> context, const GpuMath& math);

  /// The gradient of the mean loss over the whole batch as far as `share` of it goes, and totals(), and what
  /// the gradient sync makes of them. An empty share gives zeros.
  void train(const StepOrder& order, Range share, GradientSync& sync, Collective& member);
  /// totals() of the share.
  void evaluate(const Batch& batch, Range share, GradientSync& sync, Collective& member);
  /// The outputs of the share, into these views of the whole batch.
  void predict(const Batch& batch, Range share, GradientSync& sync, std::span<const View> outputs);

  /// Waits for the totals of the train() or evaluate() before the last one, or of the last: `back` 1 or 0.
  /// Valid until two more of those. Any thread, while none of these calls runs.
  std::span<const double> totals(int back = 0);

  void forget_captured_graphs() { captured_graphs_.clear(); }
  /// Bytes that a plan's arena needs, and that gradients take.
  size_t arena_bytes(int64_t batch, Plan::Purpose purpose) { return plan(batch, purpose).arena_bytes(); }
  size_t gradient_bytes(int64_t pieces) const;
  /// What a GPU has besides, for batches of this share: two staging areas (of float32 samples at most), and
  /// the libraries' workspace.
  size_t staging_bytes(int64_t share, Plan::Purpose purpose);

 private:
  /// What is the same whenever a piece of work is repeated: purpose, samples, the first one's place, the
  /// global batch, the piece's number.
  using WorkKey = std::tuple<Plan::Purpose, int64_t, int64_t, int64_t, int>;

  /// How often all replicas have done this for a batch of this size.
  enum class Time { first, second, later };
  Time count(Plan::Purpose purpose, int64_t batch_size);
  /// The replicas meet before anything that makes one's GPU wait for another's: from here on nobody allocates
  /// any more (collective.h). And where the memory of one has moved, all forget what they captured.
  void meet(Collective& member);

  void begin(const StepNumbers& numbers);
  void end();
  void clear_totals();
  Plan& plan(int64_t batch, Plan::Purpose purpose);
  /// The plan with every pointer in place and the batch's samples in its columns.
  Plan& ready(const Batch& batch, Range samples, Plan::Purpose purpose, GradientSync& sync, float* gradients);
  void train_piece(const StepOrder& order, Range piece, int part, int parts, Time time, GradientSync& sync,
                   Collective& member);
  /// What was captured under this key, or else the work itself.
  void replay(const WorkKey& key, const std::function<void()>& work);
  void fetch(const View& mine, Range share, const View& whole);

  const Graph& graph_;
  const ParameterLayout& layout_;
  std::span<const Head> heads_;
  Feed feed_;
  Buffer arena_, piece_gradients_, totals_, host_numbers_, host_totals_;
  size_t count_;  // of totals
  int slot_ = 0;  // of the host's numbers and totals
  std::map<std::pair<int64_t, Plan::Purpose>, std::unique_ptr<Plan>> plans_;
  bool moved_ = false;  // the arena, since the replicas met
  std::map<std::pair<Plan::Purpose, int64_t>, Time> times_;
  std::map<WorkKey, std::unique_ptr<CapturedGraph>> captured_graphs_;
};

}  // namespace dtrain
