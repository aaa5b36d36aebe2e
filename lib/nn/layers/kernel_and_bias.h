// The options and parameters of layers that multiply the input by a kernel, add a bias and apply an
// activation.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "nn/layers/activations/activation_function.h"
#include "nn/layers/weight_options.h"

namespace dtrain {

struct KernelAndBias {
  OptionalActivation activation;
  bool use_bias = true;
  WeightOptions kernel{registry<Initializer>().make("glorot_uniform")};
  WeightOptions bias{registry<Initializer>().make("zeros")};

  /// Returns the kernel, of shape `kernel_shape`, and the bias, of shape [outputs]. Returns only the kernel
  /// if use_bias is false.
  std::vector<ParameterSpec> parameters(const Shape& kernel_shape, int64_t outputs) const {
    std::vector<ParameterSpec> specs = {kernel.parameter("kernel", kernel_shape)};
    if (use_bias) specs.push_back(bias.parameter("bias", {outputs}));
    return specs;
  }
};

/// Adds these options to a schema and sets its details(). `axes` describes the axes of the kernel, such as
/// "inputs, units".
template <class Options>
Schema<Options> with_kernel_and_bias(Schema<Options> schema, const std::string& axes) {
  schema
      .optional("activation", static_cast<OptionalActivation Options::*>(&Options::activation),
                "activation function of the output")
      .optional("use_bias", static_cast<bool Options::*>(&Options::use_bias), "whether to add a bias")
      .part("kernel_", static_cast<WeightOptions Options::*>(&Options::kernel),
            weight_schema("the kernel of shape [" + axes + "]"))
      .part("bias_", static_cast<WeightOptions Options::*>(&Options::bias), weight_schema("the bias"))
      .details({"activation", "use_bias"});
  return schema;
}

}  // namespace dtrain
