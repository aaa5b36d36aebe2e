// Which loss and metrics each of the model's outputs has.
#pragma once

#include "run/run_config.h"

namespace dtrain {

struct ParsedHeads {
  ConfigNode losses, metrics, weighted_metrics;  // as written in full
  bool complete = true;  // RunConfig::total_names has all names, whatever else is wrong
};

/// Parses `loss:`, `metrics:` and `weighted_metrics:` for the model's outputs into config.heads and
/// total_names. Reports mistakes even where outputs are not known in full (`outputs` empty: not at all); once
/// config.graph is whole, it warns of losses that take logits for probabilities, or the reverse.
ParsedHeads parse_heads(RunConfig& config, std::vector<ModelOutput> outputs, const ConfigNode& train,
                        Diagnostics& diagnostics);

/// A metric of one of the outputs. Refers to the configuration.
struct MetricOfHead {
  const Head* head;
  const HeadMetric* metric;
};
/// The metric that is reported under this name, with "val_" before it or without; nothing for a loss, or
/// where there is none.
std::optional<MetricOfHead> find_metric(const RunConfig& config, const std::string& name);

/// Adds a metric to a head of a run that was parsed.
void add_metric(RunConfig& config, size_t head, const std::string& name,
                std::shared_ptr<const Metric> metric);

Json heads_json_schema();
Json metrics_json_schema();

}  // namespace dtrain
