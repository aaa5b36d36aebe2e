// Conversion of losses, metrics, optimizers and learning rate schedules to and from Keras's formats. Each
// kind has one row in a table. Import and export use the same rows.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "config/registry.h"
#include "nn/loss.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace dtrain {

/// The options of a configured kind, with all defaults filled in (Configured::resolved).
class KindSettings {
 public:
  /// `resolved`: {kind: options}, or only the name of a kind without options.
  explicit KindSettings(const ConfigNode& resolved)
      : kind_(resolved.is_mapping() ? resolved.entries().front().first.text() : resolved.text()),
        options_(resolved.is_mapping() ? resolved.entries().front().second : ConfigNode()) {}

  const std::string& kind() const { return kind_; }
  const ConfigNode& options() const { return options_; }
  /// Returns the value of an option; null if the value is null or the option is missing.
  Json value(std::string_view option) const;
  double number(std::string_view option) const { return value(option).as_double(); }
  bool flag(std::string_view option) const { return value(option).as_bool(); }
  const ConfigNode& node(std::string_view option) const { return *options_.find(option); }

 private:
  std::string kind_;
  ConfigNode options_;
};

/// A schedule at a certain point of a run.
struct ScheduleInRun {
  const Schedule& schedule;
  KindSettings settings;
  const RunLength& run;
  const Json& state;
};
struct ScheduleFormats {
  std::string kind;
  /// The class in keras.optimizers.schedules; "" if Keras has no equivalent class.
  std::string keras_class = "";
  /// The options that have a different name in Keras, as pairs {name in Keras, name in dtrain}.
  std::vector<std::pair<std::string, std::string>> renamed = {};
  /// Returns the value of `learning_rate` for a Keras optimizer: either a number or the class and config of a
  /// schedule.
  std::function<Json(const ScheduleInRun&)> to_keras;
};

struct OptimizerFormats {
  std::string kind;
  /// The class in keras.optimizers of Keras 3; "" if Keras has no equivalent class.
  std::string keras_class = "";
  /// The class that both Keras 2 and Keras 3 can load from the same config; "" if there is none.
  std::string common_class = "";
  /// If true, both Keras 2 and Keras 3 can load the config only if the learning rate is a number.
  bool has_only_numbers = false;
  /// If true, Keras 2.11 and later store the slots weight by weight: all slots of the first weight, then all
  /// slots of the next. If false, they store them slot by slot.
  bool is_by_weight = false;
  /// If true, Keras stores dtrain's third slot before the second.
  bool swaps_last_slots = false;
  /// If true, Keras's last slot of a weight with two or more axes can be computed from the other slots of
  /// this weight (adafactor, see factored_squares()). For a weight with fewer axes, each of the other slots
  /// is a single 0.
  bool is_factored = false;
  /// Number of slots per weight, including the slots that Keras 2 stores but does not use; 0 if Keras uses
  /// all slots.
  size_t slots_with_unread = 0;
  /// Returns the number that Keras 3 stores after the slots, when the optimizer has made `steps` steps. Null
  /// if Keras 3 stores no such number. Import ignores the number, because it can be computed from the number
  /// of steps.
  std::function<double(const KindSettings&, int64_t steps)> number_after_slots = {};
};

struct LossFormats {
  std::string kind;
  std::string keras_class;
  std::string keras_name;
  std::vector<std::string> options = {};      ///< options that are always written, in Keras's order
  std::vector<std::string> unless_zero = {};  ///< options that are written after `options`, unless they are 0
  std::vector<std::string> further_options = {};  ///< options that are always written, after `unless_zero`
  /// options that Keras lacks; the loss can only be converted if they are 0
  std::vector<std::string> missing = {};
};

/// A metric that is computed for one output.
struct MetricInUse {
  KindSettings settings;
  const Loss* loss;  ///< loss of the output; null if unknown
  const TensorSpec &output, &target;
};
struct MetricFormats {
  std::string kind;
  /// Returns {class_name, config}. Returns null if Keras has no metric that has the same result for this
  /// output.
  std::function<Json(const MetricInUse&)> to_keras;
};

/// These functions return the row of a kind. They throw std::logic_error if the kind has no row.
const ScheduleFormats& schedule_formats(std::string_view kind);
const OptimizerFormats& optimizer_formats(std::string_view kind);
const LossFormats& loss_formats(std::string_view kind);
const MetricFormats& metric_formats(std::string_view kind);

/// Returns the value of `learning_rate` for a Keras optimizer: either a number, or {module, class_name,
/// config} of a schedule. Keras's schedules count steps. `state`: the state of the schedule.
Json keras_learning_rate(const Configured<Schedule>& schedule, const RunLength& run, const Json& state);
/// Returns the learning rate schedule of an optimizer.
Configured<Schedule> schedule_of(const Configured<Optimizer>& optimizer);
/// Returns Keras's {class_name, config} of the optimizer for the checkpoint's training_config. Both Keras 2
/// and Keras 3 can read it. Returns null if no config can be read by both. `state`: the state of the
/// schedule.
Json keras_optimizer(const Configured<Optimizer>& optimizer, const RunLength& run, const Json& state);
/// Computes the array that Keras stores as adafactor's velocity of a weight with two or more axes. Each
/// element is the mean of its row, divided by the average of all row means of the matrix, times the mean of
/// its column. `shape`: the weight's shape.
std::vector<float> factored_squares(const Shape& shape, const float* row_means, const float* column_means);
/// Returns the optimizer's slots in the order in which Keras stores them.
std::vector<Optimizer::Slot> keras_slots(const Configured<Optimizer>& optimizer);
/// Returns Keras's {class_name, config} of a loss; null if Keras has no equivalent loss. `resolved`: {kind:
/// options} with all defaults filled in.
Json keras_loss(const ConfigNode& resolved);
/// Returns Keras's {class_name, config} of a metric; null if Keras has no metric with the same result for
/// this output. `resolved`: {kind: options} with all defaults filled in. `loss`: the loss of the output; null
/// if unknown.
Json keras_metric(const ConfigNode& resolved, const Loss* loss, const TensorSpec& output,
                  const TensorSpec& target);

/// Returns the row with this `kind`. Throws std::logic_error if there is none.
template <class Formats>
const Formats& row_of_kind(const std::vector<Formats>& rows, std::string_view kind) {
  for (const Formats& row : rows)
    if (row.kind == kind) return row;
  throw std::logic_error("lib/interop/training has no row for '" + std::string(kind) + "'");
}

}  // namespace dtrain
