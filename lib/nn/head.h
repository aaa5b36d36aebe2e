// The losses and metrics of a model's outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "nn/graph.h"
#include "nn/loss.h"

namespace dtrain {

/// A metric of an output.
struct HeadMetric {
  std::string name;  // as it is reported
  std::shared_ptr<const Metric> metric;
  int64_t sums = 1;           // that it keeps
  bool weighted = false;      // by the rows' weights, where they have some
  std::string computes = {};  // kind and options: the same for metrics that differ in their names only
};

/// The loss and the metrics of one of the model's outputs.
struct Head {
  ValueRef output;                   // the prediction
  std::shared_ptr<const Loss> loss;  // null in a model that is only asked for predictions
  std::vector<HeadMetric> metrics;
  TensorSpec target;  // as the loss wants it
  /// The column of the rows' weights, which is the same for all heads; nothing where all rows count the same.
  /// A sample has one weight for all of its rows, or one for each.
  std::optional<TensorSpec> weights = {};

  /// The meaning of the output's numbers, according to the loss.
  Scores scores() const { return loss ? loss->takes() : Scores::any; }
  /// How many totals it has: the loss's sum, the metrics' sums, and where there are weights their sum.
  int64_t count_totals() const;
};

/// How many totals all heads have together, which lie one head's after the other's.
size_t count_totals(std::span<const Head> heads);

}  // namespace dtrain
