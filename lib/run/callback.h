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
  /// Returns whether the run should fail if its weights become non-finite. Checking the loss is not enough:
  /// it may remain finite, because oneDNN's fused relu returns 0 for NaN, and its max pooling ignores NaN.
  virtual bool wants_finite_weights() const { return false; }
  struct Verdict {
    bool stop = false;    // end training after this epoch
    std::string message;  // message for the user, or ""
  };
  virtual Verdict after_epoch(Json& /*state*/, const MetricLookup& /*metric*/) const { return {}; }
  /// Updates the state when a run continues after a callback has stopped it.
  virtual void continue_after_stop(Json& /*state*/) const {}
  /// Returns the decay if the callback wants an exponential moving average of the weights, otherwise nullopt.
  /// The averaged weights are evaluated, and saved as the weights of the model.
  virtual std::optional<double> average_decay() const { return std::nullopt; }
  /// Returns the metric that the callback monitors, or "" if it monitors none. The name is checked before the
  /// run.
  virtual std::string monitor() const { return ""; }
  /// Returns the TensorBoard options if this is the callback `tensorboard`, otherwise null.
  virtual const TensorboardOptions* tensorboard() const { return nullptr; }
};

template <>
const Registry<Callback>& registry<Callback>();

/// Returns whether any callback wants finite weights.
bool wants_finite_weights(const std::vector<Configured<Callback>>& callbacks);

}  // namespace dtrain
