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
  std::string name;  // name in reports
  std::shared_ptr<const Metric> metric;
  int64_t sums = 1;            // number of sums that the metric accumulates
  bool weighted = false;       // whether row weights, if there are any, apply to this metric
  std::string computes = {};   // kind and options without the name: equal for metrics that differ only in
                               // their names
  ConfigNode configured = {};  // {kind: options} with all defaults; null for a metric that is not configured
};

/// The mask of an output (see LayerRequest::masked).
struct HeadMask {
  ValueRef value;
  Shape shape;
};

/// The loss and metrics of one of the model's outputs.
struct Head {
  ValueRef output;                   // the prediction
  std::shared_ptr<const Loss> loss;  // null in a model that is only used for predictions
  std::vector<HeadMetric> metrics;
  TensorSpec target;  // shape and dtype of the target, as the loss requires them
  /// The row weights, which are a column of the data. All heads share this column. A sample has either one
  /// weight for all of its rows, or one weight for each row. nullopt: all rows have the same weight.
  std::optional<TensorSpec> weights = {};
  /// The output's mask; nullopt if the output has none. Masked positions have weight 0.
  std::optional<HeadMask> mask = {};

  ConfigNode configured_loss = {};  // {kind: options} with all defaults; null without a loss

  /// Returns how the loss interprets the elements of the output, such as logits or probabilities.
  Scores scores() const { return loss ? loss->takes() : Scores::any; }
  /// Returns whether rows have weights. Weights come from the data or from a mask.
  bool is_weighted() const { return weights || mask; }
  /// Returns the number of row weights per sample; 0 if rows have no weights.
  int64_t weights_per_sample() const;
  /// Returns the number of totals of this head. The totals are the sum of the loss; the sums of the metrics;
  /// if rows have weights, the sum of the weights; and, if the output has both weights from the data and a
  /// mask, the number of positions that are not masked.
  int64_t count_totals() const;
};

/// Returns the number of totals of all heads together.
size_t count_totals(std::span<const Head> heads);
/// Returns the number of totals of a step: the totals of all heads and, if the model has penalties, one more
/// total for the penalties.
size_t count_totals(const Graph& graph, std::span<const Head> heads);

}  // namespace dtrain
