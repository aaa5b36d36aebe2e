// Parses the loss and metrics of each model output.
#pragma once

#include "run/run_config.h"

namespace dtrain {

struct ParsedHeads {
  ConfigNode losses, metrics, weighted_metrics;  // with all defaults written out
  bool complete = true;  // false if names are missing in RunConfig::total_names because of errors
};

/// Parses `loss:`, `metrics:` and `weighted_metrics:` for the model's outputs, and stores the result in
/// config.heads and config.total_names. If the model has errors, its outputs may be known only partly, or not
/// at all (`outputs` is empty); even then, errors are reported as far as possible. If config.graph is
/// complete, warns about a loss that expects logits if the output has probabilities, and vice versa.
ParsedHeads parse_heads(RunConfig& config, std::vector<ModelOutput> outputs, const ConfigNode& train,
                        Diagnostics& diagnostics);

/// Returns whether losses of this kind have the option from_logits.
bool can_take_logits(const std::string& kind);

/// A metric of one output. The pointers refer to objects in the configuration.
struct MetricOfHead {
  const Head* head;
  const HeadMetric* metric;
};
/// Returns the metric reported under this name, with or without the prefix "val_"; nullopt for losses and
/// unknown names.
std::optional<MetricOfHead> find_metric(const RunConfig& config, const std::string& name);

/// Adds a metric to a head of a parsed run.
void add_metric(RunConfig& config, size_t head, const std::string& name,
                std::shared_ptr<const Metric> metric);

Json heads_json_schema();
Json metrics_json_schema();

}  // namespace dtrain
