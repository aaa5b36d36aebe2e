#include "interop/keras/files/positions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "interop/keras/files/json.h"
#include "ops/math/positions.h"

namespace dtrain {

namespace {

constexpr double kDigits = 1e9;
constexpr double kUsualWavelength = 10000;

/// Returns whether a JSON value is a list of lists of numbers that all have the same length.
bool is_table(const Json* json) {
  if (!json || !json->is_array() || json->items().empty() || !json->items()[0].is_array()) return false;
  const size_t columns = json->items()[0].items().size();
  return columns > 0 && std::all_of(json->items().begin(), json->items().end(), [&](const Json& row) {
           return row.is_array() && row.items().size() == columns &&
                  std::all_of(row.items().begin(), row.items().end(),
                              [](const Json& number) { return number.is_number(); });
         });
}

bool is_encoding(const Json& table, double wavelength) {
  constexpr double kTolerance = 1e-6;
  const auto columns = static_cast<int64_t>(table.items()[0].items().size());
  for (size_t row = 0; row < table.items().size(); ++row)
    for (int64_t c = 0; c < columns; ++c) {
      const float expected = math::sinusoidal_position(static_cast<int64_t>(row), c, columns, wavelength);
      const double found = table.items()[row].items()[static_cast<size_t>(c)].as_double();
      if (!(std::abs(found - static_cast<double>(expected)) < kTolerance)) return false;
    }
  return true;
}

/// Returns the wavelength of a sinusoidal position encoding, or 0 if the table is not such an encoding. A
/// table with only one row may also be an offset for all positions, so it does not count as an encoding. The
/// wavelength is computed from position 1, where the last even column has the value sin(wavelength^(-column /
/// columns)).
double wavelength_of(const Json& table) {
  if (table.items().size() < 2) return 0;
  const std::vector<Json>& first = table.items()[0].items();
  const size_t column = (first.size() - 1) / 2 * 2;
  double wavelength = kUsualWavelength;
  if (column > 0) {
    const double angle = std::asin(table.items()[1].items()[column].as_double());
    wavelength = std::pow(angle, -static_cast<double>(first.size()) / static_cast<double>(column));
    constexpr double kWritten = 1e-4;  // maximum relative rounding error of the computed wavelength
    const double whole = std::round(wavelength);
    if (std::abs(whole - wavelength) < kWritten * wavelength && is_encoding(table, whole)) return whole;
  }
  return std::isfinite(wavelength) && is_encoding(table, wavelength) ? wavelength : 0;
}

void restore_sinusoids(KerasModelLayer& layer) {
  const Json *const offset = value_at(layer.config, "offset"), *const scale = value_at(layer.config, "scale");
  if (!is_table(offset) || !scale || !scale->is_number() || scale->as_double() != 1) return;
  const double wavelength = wavelength_of(*offset);
  if (wavelength == 0) return;
  Json config = Json::object();
  for (const auto& [key, value] : layer.config.entries())
    if (key != "offset" && key != "scale") config.set(key, value);
  layer.config = config.set("max_wavelength", wavelength);
  layer.class_name = kKerasSinusoids;
}

void restore_embedding(KerasModelLayer& layer) {
  constexpr std::array kClasses{"InputLayer", "Rescaling", "GlobalMaxPooling1D", "Embedding", "Add"};
  const std::vector<KerasModelLayer>& inner = layer.model->layers;
  if (!std::equal(inner.begin(), inner.end(), kClasses.begin(), kClasses.end(),
                  [](const KerasModelLayer& one, const char* name) { return one.class_name == name; }))
    return;
  const Json &numbers = inner[1].config, &embedding = inner[3].config;
  const Json *const scale = value_at(numbers, "scale"), *const offset = value_at(numbers, "offset");
  const Json *const rows = value_at(embedding, "input_dim"), *const initializer = value_at(
                                                                 embedding, "embeddings_initializer");
  const auto is_chain = [&](size_t from, size_t to) {
    return inner[to].calls.size() == 1 && !inner[to].calls[0].inputs.empty() &&
           inner[to].calls[0].inputs.back().layer == static_cast<int>(from);
  };
  const bool is_sum = inner[4].calls.size() == 1 && inner[4].calls[0].inputs.size() == 2 &&
                      inner[4].calls[0].inputs[0].layer == 0;
  if (!is_chain(0, 1) || !is_chain(1, 2) || !is_chain(2, 3) || !is_chain(3, 4) || !is_sum) return;
  if (text_at(inner[2].config, "data_format") != "channels_first" || !scale || !scale->is_number() ||
      scale->as_double() != 0 || !is_table(offset) || !rows || !initializer)
    return;
  for (size_t i = 0; i < offset->items().size(); ++i)
    if (offset->items()[i].items()[0].as_double() != static_cast<double>(i)) return;
  for (const char* key : {"embeddings_regularizer", "embeddings_constraint", "activity_regularizer"})
    if (value_at(embedding, key)) return;
  Json config = Json::object()
                    .set("name", layer.name)
                    .set("trainable", layer.trainable)
                    .set("sequence_length", *rows)
                    .set("initializer", *initializer);
  if (const Json* penalty = value_at(inner[4].config, "activity_regularizer"))
    config.set("activity_regularizer", *penalty);
  layer.config = std::move(config);
  layer.class_name = kKerasModel;
  layer.is_restored_model = true;
  layer.model = nullptr;
}

}  // namespace

Json keras_sinusoids(int64_t positions, int64_t columns, double max_wavelength) {
  Json table = Json::array();
  for (int64_t position = 0; position < positions; ++position) {
    Json row = Json::array();
    for (int64_t column = 0; column < columns; ++column) {
      const float value = math::sinusoidal_position(position, column, columns, max_wavelength);
      row.push(std::round(static_cast<double>(value) * kDigits) / kDigits);
    }
    table.push(std::move(row));
  }
  return table;
}

void restore_positions(KerasModelLayer& layer) {
  if (layer.model)
    restore_embedding(layer);
  else if (layer.class_name == "Rescaling")
    restore_sinusoids(layer);
}

}  // namespace dtrain
