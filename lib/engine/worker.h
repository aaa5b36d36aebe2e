// One device of a replica: its context and operations, its gradients and the scalars of a step.
#pragma once

#include <memory>

#include "device/device.h"
#include "nn/parameters.h"
#include "ops/ops.h"

namespace dtrain {

/// A context with its operations and the device memory for computing and applying gradients. Used by one
/// thread of the replica `rank`.
class Worker {
 public:
  /// `independent_rows`: see make_cpu_ops().
  Worker(int rank, std::unique_ptr<Context> context, const GpuMath& math, const ParameterLayout& layout,
         bool independent_rows = false);

  int rank() const { return rank_; }
  Context& context() { return *context_; }
  Ops& ops() { return *ops_; }
  bool on_gpu() const { return context_->on_gpu(); }

  /// Returns layout.with_gradient() floats. The first call allocates them, and must not be concurrent with
  /// other calls.
  float* gradients();
  StepState* state() { return static_cast<StepState*>(state_.data()); }
  /// Returns the address, in device memory, of the sum of squares of the gradient.
  double* squares() { return static_cast<double*>(sums_.data()); }
  /// Returns the address, in device memory, of the sum of the weights of all rows of the global batch.
  double* weights() { return squares() + 1; }
  /// Returns the device address to which the plan writes the sum of the weights of this worker's rows.
  /// Returns null if rows have no weights.
  const double* row_weights() const { return row_weights_; }
  /// Returns device memory for the sums that Update::find_directions() writes. The memory has one double for
  /// each term, and is large enough for any range of the layout.
  double* parameter_squares() { return squares() + 2; }
  size_t most_parameter_squares() const { return most_parameter_squares_; }
  void set_row_weights(const double* weights) { row_weights_ = weights; }

 private:
  int rank_;
  int64_t with_gradient_;
  size_t most_parameter_squares_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
  Buffer gradients_, state_, sums_;
  const double* row_weights_ = nullptr;
};

}  // namespace dtrain
