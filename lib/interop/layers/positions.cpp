// Conversions of position_embedding and sinusoidal_position_encoding to and from other formats.
#include "interop/keras/files/positions.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/files/inner_model.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"
#include "nn/graph.h"
#include "ops/math/positions.h"

namespace dtrain {

namespace {

/// Name of the input of the Keras model that stands for a position_embedding.
constexpr const char* kSequence = "sequence";

/// Writes a position_embedding as a Keras model, because Keras has no such layer. In this model, a Rescaling
/// layer replaces each element of the input by the index of its position. Pooling then reduces each position
/// to one number, which is the index for the embedding.
void complete_position_embedding(const Graph&, const GraphNode& node, Json& config) {
  const Shape& shape = node.outputs[0].shape;
  const int64_t positions = shape[0], columns = shape[1];
  Json numbers = Json::array();
  for (int64_t i = 0; i < positions; ++i) numbers.push(Json::array().push(static_cast<double>(i)));
  const Json options = keras_options(options_of(node.layer));
  const Json embedding = Json::object()
                             .set("trainable", config.at("trainable"))
                             .set("input_dim", options.at("sequence_length"))
                             .set("output_dim", columns)
                             .set("embeddings_initializer", options.at("initializer"));
  Json sum = Json::object();
  if (const Json* penalty = config.find("activity_regularizer")) sum.set("activity_regularizer", *penalty);
  const Json input = keras_inner_tensor(kSequence, shape);
  Json layers = Json::array();
  layers.push(keras_inner_layer_entry("InputLayer", kSequence,
                                      Json::object().set("batch_shape", keras_batch_shape(shape)), {}));
  layers.push(keras_inner_layer_entry(
      "Rescaling", "positions", Json::object().set("scale", 0.0).set("offset", std::move(numbers)), {input}));
  layers.push(
      keras_inner_layer_entry("GlobalMaxPooling1D", "numbers",
                              Json::object().set("data_format", "channels_first").set("keepdims", false),
                              {keras_inner_tensor("positions", shape)}));
  layers.push(keras_inner_layer_entry("Embedding", "embeddings", embedding,
                                      {keras_inner_tensor("numbers", {positions})}));
  layers.push(keras_inner_layer_entry(
      "Add", "sum", sum, {Json::array().push(input).push(keras_inner_tensor("embeddings", shape))}));
  config = keras_inner_model(config, std::move(layers), {kSequence}, "sum");
}

/// Writes a sinusoidal_position_encoding as a Rescaling layer that adds the encoding to its input.
void complete_sinusoidal(const Graph&, const GraphNode& node, Json& config) {
  const double wavelength = to_json(options_of(node.layer)).at("max_wavelength").as_double();
  const Shape& shape = node.outputs[0].shape;
  config.set("scale", 1.0).set("offset", keras_sinusoids(shape[0], shape[1], wavelength));
}

/// Returns a conversion to a Keras layer of this class without options. LayerFormats::complete_keras adds the
/// options later, because they depend on the shape of the input.
std::function<KerasLayerConfig(const ConfigNode&)> completed_layer(const std::string& class_name) {
  return [class_name](const ConfigNode&) { return KerasLayerConfig{class_name, Json::object()}; };
}

std::string position_embedding_part(const Json&, const std::string&) {
  return std::string(kKerasPositionWeights);
}

/// Returns a conversion from the Keras classes that add positions to their input.
std::function<ConfigNode(KerasLayerReader&)> positions_from_keras(const std::string& kind) {
  return [kind](KerasLayerReader& reader) {
    const std::string& name = reader.class_name();
    if (name == "PositionEmbedding" || name == "SinePositionEncoding")
      reader.add_problem(
          fmt::format("returns only the position embeddings, but {} of dtrain adds them to its input", kind));
    return reader.options(registry<Layer>().fields(kind));
  };
}

/// Sets the layer's output to the sum of its input and an array with the shape of a sample.
void add_onnx_positions(OnnxLayer& layer, std::vector<float> values) {
  layer.set_output(layer.add("Add", {layer.input(0, ExportLayout::channels_last),
                                     layer.array(fmt::format("positions_{}", layer.output_spec().shape[0]),
                                                 layer.output_spec().shape, std::move(values))}),
                   ExportLayout::channels_last);
}

void position_embedding_to_onnx(OnnxLayer& layer) {
  const auto n = static_cast<size_t>(layer.output_spec().shape.elements());
  const std::span<const float> values = layer.values("embeddings").first(n);
  add_onnx_positions(layer, {values.begin(), values.end()});
}

void sinusoidal_to_onnx(OnnxLayer& layer) {
  const int64_t positions = layer.output_spec().shape[0], columns = layer.output_spec().shape[1];
  const double wavelength = layer.options().at("max_wavelength").as_double();
  std::vector<float> values;
  for (int64_t i = 0; i < positions * columns; ++i)
    values.push_back(math::sinusoidal_position(i / columns, i % columns, columns, wavelength));
  add_onnx_positions(layer, std::move(values));
}

void position_embedding_to_torch(TorchLayer& layer) {
  layer.set_module(fmt::format("nn.Embedding({}, {})", layer.options().at("sequence_length").as_int(),
                               layer.output_spec().shape[1]));
  layer.weight("weight", "embeddings");
  layer.set_output(layer.add(fmt::format("{} + {}.weight[:{}]", layer.input(0, ExportLayout::channels_last),
                                         layer.module(), layer.output_spec().shape[0])),
                   ExportLayout::channels_last);
}

void sinusoidal_to_torch(TorchLayer& layer) {
  const int64_t positions = layer.output_spec().shape[0], columns = layer.output_spec().shape[1];
  const std::string x = layer.input(0, ExportLayout::channels_last);
  const std::string column = layer.add(fmt::format("torch.arange({}, device={}.device)", columns, x));
  const std::string angles =
      layer.add(fmt::format("torch.outer(torch.arange({}, dtype=torch.float64, device={}.device), {} ** "
                            "(-({} // 2 * 2).double() / {}))",
                            positions, x, layer.options().at("max_wavelength").as_double(), column, columns));
  layer.set_output(
      layer.add(fmt::format("{0} + torch.where({1} % 2 == 0, {2}.sin(), {2}.cos()).to({0}.dtype)", x, column,
                            angles)),
      ExportLayout::channels_last);
}

}  // namespace

void add_position_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "position_embedding",
      .to_keras = completed_layer(kKerasModel),
      .from_keras = positions_from_keras("position_embedding"),
      .onnx = position_embedding_to_onnx,
      .torch = position_embedding_to_torch,
      .keras_classes = {kKerasModel, "AddPositionEmbedding"},
      .keras_part = position_embedding_part,
      .complete_keras = complete_position_embedding,
  });
  table.push_back({
      .kind = "sinusoidal_position_encoding",
      .to_keras = completed_layer("Rescaling"),
      .from_keras = positions_from_keras("sinusoidal_position_encoding"),
      .onnx = sinusoidal_to_onnx,
      .torch = sinusoidal_to_torch,
      .keras_classes = {kKerasSinusoids, "SinePositionEncoding"},
      .complete_keras = complete_sinusoidal,
  });
}

}  // namespace dtrain
