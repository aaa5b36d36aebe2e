#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "config/schema.h"
#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Keras before 2.12 does not know `synchronized`, and Keras 3 supports it only with TensorFlow, so the
/// config has the key only if it is true.
KerasLayerConfig batch_normalization_to_keras(const ConfigNode& options) {
  const bool synchronized = to_json(*options.find("synchronized")).as_bool();
  constexpr std::string_view kSynchronized[] = {"synchronized"};
  return {"BatchNormalization", keras_options(synchronized ? options : options.without(kSynchronized))};
}

/// Returns the initializer of a parameter of the last axis; filled with `value` if the layer lacks the
/// parameter.
std::string parameter_or(OnnxLayer& layer, std::string_view name, float value) {
  if (layer.has_parameter(name)) return layer.parameter(name);
  return layer.constant(std::vector<float>(static_cast<size_t>(layer.input_spec().shape.back()), value));
}

float onnx_epsilon(const OnnxLayer& layer) {
  return static_cast<float>(layer.options().at("epsilon").as_double());
}

void batch_normalization_to_onnx(OnnxLayer& layer) {
  const std::string y = layer.add(
      "BatchNormalization",
      {layer.input(0, ExportLayout::channels_first), parameter_or(layer, "gamma", 1),
       parameter_or(layer, "beta", 0), layer.parameter("moving_mean"), layer.parameter("moving_variance")},
      {{"epsilon", onnx_epsilon(layer)}});
  layer.set_output(y, ExportLayout::channels_first);
}

void layer_normalization_to_onnx(OnnxLayer& layer) {
  layer.require_opset(17);
  std::vector<std::string> inputs = {layer.input(0, ExportLayout::channels_last),
                                     parameter_or(layer, "gamma", 1)};
  if (layer.has_parameter("beta")) inputs.push_back(layer.parameter("beta"));
  layer.set_output(
      layer.add("LayerNormalization", inputs, {{"axis", int64_t{-1}}, {"epsilon", onnx_epsilon(layer)}}),
      ExportLayout::channels_last);
}

void batch_normalization_to_torch(TorchLayer& layer) {
  const Shape& shape = layer.input_spec().shape;
  const bool is_affine = layer.has_parameter("gamma") || layer.has_parameter("beta");
  if (shape.rank() > 4)
    throw UserError(fmt::format("batch_normalization '{}': PyTorch has none for samples of {} axes",
                                layer.node().name, shape.rank()));
  const size_t axes = std::max<size_t>(shape.rank(), 2) - 1;
  layer.set_module(fmt::format("nn.BatchNorm{}d({}, eps={}{})", axes, shape.back(),
                               layer.options().at("epsilon").as_double(), is_affine ? "" : ", affine=False"));
  if (is_affine) {
    layer.weight_or("weight", "gamma", {shape.back()}, 1);
    layer.weight_or("bias", "beta", {shape.back()}, 0);
  }
  layer.weight("running_mean", "moving_mean");
  layer.weight("running_var", "moving_variance");
  layer.set_output(
      layer.add(fmt::format("{}({})", layer.module(), layer.input(0, ExportLayout::channels_first))),
      ExportLayout::channels_first);
}

void layer_normalization_to_torch(TorchLayer& layer) {
  const Shape& shape = layer.input_spec().shape;
  const bool is_affine = layer.has_parameter("gamma") || layer.has_parameter("beta");
  layer.set_module(fmt::format("nn.LayerNorm({}, eps={}{})", shape.back(),
                               layer.options().at("epsilon").as_double(),
                               is_affine ? "" : ", elementwise_affine=False"));
  if (is_affine) {
    layer.weight_or("weight", "gamma", {shape.back()}, 1);
    layer.weight_or("bias", "beta", {shape.back()}, 0);
  }
  layer.set_output(
      layer.add(fmt::format("{}({})", layer.module(), layer.input(0, ExportLayout::channels_last))),
      ExportLayout::channels_last);
}

ConfigNode batch_normalization_from_keras(KerasLayerReader& reader) {
  reader.expect_last_axis("axis");
  reader.skip({"fused", "virtual_batch_size", "renorm_momentum"});
  reader.expect("renorm", false);
  return reader.options(registry<Layer>().fields("batch_normalization"));
}

ConfigNode layer_normalization_from_keras(KerasLayerReader& reader) {
  reader.expect_last_axis("axis");
  return reader.options(registry<Layer>().fields("layer_normalization"));
}

}  // namespace

void add_normalization_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "batch_normalization",
      .to_keras = batch_normalization_to_keras,
      .from_keras = batch_normalization_from_keras,
      .onnx = batch_normalization_to_onnx,
      .torch = batch_normalization_to_torch,
      .keras_classes = {"BatchNormalizationV1", "SyncBatchNormalization"},
  });
  table.push_back({
      .kind = "layer_normalization",
      .to_keras = keras_layer("LayerNormalization"),
      .from_keras = layer_normalization_from_keras,
      .onnx = layer_normalization_to_onnx,
      .torch = layer_normalization_to_torch,
  });
}

}  // namespace dtrain
