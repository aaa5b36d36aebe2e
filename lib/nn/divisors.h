// The divisors of the losses of a step: for each output, the sum of its row weights over the global batch.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "nn/graph.h"
#include "nn/head.h"

namespace dtrain {

/// Returns whether each output's divisor must be known before the gradients of a step are computed. In all
/// other models, one factor of the whole gradient corrects the divisor afterwards
/// (ops/math/gradient_scale.h). That is not possible if outputs have different masks, or if rows have weights
/// or masks and a layer has a penalty on its output, whose gradient is divided by the number of samples.
bool needs_divisors(const Graph& graph, std::span<const Head> heads);

/// The model input from which the mask of an output is made.
struct MaskSource {
  size_t input = 0;   // index among Graph::inputs
  float padding = 0;  // Layer::padding
};
/// Returns the input from which a mask is made; nullopt if it is made from values that the model computes.
std::optional<MaskSource> source_of(const Graph& graph, const HeadMask& mask);

}  // namespace dtrain
