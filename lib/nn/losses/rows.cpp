// Losses that are computed for each row as a whole.
#include "nn/losses/class_target.h"
#include "nn/losses/loss_options.h"
#include "nn/losses/softmax_loss.h"
#include "nn/losses/table.h"

namespace dtrain {
namespace {

struct FocalOptions : LossOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  double alpha = 0.25;
  double gamma = 2;
};

class CosineSimilarityLoss : public Loss {
 public:
  explicit CosineSimilarityLoss(const LossOptions& options) : weight_(options.weight) {}

  std::optional<TensorSpec> target(const TensorSpec& output, const ReportError& report_error) const override {
    return floats_for(output, report_error);
  }
  double weight() const override { return weight_; }
  bool may_be_negative() const override { return true; }
  void run(Ops& ops, const LossArguments& args) const override {
    ops.row_loss({.kind = RowLossSpec::Kind::cosine_similarity}, args);
  }

 private:
  double weight_;
};

class FocalCrossEntropy final : public SoftmaxLoss<FocalCrossEntropy, RowLossSpec> {
 public:
  using SoftmaxLoss::SoftmaxLoss;

  std::optional<TensorSpec> target(const TensorSpec& output, const ReportError& report_error) const override {
    const auto classes = class_numbers_for(output, report_error);
    return classes ? floats_for(output, report_error) : classes;
  }
  std::optional<Bounds> target_bounds(const TensorSpec&) const override { return Bounds{0, 1}; }
  void run(Ops& ops, const LossArguments& args) const override { ops.row_loss(spec(), args); }
};

}  // namespace

void add_row_losses(Registry<Loss>& table) {
  table.add_with(
      "categorical_focal_crossentropy",
      with_loss_options(
          Schema<FocalOptions>("Focal loss: categorical_crossentropy in which each class has the factor "
                               "alpha * (1 - q)^gamma, where q is the predicted probability of the class. "
                               "Therefore samples that the model already predicts well count less.")
              .example("{gamma: 2, from_logits: true}")
              .optional("alpha", &FocalOptions::alpha, "factor by which the loss is multiplied",
                        greater_than(0.0))
              .optional("gamma", &FocalOptions::gamma,
                        "Focusing exponent. Larger values reduce the weight of samples that the model "
                        "already predicts well.",
                        at_least(0.0))
              .optional("from_logits", &FocalOptions::from_logits,
                        "Whether the outputs are logits. If false, the outputs are probabilities, as after a "
                        "softmax.")
              .optional("label_smoothing", &FocalOptions::label_smoothing,
                        "label smoothing: the fraction of the target that is spread evenly over all classes",
                        between(0.0, 1.0))),
      [](const FocalOptions& options, const ConfigNode&) -> std::shared_ptr<const Loss> {
        const RowLossSpec spec{.kind = RowLossSpec::Kind::categorical_focal_crossentropy,
                               .from_logits = options.from_logits,
                               .label_smoothing = static_cast<float>(options.label_smoothing),
                               .gamma = static_cast<float>(options.gamma),
                               .alpha = static_cast<float>(options.alpha)};
        return std::make_shared<const FocalCrossEntropy>(spec, options.weight);
      });
  table.add_with(
      "cosine_similarity",
      with_loss_options(Schema<LossOptions>("Minus the cosine of the angle between output and target, along "
                                            "the last axis. The loss is -1 if both have the same direction.")
                            .example("{weight: 0.5}")),
      [](const LossOptions& options, const ConfigNode&) -> std::shared_ptr<const Loss> {
        return std::make_shared<const CosineSimilarityLoss>(options);
      });
}

}  // namespace dtrain
