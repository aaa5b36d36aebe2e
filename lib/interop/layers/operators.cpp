#include "interop/layers/operators.h"

#include <utility>

namespace dtrain {

std::function<void(OnnxLayer&)> global_pooling_to_onnx(const std::string& op) {
  return [op](OnnxLayer& layer) {
    const std::string pooled = layer.add(op, {layer.input(0, ExportLayout::channels_first)});
    if (layer.output_spec().shape.rank() > 1)
      layer.set_output(pooled, ExportLayout::channels_first);
    else
      layer.set_output(layer.add("Flatten", {pooled}, {{"axis", int64_t{1}}}), ExportLayout::channels_last);
  };
}

void set_onnx_resized(OnnxLayer& layer, const std::vector<float>& factors, bool is_linear) {
  std::vector<float> scales = {1, 1};
  scales.insert(scales.end(), factors.begin(), factors.end());
  const auto text = [](const char* key, const char* value) { return OnnxAttribute{key, std::string(value)}; };
  std::vector<OnnxAttribute> attributes =
      is_linear ? std::vector{text("mode", "linear"), text("coordinate_transformation_mode", "half_pixel")}
                : std::vector{text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric"),
                              text("nearest_mode", "floor")};
  const std::string x = layer.input(0, ExportLayout::channels_first);
  layer.set_output(layer.add("Resize", {x, "", layer.float32(scales)}, std::move(attributes)),
                   ExportLayout::channels_first);
}

std::string onnx_sums_of_squares(OnnxLayer& layer, const std::string& x) {
  return layer.add("ReduceSum", {layer.add("Mul", {x, x}), layer.integers({-1})}, {{"keepdims", int64_t{1}}});
}

}  // namespace dtrain
