#include <fmt/format.h>

#include "nn/metrics/counted.h"
#include "nn/metrics/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

struct TopKOptions {
  int k = 5;
};

struct BinaryAccuracyOptions {
  double threshold = 0.5;
};

/// The form of the target: class numbers, one value per class, or either form.
enum class Target { sparse, categorical, either };

/// The fraction of rows for which the target's class is among the k classes with the highest scores.
class TopK : public Metric {
 public:
  TopK(Target target, int k) : target_(target), k_(k) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    const bool fits = is_sparse(target.dtype) ? is_sparse_target(output, target, report_error)
                                              : is_dense_target(output, target, report_error);
    if (!fits) return false;
    const int64_t classes = output.shape.columns();
    if (k_ <= classes) return true;
    report_error(fmt::format("k must be at most the number of classes, but k is {} and '{}' has {} classes",
                             k_, output.name, classes));
    return false;
  }

  void run(Ops& ops, const MetricArguments& args) const override {
    using Kind = MetricSpec::Kind;
    const Kind kind = is_sparse(args.target.dtype) ? Kind::sparse_top_k : Kind::categorical_top_k;
    ops.metric({.kind = kind, .k = k_}, args);
  }

  bool larger_is_better() const override { return true; }

  std::string chosen_kind(const TensorSpec&, const TensorSpec& target) const override {
    if (target_ != Target::either) return "";
    return std::string(is_sparse(target.dtype) ? "sparse_" : "") + (k_ == 1 ? "" : "top_k_") +
           "categorical_accuracy";
  }

 private:
  bool is_sparse(DType dtype) const {
    return target_ == Target::either ? dtype == DType::int32 : target_ == Target::sparse;
  }

  Target target_;
  int k_;
};

class BinaryAccuracy : public Metric {
 public:
  explicit BinaryAccuracy(const BinaryAccuracyOptions& options) : threshold_(options.threshold) {}
  BinaryAccuracy(const BinaryAccuracy& other, const Loss& loss)
      : threshold_(other.threshold_), reading_(ScoreReading::of(loss)) {}

  std::shared_ptr<const Metric> for_loss(const Loss& loss) const override {
    return std::make_shared<const BinaryAccuracy>(*this, loss);
  }

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    return is_dense_target(output, target, report_error);
  }

  void run(Ops& ops, const MetricArguments& args) const override {
    const CountSpec::Scores scores = reading_.counted(args.columns);
    const float threshold = reading_.threshold(threshold_, args.columns);
    if (scores == CountSpec::Scores::softmax_logits)
      return ops.count({.kind = CountSpec::Kind::answers, .scores = scores, .threshold = threshold}, args);
    ops.metric({.kind = MetricSpec::Kind::binary_accuracy, .threshold = threshold}, args);
  }

  bool larger_is_better() const override { return true; }

 private:
  double threshold_;
  ScoreReading reading_;
};

/// Keras's `accuracy`. If the output has one column and the target is floats, it is the binary accuracy.
/// Otherwise it is the categorical or the sparse categorical accuracy, depending on the target.
class Accuracy : public Metric {
 public:
  explicit Accuracy(const NoOptions&) {}
  Accuracy(const Accuracy& other, const Loss& loss) : binary_(other.binary_, loss) {}

  std::shared_ptr<const Metric> for_loss(const Loss& loss) const override {
    return std::make_shared<const Accuracy>(*this, loss);
  }

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    return pick(output.shape.columns(), target.dtype).check(output, target, report_error);
  }

  void run(Ops& ops, const MetricArguments& args) const override {
    pick(args.columns, args.target.dtype).run(ops, args);
  }

  bool larger_is_better() const override { return true; }

  std::string chosen_kind(const TensorSpec& output, const TensorSpec& target) const override {
    const Metric& picked = pick(output.shape.columns(), target.dtype);
    return &picked == &binary_ ? "binary_accuracy" : picked.chosen_kind(output, target);
  }

 private:
  const Metric& pick(int64_t columns, DType target) const {
    if (columns == 1 && target == DType::float32) return binary_;
    return by_class_;
  }

  BinaryAccuracy binary_{BinaryAccuracyOptions{}};
  TopK by_class_{Target::either, 1};
};

}  // namespace

void add_accuracy(Registry<Metric>& table) {
  const auto best = [&table](const std::string& name, Target target, const std::string& doc) {
    table.add_with(name, Schema<NoOptions>(doc), [target](const NoOptions&, const ConfigNode&) {
      return std::make_shared<const TopK>(target, 1);
    });
  };
  const auto top_k = [&table](const std::string& name, Target target, const std::string& doc) {
    table.add_with(name,
                   Schema<TopKOptions>(doc).example("{k: 5}").optional(
                       "k", &TopKOptions::k,
                       "Number of highest scores that are considered. A prediction is correct if the "
                       "target's class is among them.",
                       at_least(1)),
                   [target](const TopKOptions& options, const ConfigNode&) {
                     return std::make_shared<const TopK>(target, options.k);
                   });
  };
  table.add<Accuracy>(
      "accuracy", Schema<NoOptions>("Selects binary_accuracy, categorical_accuracy or "
                                    "sparse_categorical_accuracy, depending on the output and the target."));
  best("sparse_categorical_accuracy", Target::sparse,
       "The fraction of rows in which the target's class has the highest score. The target is a class "
       "number.");
  best("categorical_accuracy", Target::categorical,
       "The fraction of rows in which the class with the highest score is also the class with the largest "
       "target.");
  table.add<BinaryAccuracy>(
      "binary_accuracy",
      Schema<BinaryAccuracyOptions>("The fraction of predictions that equal the target. A prediction is 1 if "
                                    "the probability is above the threshold, and otherwise 0.")
          .example("{threshold: 0.7}")
          .optional("threshold", &BinaryAccuracyOptions::threshold,
                    "Threshold of the prediction: a probability above the threshold counts as 1. If the loss "
                    "of the output takes logits, the outputs are first converted to probabilities.",
                    between(0.0, 1.0)));
  top_k("sparse_top_k_categorical_accuracy", Target::sparse,
        "The fraction of rows in which the target's class is among the k classes with the highest scores. "
        "The target is a class number.");
  top_k("top_k_categorical_accuracy", Target::categorical,
        "The fraction of rows in which the class with the largest target is among the k classes with the "
        "highest scores.");
  top_k("top_k", Target::either,
        "Selects sparse_top_k_categorical_accuracy if the target is a class number, and "
        "top_k_categorical_accuracy otherwise.");
}

}  // namespace dtrain
