#include "interop/keras/layer_reader.h"
#include "interop/keras/options.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"

namespace dtrain {

namespace {

/// The inputs in the layout that the first one has.
std::vector<std::string> onnx_inputs(OnnxLayer& layer) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < layer.inputs(); ++i) inputs.push_back(layer.input(i, layer.layout()));
  return inputs;
}

/// An operator of two inputs, over all inputs from the first to the last.
std::function<void(OnnxLayer&)> merge_to_onnx(const std::string& op) {
  return [op](OnnxLayer& layer) {
    const std::vector<std::string> inputs = onnx_inputs(layer);
    std::string value = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) value = layer.add(op, {value, inputs[i]});
    layer.set_output(value, layer.layout());
  };
}

void concatenate_to_onnx(OnnxLayer& layer) {
  const auto rank = static_cast<int64_t>(layer.output_spec().shape.rank());
  const OnnxLayout layout = layer.layout();
  int64_t axis = layer.options().at("axis").as_int();  // of the batch
  if (axis < 0) axis += rank + 1;
  if (layout == OnnxLayout::channels_first) axis = axis == rank ? 1 : axis + 1;
  layer.set_output(layer.add("Concat", onnx_inputs(layer), {{"axis", axis}}), layout);
}

}  // namespace

void add_merge_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "add",
      .to_keras = keras_layer("Add"),
      .from_keras = options_of_keras("add"),
      .onnx = merge_to_onnx("Add"),
  });
  table.push_back({
      .kind = "multiply",
      .to_keras = keras_layer("Multiply"),
      .from_keras = options_of_keras("multiply"),
      .onnx = merge_to_onnx("Mul"),
  });
  table.push_back({
      .kind = "concatenate",
      .to_keras = keras_layer("Concatenate"),
      .from_keras = options_of_keras("concatenate"),
      .onnx = concatenate_to_onnx,
  });
}

}  // namespace dtrain
