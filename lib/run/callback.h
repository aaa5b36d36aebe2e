// What looks at the numbers of a run as it goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/registry.h"
#include "optim/monitor.h"
#include "run/tensorboard_options.h"

namespace dtrain {

/// A callback is immutable; what it remembers is in `state` (null at the start), which the checkpoint keeps.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Called after every step (counted from 1, as is the epoch), with the step's own mean loss. Throws Error
  /// to end the run as failed.
  virtual void after_step(int64_t /*step*/, int64_t /*epoch*/, double /*loss*/) const {}
  /// Whether the run is to end as failed once its weights are no finite numbers. Layers may hide that from
  /// the loss: oneDNN's fused relu and max pooling take NaN for 0 or less.
  virtual bool wants_finite_weights() const { return false; }
  struct Verdict {
    bool stop = false;    // end the training after this epoch
    std::string message;  // what the user should hear; "" for nothing
  };
  virtual Verdict after_epoch(Json& /*state*/, const MetricLookup& /*metric*/) const { return {}; }
  /// The decay of a running average of the weights, where the callback wants one kept: it is what is
  /// evaluated, and saved as the model's weights.
  virtual std::optional<double> average_decay() const { return std::nullopt; }
  /// The metric that the callback watches, to be checked before the run; "" for none.
  virtual std::string monitor() const { return ""; }
  /// What is to be written for TensorBoard, by a callback that says so; else null.
  virtual const TensorboardOptions* tensorboard() const { return nullptr; }
};

template <>
const Registry<Callback>& registry<Callback>();

/// Whether any of them wants finite weights.
bool wants_finite_weights(const std::vector<Configured<Callback>>& callbacks);

}  // namespace dtrain
