#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/operators.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Minimum divisor of Keras's normalization: smaller norms are replaced by this number.
constexpr float kKerasEpsilon = 1e-7f;

/// Returns the axis, counting the batch axis, along which the inputs are concatenated.
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

/// Returns a conversion that applies a binary operator to all inputs, from the first to the last.
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

/// Concatenates the inputs in the layout of the first input.
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

/// Returns a conversion that joins the inputs with a Python operator such as "+".
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

/// Returns a conversion that applies a binary function to all inputs, from the first to the last.
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

/// Sizes of one input of a dot layer. The input is treated as rows that lie along the axis of the sum.
struct DotInput {
  int64_t axis;       // axis of the sum; the batch axis is axis 0
  int64_t rows;       // number of rows of each sample
  int64_t columns;    // length of each row
  size_t batch_rank;  // number of axes, including the batch axis
};

template <class FormatLayer>
DotInput dot_input(const FormatLayer& layer, size_t input) {
  const Shape& shape = layer.input_spec(input).shape;
  const Json& axes = layer.options().at("axes");
  const auto batch_rank = static_cast<int64_t>(shape.rank()) + 1;
  int64_t axis = axes.is_array() ? axes.items()[input].as_int() : axes.as_int();
  if (axis < 0) axis += batch_rank;
  const int64_t columns = shape[static_cast<size_t>(axis - 1)];
  return {axis, shape.elements() / columns, columns, static_cast<size_t>(batch_rank)};
}

/// Returns an input of a dot layer as [batch, rows, columns]. The rows are normalized if the layer has
/// `normalize`.
std::string onnx_dot_rows(OnnxLayer& layer, size_t number) {
  const DotInput input = dot_input(layer, number);
  std::string x = layer.input(number, ExportLayout::channels_last);
  if (input.axis + 1 != static_cast<int64_t>(input.batch_rank)) {
    std::vector<int64_t> axes(input.batch_rank);
    std::iota(axes.begin(), axes.end(), 0);
    std::rotate(axes.begin() + input.axis, axes.begin() + input.axis + 1, axes.end());
    x = layer.add("Transpose", {x}, {{"perm", axes}});
  }
  if (input.batch_rank != 3) x = layer.add("Reshape", {x, layer.integers({0, input.rows, input.columns})});
  if (!layer.options().at("normalize").as_bool()) return x;
  return onnx_unit_rows(layer, x, kKerasEpsilon);
}

void dot_to_onnx(OnnxLayer& layer) {
  const std::string a = onnx_dot_rows(layer, 0), b = onnx_dot_rows(layer, 1);
  const std::string other = layer.add("Transpose", {b}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const std::string product = layer.add("MatMul", {a, other});
  std::vector<int64_t> shape = {0};
  for (const int64_t extent : layer.output_spec().shape) shape.push_back(extent);
  const bool are_matrices = layer.input_spec(0).shape.rank() == 2 && layer.input_spec(1).shape.rank() == 2;
  layer.set_output(are_matrices ? product : layer.add("Reshape", {product, layer.integers(shape)}),
                   ExportLayout::channels_last);
}

/// Returns an input of a dot layer as [batch, rows, columns]. The rows are normalized if the layer has
/// `normalize`.
std::string torch_dot_rows(TorchLayer& layer, size_t number) {
  const DotInput input = dot_input(layer, number);
  const std::string x = layer.input(number, ExportLayout::channels_last);
  const std::string rows = fmt::format("{0}.movedim({1}, -1).reshape({0}.shape[0], {2}, {3})", x, input.axis,
                                       input.rows, input.columns);
  const bool normalizes = layer.options().at("normalize").as_bool();
  return layer.add(normalizes ? fmt::format("F.normalize({}, dim=-1, eps={})", rows, kKerasEpsilon) : rows);
}

void dot_to_torch(TorchLayer& layer) {
  const std::string a = torch_dot_rows(layer, 0), b = torch_dot_rows(layer, 1);
  layer.set_output(layer.add(fmt::format("torch.bmm({0}, {1}.transpose(1, 2)).reshape({0}.shape[0], {2})", a,
                                         b, fmt::join(layer.output_spec().shape.extents(), ", "))),
                   ExportLayout::channels_last);
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
      .kind = "dot",
      .to_keras = keras_layer("Dot"),
      .from_keras = options_of_keras("dot"),
      .onnx = dot_to_onnx,
      .torch = dot_to_torch,
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
