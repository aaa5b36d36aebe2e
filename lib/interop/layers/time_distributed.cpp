#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "config/schema.h"
#include "interop/keras/export/options.h"
#include "interop/keras/files/json.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Returns the inner layer of a time_distributed layer.
Configured<Layer> layer_in(const ConfigNode& options) {
  Diagnostics none;
  return registry<Layer>().parse(*options.find("layer"), none);
}

/// Converts the options to Keras's config. Two kinds of inner layers cannot be written: attention, because
/// Keras calls the inner layer with only one argument, and layers whose config depends on the shape of their
/// input, because this shape is unknown here.
KerasLayerConfig time_distributed_to_keras(const ConfigNode& options) {
  KerasLayerConfig keras{"TimeDistributed", Json::object()};
  const ConfigNode& layer = *options.find("layer");
  keras.config.set("layer", keras_inner_layer(layer, keras.missing));
  if (const std::string kind = layer_in(options).name; formats_of(kind).complete_keras)
    keras.missing = fmt::format("{} in TimeDistributed", kind);
  return keras;
}

ConfigNode time_distributed_from_keras(KerasLayerReader& reader) {
  const ConfigNode layer = reader.layer("layer", {}, {"zero_output_for_mask"});
  if (const Json* const written = reader.find("layer"))
    if (const Json* const config = value_at(*written, "config")) {
      const bool is_1d = text_at(*written, "class_name").ends_with("1D");
      if (!is_1d && text_at(*config, "data_format") == "channels_first")
        reader.add_problem("its layer has data_format: channels_first");
      if (is_true_at(*config, "mask_zero")) reader.add_problem("its layer has mask_zero: true");
    }
  reader.options({});
  if (layer.is_null()) return ConfigNode::mapping({});
  return ConfigNode::mapping({ConfigNode::entry("layer", layer)});
}

/// Returns the part of the Keras layer that contains a parameter of the inner layer, such as "layer/cell".
std::string part_of_layer(const Json& config, const std::string& parameter) {
  const Json& layer = config.at("layer");
  const LayerFormats* const formats = formats_of_keras_class(layer.at("class_name").as_string());
  if (!formats || !formats->keras_part) return "layer";
  return "layer/" + formats->keras_part(layer.at("config"), parameter);
}

/// Returns the shape of a batch whose samples have the shape `sample`. The batch size is -1.
std::vector<int64_t> batch_of(const Shape& sample) {
  std::vector<int64_t> extents = {-1};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return extents;
}

Shape without_positions(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.begin() + 1, shape.end()));
}

/// Returns the inner layer as a node that computes one position.
InnerNode inner_of(const GraphNode& outer, const TensorSpec& input) {
  InnerNode inner{outer, Json::object(), input};
  inner.node.layer = layer_in(options_of(outer.layer));
  inner.node.kind = inner.node.layer.name;
  inner.node.outputs[0].shape = without_positions(outer.outputs[0].shape);
  inner.input.shape = without_positions(input.shape);
  if (const ConfigNode options = options_of(inner.node.layer); !options.is_null())
    inner.options = to_json(options);
  return inner;
}

void time_distributed_to_onnx(OnnxLayer& layer) {
  InnerNode inner = inner_of(layer.node(), layer.input_spec());
  const LayerFormats& formats = formats_of(inner.node.kind);
  if (!formats.onnx)
    throw UserError(
        fmt::format("time_distributed '{}' cannot be exported to ONNX yet, because its inner layer is {}",
                    layer.node().name, inner.node.kind));
  const std::string positions = layer.add(
      "Reshape", {layer.input(0, ExportLayout::channels_last), layer.integers(batch_of(inner.input.shape))});
  OnnxLayer own(layer, std::move(inner), positions);
  formats.onnx(own);
  const std::string shape = layer.integers(batch_of(layer.output_spec().shape));
  layer.set_output(layer.add("Reshape", {own.take_output(), shape}), ExportLayout::channels_last);
}

void time_distributed_to_torch(TorchLayer& layer) {
  InnerNode inner = inner_of(layer.node(), layer.input_spec());
  const LayerFormats& formats = formats_of(inner.node.kind);
  if (!formats.torch)
    throw UserError(
        fmt::format("time_distributed '{}' cannot be exported to PyTorch yet, because its inner layer is {}",
                    layer.node().name, inner.node.kind));
  const std::string positions = layer.add(layer.input(0, ExportLayout::channels_last) + ".flatten(0, 1)");
  const int64_t steps = layer.input_spec().shape[0];
  TorchLayer own(layer, std::move(inner), positions);
  formats.torch(own);
  layer.set_output(layer.add(fmt::format("{}.unflatten(0, (-1, {}))", own.take_output(), steps)),
                   ExportLayout::channels_last);
}

}  // namespace

void add_time_distributed_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "time_distributed",
      .to_keras = time_distributed_to_keras,
      .from_keras = time_distributed_from_keras,
      .onnx = time_distributed_to_onnx,
      .torch = time_distributed_to_torch,
      .keras_part = part_of_layer,
  });
}

}  // namespace dtrain
