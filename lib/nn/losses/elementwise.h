// Losses that are computed separately for each element.
#pragma once

#include "nn/loss.h"

namespace dtrain {

/// A loss that is computed separately for each element. The target has the shape of the output. The loss of a
/// row is the mean over its columns. For kl_divergence, it is the sum over the columns.
class ElementwiseLoss : public Loss {
 public:
  explicit ElementwiseLoss(const ElementwiseLossSpec& spec, double weight = 1)
      : spec_(spec), weight_(weight) {}

  std::optional<TensorSpec> target(const TensorSpec& output, const ReportError& report_error) const override;
  std::optional<Bounds> target_bounds(const TensorSpec& output) const override;
  Scores takes() const override;
  double weight() const override { return weight_; }
  bool tells_classes() const override { return is_of_two_classes(); }
  bool is_of_columns() const override { return true; }
  bool may_be_negative() const override;
  bool is_probability(const Layer& activation) const override;
  std::shared_ptr<const Loss> before(const Layer& activation) const override;
  void run(Ops& ops, const LossArguments& args) const override { ops.elementwise_loss(spec_, args); }

 private:
  /// Returns whether the output is the probability (or the logit) of one of two classes.
  bool is_of_two_classes() const;

  ElementwiseLossSpec spec_;
  double weight_;
};

}  // namespace dtrain
