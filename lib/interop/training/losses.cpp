#include "interop/training_formats.h"

namespace dtrain {

namespace {

const std::vector<LossFormats>& all_loss_formats() {
  static const std::vector<LossFormats> rows{
      {.kind = "sparse_categorical_crossentropy",
       .keras_class = "SparseCategoricalCrossentropy",
       .keras_name = "sparse_categorical_crossentropy",
       .options = {"from_logits"},
       .missing = {"label_smoothing"}},
      {.kind = "categorical_crossentropy",
       .keras_class = "CategoricalCrossentropy",
       .keras_name = "categorical_crossentropy",
       .options = {"from_logits"},
       .unless_zero = {"label_smoothing"}},
      {.kind = "binary_crossentropy",
       .keras_class = "BinaryCrossentropy",
       .keras_name = "binary_crossentropy",
       .options = {"from_logits"},
       .unless_zero = {"label_smoothing"}},
      {.kind = "binary_focal_crossentropy",
       .keras_class = "BinaryFocalCrossentropy",
       .keras_name = "binary_focal_crossentropy",
       .options = {"from_logits"},
       .unless_zero = {"label_smoothing"},
       .further_options = {"apply_class_balancing", "alpha", "gamma"}},
      {.kind = "categorical_focal_crossentropy",
       .keras_class = "CategoricalFocalCrossentropy",
       .keras_name = "categorical_focal_crossentropy",
       .options = {"alpha", "gamma", "from_logits", "label_smoothing"}},
      {.kind = "mean_squared_error", .keras_class = "MeanSquaredError", .keras_name = "mean_squared_error"},
      {.kind = "mean_absolute_error",
       .keras_class = "MeanAbsoluteError",
       .keras_name = "mean_absolute_error"},
      {.kind = "mean_absolute_percentage_error",
       .keras_class = "MeanAbsolutePercentageError",
       .keras_name = "mean_absolute_percentage_error"},
      {.kind = "mean_squared_logarithmic_error",
       .keras_class = "MeanSquaredLogarithmicError",
       .keras_name = "mean_squared_logarithmic_error"},
      {.kind = "huber", .keras_class = "Huber", .keras_name = "huber_loss", .options = {"delta"}},
      {.kind = "log_cosh", .keras_class = "LogCosh", .keras_name = "log_cosh"},
      {.kind = "hinge", .keras_class = "Hinge", .keras_name = "hinge"},
      {.kind = "squared_hinge", .keras_class = "SquaredHinge", .keras_name = "squared_hinge"},
      {.kind = "poisson", .keras_class = "Poisson", .keras_name = "poisson"},
      {.kind = "kl_divergence", .keras_class = "KLDivergence", .keras_name = "kl_divergence"},
      {.kind = "dice", .keras_class = "Dice", .keras_name = "dice", .options = {"axis"}},
      {.kind = "tversky",
       .keras_class = "Tversky",
       .keras_name = "tversky",
       .options = {"alpha", "beta", "axis"}},
      {.kind = "cosine_similarity", .keras_class = "CosineSimilarity", .keras_name = "cosine_similarity"},
  };
  return rows;
}

/// Returns the value of a loss option. Numbers are rounded to float32, because dtrain computes the loss in
/// float32.
Json loss_option(const KindSettings& settings, const std::string& option) {
  const Json value = settings.value(option);
  return value.is_number() ? Json(static_cast<double>(static_cast<float>(value.as_double()))) : value;
}

}  // namespace

const LossFormats& loss_formats(std::string_view kind) {
  return row_of_kind(all_loss_formats(), kind);
}

Json keras_loss(const ConfigNode& resolved) {
  const KindSettings settings(resolved);
  const LossFormats& row = loss_formats(settings.kind());
  const auto is_zero = [&](const std::string& option) {
    return loss_option(settings, option).as_double() == 0;
  };
  for (const std::string& option : row.missing)
    if (!is_zero(option)) return {};
  Json config = Json::object();
  for (const std::string& option : row.options) config.set(option, loss_option(settings, option));
  for (const std::string& option : row.unless_zero)
    if (!is_zero(option)) config.set(option, loss_option(settings, option));
  for (const std::string& option : row.further_options) config.set(option, loss_option(settings, option));
  // With this reduction, the loss classes of Keras return the mean over the whole batch.
  config.set("reduction", "sum_over_batch_size").set("name", row.keras_name);
  return Json::object().set("class_name", row.keras_class).set("config", std::move(config));
}

}  // namespace dtrain
