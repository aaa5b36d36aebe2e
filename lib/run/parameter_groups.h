// `train.groups`: parameters that are trained otherwise than the rest.
#pragma once

#include <optional>
#include <vector>

#include "config/patterns.h"
#include "config/schema.h"
#include "nn/graph.h"

namespace dtrain {

/// The patterns are over names of weights: "dense_1/kernel".
struct ParameterGroup {
  Patterns weights;
  double learning_rate_factor = 1;
  std::optional<double> weight_decay;  // in place of the optimizer's
  bool trainable = true;
  static const Schema<ParameterGroup>& schema();
};

/// Writes what the groups say into the graph's parameters; of the groups that a weight is in, the first
/// counts. Reports patterns that match no weight that can be trained.
void apply_groups(const std::vector<ParameterGroup>& groups, Graph& graph, Diagnostics& diagnostics);

}  // namespace dtrain
