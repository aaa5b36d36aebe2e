#include "interop/layers/masked_steps.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

OnnxSteps add_onnx_steps(OnnxLayer& layer, const std::string& mask, int64_t steps, bool backwards) {
  constexpr int64_t kMostInFloat16 = 2048;  // largest count up to which float16 represents all integers
  if (layer.is_float16() && steps > kMostInFloat16)
    throw UserError(
        fmt::format("{} '{}' cannot be exported to ONNX with --float16: float16 can count at most {} masked "
                    "steps, but the layer has {} steps; export without --float16",
                    layer.node().kind, layer.node().name, kMostInFloat16, steps));
  std::vector<float> sums, numbers;
  for (int64_t s = 0; s < steps; ++s) {
    numbers.push_back(static_cast<float>(s + 1));
    for (int64_t t = 0; t < steps; ++t) sums.push_back((backwards ? s >= t : s <= t) ? 1.0f : 0.0f);
  }
  const std::string direction = backwards ? "backward" : "forward";
  const std::string counts = layer.add(
      "MatMul",
      {mask, layer.array(fmt::format("{}_sums_{}", direction, steps), {steps, steps}, std::move(sums))});
  const auto as_column = [&](const std::string& row) {
    return layer.add("Reshape", {row, layer.integers({0, steps, 1})});
  };
  const std::string equal = layer.add(
      "Equal",
      {as_column(counts), layer.array(fmt::format("numbers_{}", steps), {steps}, std::move(numbers))});
  const std::string latest = layer.add("Where", {equal, layer.constant(1), layer.constant(0)});
  const std::string first = layer.add("Mul", {latest, as_column(mask)});
  return {layer.add("Transpose", {first}, {{"perm", std::vector<int64_t>{0, 2, 1}}}), latest};
}

}  // namespace dtrain
