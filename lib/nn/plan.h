// A graph made ready to run: one device, one batch size, every layer prepared and every byte placed
// beforehand.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "nn/arena.h"
#include "nn/graph.h"
#include "nn/loss.h"
#include "nn/parameters.h"
#include "ops/ops.h"

namespace dtrain {

/// What is asked of one of the model's outputs.
struct Head {
  ValueRef output;  // the prediction
  std::shared_ptr<const Loss> loss;
  std::vector<std::shared_ptr<const Metric>> metrics;
  TensorSpec target;  // as the loss wants it
};

/// Of one run of a plan: the same in every step for the same piece of batches of one size, so that the run
/// can be captured.
struct StepInfo {
  uint64_t seed = 0;
  uint64_t first_sample = 0;  // this piece's place in the global batch
  int64_t global_batch = 1;   // samples that the mean loss is over
};

/// The arrays outside a plan's arena that it reads and writes, all of the device's memory.
struct PlanArrays {
  std::byte* arena = nullptr;          // arena_bytes() for what the plan computes
  const float* values = nullptr;       // the parameters
  const std::byte* weights = nullptr;  // and in the compute type: the same memory where that is float32
  float* gradients = nullptr;          // in training: a whole layout.with_gradient(), overwritten by each run
  double* totals = nullptr;            // each run adds to them
  const StepState* state = nullptr;
  bool operator==(const PlanArrays&) const = default;
};

/// Belongs to one replica and its thread. Running allocates nothing.
class Plan {
 public:
  enum class Purpose {
    training,    // forward, losses, metrics, backward
    evaluation,  // forward as at inference, losses, metrics
    prediction,  // forward as at inference
  };

  Plan(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads, Ops& ops,
       int64_t batch, Purpose purpose);
  ~Plan();

  int64_t batch() const { return batch_; }
  size_t arena_bytes() const { return arena_.bytes(); }
  /// For each head its loss, then its metrics.
  static size_t count_totals(std::span<const Head> heads);

  /// Where everything is from now on.
  void bind(const PlanArrays& arrays);

  /// Where the batch is to be put before run(): the inputs in the model's order, then (but for prediction)
  /// the heads' targets. An input of float32 is to be put there in the compute type.
  std::span<const View> columns() const { return columns_; }
  /// How many of them are inputs.
  size_t input_columns() const { return input_columns_; }
  /// `on_ready(end)` during a training run: the gradients in [0, end) of the layout's trained ones have all
  /// been enqueued. The last `end` is that of the last parameter, before what aligns it.
  void run(const StepInfo& info, const std::function<void(int64_t)>& on_ready = nullptr);
  /// The model's outputs after run(), in prediction; plain layout, those of float32 in the compute type.
  std::span<const View> outputs() const { return outputs_; }

 private:
  friend class PlanBuilder;

  struct Step {
    PreparedLayer* layer = nullptr;
    LayerArguments args;
  };

  /// This piece's part of the global batch.
  float share(const StepInfo& info) const {
    return static_cast<float>(static_cast<double>(batch_) / static_cast<double>(info.global_batch));
  }
  void* at(int buffer) const { return buffer < 0 ? nullptr : arrays_.arena + arena_.offset(buffer); }

  int64_t batch_;
  Arena arena_;
  std::vector<std::unique_ptr<PreparedLayer>> layers_;
  std::vector<std::unique_ptr<Reorder>> reorders_;
  std::vector<std::unique_ptr<Step>> steps_;    // stable addresses: instructions refer to them
  std::vector<std::function<void()>> binders_;  // fill in the pointers after bind()
  std::vector<std::function<void(const StepInfo&)>> instructions_;
  std::vector<View> columns_, outputs_;

  size_t input_columns_ = 0;
  PlanArrays arrays_;
  std::vector<std::pair<size_t, int64_t>> ready_;  // after so many instructions, the gradients below that
};

}  // namespace dtrain
