// Metrics that are means over rows. Most of them are computed by the corresponding loss.
#include <cmath>

#include "nn/losses/elementwise.h"
#include "nn/metrics/table.h"
#include "nn/metrics/target_checks.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class MeanAbsoluteError : public Metric {
 public:
  explicit MeanAbsoluteError(const NoOptions&) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    return is_dense_target(output, target, report_error);
  }

  void run(Ops& ops, const MetricArguments& args) const override {
    ops.metric({.kind = MetricSpec::Kind::mean_absolute_error}, args);
  }

  bool larger_is_better() const override { return false; }
  int unit_power() const override { return 1; }
};

/// A metric that reports a loss.
class MeanOfLoss : public Metric {
 public:
  using Finish = double (*)(double mean);
  /// `finish` converts the mean of the loss to the metric.
  MeanOfLoss(std::shared_ptr<const Loss> loss, Finish finish, int unit_power = 0)
      : loss_(std::move(loss)), finish_(finish), unit_power_(unit_power) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    const std::optional<TensorSpec> wanted = loss_->target(output, report_error);
    if (!wanted) return false;
    return wanted->dtype == DType::int32 ? is_sparse_target(output, target, report_error)
                                         : is_dense_target(output, target, report_error);
  }

  void run(Ops& ops, const MetricArguments& args) const override {
    loss_->run(ops, {.prediction = args.prediction,
                     .target = args.target,
                     .weights = args.weights,
                     .total = args.sums,
                     .rows = args.rows,
                     .columns = args.columns});
  }

  Json result(std::span<const double> sums, double weight, const TensorSpec&) const override {
    return finish_(sums[0] / weight);
  }
  int unit_power() const override { return unit_power_; }
  /// A smaller mean loss is better. Therefore a larger metric is better only if `finish` is decreasing.
  bool larger_is_better() const override { return finish_(1) > finish_(2); }

 private:
  std::shared_ptr<const Loss> loss_;
  Finish finish_;
  int unit_power_;
};

struct CrossEntropyMetricOptions {
  std::optional<bool> from_logits;
  double label_smoothing = 0;
};

double as_it_is(double mean) {
  return mean;
}

/// A cross-entropy, or its exponential. If the user does not give `from_logits`, the loss of the output
/// determines whether the scores are logits.
class CrossEntropyMetric : public MeanOfLoss {
 public:
  CrossEntropyMetric(std::string loss, const CrossEntropyMetricOptions& options, Finish finish)
      : MeanOfLoss(loss_of(loss, options), finish),
        name_(std::move(loss)),
        options_(options),
        finish_(finish) {}

  std::shared_ptr<const Metric> for_loss(const Loss& loss) const override {
    if (options_.from_logits) return nullptr;
    CrossEntropyMetricOptions options = options_;
    options.from_logits = loss.takes() == Scores::sigmoid_logits || loss.takes() == Scores::softmax_logits;
    return std::make_shared<const CrossEntropyMetric>(name_, options, finish_);
  }

 private:
  static std::shared_ptr<const Loss> loss_of(const std::string& name,
                                             const CrossEntropyMetricOptions& options) {
    std::vector<ConfigNode::Entry> entries{
        ConfigNode::entry("from_logits",
                          ConfigNode::scalar(options.from_logits.value_or(false) ? "true" : "false")),
        ConfigNode::entry("label_smoothing", Codec<double>::write(options.label_smoothing))};
    Diagnostics diagnostics;
    return registry<Loss>()
        .parse(ConfigNode::scalar(name), ConfigNode::mapping(std::move(entries)), diagnostics)
        .value;
  }

  std::string name_;
  CrossEntropyMetricOptions options_;
  Finish finish_;
};

struct PerplexityOptions {
  std::optional<bool> from_logits;
};

constexpr auto kFromLogits =
    "Whether the outputs are logits. If false, the outputs are probabilities. Default: as in the loss of the "
    "output.";

}  // namespace

Json Metric::result(std::span<const double> sums, double weight, const TensorSpec&) const {
  return sums[0] / weight;
}

void add_mean_errors(Registry<Metric>& table) {
  table.add<MeanAbsoluteError>("mean_absolute_error",
                               Schema<NoOptions>("The mean absolute difference between output and target."));
  const auto of = [&table](const std::string& name, const std::string& loss, const std::string& doc,
                           MeanOfLoss::Finish finish = as_it_is, int unit_power = 0) {
    table.add_with(name, Schema<NoOptions>(doc), [=](const NoOptions&, const ConfigNode&) {
      return std::make_shared<const MeanOfLoss>(registry<Loss>().make(loss).value, finish, unit_power);
    });
  };
  of("mean_squared_error", "mean_squared_error", "The mean squared difference between output and target.",
     as_it_is, 2);
  of(
      "root_mean_squared_error", "mean_squared_error",
      "The square root of the mean squared difference between output and target.",
      [](double mean) { return std::sqrt(mean); }, 1);
  of("mean_absolute_percentage_error", "mean_absolute_percentage_error",
     "The mean absolute difference between output and target, in percent of the target.");
  of("mean_squared_logarithmic_error", "mean_squared_logarithmic_error",
     "The mean squared difference between log(1 + output) and log(1 + target). Negative numbers are replaced "
     "by 0.");
  of("cosine_similarity", "cosine_similarity",
     "The mean cosine of the angle between output and target, along the last axis.",
     [](double mean) { return -mean; });
  of("log_cosh", "log_cosh",
     "The mean log of the hyperbolic cosine of the difference between output and target.");
  of("hinge", "hinge", "The mean of max(1 - target * output, 0). A target of 0 counts as -1.");
  of("squared_hinge", "squared_hinge",
     "The mean square of max(1 - target * output, 0). A target of 0 counts as -1.");
  of("poisson", "poisson", "The mean of output - target * log(output).");
  of("kl_divergence", "kl_divergence",
     "The mean over the rows of target * log(target / output), summed over the last axis.");
  const auto cross_entropy = [&table](const std::string& name, const std::string& doc) {
    table.add_with(
        name,
        Schema<CrossEntropyMetricOptions>(doc)
            .example("{from_logits: true}")
            .optional("from_logits", &CrossEntropyMetricOptions::from_logits, kFromLogits)
            .optional("label_smoothing", &CrossEntropyMetricOptions::label_smoothing,
                      "label smoothing: the fraction of the target that is spread evenly over all classes",
                      between(0.0, 1.0)),
        [=](const CrossEntropyMetricOptions& options, const ConfigNode&) {
          return std::make_shared<const CrossEntropyMetric>(name, options, as_it_is);
        });
  };
  cross_entropy("binary_crossentropy", "The mean over all rows of the loss with this name.");
  cross_entropy("categorical_crossentropy", "The mean over all rows of the loss with this name.");
  cross_entropy("sparse_categorical_crossentropy", "The mean over all rows of the loss with this name.");
  table.add_with("perplexity",
                 Schema<PerplexityOptions>(
                     "The exponential of the mean sparse_categorical_crossentropy. If the perplexity is n, "
                     "the model is as uncertain as in a choice between n equally likely classes.")
                     .example("{from_logits: true}")
                     .optional("from_logits", &PerplexityOptions::from_logits, kFromLogits),
                 [](const PerplexityOptions& options, const ConfigNode&) {
                   return std::make_shared<const CrossEntropyMetric>(
                       "sparse_categorical_crossentropy", CrossEntropyMetricOptions{options.from_logits},
                       [](double mean) { return std::exp(mean); });
                 });
}

}  // namespace dtrain
