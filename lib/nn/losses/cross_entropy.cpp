#include <limits>

#include "nn/losses/class_target.h"
#include "nn/losses/loss_options.h"
#include "nn/losses/softmax_loss.h"
#include "nn/losses/table.h"

namespace dtrain {
namespace {

struct CrossEntropyOptions : LossOptions {
  bool from_logits = false;
  double label_smoothing = 0;
};

Schema<CrossEntropyOptions> schema(const std::string& doc) {
  return with_loss_options(
      Schema<CrossEntropyOptions>(doc)
          .example("{from_logits: true}")
          .optional(
              "from_logits", &CrossEntropyOptions::from_logits,
              "Whether the outputs are logits. If false, the outputs are probabilities, as after a softmax.")
          .optional("label_smoothing", &CrossEntropyOptions::label_smoothing,
                    "label smoothing: the fraction of the target that is spread evenly over all classes",
                    between(0.0, 1.0)));
}

class CrossEntropy final : public SoftmaxLoss<CrossEntropy, CrossEntropySpec> {
 public:
  using SoftmaxLoss::SoftmaxLoss;

  std::optional<TensorSpec> target(const TensorSpec& output, const ReportError& report_error) const override {
    auto classes = class_numbers_for(output, report_error);
    return classes && !spec().sparse ? floats_for(output, report_error) : classes;
  }

  std::optional<Bounds> target_bounds(const TensorSpec& output) const override {
    // The target probabilities may be multiplied by weights, so there is no upper limit.
    return Bounds{0, spec().sparse ? static_cast<double>(output.shape.back() - 1)
                                   : std::numeric_limits<double>::infinity()};
  }

  void run(Ops& ops, const LossArguments& args) const override { ops.cross_entropy_loss(spec(), args); }
};

}  // namespace

void add_cross_entropy(Registry<Loss>& table) {
  const auto of = [](bool sparse) {
    return [sparse](const CrossEntropyOptions& options, const ConfigNode&) -> std::shared_ptr<const Loss> {
      const CrossEntropySpec spec{sparse, options.from_logits, static_cast<float>(options.label_smoothing)};
      return std::make_shared<const CrossEntropy>(spec, options.weight);
    };
  };
  table.add_with("sparse_categorical_crossentropy",
                 schema("Cross-entropy for targets that are class numbers: minus the logarithm of the "
                        "predicted probability of the target class."),
                 of(true));
  table.add_with("categorical_crossentropy",
                 schema("Cross-entropy for targets that have a probability for each class, such as one-hot "
                        "vectors: minus the sum over the classes of target * log(output)."),
                 of(false));
}

}  // namespace dtrain
