// One layer, from a YAML snippet, run on the CPU's operations without a graph around it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "nn/layer.h"

namespace dtrain {

struct LayerCase {
  std::string yaml;  // "dense: {units: 3}"
  std::vector<TensorSpec> inputs;
  ActivationSpec fused = {};
  bool training = true;
  bool trainable = true;
  bool inputs_need_gradient = true;
  Layout layout = Layout::plain;  // what the inputs lie in; images only
  int64_t batch = 2;
  /// Input and parameter values lie in [low, high].
  float low = -1, high = 1;
};

/// The layer that the snippet makes; fails the test where it has mistakes.
Kind<Layer> layer_of(const std::string& yaml);
/// What is wrong with a snippet's options or, if nothing, its complaints about the inputs; "" if none.
std::string complaints_of(const std::string& yaml, const std::vector<TensorSpec>& inputs);
/// The output for these inputs; fails the test where the layer complains.
TensorSpec output_of(const std::string& yaml, const std::vector<TensorSpec>& inputs);

using Values = std::vector<float>;

/// n distinct numbers, evenly spread over [low, high], in an order that `seed` shuffles: no two so near that
/// a small change exchanges them.
Values spread_values(int64_t n, float low, float high, uint32_t seed);

/// Plain arrays go in and come out, whatever layouts the kernel wants. Scratch, and all that a call must
/// overwrite, is filled with NaNs before each call.
class LayerRun {
 public:
  explicit LayerRun(const LayerCase& c);

  struct Gradients {
    std::vector<Values> inputs, parameters;
  };
  Values forward(bool in_place = false);
  /// After forward.
  Gradients backward(const Values& diff_output, bool in_place = false);

  const KernelTraits& traits() const { return kernel_->traits(); }
  int64_t output_elements() const { return case_.batch * output.shape.elements(); }

  std::vector<Values> inputs;  // of int32: whole numbers
  std::vector<Values> parameters;
  std::vector<ParameterSpec> parameter_specs;
  TensorSpec output;
  float share = 1;

 private:
  Buffer nan_buffer(size_t bytes);
  Buffer to_device(const Values& values, const TensorSpec& spec, Layout layout);
  Values to_host(const void* data, const TensorSpec& spec, Layout layout);
  Layout wanted(size_t input) const;

  LayerCase case_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
  Kind<Layer> layer_;
  std::unique_ptr<Kernel> kernel_;
  Pass pass_;
  std::vector<Buffer> held_;  // of the last forward call
  Buffer saved_, scratch_;
};

}  // namespace dtrain
