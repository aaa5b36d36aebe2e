// The divisors of the losses. The loss of an output is a sum over rows, divided by the sum of the row weights
// of the global batch.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "nn/graph.h"
#include "nn/head.h"

namespace dtrain {

/// Returns whether the divisor of each output must be known before the gradients of a step are computed.
/// Usually this is not necessary, because the whole gradient is multiplied by a correction factor afterwards
/// (ops/math/gradient_scale.h). A single factor is not enough in two cases. In the first case, outputs have
/// different masks. In the second case, rows have weights or masks, and a layer has a penalty on its output:
/// the gradient of this penalty is divided by the number of samples, not by the sum of the weights.
bool needs_divisors(const Graph& graph, std::span<const Head> heads);

/// The model input from which the mask of an output is computed.
struct MaskSource {
  size_t input = 0;   // index in Graph::inputs
  float padding = 0;  // Layer::padding
};
/// Returns the model input from which a mask is computed. Returns nullopt if the mask is computed from the
/// output of a layer.
std::optional<MaskSource> source_of(const Graph& graph, const HeadMask& mask);

}  // namespace dtrain
