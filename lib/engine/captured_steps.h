// CUDA graphs of the steps on one device.
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
#include "program/plan.h"

namespace dtrain {

class Dataset;

/// A kind of batches. Batches of the same kind can share captured graphs. The data set matters because a
/// captured step contains the GPU address of its rows.
struct BatchKind {
  Plan::Purpose purpose = Plan::Purpose::training;
  int64_t size = 0;
  int64_t length = 0;  // Batch::length
  const Dataset* dataset = nullptr;
  auto operator<=>(const BatchKind&) const = default;
};

/// Decides how to run each kind of batch. The first batch of a kind runs without a graph, so that libraries
/// can load kernels, choose algorithms and allocate memory. The second batch is captured, with one graph per
/// microbatch. Later batches replay these graphs. To be used by the device's thread.
class CapturedSteps {
 public:
  enum class Mode { eager, capture, replay };

  /// Keeps a reference to the context.
  explicit CapturedSteps(Context& context) : context_(context) {}

  /// Returns the mode for the next batch, which is of this kind. capture(), run() and drop() refer to this
  /// kind until the next call.
  Mode begin(const BatchKind& kind);
  /// Captures the work of microbatch `index` in two graphs: one for `turn` 0 and one for `turn` 1. `turn` is
  /// the index of the buffers that a step uses (StepBuffers::turn()); this function changes it temporarily,
  /// and work() reads it. Captures nothing if CUDA graphs are switched off. If CUDA rejects the capture,
  /// rejected() returns true until drop() or forget() is called.
  void capture(int index, size_t& turn, const std::function<void()>& work);
  /// Replays the microbatch's graph for this turn; calls work() if there is no graph.
  void run(int index, size_t turn, const std::function<void()>& work);

  bool rejected() const { return rejected_; }
  /// Destroys the graphs of the current kind of batch, which runs without graphs from now on.
  void drop();
  /// Destroys the graphs of all kinds of batches. The graphs of each kind are captured again later.
  void forget();
  /// Returns the message about the last rejected capture and clears it; "" if there is none.
  std::string take_advice() { return std::exchange(advice_, ""); }

 private:
  using Graphs = std::array<std::unique_ptr<CapturedGraph>, 2>;  // indexed by turn

  Context& context_;
  BatchKind kind_;
  std::map<BatchKind, Mode> modes_;
  std::map<std::pair<BatchKind, int>, Graphs> graphs_;  // the int is the microbatch's index
  bool rejected_ = false;
  std::string advice_;
};

}  // namespace dtrain
