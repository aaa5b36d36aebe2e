#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Returns the permutation of alpha's axes for this layout; empty if the axes keep their order.
std::vector<int64_t> axes_in(ExportLayout layout, const Shape& alpha) {
  const auto rank = static_cast<int64_t>(alpha.rank());
  if (layout == ExportLayout::channels_last || rank < 2) return {};
  std::vector<int64_t> axes = {rank - 1};
  for (int64_t axis = 0; axis + 1 < rank; ++axis) axes.push_back(axis);
  return axes;
}

const Shape& alpha_shape(const GraphNode& node) {
  return node.parameters.front().shape;
}

void prelu_to_onnx(OnnxLayer& layer) {
  const ExportLayout layout = layer.layout();
  const std::string slopes = layer.parameter("alpha", axes_in(layout, alpha_shape(layer.node())));
  layer.set_output(layer.add("PRelu", {layer.input(0, layout), slopes}), layout);
}

/// Exports a prelu. nn.PReLU supports only a single alpha, or one alpha for each channel. For other shapes,
/// alpha is exported as a separate parameter.
void prelu_to_torch(TorchLayer& layer) {
  const Shape& alpha = alpha_shape(layer.node());
  const int64_t count = alpha.elements();
  if (count == 1 || count == alpha.back()) {
    layer.set_module(fmt::format("nn.PReLU({})", count));
    layer.weight("weight", "alpha", {}, {count});
    const std::string x = layer.input(0, ExportLayout::channels_first);
    layer.set_output(layer.add(fmt::format("{}({})", layer.module(), x)), ExportLayout::channels_first);
    return;
  }
  layer.set_module(fmt::format("nn.ParameterDict({{\"weight\": nn.Parameter(torch.zeros({}))}})",
                               fmt::join(alpha.extents(), ", ")));
  layer.weight("weight", "alpha");
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(
      layer.add(fmt::format("torch.where({0} < 0, {0} * {1}[\"weight\"], {0})", x, layer.module())),
      ExportLayout::channels_last);
}

}  // namespace

void add_prelu_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "prelu",
      .to_keras = keras_layer("PReLU"),
      .from_keras = options_of_keras("prelu"),
      .onnx = prelu_to_onnx,
      .torch = prelu_to_torch,
  });
}

}  // namespace dtrain
