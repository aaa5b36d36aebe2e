#include <limits>

#include "nn/losses/class_target.h"
#include "nn/losses/table.h"

namespace dtrain {
namespace {

struct CrossEntropyOptions {
  bool from_logits = false;
};

Schema<CrossEntropyOptions> schema(const std::string& target) {
  return Schema<CrossEntropyOptions>("Minus the log of the probability that the output gives " + target + ".")
      .example("{from_logits: true}")
      .optional("from_logits", &CrossEntropyOptions::from_logits,
                "the output is logits, not probabilities behind a softmax");
}

class CrossEntropy : public Loss {
 public:
  explicit CrossEntropy(const CrossEntropySpec& spec) : spec_(spec) {}

  std::optional<TensorSpec> target(const TensorSpec& output, const ReportError& report_error) const override {
    auto classes = class_numbers_for(output, report_error);
    return classes && !spec_.sparse ? floats_for(output, report_error) : classes;
  }

  std::optional<Bounds> target_bounds(const TensorSpec& output) const override {
    // Probabilities may be weighted.
    return Bounds{0, spec_.sparse ? static_cast<double>(output.shape.back() - 1)
                                  : std::numeric_limits<double>::infinity()};
  }

  Scores takes() const override { return spec_.from_logits ? Scores::logits : Scores::probabilities; }
  bool is_probability(const Layer& activation) const override { return activation.is_softmax(); }

  std::shared_ptr<const Loss> before(const Layer& activation) const override {
    if (spec_.from_logits || !is_probability(activation)) return nullptr;
    return std::make_shared<const CrossEntropy>(CrossEntropySpec{spec_.sparse, true});
  }

  void run(Ops& ops, const void* prediction, const View& target, float scale, const float* loss_scale,
           void* diff, double* total, int64_t rows, int64_t columns) const override {
    ops.cross_entropy_loss(spec_, prediction, target, scale, loss_scale, diff, total, rows, columns);
  }

  Json keras_config() const override {
    const Json config = Json::object().set("from_logits", spec_.from_logits);
    return spec_.sparse
               ? keras_loss("SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", config)
               : keras_loss("CategoricalCrossentropy", "categorical_crossentropy", config);
  }

 private:
  CrossEntropySpec spec_;
};

}  // namespace

void add_cross_entropy(Registry<Loss>& table) {
  const auto of = [](bool sparse) {
    return [sparse](const CrossEntropyOptions& options, const ConfigNode&) -> std::shared_ptr<const Loss> {
      return std::make_shared<const CrossEntropy>(CrossEntropySpec{sparse, options.from_logits});
    };
  };
  table.add_with("sparse_categorical_crossentropy", schema("the class whose number the target is"), of(true));
  table.add_with("categorical_crossentropy", schema("the classes, weighted by the target's probabilities"),
                 of(false));
}

}  // namespace dtrain
