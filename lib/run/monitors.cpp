#include "run/monitors.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "run/heads.h"

namespace dtrain {

namespace {

/// The valid names of monitors, as far as they are known.
struct MonitorNames {
  std::vector<std::string> names;
  bool validation;  // each name is also present with the prefix "val_"
  bool complete;    // false if names are missing because some metrics or outputs could not be parsed
};

/// Returns whether `monitor` is the name of a metric whose value is an array instead of a number.
bool is_table(const RunConfig& config, const std::string& monitor) {
  if (config.graph.nodes.empty()) return false;
  const auto found = find_metric(config, monitor);
  return found && !found->metric->metric->is_number(config.graph.spec(found->head->output));
}

/// For a metric whose value is an array: if an option of the metric can reduce the value to a number, returns
/// advice that begins with "; set an average". Otherwise returns "".
std::string advice_for_table(const RunConfig& config, const std::string& monitor) {
  const ConfigNode& configured = find_metric(config, monitor)->metric->configured;
  if (!configured.is_mapping() || configured.entries().empty()) return "";
  const ConfigNode& options = configured.entries().front().second;
  for (const char* example : {"average: macro", "class_aggregation: uniform_average"})
    if (const std::string text = example;
        options.is_mapping() && options.find(text.substr(0, text.find(':'))))
      return fmt::format("; set an average in the metric's options, such as `{}`", example);
  return "";
}

/// Returns "loss" and the names of the metrics. If there is a validation split, also returns each of these
/// names with the prefix "val_".
std::vector<std::string> names_of_totals(const RunConfig& config, bool validation) {
  std::vector<std::string> names{"loss"};
  for (const std::string& name : config.total_names)
    if (name != "loss") names.push_back(name);
  const size_t count = names.size();
  for (size_t i = 0; validation && i < count; ++i) names.push_back("val_" + names[i]);
  return names;
}

/// Returns whether the monitor may be a metric whose name is not known because of errors in the
/// configuration.
bool may_be_another(const std::string& monitor, const MonitorNames& known) {
  if (known.complete) return false;
  const std::vector<std::string> metrics = registry<Metric>().names();
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](const std::string& metric) { return monitor.ends_with(metric); }) ||
         monitor.ends_with("_loss");
}

/// Reports a monitor that is not the name of a metric of the run.
void check_monitor(const RunConfig& config, const MonitorNames& known, const std::string& monitor,
                   const Mark& mark, Diagnostics& diagnostics) {
  const auto& names = known.names;
  if (is_table(config, monitor))
    return diagnostics.error(
        mark, fmt::format("the value of a monitor must be a number, but '{}' is a table{}", monitor,
                          advice_for_table(config, monitor)));
  if (monitor.empty() || std::find(names.begin(), names.end(), monitor) != names.end()) return;
  const bool needs_validation = monitor.starts_with("val_") && !known.validation;
  if (!needs_validation && may_be_another(monitor, known)) return;
  std::string near = suggestion(monitor, names);
  if (near.empty()) near = fmt::format("; the metrics of this run are {}", fmt::join(names, ", "));
  diagnostics.error(mark, fmt::format("monitor '{}' is not a metric of this run{}", monitor,
                                      needs_validation ? ": the data set has no validation split" : near));
}

}  // namespace

bool larger_is_better(const RunConfig& config, const std::string& monitor) {
  const auto found = find_metric(config, monitor);
  return found && found->metric->metric->larger_is_better();
}

std::set<std::string> monitors_of(const RunConfig& config) {
  std::set<std::string> monitors{config.train.optimizer->learning_rate().monitor()};
  for (const Configured<Callback>& callback : config.train.callbacks) monitors.insert(callback->monitor());
  if (config.checkpoint.best) monitors.insert(config.checkpoint.best->monitor);
  monitors.erase("");
  return monitors;
}

void check_monitors(const RunConfig& config, bool validation, bool complete, Diagnostics& diagnostics) {
  const MonitorNames names{names_of_totals(config, validation), validation, complete};
  for (const Configured<Callback>& callback : config.train.callbacks)
    if (callback) check_monitor(config, names, callback->monitor(), callback.resolved.mark(), diagnostics);
  if (config.checkpoint.best)
    check_monitor(config, names, config.checkpoint.best->monitor, config.place({"checkpoint", "best"}),
                  diagnostics);
  if (const Configured<Optimizer>& optimizer = config.train.optimizer)
    check_monitor(config, names, optimizer->learning_rate().monitor(), optimizer.resolved.mark(),
                  diagnostics);
}

}  // namespace dtrain
