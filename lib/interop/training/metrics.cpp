#include "interop/training_formats.h"
#include "nn/metrics/counted.h"

namespace dtrain {

namespace {

using ToKeras = std::function<Json(const MetricInUse&)>;

Json in_keras_class(const std::string& class_name, Json config = Json::object()) {
  return Json::object().set("class_name", class_name).set("config", std::move(config));
}

ScoreReading reading_of(const MetricInUse& in) {
  return in.loss ? ScoreReading::of(*in.loss) : ScoreReading();
}

bool has_class_numbers(const MetricInUse& in) {
  return in.target.dtype == DType::int32;
}

/// Returns null, for metrics that Keras lacks.
Json no_metric(const MetricInUse&) {
  return {};
}

/// Returns a conversion to a Keras metric without options.
ToKeras plain_metric(const char* class_name) {
  return [class_name](const MetricInUse&) { return in_keras_class(class_name); };
}

/// Returns a conversion to a cross-entropy metric of Keras. If the option `from_logits` is missing, it is
/// derived from the output's loss.
ToKeras cross_entropy_metric(const char* class_name, bool has_smoothing = true) {
  return [=](const MetricInUse& in) -> Json {
    const auto smoothing = static_cast<double>(static_cast<float>(in.settings.number("label_smoothing")));
    if (smoothing != 0 && !has_smoothing) return {};
    const Json given = in.settings.value("from_logits");
    const Scores scores = in.loss ? in.loss->takes() : Scores::any;
    Json config = Json::object().set(
        "from_logits", given.is_null() ? scores == Scores::sigmoid_logits || scores == Scores::softmax_logits
                                       : given.as_bool());
    if (smoothing != 0) config.set("label_smoothing", smoothing);
    return in_keras_class(class_name, std::move(config));
  };
}

Json binary_accuracy(const MetricInUse& in, double threshold) {
  if (reading_of(in).is_logits(in.output.shape.columns())) return {};  // Keras expects probabilities
  return in_keras_class("BinaryAccuracy",
                        Json::object().set("threshold", static_cast<double>(static_cast<float>(threshold))));
}

/// Converts a metric that counts how often the correct class is among the k classes with the best scores. If
/// the metric has no option `k`, k is 1.
Json categorical_accuracy(const MetricInUse& in, bool is_sparse) {
  const Json k = in.settings.value("k");
  const std::string sparse = is_sparse ? "Sparse" : "";
  if (k.is_null() || k.as_int() == 1) return in_keras_class(sparse + "CategoricalAccuracy");
  return in_keras_class(sparse + "TopKCategoricalAccuracy", Json::object().set("k", k.as_int()));
}

Json accuracy(const MetricInUse& in) {
  if (in.output.shape.columns() == 1 && in.target.dtype == DType::float32) return binary_accuracy(in, 0.5);
  return categorical_accuracy(in, has_class_numbers(in));
}

/// Returns true if Keras can compute the counts of a class metric. Keras expects targets of 0 and 1 for each
/// class. If the metric compares outputs with a threshold, Keras also expects probabilities instead of
/// logits.
bool can_count_classes(const MetricInUse& in, bool by_threshold) {
  return !has_class_numbers(in) && !(by_threshold && reading_of(in).is_logits(in.output.shape.columns()));
}

double threshold_or_half(const Json& threshold) {
  return threshold.is_null() ? 0.5 : threshold.as_double();
}

ToKeras precision_metric(const char* class_name) {
  return [class_name](const MetricInUse& in) -> Json {
    if (!can_count_classes(in, true)) return {};
    const bool is_micro = in.settings.value("average").as_string() == "micro";
    if (!is_micro && in.output.shape.columns() > 1) return {};  // Keras supports only micro averages
    return in_keras_class(
        class_name, Json::object().set("thresholds", threshold_or_half(in.settings.value("thresholds"))));
  };
}

Json f1_score(const MetricInUse& in) {
  const Json threshold = in.settings.value("threshold"), average = in.settings.value("average");
  const bool by_threshold =
      in.output.shape.columns() == 1 || !threshold.is_null() || reading_of(in).of_columns;
  if (!can_count_classes(in, by_threshold)) return {};
  Json config = Json::object();
  if (average.as_string() != "none") config.set("average", average);
  if (by_threshold) config.set("threshold", threshold_or_half(threshold));
  return in_keras_class("F1Score", std::move(config));
}

Json mean_iou(const MetricInUse& in) {
  const int64_t columns = in.output.shape.columns();
  if (columns == 1) return {};  // Keras would treat the output as a class index
  return in_keras_class("MeanIoU", Json::object()
                                       .set("num_classes", columns)
                                       .set("sparse_y_true", has_class_numbers(in))
                                       .set("sparse_y_pred", false));
}

/// Number of thresholds in Keras if the configuration does not set this number. dtrain's default is meant for
/// logarithmic buckets, so it does not suit Keras, which spaces its thresholds evenly over the probabilities.
constexpr int64_t kKerasThresholds = 4096;

Json auc(const MetricInUse& in) {
  if (has_class_numbers(in)) return {};  // Keras expects targets of 0 and 1 for each class
  const int64_t columns = in.output.shape.columns();
  const ScoreReading reading = reading_of(in);
  const Json from_logits = in.settings.value("from_logits"), multi_label = in.settings.value("multi_label"),
             thresholds = in.settings.value("num_thresholds");
  const bool logits = from_logits.is_null() ? reading.is_logits(columns) : from_logits.as_bool();
  if (logits && reading.counted(columns) == CountSpec::Scores::softmax_logits)
    return {};  // Keras only supports logits for a sigmoid, not for a softmax
  const bool has_labels = !multi_label.is_null() && multi_label.as_bool();
  Json config = Json::object()
                    .set("num_thresholds", thresholds.is_null() ? kKerasThresholds : thresholds.as_int())
                    .set("curve", in.settings.value("curve"))
                    .set("multi_label", has_labels)
                    .set("from_logits", logits);
  if (has_labels) config.set("num_labels", columns);
  return in_keras_class("AUC", std::move(config));
}

Json precision_at_recall(const MetricInUse& in) {
  if (!can_count_classes(in, true)) return {};
  const Json thresholds = in.settings.value("num_thresholds"), class_id = in.settings.value("class_id");
  Json config = Json::object()
                    .set("num_thresholds", thresholds.is_null() ? kKerasThresholds : thresholds.as_int())
                    .set("recall", in.settings.number("recall"));
  if (!class_id.is_null()) config.set("class_id", class_id);
  return in_keras_class("PrecisionAtRecall", std::move(config));
}

Json r2_score(const MetricInUse& in) {
  const Json average = in.settings.value("class_aggregation");
  const bool is_none = average.is_null() || average.as_string() == "none";
  return in_keras_class("R2Score", Json::object().set("class_aggregation", is_none ? Json() : average));
}

const std::vector<MetricFormats>& all_metric_formats() {
  static const std::vector<MetricFormats> rows{
      {"accuracy", accuracy},
      {"sparse_categorical_accuracy", [](const MetricInUse& in) { return categorical_accuracy(in, true); }},
      {"categorical_accuracy", [](const MetricInUse& in) { return categorical_accuracy(in, false); }},
      {"binary_accuracy",
       [](const MetricInUse& in) { return binary_accuracy(in, in.settings.number("threshold")); }},
      {"sparse_top_k_categorical_accuracy",
       [](const MetricInUse& in) { return categorical_accuracy(in, true); }},
      {"top_k_categorical_accuracy", [](const MetricInUse& in) { return categorical_accuracy(in, false); }},
      {"top_k", [](const MetricInUse& in) { return categorical_accuracy(in, has_class_numbers(in)); }},
      {"precision", precision_metric("Precision")},
      {"recall", precision_metric("Recall")},
      {"f1_score", f1_score},
      {"dice", no_metric},
      {"confusion_matrix", no_metric},
      {"mean_iou", mean_iou},
      {"cohen_kappa", no_metric},
      {"matthews_correlation", no_metric},
      {"auc", auc},
      {"precision_at_recall", precision_at_recall},
      {"mean_absolute_error", plain_metric("MeanAbsoluteError")},
      {"mean_squared_error", plain_metric("MeanSquaredError")},
      {"root_mean_squared_error", plain_metric("RootMeanSquaredError")},
      {"mean_absolute_percentage_error", plain_metric("MeanAbsolutePercentageError")},
      {"mean_squared_logarithmic_error", plain_metric("MeanSquaredLogarithmicError")},
      {"cosine_similarity", plain_metric("CosineSimilarity")},
      {"log_cosh", plain_metric("LogCoshError")},
      {"hinge", plain_metric("Hinge")},
      {"squared_hinge", plain_metric("SquaredHinge")},
      {"poisson", plain_metric("Poisson")},
      {"kl_divergence", plain_metric("KLDivergence")},
      {"binary_crossentropy", cross_entropy_metric("BinaryCrossentropy")},
      {"categorical_crossentropy", cross_entropy_metric("CategoricalCrossentropy")},
      {"sparse_categorical_crossentropy", cross_entropy_metric("SparseCategoricalCrossentropy", false)},
      {"perplexity", no_metric},
      {"r2_score", r2_score},
  };
  return rows;
}

}  // namespace

const MetricFormats& metric_formats(std::string_view kind) {
  return row_of_kind(all_metric_formats(), kind);
}

Json keras_metric(const ConfigNode& resolved, const Loss* loss, const TensorSpec& output,
                  const TensorSpec& target) {
  const KindSettings settings(resolved);
  return metric_formats(settings.kind()).to_keras({settings, loss, output, target});
}

}  // namespace dtrain
