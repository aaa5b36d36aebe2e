#include "print/safetensors_listing.h"

#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"

namespace dtrain {

namespace {

/// A layer, with the arrays whose names begin with its name.
struct ListedLayer {
  std::string name;
  std::vector<std::string> arrays;  // "weight 64x3x7x7"
  int64_t parameters = 0;
};

/// Returns the length of the layer's name in an array's name: the part before the last '.' or '/'. Returns 0
/// if the array's name has no such part.
size_t end_of_layer(const std::string& name) {
  const size_t separator = name.find_last_of("./");
  return separator == std::string::npos ? 0 : separator;
}

std::vector<ListedLayer> list_layers(const SafetensorsFile& file) {
  std::vector<ListedLayer> layers;
  std::map<std::string, size_t> numbers;
  for (const SafetensorsArray& array : file.arrays) {
    const size_t end = end_of_layer(array.name);
    const auto [found, is_new] = numbers.emplace(array.name.substr(0, end), layers.size());
    if (is_new) layers.push_back({found->first, {}});
    ListedLayer& layer = layers[found->second];
    layer.arrays.push_back(
        fmt::format("{} {}", array.name.substr(end == 0 ? 0 : end + 1), array.shape.str()));
    layer.parameters += array.shape.elements();
  }
  return layers;
}

int64_t count_parameters(const SafetensorsFile& file) {
  int64_t parameters = 0;
  for (const SafetensorsArray& array : file.arrays) parameters += array.shape.elements();
  return parameters;
}

std::string file_text(const SafetensorsFile& file, const std::string& path) {
  std::string text =
      fmt::format("file   {}, safetensors, {}\n", path, format_plural(count_parameters(file), "number"));
  constexpr size_t kMostShown = 80;  // longer values are truncated to this number of bytes
  for (const auto& [key, value] : file.metadata)
    text += fmt::format("{:<6} {}\n", key, shortened(value, kMostShown));
  return text + "\n";
}

Json file_json(const SafetensorsFile& file, const std::string& path) {
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata) metadata.set(key, value);
  return Json::object().set("path", path).set("metadata", std::move(metadata));
}

}  // namespace

Json arrays_json(const SafetensorsFile& file, const std::string& path) {
  Json weights = Json::array();
  for (const SafetensorsArray& array : file.arrays) {
    Json shape = Json::array();
    for (const int64_t extent : array.shape) shape.push(extent);
    weights.push(Json::object()
                     .set("name", array.name)
                     .set("shape", std::move(shape))
                     .set("is_float", array.values.has_value()));
  }
  return file_json(file, path).set("weights", std::move(weights));
}

std::string arrays_text(const SafetensorsFile& file, const std::string& path) {
  Table table({{"array"}, {"shape"}, {"elements", Table::Align::right}});
  for (const SafetensorsArray& array : file.arrays)
    table.add({array.name, array.shape.str(), format_count(array.shape.elements())});
  return file_text(file, path) + table.str();
}

Json layers_json(const SafetensorsFile& file, const std::string& path) {
  Json layers = Json::array();
  for (const ListedLayer& layer : list_layers(file)) {
    Json arrays = Json::array();
    for (const std::string& array : layer.arrays) arrays.push(array);
    layers.push(Json::object()
                    .set("name", layer.name)
                    .set("arrays", std::move(arrays))
                    .set("parameters", layer.parameters));
  }
  return file_json(file, path)
      .set("layers", std::move(layers))
      .set("parameters", Json::object().set("total", count_parameters(file)));
}

std::string layers_text(const SafetensorsFile& file, const std::string& path) {
  Table table({{"layer"}, {"arrays"}, {"parameters", Table::Align::right}});
  for (const ListedLayer& layer : list_layers(file))
    table.add({layer.name, fmt::format("{}", fmt::join(layer.arrays, ", ")), format_count(layer.parameters)});
  return file_text(file, path) + table.str();
}

}  // namespace dtrain
