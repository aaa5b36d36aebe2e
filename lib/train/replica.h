// One replica: its context, its plans by batch size, its gradients.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "collective/collective.h"
#include "data/loader.h"
#include "device/device.h"
#include "nn/parameters.h"
#include "nn/plan.h"

namespace dtrain {

/// Used by its own thread, the one that called `attach`.
class Replica {
 public:
  Replica(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
          std::unique_ptr<Context> context);

  void attach() { context_->attach(); }
  Context& context() { return *context_; }
  Ops& ops() { return *ops_; }

  /// The gradient of the mean loss over the whole batch as far as `share` of it goes, worked through in
  /// `pieces` parts; and totals(). An empty share gives zeros.
  void compute_gradients(const Batch& batch, Range share, int64_t pieces, uint64_t seed, uint64_t step,
                         const float* values);
  /// totals() of the share.
  void evaluate(const Batch& batch, Range share, const float* values);
  /// The outputs of the share, into these views of the whole batch.
  void predict(const Batch& batch, Range share, const float* values, std::span<const View> outputs);

  float* gradients() { return gradients_.f32(); }
  const std::vector<double>& totals() const { return totals_; }
  /// Bytes that a plan's arena needs, and that gradients take.
  size_t arena_bytes(int64_t batch, Plan::Purpose purpose) { return plan(batch, purpose).arena_bytes(); }
  size_t gradient_bytes(int64_t pieces) const;

 private:
  Plan& plan(int64_t batch, Plan::Purpose purpose);
  /// The plan with every pointer in place and the batch's samples in its columns.
  Plan& ready(const Batch& batch, Range samples, Plan::Purpose purpose, const float* values,
              float* gradients);
  void clear_totals();
  void fetch_totals();

  const Graph& graph_;
  const ParameterLayout& layout_;
  std::span<const Head> heads_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
  std::map<std::pair<int64_t, Plan::Purpose>, std::unique_ptr<Plan>> plans_;
  Buffer arena_, gradients_, piece_gradients_, device_totals_;
  std::vector<double> totals_;
};

}  // namespace dtrain
