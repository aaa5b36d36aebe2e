// The option `train.groups`: groups of weights with their own training options.
#pragma once

#include <optional>
#include <vector>

#include "config/patterns.h"
#include "config/schema.h"
#include "nn/graph.h"

namespace dtrain {

/// Training options of a group of weights. `weights`: patterns for weight names, such as "dense_1/kernel".
struct ParameterGroup {
  Patterns weights;
  double learning_rate_factor = 1;
  std::optional<double> weight_decay;  // overrides the optimizer's weight decay
  bool trainable = true;
  static const Schema<ParameterGroup>& schema();
};

/// Applies the groups to the parameters of the graph. If a weight is in several groups, only the first one
/// applies. Reports patterns that match no trainable weight.
void apply_groups(const std::vector<ParameterGroup>& groups, Graph& graph, Diagnostics& diagnostics);

}  // namespace dtrain
