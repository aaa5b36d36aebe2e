#include "nn/losses/elementwise.h"

#include <limits>
#include <stdexcept>

#include "nn/losses/class_target.h"
#include "nn/losses/loss_options.h"
#include "nn/losses/table.h"

namespace dtrain {
namespace {

using ElementwiseKind = ElementwiseLossSpec::Kind;

struct BinaryOptions : LossOptions {
  bool from_logits = false;
  double label_smoothing = 0;
};
struct BinaryFocalOptions : BinaryOptions {
  bool apply_class_balancing = false;
  double alpha = 0.25;
  double gamma = 2;
};
struct HuberOptions : LossOptions {
  double delta = 1;
};

/// Returns a schema with the options that all binary cross-entropies share.
template <class Options>
Schema<Options> binary_schema(const std::string& doc, const std::string& example) {
  Schema<Options> schema(doc);
  schema.example(example)
      .optional(
          "from_logits", static_cast<bool Options::*>(&Options::from_logits),
          "Whether the outputs are logits. If false, the outputs are probabilities, as after a sigmoid.")
      .optional("label_smoothing", static_cast<double Options::*>(&Options::label_smoothing),
                "label smoothing: the fraction of the target that is replaced by 0.5", between(0.0, 1.0));
  return with_loss_options(std::move(schema));
}

ElementwiseLossSpec binary_spec(ElementwiseKind kind, const BinaryOptions& options) {
  return {.kind = kind,
          .from_logits = options.from_logits,
          .label_smoothing = static_cast<float>(options.label_smoothing)};
}

std::shared_ptr<const Loss> loss(const ElementwiseLossSpec& spec, const LossOptions& options) {
  return std::make_shared<const ElementwiseLoss>(spec, options.weight);
}

/// Adds binary_crossentropy and binary_focal_crossentropy.
void add_binary_crossentropies(Registry<Loss>& table) {
  table.add_with("binary_crossentropy",
                 binary_schema<BinaryOptions>("Cross-entropy for targets of 0 or 1: minus the logarithm of "
                                              "the predicted probability of the target.",
                                              "{from_logits: true}"),
                 [](const BinaryOptions& options, const ConfigNode&) {
                   return loss(binary_spec(ElementwiseKind::binary_crossentropy, options), options);
                 });
  table.add_with(
      "binary_focal_crossentropy",
      binary_schema<BinaryFocalOptions>(
          "Focal loss: binary_crossentropy times (1 - q)^gamma, where q is the predicted probability of the "
          "target. Therefore samples that the model already predicts well count less.",
          "{gamma: 2, from_logits: true}")
          .optional("apply_class_balancing", &BinaryFocalOptions::apply_class_balancing,
                    "Whether the two classes have different weights. If true, targets of 1 have the weight "
                    "alpha, and targets of 0 have the weight 1 - alpha.")
          .optional("alpha", &BinaryFocalOptions::alpha,
                    "weight of targets of 1 if apply_class_balancing is true", between(0.0, 1.0))
          .optional("gamma", &BinaryFocalOptions::gamma,
                    "Focusing exponent. Larger values reduce the weight of samples that the model already "
                    "predicts well.",
                    at_least(0.0)),
      [](const BinaryFocalOptions& options, const ConfigNode&) {
        ElementwiseLossSpec spec = binary_spec(ElementwiseKind::binary_focal_crossentropy, options);
        spec.balances_classes = options.apply_class_balancing;
        spec.alpha = static_cast<float>(options.alpha);
        spec.gamma = static_cast<float>(options.gamma);
        return loss(spec, options);
      });
}

}  // namespace

bool ElementwiseLoss::is_of_two_classes() const {
  return spec_.kind == ElementwiseKind::binary_crossentropy ||
         spec_.kind == ElementwiseKind::binary_focal_crossentropy;
}

std::optional<TensorSpec> ElementwiseLoss::target(const TensorSpec& output,
                                                  const ReportError& report_error) const {
  return floats_for(output, report_error);
}

std::optional<Bounds> ElementwiseLoss::target_bounds(const TensorSpec&) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (spec_.kind) {
    case ElementwiseKind::binary_crossentropy:
    case ElementwiseKind::binary_focal_crossentropy:
    case ElementwiseKind::kl_divergence:
      return Bounds{0, 1};
    case ElementwiseKind::hinge:
    case ElementwiseKind::squared_hinge:
      return Bounds{-1, 1};
    case ElementwiseKind::poisson:
      return Bounds{0, kInfinity};
    default:
      return std::nullopt;
  }
}

