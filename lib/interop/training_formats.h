// Conversion of losses, metrics, optimizers and learning rate schedules to and from Keras's form: one table
// row per kind. Import and export use the same rows.
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

/// The options of a configured kind with all defaults written out (Configured::resolved).
class KindSettings {
 public:
  /// `resolved`: {kind: options}, or a bare name for a kind without options.
  explicit KindSettings(const ConfigNode& resolved)
      : kind_(resolved.is_mapping() ? resolved.entries().front().first.text() : resolved.text()),
        options_(resolved.is_mapping() ? resolved.entries().front().second : ConfigNode()) {}

  const std::string& kind() const { return kind_; }
  const ConfigNode& options() const { return options_; }
  /// Returns the value of an option; null if it is null or missing.
  Json value(std::string_view option) const;
  double number(std::string_view option) const { return value(option).as_double(); }
  bool flag(std::string_view option) const { return value(option).as_bool(); }
  const ConfigNode& node(std::string_view option) const { return *options_.find(option); }

 private:
  std::string kind_;
  ConfigNode options_;
};

/// A schedule at some point of a run.
struct ScheduleInRun {
  const Schedule& schedule;
  KindSettings settings;
  const RunLength& run;
  const Json& state;
};
struct ScheduleFormats {
  std::string kind;
  /// The class in keras.optimizers.schedules; "" if Keras has none.
  std::string keras_class = "";
  /// Names of options that differ: {Keras's, dtrain's}.
  std::vector<std::pair<std::string, std::string>> renamed = {};
  /// Returns the learning_rate of a Keras optimizer: a number, or the class with its config.
  std::function<Json(const ScheduleInRun&)> to_keras;
};

struct OptimizerFormats {
  std::string kind;
  std::string keras_class;
  /// The class that Keras 2 and 3 both load from the same config; "" if there is none.
  std::string common_class = "";
  /// Whether Keras 2 and 3 both load the config only if the learning rate is a number.
  bool has_only_numbers = false;
  /// Whether Keras 2.11 and later create variables weight by weight, instead of slot by slot.
  bool is_by_weight = false;
  /// If true, Keras stores dtrain's third slot before the second.
  bool swaps_last_slots = false;
  /// If true, Keras's last slot of a weight with two or more axes follows from the weight's other slots
  /// (adafactor: factored_squares()). For a weight of fewer axes, the other slots are a single 0.
  bool is_factored = false;
  /// Number of slots per weight, including those that Keras 2 stores but does not read; 0: all slots are
  /// read.
  size_t slots_with_unread = 0;
  /// Returns the number that Keras 3 stores after the slots, once `steps` steps are done; null (no function)
  /// if it stores none. Import ignores the number, which follows from the steps.
  std::function<double(const KindSettings&, int64_t steps)> number_after_slots = {};
};

struct LossFormats {
  std::string kind;
  std::string keras_class;
  std::string keras_name;
  std::vector<std::string> options = {};          ///< written always, in Keras's order
  std::vector<std::string> unless_zero = {};      ///< written after `options` unless they are 0
  std::vector<std::string> further_options = {};  ///< written always, after `unless_zero`
  std::vector<std::string> missing = {};          ///< options that Keras does not have: they must be 0
};

/// A metric of an output.
struct MetricInUse {
  KindSettings settings;
  const Loss* loss;  ///< loss of the output; null if unknown
  const TensorSpec &output, &target;
};
struct MetricFormats {
  std::string kind;
  /// Returns {class_name, config}; null if Keras has no metric with the same result for such an output.
  std::function<Json(const MetricInUse&)> to_keras;
};

/// These functions return the row of a kind. They throw std::logic_error if the kind has no row.
const ScheduleFormats& schedule_formats(std::string_view kind);
const OptimizerFormats& optimizer_formats(std::string_view kind);
const LossFormats& loss_formats(std::string_view kind);
const MetricFormats& metric_formats(std::string_view kind);

/// Returns the learning_rate of a Keras optimizer: a number, or the {module, class_name, config} of a
/// schedule, which counts steps. `state` is the state of the schedule.
Json keras_learning_rate(const Configured<Schedule>& schedule, const RunLength& run, const Json& state);
/// Returns the schedule of an optimizer, with its kind and options.
Configured<Schedule> schedule_of(const Configured<Optimizer>& optimizer);
/// Returns Keras's {class_name, config} for the checkpoint's training_config, in a form that Keras 2 and 3
/// both read; null if there is no such form. `state` is the state of the schedule.
Json keras_optimizer(const Configured<Optimizer>& optimizer, const RunLength& run, const Json& state);
/// Returns the array that Keras stores as adafactor's velocity of a weight with two or more axes: each row
/// mean, divided by the mean of the matrix's row means, times each column mean. `shape`: the weight's shape.
std::vector<float> factored_squares(const Shape& shape, const float* row_means, const float* column_means);
/// Returns the slots in the order in which Keras creates them.
std::vector<Optimizer::Slot> keras_slots(const Configured<Optimizer>& optimizer);
/// Returns Keras's {class_name, config} of a loss, given as {kind: options} with all defaults; null if Keras
/// has no such loss.
Json keras_loss(const ConfigNode& resolved);
/// Returns Keras's {class_name, config} of a metric, given as {kind: options} with all defaults, of an output
/// with this loss (null if unknown); null if Keras has none with the same result.
Json keras_metric(const ConfigNode& resolved, const Loss* loss, const TensorSpec& output,
                  const TensorSpec& target);

/// Returns the row whose `kind` is given. Throws std::logic_error if there is none.
template <class Formats>
const Formats& row_of_kind(const std::vector<Formats>& rows, std::string_view kind) {
  for (const Formats& row : rows)
    if (row.kind == kind) return row;
  throw std::logic_error("lib/interop/training has no row for '" + std::string(kind) + "'");
}

}  // namespace dtrain
