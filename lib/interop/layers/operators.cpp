#include "interop/layers/operators.h"

#include <algorithm>
#include <utility>

namespace dtrain {

namespace {

/// The smallest positive number of float16.
constexpr float kLeastFloat16 = 0x1p-24f;

}  // namespace

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

std::string onnx_row_maxima(OnnxLayer& layer, const std::string& x) {
  constexpr int64_t kFirstWithInput = 18;  // first opset in which ReduceMax takes the axes as an input
  const OnnxAttribute keeps{"keepdims", int64_t{1}};
  if (layer.opset() >= kFirstWithInput) return layer.add("ReduceMax", {x, layer.integers({-1})}, {keeps});
  return layer.add("ReduceMax", {x}, {{"axes", std::vector<int64_t>{-1}}, keeps});
}

std::string onnx_sums_of_squares(OnnxLayer& layer, const std::string& x) {
  return layer.add("ReduceSum", {layer.add("Mul", {x, x}), layer.integers({-1})}, {{"keepdims", int64_t{1}}});
}

std::string onnx_unit_rows(OnnxLayer& layer, const std::string& x, float epsilon) {
  // To avoid overflow and underflow, the rows are first divided by m = max(largest |x|, epsilon). The result
  // for y = x / m is y / max(norm of y, 1): unless m is epsilon, y contains 1 or -1, so its norm is at least
  // 1.
  const float least = layer.is_float16() ? std::max(epsilon, kLeastFloat16) : epsilon;
  const std::string largest =
      layer.add("Max", {onnx_row_maxima(layer, layer.add("Abs", {x})), layer.constant(least)});
  const std::string y = layer.add("Div", {x, largest});
  const std::string norm = layer.add("Sqrt", {onnx_sums_of_squares(layer, y)});
  return layer.add("Div", {y, layer.add("Max", {norm, layer.constant(1)})});
}

}  // namespace dtrain
