#include "print/keras_listing.h"

#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace dtrain {

namespace {

/// Returns e.g. "a Functional model 'resnet' of Keras 3.15.1 (tensorflow)".
std::string describe(const KerasContent& file) {
  std::string text = file.model_class.empty() ? "weights" : fmt::format("a {} model", file.model_class);
  if (!file.model_name.empty()) text += fmt::format(" '{}'", file.model_name);
  text += " of Keras";
  if (!file.keras_version.empty()) text += " " + file.keras_version;
  if (!file.backend.empty()) text += fmt::format(" ({})", file.backend);
  return text;
}

Json set_file(const KerasContent& file) {
  return Json::object()
      .set("path", file.path)
      .set("bytes", static_cast<int64_t>(file.file_bytes))
      .set("keras_version", file.keras_version)
      .set("backend", file.backend)
      .set("model", file.model_class)
      .set("name", file.model_name)
      .set("compiled", file.is_compiled);
}

Json to_json(const KerasArray& array, const std::string& layer) {
  Json shape = Json::array();
  for (const int64_t extent : array.shape) shape.push(extent);
  Json json = Json::object();
  if (!layer.empty())
    json.set("weight", array.weight.empty() ? Json() : Json(array.weight)).set("layer", layer);
  return json.set("name", array.name).set("shape", std::move(shape)).set("dtype", array.dtype);
}

int64_t parameters_of(const KerasLayerEntry& layer) {
  int64_t parameters = 0;
  for (const KerasArray& array : layer.arrays) parameters += array.shape.elements();
  return parameters;
}

int64_t parameters_of(const KerasContent& file) {
  int64_t parameters = 0;
  for (const KerasLayerEntry& layer : file.layers) parameters += parameters_of(layer);
  return parameters;
}

}  // namespace

Json arrays_json(const KerasContent& file) {
  Json weights = Json::array(), optimizer = Json::array();
  for (const KerasLayerEntry& layer : file.layers)
    for (const KerasArray& array : layer.arrays) weights.push(to_json(array, layer.name));
  for (const KerasArray& array : file.optimizer) optimizer.push(to_json(array, ""));
  return set_file(file).set("weights", std::move(weights)).set("optimizer", std::move(optimizer));
}

std::string arrays_text(const KerasContent& file) {
  Table table({{"weight"}, {"layer"}, {"array"}, {"shape"}, {"dtype"}, {"elements", Table::Align::right}});
  const auto add = [&table](const std::string& layer, const KerasArray& array) {
    table.add({array.weight, layer, array.name, array.shape.str(), array.dtype,
               format_count(array.shape.elements())});
  };
  for (const KerasLayerEntry& layer : file.layers)
    for (const KerasArray& array : layer.arrays) add(layer.name, array);
  for (const KerasArray& array : file.optimizer) add("(optimizer)", array);
  return fmt::format("file   {}, {}\nholds  {}, {}\n\n", file.path, format_bytes(file.file_bytes),
                     describe(file), format_plural(parameters_of(file), "parameter")) +
         table.str();
}

Json layers_json(const KerasContent& file) {
  Json layers = Json::array();
  for (const KerasLayerEntry& layer : file.layers)
    layers.push(Json::object()
                    .set("name", layer.name)
                    .set("kind", layer.kind)
                    .set("parameters", parameters_of(layer)));
  return set_file(file)
      .set("layers", std::move(layers))
      .set("parameters", Json::object().set("total", parameters_of(file)));
}

std::string layers_text(const KerasContent& file) {
  Table table({{"layer"}, {"kind"}, {"weights"}, {"parameters", Table::Align::right}});
  for (const KerasLayerEntry& layer : file.layers) {
    std::vector<std::string> shapes;
    for (const KerasArray& array : layer.arrays) shapes.push_back(array.shape.str());
    table.add({layer.name, layer.kind, fmt::format("{}", fmt::join(shapes, ", ")),
               format_count(parameters_of(layer))});
  }
  return fmt::format("{}\n\n{}\nparameters  {}\n", describe(file), table.str(),
                     format_count(parameters_of(file)));
}

}  // namespace dtrain
