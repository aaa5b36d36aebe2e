#include "engine/step_buffers.h"

namespace dtrain {

StepBuffers::StepBuffers(Worker& worker, size_t count) : worker_(worker), count_(count) {
  Context& context = worker_.context();
  totals_ = context.allocate(bytes());
  host_totals_ = context.allocate_host(2 * bytes());
  host_numbers_ = context.allocate_host(2 * sizeof(StepNumbers));
  for (auto& event : done_) event = context.make_event();
}

void StepBuffers::begin(const StepNumbers& numbers) {
  turn_ = 1 - turn_;
  done_[turn_]->synchronize();
  static_cast<StepNumbers*>(host_numbers_.data())[turn_] = numbers;
}

void StepBuffers::send_numbers() {
  const auto* host = static_cast<const StepNumbers*>(host_numbers_.data()) + turn_;
  worker_.context().enqueue_copy(&worker_.state()->now, host, sizeof(*host));
}

void StepBuffers::clear_totals() {
  worker_.context().enqueue_zero(totals_.data(), bytes());
}

void StepBuffers::fetch_totals() {
  auto* host = static_cast<double*>(host_totals_.data()) + turn_ * count_;
  worker_.context().enqueue_copy(host, totals_.data(), bytes());
}

std::span<const double> StepBuffers::totals(int back) {
  const size_t turn = back == 0 ? turn_ : 1 - turn_;
  done_[turn]->synchronize();
  return {static_cast<const double*>(host_totals_.data()) + turn * count_, count_};
}

}  // namespace dtrain