Scores ElementwiseLoss::takes() const {
  if (!is_of_two_classes()) return Scores::any;
  return spec_.from_logits ? Scores::sigmoid_logits : Scores::probabilities;
}

bool ElementwiseLoss::may_be_negative() const {
  return spec_.kind == ElementwiseKind::poisson ||
         // The divergence is negative if the probabilities of a row do not sum to 1.
         spec_.kind == ElementwiseKind::kl_divergence;
}

bool ElementwiseLoss::is_probability(const Layer& activation) const {
  const auto elementwise = activation.elementwise();
  return is_of_two_classes() && elementwise && elementwise->kind == Activation::sigmoid;
}

std::shared_ptr<const Loss> ElementwiseLoss::before(const Layer& activation) const {
  if (takes() != Scores::probabilities || !is_probability(activation)) return nullptr;
  ElementwiseLossSpec spec = spec_;
  spec.from_logits = true;
  return std::make_shared<const ElementwiseLoss>(spec, weight_);
}

void add_elementwise_losses(Registry<Loss>& table) {
  add_binary_crossentropies(table);
  const auto plain = [&table](const std::string& name, ElementwiseKind kind, const std::string& doc) {
    table.add_with(
        name, with_loss_options(Schema<LossOptions>(doc).example("{weight: 0.5}")),
        [kind](const LossOptions& options, const ConfigNode&) { return loss({.kind = kind}, options); });
  };
  plain("mean_squared_error", ElementwiseKind::mean_squared_error,
        "The squared difference between output and target.");
  plain("mean_absolute_error", ElementwiseKind::mean_absolute_error,
        "The absolute difference between output and target.");
  plain("mean_absolute_percentage_error", ElementwiseKind::mean_absolute_percentage_error,
        "The absolute difference between output and target, in percent of the target.");
  plain("mean_squared_logarithmic_error", ElementwiseKind::mean_squared_logarithmic_error,
        "The squared difference between log(1 + output) and log(1 + target). Negative numbers are replaced "
        "by 0.");
  table.add_with("huber",
                 with_loss_options(
                     Schema<HuberOptions>(
                         "Huber loss: half the squared difference between output and target if the absolute "
                         "difference is at most delta. Otherwise, delta * (absolute difference - delta / 2).")
                         .example("{delta: 0.5}")
                         .optional("delta", &HuberOptions::delta,
                                   "absolute difference above which the loss is linear", greater_than(0.0))),
                 [](const HuberOptions& options, const ConfigNode&) {
                   return loss({.kind = ElementwiseKind::huber, .delta = static_cast<float>(options.delta)},
                               options);
                 });
  plain("log_cosh", ElementwiseKind::log_cosh,
        "The logarithm of the hyperbolic cosine of the difference between output and target. It is about "
        "half the square of a small difference, and it grows about linearly for large differences.");
  plain("hinge", ElementwiseKind::hinge,
        "Hinge loss: max(1 - target * output, 0), for targets of -1 and 1. A target of 0 counts as -1.");
  plain("squared_hinge", ElementwiseKind::squared_hinge,
        "Squared hinge loss: the square of max(1 - target * output, 0), for targets of -1 and 1. A target of "
        "0 counts as -1.");
  plain("poisson", ElementwiseKind::poisson,
        "Poisson loss: output - target * log(output). The target is a count, and the output is its predicted "
        "mean.");
  plain("kl_divergence", ElementwiseKind::kl_divergence,
        "Kullback-Leibler divergence: target * log(target / output), summed over the last axis. Target and "
        "output are probabilities.");
}

}  // namespace dtrain
