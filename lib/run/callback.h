// Callbacks: hooks that receive the losses and metrics of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/registry.h"
#include "optim/monitor.h"
#include "run/tensorboard_options.h"

namespace dtrain {

/// A callback is immutable; its mutable data is in `state` (null at the start), which the checkpoint saves.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Called after every step with that step's mean loss. `step` and `epoch` count from 1. Throws Error to end
  /// the run as failed.
  virtual void after_step(int64_t /*step*/, int64_t /*epoch*/, double /*loss*/) const {}
  /// Returns whether the run should fail once its weights are not finite. The loss may not show this:
  /// oneDNN's fused relu and max pooling treat NaN as 0 or as a smaller number.
  virtual bool wants_finite_weights() const { return false; }
  struct Verdict {
    bool stop = false;    // end training after this epoch
    std::string message;  // shown to the user; "" for none
  };
  virtual Verdict after_epoch(Json& /*state*/, const MetricLookup& /*metric*/) const { return {}; }
  /// The decay of an exponential moving average of the weights, if the callback wants one. The averaged
  /// weights are evaluated and saved as the model's weights.
  virtual std::optional<double> average_decay() const { return std::nullopt; }
  /// The metric that the callback monitors, checked before the run; "" for none.
  virtual std::string monitor() const { return ""; }
  /// The TensorBoard options, if this callback has them; else null.
  virtual const TensorboardOptions* tensorboard() const { return nullptr; }
};

template <>
const Registry<Callback>& registry<Callback>();

/// Returns whether any callback wants finite weights.
bool wants_finite_weights(const std::vector<Configured<Callback>>& callbacks);

}  // namespace dtrain
