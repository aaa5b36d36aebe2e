// Losses that measure the overlap of predicted and true areas. As in Keras, each loss is computed over a
// whole sample.
#include <algorithm>

#include <fmt/format.h>

#include "nn/losses/class_target.h"
#include "nn/losses/loss_options.h"
#include "nn/losses/table.h"

namespace dtrain {
namespace {

struct DiceOptions : LossOptions {
  std::vector<int64_t> axis{1, 2, 3};
};
struct TverskyOptions : DiceOptions {
  double alpha = 0.5, beta = 0.5;
};

/// A loss that compares the predicted and the true areas of a sample. Its sums run over all axes of a sample,
/// or over all axes except the last. In the second case, the last axis is the classes, and the loss is the
/// mean over the classes.
class OverlapLoss final : public Loss {
 public:
  OverlapLoss(const RowLossSpec& spec, const DiceOptions& options)
      : spec_(spec), axes_(options.axis.size()), weight_(options.weight) {}

  std::optional<TensorSpec> target(const TensorSpec& output, const ReportError& report_error) const override {
    const size_t rank = output.shape.rank();
    if (axes_ == rank || axes_ + 1 == rank) return floats_for(output, report_error);
    report_error(
        fmt::format("'axis' must list all {} axes of a sample of '{}' (shape {}), counted from 1, or all "
                    "axes except the last one, which is the axis of classes; but the number of listed axes "
                    "is {}",
                    rank, output.name, output.shape.str(), axes_));
    return std::nullopt;
  }
  std::optional<Bounds> target_bounds(const TensorSpec&) const override { return Bounds{0, 1}; }
  Scores takes() const override { return Scores::probabilities; }
  double weight() const override { return weight_; }
  bool tells_classes() const override { return true; }
  bool is_of_samples() const override { return true; }
  bool is_probability(const Layer& activation) const override {
    const auto elementwise = activation.elementwise();
    return activation.is_softmax() || (elementwise && elementwise->kind == Activation::sigmoid);
  }

  /// Computes the loss of each sample. Every row of a sample counts with the loss of the sample, because the
  /// total is later divided by the number of all rows.
  void run(Ops& ops, const LossArguments& args) const override {
    const bool by_class = args.target.shape.rank() > axes_ + 1;  // the first axis of the target is the batch
    RowLossSpec spec = spec_;
    spec.classes = by_class ? args.columns : 1;
    spec.factor = static_cast<double>(args.positions);
    LossArguments samples = args;
    samples.rows = args.rows / args.positions;
    samples.columns = args.columns * args.positions;
    samples.scale = args.scale * static_cast<float>(args.positions);
    samples.weights.rows_per_weight = std::max<int64_t>(args.weights.rows_per_weight / args.positions, 1);
    ops.row_loss(spec, samples);
  }

 private:
  RowLossSpec spec_;
  size_t axes_;  // number of axes that the sums run over
  double weight_;
};

template <class Options>
Schema<Options> overlap_schema(const std::string& doc, const std::string& example) {
  const Check<std::vector<int64_t>> axes{
      "the axes of a sample, such as [1, 2, 3] or [1, 2] (axis 0 is the batch and is not possible, because a "
      "sum over it would depend on how the batch is divided)",
      [](const std::vector<int64_t>& all) {
        for (size_t i = 0; i < all.size(); ++i)
          if (all[i] != static_cast<int64_t>(i) + 1) return false;
        return !all.empty();
      },
      Json::object().set("minItems", 1)};
  return with_loss_options(Schema<Options>(doc).example(example).optional(
      "axis", static_cast<std::vector<int64_t> Options::*>(&Options::axis),
      "Axes over which the sums run, counted from 1. By default, these are all axes of an image ([1, 2, 3]). "
      "Without the last axis ([1, 2]), the loss is computed separately for each class, and all classes have "
      "the same weight.",
      axes));
}

}  // namespace

void add_overlap_losses(Registry<Loss>& table) {
  using Kind = RowLossSpec::Kind;
  table.add_with("dice",
                 overlap_schema<DiceOptions>(
                     "Dice loss: 1 minus the Dice coefficient of each sample. The coefficient is 2 * "
                     "sum(output * target) / sum(output + target). Outputs must be probabilities, and "
                     "targets must be numbers from 0 to 1, such as the result of the transform one_hot.",
                     "{axis: [1, 2]}"),
                 [](const DiceOptions& options, const ConfigNode&) -> std::shared_ptr<const Loss> {
                   return std::make_shared<const OverlapLoss>(RowLossSpec{.kind = Kind::dice}, options);
                 });
  table.add_with(
      "tversky",
      overlap_schema<TverskyOptions>(
          "Tversky loss: 1 minus the Tversky index of each sample. The index is TP / (TP + alpha * FN + beta "
          "* FP), where TP is the sum of target * output, FN is the sum of target * (1 - output), and FP is "
          "the sum of (1 - target) * output. If alpha and beta are 0.5, the loss equals dice.",
          "{alpha: 0.7, beta: 0.3, axis: [1, 2]}")
          .optional("alpha", &TverskyOptions::alpha,
                    "Weight of FN. This is its meaning in Keras's code, although Keras's documentation calls "
                    "it the weight of false positives.",
                    at_least(0.0))
          .optional("beta", &TverskyOptions::beta,
                    "Weight of FP. This is its meaning in Keras's code, although Keras's documentation calls "
                    "it the weight of false negatives.",
                    at_least(0.0)),
      [](const TverskyOptions& options, const ConfigNode&) -> std::shared_ptr<const Loss> {
        const RowLossSpec spec{.kind = Kind::tversky,
                               .alpha = static_cast<float>(options.alpha),
                               .beta = static_cast<float>(options.beta)};
        return std::make_shared<const OverlapLoss>(spec, options);
      });
}

}  // namespace dtrain
