#include <stdexcept>

#include "nn/losses/class_target.h"
#include "nn/losses/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

struct BinaryCrossentropyOptions {
  bool from_logits = false;
};
struct HuberOptions {
  double delta = 1;
};

/// The target has the output's shape; a row's loss is the mean over its elements.
class ElementwiseLoss : public Loss {
 public:
  explicit ElementwiseLoss(const ElementwiseLossSpec& spec) : spec_(spec) {}

  std::optional<TensorSpec> target(const TensorSpec& output, const ReportError& report_error) const override {
    return floats_for(output, report_error);
  }

  std::optional<Bounds> target_bounds(const TensorSpec&) const override {
    if (spec_.kind != ElementwiseLossSpec::Kind::binary_crossentropy) return std::nullopt;
    return Bounds{0, 1};
  }

  Scores takes() const override {
    if (spec_.kind != ElementwiseLossSpec::Kind::binary_crossentropy) return Scores::any;
    return spec_.from_logits ? Scores::logits : Scores::probabilities;
  }

  bool is_probability(const Layer& activation) const override {
    const auto elementwise = activation.elementwise();
    return elementwise && elementwise->kind == Activation::sigmoid;
  }

  std::shared_ptr<const Loss> before(const Layer& activation) const override {
    if (takes() != Scores::probabilities || !is_probability(activation)) return nullptr;
    ElementwiseLossSpec spec = spec_;
    spec.from_logits = true;
    return std::make_shared<const ElementwiseLoss>(spec);
  }

  void run(Ops& ops, const void* prediction, const View& target, float scale, const float* loss_scale,
           void* diff, double* total, int64_t rows, int64_t columns) const override {
    ops.elementwise_loss(spec_, prediction, target.f32(), scale, loss_scale, diff, total, rows, columns);
  }

  Json keras_config() const override {
    switch (spec_.kind) {
      case ElementwiseLossSpec::Kind::binary_crossentropy:
        return keras_loss("BinaryCrossentropy", "binary_crossentropy",
                          Json::object().set("from_logits", spec_.from_logits));
      case ElementwiseLossSpec::Kind::mean_squared_error:
        return keras_loss("MeanSquaredError", "mean_squared_error");
      case ElementwiseLossSpec::Kind::mean_absolute_error:
        return keras_loss("MeanAbsoluteError", "mean_absolute_error");
      case ElementwiseLossSpec::Kind::huber:
        return keras_loss("Huber", "huber_loss",
                          Json::object().set("delta", static_cast<double>(spec_.delta)));
    }
    throw std::logic_error("a loss that Keras has no name for");
  }

 private:
  ElementwiseLossSpec spec_;
};

std::shared_ptr<const Loss> loss(ElementwiseLossSpec::Kind kind, bool from_logits = false, double delta = 1) {
  return std::make_shared<const ElementwiseLoss>(
      ElementwiseLossSpec{kind, from_logits, static_cast<float>(delta)});
}

}  // namespace

void add_elementwise_losses(Registry<Loss>& table) {
  using Kind = ElementwiseLossSpec::Kind;
  table.add_with("binary_crossentropy",
                 Schema<BinaryCrossentropyOptions>(
                     "Minus the log of the probability that the output gives a target of 0 or 1.")
                     .example("{from_logits: true}")
                     .optional("from_logits", &BinaryCrossentropyOptions::from_logits,
                               "the output is logits, not probabilities behind a sigmoid"),
                 [](const BinaryCrossentropyOptions& options, const ConfigNode&) {
                   return loss(Kind::binary_crossentropy, options.from_logits);
                 });
  table.add_with("mean_squared_error", Schema<NoOptions>("The squared difference from the target."),
                 [](const NoOptions&, const ConfigNode&) { return loss(Kind::mean_squared_error); });
  table.add_with("mean_absolute_error", Schema<NoOptions>("The absolute difference from the target."),
                 [](const NoOptions&, const ConfigNode&) { return loss(Kind::mean_absolute_error); });
  table.add_with(
      "huber",
      Schema<HuberOptions>("Half the squared difference up to delta, linear beyond.")
          .example("{delta: 0.5}")
          .optional("delta", &HuberOptions::delta, "where it turns linear", greater_than(0.0)),
      [](const HuberOptions& options, const ConfigNode&) { return loss(Kind::huber, false, options.delta); });
}

}  // namespace dtrain
