// One device's part of a replica: its context and operations, and where gradients and a step's numbers are.
#pragma once

#include <memory>

#include "device/device.h"
#include "nn/parameters.h"
#include "ops/ops.h"

namespace dtrain {

/// A context, its operations, and in its memory what computing and using a gradient takes. Used by the thread
/// of the replica of its rank.
class Worker {
 public:
  Worker(int rank, std::unique_ptr<Context> context, const GpuMath& math, const ParameterLayout& layout);

  int rank() const { return rank_; }
  Context& context() { return *context_; }
  Ops& ops() { return *ops_; }
  bool on_gpu() const { return context_->device().kind == DeviceId::Kind::gpu; }

  /// layout.with_gradient() floats; taken when they are first asked for.
  float* gradients();
  StepState* state() { return static_cast<StepState*>(state_.data()); }
  /// One double.
  double* squares() { return static_cast<double*>(sums_.data()); }
  /// One double: the sum of the weights of all rows of the global batch.
  double* weights() { return squares() + 1; }
  /// Where the plan leaves the sum of the weights of its own rows; null where they have none.
  const double* own_weights() const { return own_weights_; }
  /// Doubles for Update::find_directions(), so many as any range of the layout has terms at most.
  double* parameter_squares() { return squares() + 2; }
  size_t most_parameter_squares() const { return most_parameter_squares_; }
  void set_own_weights(const double* weights) { own_weights_ = weights; }

 private:
  int rank_;
  int64_t with_gradient_;
  size_t most_parameter_squares_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
  Buffer gradients_, state_, sums_;
  const double* own_weights_ = nullptr;
};

}  // namespace dtrain
