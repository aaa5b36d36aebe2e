#include "train/monitors.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrain {

namespace {

/// What the monitors of a run may be called, as far as that is known.
struct MonitorNames {
  std::vector<std::string> names;
  bool validation;  // names holds each with "val_" before it, too
  bool complete;    // else there are others: of metrics or outputs that could not be made sense of
  std::vector<std::string> tables;  // metrics that are no numbers
};

std::vector<std::string> names_of_tables(const RunConfig& config) {
  std::vector<std::string> names;
  if (config.graph.nodes.empty()) return names;
  size_t total = 0;
  for (const Head& head : config.heads) {
    ++total;
    for (const HeadMetric& metric : head.metrics) {
      if (!metric.metric->is_number(config.graph.spec(head.output)))
        names.push_back(config.total_names[total]);
      ++total;
    }
  }
  return names;
}

/// "loss", the metrics, and with a validation split each with "val_" before it.
std::vector<std::string> names_of_totals(const RunConfig& config, bool validation) {
  std::vector<std::string> names{"loss"};
  for (const std::string& name : config.total_names)
    if (name != "loss") names.push_back(name);
  const size_t count = names.size();
  for (size_t i = 0; validation && i < count; ++i) names.push_back("val_" + names[i]);
  return names;
}

/// Whether the monitor may be one of those that are not known.
bool may_be_another(const std::string& monitor, const MonitorNames& known) {
  if (known.complete) return false;
  const std::vector<std::string> metrics = registry<Metric>().names();
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](const std::string& metric) { return monitor.ends_with(metric); }) ||
         monitor.ends_with("_loss");
}

/// Reports a monitor that names no metric of the run.
void check_monitor(const MonitorNames& known, const std::string& monitor, const Mark& mark,
                   Diagnostics& diagnostics) {
  const auto& names = known.names;
  const std::string plain = monitor.starts_with("val_") ? monitor.substr(4) : monitor;
  if (std::find(known.tables.begin(), known.tables.end(), plain) != known.tables.end())
    return diagnostics.error(
        mark, fmt::format("monitor '{}' is no number but a table, which nothing can go by{}", monitor,
                          plain.find("confusion") == std::string::npos
                              ? "; an average of it is one ('average: macro')"
                              : ""));
  if (monitor.empty() || std::find(names.begin(), names.end(), monitor) != names.end()) return;
  const bool needs_validation = monitor.starts_with("val_") && !known.validation;
  if (!needs_validation && may_be_another(monitor, known)) return;
  std::string near = suggestion(monitor, names);
  if (near.empty()) near = fmt::format("; there are {}", fmt::join(names, ", "));
  diagnostics.error(mark, fmt::format("monitor '{}' is no metric of this run{}", monitor,
                                      needs_validation ? ": the data set has no validation split" : near));
}

}  // namespace

void check_monitors(const RunConfig& config, bool validation, bool complete, Diagnostics& diagnostics) {
  const MonitorNames names{names_of_totals(config, validation), validation, complete,
                           names_of_tables(config)};
  for (const Configured<Callback>& callback : config.train.callbacks)
    if (callback) check_monitor(names, callback->monitor(), callback.resolved.mark(), diagnostics);
  if (config.checkpoint.best)
    check_monitor(names, config.checkpoint.best->monitor, config.place({"checkpoint", "best"}), diagnostics);
  if (const Configured<Optimizer>& optimizer = config.train.optimizer)
    check_monitor(names, optimizer->learning_rate().monitor(), optimizer.resolved.mark(), diagnostics);
}

}  // namespace dtrain
