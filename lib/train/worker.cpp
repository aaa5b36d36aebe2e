#include "train/worker.h"

#include <algorithm>

namespace dtrain {

namespace {

size_t trained_parameters(const ParameterLayout& layout) {
  const auto& slices = layout.slices();
  return static_cast<size_t>(std::count_if(slices.begin(), slices.end(), [&](const ParameterSlice& slice) {
    return slice.offset < layout.trained();
  }));
}

}  // namespace

Worker::Worker(int rank, std::unique_ptr<Context> context, const GpuMath& math, const ParameterLayout& layout)
    : rank_(rank),
      with_gradient_(layout.with_gradient()),
      context_(std::move(context)),
      ops_(on_gpu() ? make_cuda_ops(*context_, math) : make_cpu_ops(*context_)),
      state_(context_->allocate(sizeof(StepState))),
      sums_(context_->allocate((2 + 2 * trained_parameters(layout)) * sizeof(double))) {
  const StepState fresh;
  context_->copy_to_device(state(), &fresh, sizeof(fresh));
}

float* Worker::gradients() {
  if (!gradients_.data())
    gradients_ = context_->allocate(static_cast<size_t>(with_gradient_) * sizeof(float));
  return gradients_.f32();
}

}  // namespace dtrain
