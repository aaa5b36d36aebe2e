#include <numeric>

#include "config/schema.h"
#include "interop/training_formats.h"

namespace dtrain {

namespace {

/// Returns the value of Nadam's variable _u_product after `steps` steps.
double product_of_momenta(const KindSettings& settings, int64_t steps) {
  return math::Nadam{.beta_1 = settings.number("beta_1"), .beta_2 = 0, .epsilon = 0}.product_of_momenta(
      static_cast<double>(steps));
}

const std::vector<OptimizerFormats>& all_optimizer_formats() {
  static const std::vector<OptimizerFormats> rows{
      {.kind = "sgd", .keras_class = "SGD", .common_class = "SGD", .slots_with_unread = 1},
      {.kind = "rmsprop", .keras_class = "RMSprop", .common_class = "RMSprop", .swaps_last_slots = true},
      {.kind = "adagrad", .keras_class = "Adagrad", .common_class = "Adagrad", .has_only_numbers = true},
      {.kind = "adam",
       .keras_class = "Adam",
       .common_class = "Adam",
       .is_by_weight = true,
       .slots_with_unread = 3},  // Keras 2 also stores vhat, which it does not use
      {.kind = "adamw", .keras_class = "AdamW", .common_class = "Adam", .is_by_weight = true},
      {.kind = "adamax", .keras_class = "Adamax", .common_class = "Adamax", .is_by_weight = true},
      // In Nadam of Keras 2.10, the momentum follows a different schedule.
      {.kind = "nadam",
       .keras_class = "Nadam",
       .is_by_weight = true,
       .number_after_slots = product_of_momenta},
      {.kind = "adadelta", .keras_class = "Adadelta", .common_class = "Adadelta", .is_by_weight = true},
      {.kind = "lion", .keras_class = "Lion"},
      {.kind = "lamb", .keras_class = "Lamb", .is_by_weight = true},
      {.kind = "adafactor", .keras_class = "Adafactor", .is_by_weight = true, .is_factored = true},
  };
  return rows;
}

}  // namespace

Json KindSettings::value(std::string_view option) const {
  const ConfigNode* node = options_.is_mapping() ? options_.find(option) : nullptr;
  return node ? to_json(*node) : Json();
}

const OptimizerFormats& optimizer_formats(std::string_view kind) {
  return row_of_kind(all_optimizer_formats(), kind);
}

Configured<Schedule> schedule_of(const Configured<Optimizer>& optimizer) {
  Diagnostics diagnostics;
  Configured<Schedule> schedule =
      registry<Schedule>().parse(KindSettings(optimizer.resolved).node("learning_rate"), diagnostics);
  diagnostics.throw_if_errors();
  return schedule;
}

/// Returns null for an optimizer with weight decay, because no config of such an optimizer can be loaded by
/// both Keras 2 and Keras 3. In an .h5 file, Keras 2 looks up the class of an optimizer among the classes of
/// TensorFlow 2.10, which have no weight decay. It finds newer classes only under names such as
/// "Custom>AdamW" and with the option is_legacy_optimizer, which Keras 3 rejects.
Json keras_optimizer(const Configured<Optimizer>& optimizer, const RunLength& run, const Json& state) {
  const OptimizerFormats& row = optimizer_formats(optimizer.name);
  if (optimizer->weight_decay() != 0 || row.common_class.empty()) return {};
  const Json rate = keras_learning_rate(schedule_of(optimizer), run, state);
  if (row.has_only_numbers && !rate.is_number()) return {};
  Json config = Json::object();
  const Json options = to_json(KindSettings(optimizer.resolved).options());
  for (const auto& [key, value] : options.entries())
    if (key != "learning_rate" && key != "weight_decay")
      // All numbers are written as floating-point numbers, because Keras 3 rejects the integer 0 as a
      // momentum.
      config.set(key, value.is_number() ? Json(value.as_double()) : value);
  config.set("learning_rate", rate);
  return Json::object().set("class_name", row.common_class).set("config", std::move(config));
}

std::vector<float> factored_squares(const Shape& shape, const float* row_means, const float* column_means) {
  const int64_t rows = shape[shape.rank() - 2], columns = shape.back();
  std::vector<float> squares(static_cast<size_t>(shape.elements()));
  const auto matrices = squares.empty() ? 0 : shape.elements() / (rows * columns);
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    const float* const its_rows = row_means + matrix * rows;
    const float* const its_columns = column_means + matrix * columns;
    const double mean = std::accumulate(its_rows, its_rows + rows, 0.0) / static_cast<double>(rows);
    float* to = squares.data() + matrix * rows * columns;
    for (int64_t row = 0; row < rows && mean > 0; ++row)
      for (int64_t column = 0; column < columns; ++column)
        *to++ = static_cast<float>(static_cast<double>(its_rows[row]) / mean *
                                   static_cast<double>(its_columns[column]));
  }
  return squares;
}

std::vector<Optimizer::Slot> keras_slots(const Configured<Optimizer>& optimizer) {
  std::vector<Optimizer::Slot> slots = optimizer->slots();
  if (optimizer_formats(optimizer.name).swaps_last_slots && slots.size() == 3) std::swap(slots[1], slots[2]);
  return slots;
}

}  // namespace dtrain
