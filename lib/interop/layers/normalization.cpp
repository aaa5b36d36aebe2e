#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "config/schema.h"
#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/operators.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Converts the options to Keras's config. The config contains `synchronized` only if the option is true,
/// because Keras before 2.12 rejects this key and Keras 3 supports it only with TensorFlow.
KerasLayerConfig batch_normalization_to_keras(const ConfigNode& options) {
  const bool synchronized = to_json(*options.find("synchronized")).as_bool();
  constexpr std::string_view kSynchronized[] = {"synchronized"};
  return {"BatchNormalization", keras_options(synchronized ? options : options.without(kSynchronized))};
}

/// Returns the ONNX initializer of a parameter that belongs to the last axis. If the layer does not have the
/// parameter, returns a constant filled with `value`.
std::string parameter_or(OnnxLayer& layer, std::string_view name, float value) {
  if (layer.has_parameter(name)) return layer.parameter(name);
  return layer.constant(std::vector<float>(static_cast<size_t>(layer.input_spec().shape.back()), value));
}

float onnx_epsilon(const OnnxLayer& layer) {
  return static_cast<float>(layer.options().at("epsilon").as_double());
}

void batch_normalization_to_onnx(OnnxLayer& layer) {
  layer.ignore_masks();  // masks affect only training
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

/// Computes the norms and divides the input by them in float32, because float16 can represent neither the
/// square of 256 nor a small epsilon.
void rms_normalization_to_onnx(OnnxLayer& layer) {
  const auto cast = [&](const std::string& value, OnnxType to) {
    return layer.is_float16() ? layer.add("Cast", {value}, {{"to", static_cast<int64_t>(to)}}) : value;
  };
  const std::string x = cast(layer.input(0, ExportLayout::channels_last), OnnxType::float32);
  const float share = 1 / static_cast<float>(layer.input_spec().shape.back());
  const std::string mean = layer.add("Mul", {onnx_sums_of_squares(layer, x), layer.float32({share})});
  const std::string norm =
      layer.add("Sqrt", {layer.add("Add", {mean, layer.float32({onnx_epsilon(layer)})})});
  const std::string quotient = cast(layer.add("Div", {x, norm}), OnnxType::float16);
  layer.set_output(layer.add("Mul", {quotient, layer.parameter("scale")}), ExportLayout::channels_last);
}

void unit_normalization_to_onnx(OnnxLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(onnx_unit_rows(layer, x, 1e-12f), ExportLayout::channels_last);
}

/// Returns the number of groups of a group_normalization.
int64_t groups_of(const Json& options, const TensorSpec& input) {
  const int64_t groups = options.at("groups").as_int();
  return groups == -1 ? input.shape.back() : groups;
}

/// Adds an InstanceNormalization in which each group is one channel. The operator GroupNormalization is not
/// used, because the default operator set does not contain it.
void group_normalization_to_onnx(OnnxLayer& layer) {
  const Shape& shape = layer.input_spec().shape;
  const int64_t channels = shape.back(), groups = groups_of(layer.options(), layer.input_spec());
  const std::vector<float> ones(static_cast<size_t>(groups), 1), zeros(static_cast<size_t>(groups), 0);
  const std::string x = layer.input(0, ExportLayout::channels_first);
  const std::string grouped =
      layer.add("Reshape", {x, layer.integers({0, groups, shape.elements() / groups})});
  const std::string normal =
      layer.add("InstanceNormalization", {grouped, layer.constant(ones), layer.constant(zeros)},
                {{"epsilon", onnx_epsilon(layer)}});
  std::vector<int64_t> extents = {0, channels};
  extents.insert(extents.end(), shape.begin(), shape.end() - 1);
  std::string y = layer.add("Reshape", {normal, layer.integers(extents)});
  std::vector<int64_t> of_parameter(shape.rank(), 1);
  of_parameter[0] = channels;
  if (layer.has_parameter("gamma"))
    y = layer.add("Mul", {y, layer.parameter("gamma", {}, Shape(of_parameter))});
  if (layer.has_parameter("beta"))
    y = layer.add("Add", {y, layer.parameter("beta", {}, Shape(of_parameter))});
  layer.set_output(y, ExportLayout::channels_first);
}

void batch_normalization_to_torch(TorchLayer& layer) {
  layer.ignore_masks();  // masks affect only training
  const Shape& shape = layer.input_spec().shape;
  const bool is_affine = layer.has_parameter("gamma") || layer.has_parameter("beta");
  if (shape.rank() > 4)
    throw UserError(
        fmt::format("batch_normalization '{}': PyTorch has no batch normalization for samples with {} axes",
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

void rms_normalization_to_torch(TorchLayer& layer) {
  layer.set_module(fmt::format("nn.RMSNorm({}, eps={})", layer.input_spec().shape.back(),
                               layer.options().at("epsilon").as_double()));
  layer.weight("weight", "scale");
  layer.set_output(
      layer.add(fmt::format("{}({})", layer.module(), layer.input(0, ExportLayout::channels_last))),
      ExportLayout::channels_last);
}

void unit_normalization_to_torch(TorchLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(layer.add(fmt::format("F.normalize({}, dim=-1)", x)), ExportLayout::channels_last);
}

void group_normalization_to_torch(TorchLayer& layer) {
  const int64_t channels = layer.input_spec().shape.back();
  const bool is_affine = layer.has_parameter("gamma") || layer.has_parameter("beta");
  layer.set_module(fmt::format("nn.GroupNorm({}, {}, eps={}{})",
                               groups_of(layer.options(), layer.input_spec()), channels,
                               layer.options().at("epsilon").as_double(), is_affine ? "" : ", affine=False"));
  if (is_affine) {
    layer.weight_or("weight", "gamma", {channels}, 1);
    layer.weight_or("bias", "beta", {channels}, 0);
  }
  layer.set_output(
      layer.add(fmt::format("{}({})", layer.module(), layer.input(0, ExportLayout::channels_first))),
      ExportLayout::channels_first);
}

ConfigNode batch_normalization_from_keras(KerasLayerReader& reader) {
  reader.expect_last_axis("axis");
  reader.skip({"fused", "virtual_batch_size", "renorm_momentum"});
  reader.expect("renorm", false);
  return reader.options(registry<Layer>().fields("batch_normalization"));
}

/// Returns LayerFormats::from_keras for a normalization along the last axis.
std::function<ConfigNode(KerasLayerReader&)> along_last_axis(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    reader.expect_last_axis("axis");
    return reader.options(registry<Layer>().fields(kind));
  };
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
      .from_keras = along_last_axis("layer_normalization"),
      .onnx = layer_normalization_to_onnx,
      .torch = layer_normalization_to_torch,
  });
  table.push_back({
      .kind = "group_normalization",
      .to_keras = keras_layer("GroupNormalization"),
      .from_keras = along_last_axis("group_normalization"),
      .onnx = group_normalization_to_onnx,
      .torch = group_normalization_to_torch,
  });
  table.push_back({
      .kind = "rms_normalization",
      .to_keras = keras_layer("RMSNormalization"),
      .from_keras = along_last_axis("rms_normalization"),
      .onnx = rms_normalization_to_onnx,
      .torch = rms_normalization_to_torch,
  });
  table.push_back({
      .kind = "unit_normalization",
      .to_keras = keras_layer("UnitNormalization"),
      .from_keras = along_last_axis("unit_normalization"),
      .onnx = unit_normalization_to_onnx,
      .torch = unit_normalization_to_torch,
  });
}

}  // namespace dtrain
