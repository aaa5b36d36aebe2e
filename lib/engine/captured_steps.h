// The CUDA graphs of a slot's steps.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "device/device.h"
#include "nn/plan.h"

namespace dtrain {

class Dataset;

/// Batches whose work is captured once and replayed for each of them: of one purpose, one size and one data
/// set, as a captured step knows where a GPU keeps the rows.
struct BatchKind {
  Plan::Purpose purpose = Plan::Purpose::training;
  int64_t size = 0;
  const Dataset* dataset = nullptr;
  auto operator<=>(const BatchKind&) const = default;
};

/// How the work for each kind of batch is done. Runs eagerly the first time, in which libraries load, choose
/// and allocate; is captured the second time, in a graph for each microbatch; is replayed from then on. Used
/// by the slot's thread.
class CapturedSteps {
 public:
  enum class Mode { eager, capture, replay };

  /// Refers to the context.
  explicit CapturedSteps(Context& context) : context_(context) {}

  /// The mode for the next batch, of this kind. capture(), run() and drop() are about this kind until the
  /// next call.
  Mode begin(const BatchKind& kind);
  /// Captures the work of the microbatch `index` twice, for both values of `turn` (0 and 1), which work()
  /// reads. Nothing is captured where graphs are switched off. Returns false where CUDA refuses; then
  /// refused() holds until drop() or forget().
  bool capture(int index, size_t& turn, const std::function<void()>& work);
  /// Replays the microbatch's graph of this turn; calls work() where there is no graph.
  void run(int index, size_t turn, const std::function<void()>& work);

  bool refused() const { return refused_; }
  /// Destroys this kind's graphs: its batches are computed without graphs from now on.
  void drop();
  /// Destroys all graphs: every kind is captured again the next time.
  void forget();
  /// A sentence about the last refusal, once; else "".
  std::string take_advice() { return std::exchange(advice_, ""); }

 private:
  using Graphs = std::array<std::unique_ptr<CapturedGraph>, 2>;  // by turn

  Context& context_;
  BatchKind kind_;
  std::map<BatchKind, Mode> modes_;
  std::map<std::pair<BatchKind, int>, Graphs> graphs_;  // with the microbatch's index
  bool refused_ = false;
  std::string advice_;
};

}  // namespace dtrain
