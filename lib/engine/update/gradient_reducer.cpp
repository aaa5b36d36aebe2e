#include "engine/update/gradient_reducer.h"

#include <stdexcept>

namespace dtrain {

namespace {

[[noreturn]] void reject(std::string_view call, std::string_view where) {
  throw std::logic_error("no " + std::string(call) + " when gradients are summed " + std::string(where));
}

}  // namespace

void GradientReducer::all_reduce(Worker&, Range) {
  reject("all-reduce", where());
}
void GradientReducer::all_reduce_row_weights(Worker&) {
  reject("all-reduce of row weights", where());
}
void GradientReducer::join(Worker&, Collective&) {
  reject("join", where());
}
void GradientReducer::reduce_scatter(Worker&, Collective&) {
  reject("reduce-scatter", where());
}
void GradientReducer::gather_updated(Worker&, Collective&) {
  reject("gather of parameters", where());
}

void GradientReducer::join_nccl(std::span<Worker* const> workers, World& world) {
  std::vector<Context*> contexts;
  for (Worker* worker : workers) contexts.push_back(&worker->context());
  nccl_ = make_nccl_group(contexts, world);
}

void GradientReducer::check() {
  for (const auto& member : nccl_) member->check();
}

void GradientReducer::abort() noexcept {
  for (const auto& member : nccl_) member->abort();
}

std::string GradientReducer::failure() {
  return nccl_.empty() ? "" : nccl_[0]->failure();
}

}  // namespace dtrain
