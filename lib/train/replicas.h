// The replicas of a mirrored run (one, for `single`): the model laid on its devices, able to make a step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collective/team.h"
#include "data/loader.h"
#include "device/device.h"
#include "nn/parameters.h"
#include "nn/plan.h"
#include "train/run_config.h"

namespace dtrain {

class Replica;

/// What a device will hold, in bytes, before anything is allocated there.
struct MemoryPlan {
  DeviceId device;
  int replica = 0;
  int64_t share = 0;  // samples of a full batch
  int threads = 1;
  size_t parameters = 0, slots = 0, gradients = 0, activations = 0;
};

/// Sums over a global batch: for each of RunConfig::total_names the sum over rows, and how many rows.
struct BatchTotals {
  std::vector<double> sums;
  int64_t samples = 0;
};

/// Owned and called by one thread, which is replica 0's as well. The parameters and the optimizer's slots
/// stand once in the host's memory, shared by all CPU replicas; each replica has its own gradients and
/// activations. A step: every replica computes the gradient of its share of the global mean loss, the
/// gradients are summed in the order of ranks, each replica updates its part of the parameters.
class Replicas {
 public:
  Replicas(const RunConfig& config, const std::vector<DeviceId>& devices);
  ~Replicas();

  int size() const { return team_.size(); }

  /// Trains on one batch; `step` is the global step from 0. After allocate_slots().
  const BatchTotals& train(const Batch& batch, int64_t step, double learning_rate);
  /// Loss and metrics of one batch, as at inference.
  const BatchTotals& evaluate(const Batch& batch);
  /// The outputs of one batch, plain and in order, into `outputs` (one view an output, of shape
  /// [batch.size(), ...]).
  void predict(const Batch& batch, std::span<const View> outputs);

  const ParameterLayout& layout() const { return layout_; }
  /// Host memory; not to be touched while a step runs.
  std::span<float> values() { return {values_.f32(), static_cast<size_t>(layout_.size())}; }
  /// The optimizer's slots, in its order; for training only, so that evaluation does without them.
  void allocate_slots();
  std::span<float> slot(size_t index) {
    return {slots_[index].f32(), static_cast<size_t>(layout_.trained())};
  }

  std::vector<MemoryPlan> memory();

 private:
  friend class Replica;
  void update(Replica& replica, Collective& member, int64_t step, double learning_rate);
  void collect(int64_t samples);

  const RunConfig& config_;
  ParameterLayout layout_;
  std::vector<Range> statistics_;  // runs of moving averages with one momentum
  std::vector<float> momenta_;
  Team team_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  Buffer values_;
  std::vector<Buffer> slots_;
  BatchTotals totals_;
};

}  // namespace dtrain
