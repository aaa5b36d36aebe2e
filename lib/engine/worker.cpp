#include "engine/worker.h"

#include <algorithm>

#include "engine/update/pairwise_terms.h"

namespace dtrain {

namespace {

/// Returns an upper bound of the number of partial sums in any range. There are two sums for each trained
/// parameter. A parameter that is cut at the beginning or the end of the range needs more partial sums.
size_t most_squares(const ParameterLayout& layout) {
  const auto& slices = layout.slices();
  const auto trained = std::count_if(slices.begin(), slices.end(), [&](const ParameterSlice& slice) {
    return slice.offset < layout.trained();
  });
  return 2 * (static_cast<size_t>(trained) + 2 * most_terms(grains_of(layout.trained())));
}

}  // namespace

Worker::Worker(int rank, std::unique_ptr<Context> context, const GpuMath& math, const ParameterLayout& layout,
               bool independent_rows)
    : rank_(rank),
      with_gradient_(layout.with_gradient()),
      most_parameter_squares_(most_squares(layout)),
      context_(std::move(context)),
      ops_(on_gpu() ? make_cuda_ops(*context_, math) : make_cpu_ops(*context_, independent_rows)),
      state_(context_->allocate(sizeof(StepState))),
      sums_(context_->allocate((2 + most_parameter_squares_) * sizeof(double))) {
  const StepState fresh;
  context_->copy_to_device(state(), &fresh, sizeof(fresh));
}

float* Worker::gradients() {
  // Other threads also call this function after the first allocation, so only the first call may allocate.
  // The size is checked because data() is null for an array of size 0, so every call would allocate it again.
  if (with_gradient_ > 0 && !gradients_.data())
    gradients_ = context_->allocate(static_cast<size_t>(with_gradient_) * sizeof(float));
  return gradients_.f32();
}

}  // namespace dtrain
