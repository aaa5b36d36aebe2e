// The trained parameters gamma (the scale) and beta (the shift) of normalization layers.
#pragma once

#include <vector>

#include "nn/layers/common.h"
#include "nn/layers/weight_options.h"

namespace dtrain {

/// Options of a layer that scales by gamma, and then shifts by beta.
struct ScaleAndShift {
  bool center = true;
  bool scale = true;
  WeightOptions beta{registry<Initializer>().make("zeros")};
  WeightOptions gamma{registry<Initializer>().make("ones")};

  /// Returns the parameters of the layer, which all have this shape: gamma if the layer scales, then beta if
  /// it shifts.
  std::vector<ParameterSpec> parameters(const Shape& shape) const {
    std::vector<ParameterSpec> specs;
    if (scale) specs.push_back(gamma.parameter("gamma", shape));
    if (center) specs.push_back(beta.parameter("beta", shape));
    return specs;
  }
  /// Returns gamma or its gradient. `list` has the order of parameters(). Returns null if the layer has no
  /// gamma.
  template <class Pointer>
  Pointer gamma_of(const std::vector<Pointer>& list) const {
    return scale ? list[0] : nullptr;
  }
  /// Returns beta or its gradient. `list` has the order of parameters(). Returns null if the layer has no
  /// beta.
  template <class Pointer>
  Pointer beta_of(const std::vector<Pointer>& list) const {
    return center ? list[scale ? 1 : 0] : nullptr;
  }
};

/// Adds these options to a schema.
template <class Options>
Schema<Options> with_scale_and_shift(Schema<Options> schema) {
  schema
      .optional("center", static_cast<bool Options::*>(&Options::center),
                "whether to add the trained parameter beta")
      .optional("scale", static_cast<bool Options::*>(&Options::scale),
                "whether to multiply by the trained parameter gamma")
      .part("beta_", static_cast<WeightOptions Options::*>(&Options::beta), weight_schema("beta"))
      .part("gamma_", static_cast<WeightOptions Options::*>(&Options::gamma), weight_schema("gamma"));
  return schema;
}

}  // namespace dtrain
