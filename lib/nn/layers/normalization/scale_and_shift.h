// The trained gamma and beta with which normalization layers scale and shift.
#pragma once

#include <vector>

#include "nn/layers/common.h"

namespace dtrain {

/// Options of a layer that scales by gamma, and then shifts by beta.
struct ScaleAndShift {
  bool center = true;
  bool scale = true;
  Configured<Initializer> beta_initializer = registry<Initializer>().make("zeros");
  Configured<Initializer> gamma_initializer = registry<Initializer>().make("ones");

  /// Returns the parameters of this shape that the layer has: gamma, then beta.
  std::vector<ParameterSpec> parameters(const Shape& shape) const {
    std::vector<ParameterSpec> specs;
    if (scale) specs.push_back({"gamma", shape, gamma_initializer, {}});
    if (center) specs.push_back({"beta", shape, beta_initializer, {}});
    return specs;
  }
  /// Return a parameter from a list in the order of parameters(), or its gradient; null if the layer does not
  /// have it.
  template <class Pointer>
  Pointer gamma_of(const std::vector<Pointer>& list) const {
    return scale ? list[0] : nullptr;
  }
  template <class Pointer>
  Pointer beta_of(const std::vector<Pointer>& list) const {
    return center ? list[scale ? 1 : 0] : nullptr;
  }
};

/// Adds these options to a schema.
template <class Options>
Schema<Options> with_scale_and_shift(Schema<Options> schema) {
  using Initial = Configured<Initializer>;
  schema.optional("center", static_cast<bool Options::*>(&Options::center), "shift by a trained beta")
      .optional("scale", static_cast<bool Options::*>(&Options::scale), "scale by a trained gamma")
      .optional("beta_initializer", static_cast<Initial Options::*>(&Options::beta_initializer),
                "initial values of beta")
      .optional("gamma_initializer", static_cast<Initial Options::*>(&Options::gamma_initializer),
                "initial values of gamma");
  return schema;
}

}  // namespace dtrain
