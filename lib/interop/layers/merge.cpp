#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Returns the axis of the batch along which the inputs are concatenated.
int64_t concatenation_axis(const Json& options, const Shape& output, bool channels_first) {
  const auto rank = static_cast<int64_t>(output.rank());
  int64_t axis = options.at("axis").as_int();
  if (axis < 0) axis += rank + 1;
  if (channels_first) axis = axis == rank ? 1 : axis + 1;
  return axis;
}

/// Returns the inputs in the layout of the first input.
std::vector<std::string> onnx_inputs(OnnxLayer& layer) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < layer.inputs(); ++i) inputs.push_back(layer.input(i, layer.layout()));
  return inputs;
}

/// Applies a binary operator to all inputs, from the first to the last.
std::function<void(OnnxLayer&)> merge_to_onnx(const std::string& op) {
  return [op](OnnxLayer& layer) {
    const std::vector<std::string> inputs = onnx_inputs(layer);
    std::string value = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) value = layer.add(op, {value, inputs[i]});
    layer.set_output(value, layer.layout());
  };
}

/// Computes the mean of the inputs.
void average_to_onnx(OnnxLayer& layer) {
  const std::vector<std::string> inputs = onnx_inputs(layer);
  std::string sum = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) sum = layer.add("Add", {sum, inputs[i]});
  const std::string part = layer.constant(1 / static_cast<float>(inputs.size()));
  layer.set_output(layer.add("Mul", {sum, part}), layer.layout());
}

void concatenate_to_onnx(OnnxLayer& layer) {
  const ExportLayout layout = layer.layout();
  const int64_t axis =
      concatenation_axis(layer.options(), layer.output_spec().shape, layout == ExportLayout::channels_first);
  layer.set_output(layer.add("Concat", onnx_inputs(layer), {{"axis", axis}}), layout);
}

/// Returns the inputs in the layout of the first input.
std::vector<std::string> torch_inputs(TorchLayer& layer) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < layer.inputs(); ++i) inputs.push_back(layer.input(i, layer.layout()));
  return inputs;
}

std::function<void(TorchLayer&)> merge_to_torch(const std::string& sign) {
  return [sign](TorchLayer& layer) {
    layer.set_output(layer.add(fmt::format("{}", fmt::join(torch_inputs(layer), " " + sign + " "))),
                     layer.layout());
  };
}

void average_to_torch(TorchLayer& layer) {
  const std::vector<std::string> inputs = torch_inputs(layer);
  layer.set_output(layer.add(fmt::format("({}) / {}", fmt::join(inputs, " + "), inputs.size())),
                   layer.layout());
}

/// Applies a binary function to all inputs, from the first to the last.
std::function<void(TorchLayer&)> call_to_torch(const std::string& function) {
  return [function](TorchLayer& layer) {
    const std::vector<std::string> inputs = torch_inputs(layer);
    std::string value = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) value = fmt::format("{}({}, {})", function, value, inputs[i]);
    layer.set_output(layer.add(value), layer.layout());
  };
}

void concatenate_to_torch(TorchLayer& layer) {
  const ExportLayout layout = layer.layout();
  const int64_t axis =
      concatenation_axis(layer.options(), layer.output_spec().shape, layout == ExportLayout::channels_first);
  layer.set_output(layer.add(fmt::format("torch.cat(({},), {})", fmt::join(torch_inputs(layer), ", "), axis)),
                   layout);
}

}  // namespace

void add_merge_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "add",
      .to_keras = keras_layer("Add"),
      .from_keras = options_of_keras("add"),
      .onnx = merge_to_onnx("Add"),
      .torch = merge_to_torch("+"),
  });
  table.push_back({
      .kind = "multiply",
      .to_keras = keras_layer("Multiply"),
      .from_keras = options_of_keras("multiply"),
      .onnx = merge_to_onnx("Mul"),
      .torch = merge_to_torch("*"),
  });
  table.push_back({
      .kind = "subtract",
      .to_keras = keras_layer("Subtract"),
      .from_keras = options_of_keras("subtract"),
      .onnx = merge_to_onnx("Sub"),
      .torch = merge_to_torch("-"),
  });
  table.push_back({
      .kind = "average",
      .to_keras = keras_layer("Average"),
      .from_keras = options_of_keras("average"),
      .onnx = average_to_onnx,
      .torch = average_to_torch,
  });
  table.push_back({
      .kind = "maximum",
      .to_keras = keras_layer("Maximum"),
      .from_keras = options_of_keras("maximum"),
      .onnx = merge_to_onnx("Max"),
      .torch = call_to_torch("torch.maximum"),
  });
  table.push_back({
      .kind = "minimum",
      .to_keras = keras_layer("Minimum"),
      .from_keras = options_of_keras("minimum"),
      .onnx = merge_to_onnx("Min"),
      .torch = call_to_torch("torch.minimum"),
  });
  table.push_back({
      .kind = "concatenate",
      .to_keras = keras_layer("Concatenate"),
      .from_keras = options_of_keras("concatenate"),
      .onnx = concatenate_to_onnx,
      .torch = concatenate_to_torch,
  });
}

}  // namespace dtrain
