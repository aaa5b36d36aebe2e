#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

void embedding_to_onnx(OnnxLayer& layer) {
  const std::string rows = layer.parameter("embeddings");
  layer.set_output(
      layer.add("Gather", {rows, layer.input(0, ExportLayout::channels_last)}, {{"axis", int64_t{0}}}),
      ExportLayout::channels_last);
  if (!layer.needs_mask()) return;
  // A step is valid if its index is greater than 0: index 0 is padding, and no index is negative. The indices
  // are cast to float32, because float16 cannot represent all indices.
  const std::string indices = layer.add("Cast", {layer.input(0, ExportLayout::channels_last)},
                                        {{"to", static_cast<int64_t>(OnnxType::float32)}});
  layer.set_mask(layer.add("Where", {layer.add("LessOrEqual", {indices, layer.float32({0})}),
                                     layer.constant(0), layer.constant(1)}));
}

void embedding_to_torch(TorchLayer& layer) {
  layer.set_module(fmt::format("nn.Embedding({}, {})", layer.options().at("input_dim").as_int(),
                               layer.options().at("output_dim").as_int()));
  layer.weight("weight", "embeddings");
  layer.set_output(
      layer.add(fmt::format("{}({})", layer.module(), layer.input(0, ExportLayout::channels_last))),
      ExportLayout::channels_last);
  if (layer.needs_mask()) layer.set_mask(layer.add(layer.input(0, ExportLayout::channels_last) + " != 0"));
}

ConfigNode embedding_from_keras(KerasLayerReader& reader) {
  reader.skip({"input_length"});
  reader.expect("reverse_dtype", "float32");
  reader.expect("tie_weights", true);
  return options_of_keras("embedding")(reader);
}

/// Exports a masking layer, which sets the features of masked steps to 0.
void masking_to_onnx(OnnxLayer& layer) {
  layer.ignore_masks();  // masking ignores the mask of its input and creates a new mask
  const std::string x = layer.input(0, ExportLayout::channels_last), zero = layer.constant(0),
                    one = layer.constant(1),
                    value = layer.constant(static_cast<float>(layer.options().at("mask_value").as_double()));
  const std::string below = layer.add("Where", {layer.add("LessOrEqual", {value, x}), zero, one});
  const std::string differs = layer.add("Where", {layer.add("LessOrEqual", {x, value}), below, one});
  const std::string count =
      layer.add("ReduceSum", {differs, layer.integers({-1})}, {{"keepdims", int64_t{1}}});
  const std::string is_padding = layer.add("LessOrEqual", {count, zero});
  layer.set_output(layer.add("Where", {is_padding, zero, x}), ExportLayout::channels_last);
  if (!layer.needs_mask()) return;
  const auto features = static_cast<int64_t>(layer.input_spec().shape.rank());
  layer.set_mask(
      layer.add("Squeeze", {layer.add("Where", {is_padding, zero, one}), layer.integers({features})}));
}

void masking_to_torch(TorchLayer& layer) {
  layer.ignore_masks();  // masking ignores the mask of its input and creates a new mask
  const std::string x = layer.input(0, ExportLayout::channels_last);
  const std::string is_valid =
      fmt::format("({} != {}).any(-1", x, layer.options().at("mask_value").as_double());
  layer.set_output(
      layer.add(fmt::format("torch.where({1}, keepdim=True), {0}, torch.zeros_like({0}))", x, is_valid)),
      ExportLayout::channels_last);
  if (layer.needs_mask()) layer.set_mask(layer.add(is_valid + ")"));
}

}  // namespace

void add_embedding_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "embedding",
      .to_keras = keras_layer("Embedding"),
      .from_keras = embedding_from_keras,
      .onnx = embedding_to_onnx,
      .torch = embedding_to_torch,
      .keras_classes = {kKerasReversibleEmbedding},
  });
  table.push_back({
      .kind = "masking",
      .to_keras = keras_layer("Masking"),
      .from_keras = options_of_keras("masking"),
      .onnx = masking_to_onnx,
      .torch = masking_to_torch,
  });
}

}  // namespace dtrain
