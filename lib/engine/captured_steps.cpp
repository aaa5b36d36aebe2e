#include "engine/captured_steps.h"

#include <fmt/format.h>

namespace dtrain {

CapturedSteps::Mode CapturedSteps::begin(const BatchKind& kind) {
  kind_ = kind;
  const auto [entry, is_new] = modes_.try_emplace(kind, Mode::eager);
  Mode& mode = entry->second;
  if (!is_new) mode = mode == Mode::eager ? Mode::capture : Mode::replay;
  return mode;
}

/// Captures the graphs for both values of `turn` in the same call. The second graph cannot be captured in the
/// next step, because devices may wait for each other by then.
void CapturedSteps::capture(int index, size_t& turn, const std::function<void()>& work) {
  if (rejected_) return;  // an earlier microbatch was rejected, so the step is not captured
  const size_t first = turn;
  Graphs graphs;
  try {
    for (size_t i = 0; i < graphs.size(); ++i) {
      graphs[turn] = context_.capture(work);
      turn = 1 - turn;
    }
  } catch (const CaptureRejected& error) {
    turn = first;
    rejected_ = true;
    advice_ = fmt::format(
        "{}: CUDA cannot capture {} steps of {} samples, so all devices run these steps without CUDA "
        "graphs, which is slower ({})",
        context_.device().str(), kind_.purpose == Plan::Purpose::training ? "training" : "evaluation",
        kind_.size, error.what());
    return;
  }
  if (graphs[0]) graphs_[{kind_, index}] = std::move(graphs);
}

void CapturedSteps::run(int index, size_t turn, const std::function<void()>& work) {
  if (const auto found = graphs_.find({kind_, index}); found != graphs_.end())
    return found->second[turn]->run();
  // Waits until the previous graph has finished, because NCCL forbids calls outside a graph while a graph
  // with calls on the same communicator is running.
  if (!graphs_.empty()) context_.synchronize();
  work();
}

void CapturedSteps::drop() {
  std::erase_if(graphs_, [this](const auto& entry) { return entry.first.first == kind_; });
  rejected_ = false;
}

void CapturedSteps::forget() {
  graphs_.clear();
  for (auto& [kind, mode] : modes_) mode = Mode::eager;
  rejected_ = false;
}

}  // namespace dtrain
