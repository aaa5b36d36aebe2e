#include "engine/step_buffers.h"

#include <algorithm>

namespace dtrain {

StepBuffers::StepBuffers(Worker& worker, size_t count, size_t factors)
    : worker_(worker), count_(count), factors_(factors) {
  Context& context = worker_.context();
  totals_ = context.allocate(totals_bytes());
  host_totals_ = context.allocate_host(2 * totals_bytes());
  host_numbers_ = context.allocate_host(2 * sizeof(StepNumbers));
  if (factors > 0) {
    loss_scales_ = context.allocate(factors * sizeof(float));
    device_factors_ = context.allocate((factors + 1) * sizeof(float));
    host_factors_ = context.allocate_host(2 * device_factors_.bytes());
    std::fill_n(host_factors_.f32(), 2 * (factors + 1), 0.0f);
  }
  for (auto& event : done_) event = context.make_event();
}

void StepBuffers::begin(const StepNumbers& numbers, std::span<const float> factors) {
  turn_ = 1 - turn_;
  done_[turn_]->synchronize();
  static_cast<StepNumbers*>(host_numbers_.data())[turn_] = numbers;
  if (factors_ > 0) std::copy(factors.begin(), factors.end(), host_factors_.f32() + turn_ * (factors_ + 1));
}

void StepBuffers::send_numbers() {
  Context& context = worker_.context();
  const auto* host = static_cast<const StepNumbers*>(host_numbers_.data()) + turn_;
  context.enqueue_copy(&worker_.state()->now, host, sizeof(*host));
  if (factors_ == 0) return;
  float* const factors = device_factors_.f32();
  context.enqueue_copy(factors, host_factors_.f32() + turn_ * (factors_ + 1), device_factors_.bytes());
  // Multiplies each factor by loss_scale. gather_rows() also adds an offset, which is 0 here.
  worker_.ops().gather_rows({.row_elements = static_cast<int64_t>(factors_),
                             .scale = &worker_.state()->gradient.loss_scale,
                             .offset = factors + factors_},
                            factors, {}, 1, loss_scales_.data());
}

void StepBuffers::clear_totals() {
  worker_.context().enqueue_zero(totals_.data(), totals_bytes());
}

void StepBuffers::fetch_totals() {
  auto* host = static_cast<double*>(host_totals_.data()) + turn_ * count_;
  worker_.context().enqueue_copy(host, totals_.data(), totals_bytes());
}

std::string StepBuffers::failure() const {
  std::string found = worker_.context().failure();
  for (const auto& event : done_)
    if (found.empty()) found = event->failure();
  return found;
}

std::span<const double> StepBuffers::totals(int back) {
  const size_t turn = back == 0 ? turn_ : 1 - turn_;
  done_[turn]->synchronize();
  return {static_cast<const double*>(host_totals_.data()) + turn * count_, count_};
}

}  // namespace dtrain
