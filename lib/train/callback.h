// What looks at the numbers of a run as it goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "config/kinds.h"

namespace dtrain {

/// Looks up one of an epoch's numbers by name: "loss", "val_loss", a metric's.
using MetricLookup = std::function<std::optional<double>(const std::string&)>;

/// Whether smaller or larger is better; `automatic` goes by the name (accuracies and top_k: larger).
enum class MonitorMode { automatic, min, max };
template <>
inline const EnumNames<MonitorMode> names_of<MonitorMode> = {
    {MonitorMode::automatic, "auto"}, {MonitorMode::min, "min"}, {MonitorMode::max, "max"}};

/// True if `value` is better than `best` by more than `min_delta`.
bool improves(double value, double best, MonitorMode mode, const std::string& monitor, double min_delta = 0);

/// Immutable; what it remembers is in `state` (null at the start), which the checkpoint keeps.
class Callback {
 public:
  virtual ~Callback() = default;
  /// After every step (counted from 1, as is the epoch), with the step's own mean loss. Throws Error to end
  /// the run as failed.
  virtual void after_step(int64_t /*step*/, int64_t /*epoch*/, double /*loss*/) const {}
  struct Verdict {
    bool stop = false;    // end the training after this epoch
    std::string message;  // what the user should hear; "" for nothing
  };
  virtual Verdict after_epoch(Json& /*state*/, const MetricLookup& /*metric*/) const { return {}; }
  /// The metric that it watches, to be checked before the run; "" for none.
  virtual std::string monitor() const { return ""; }
};

template <>
const KindTable<Callback>& kinds<Callback>();

}  // namespace dtrain
