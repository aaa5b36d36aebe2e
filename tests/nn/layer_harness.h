// One layer, from a YAML snippet, run on a device's operations without a graph around it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices.h"
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
Configured<Layer> layer_of(const std::string& yaml);
/// What is wrong with a snippet's options or, if nothing, its errors about the inputs; "" if none.
std::string errors_of(const std::string& yaml, const std::vector<TensorSpec>& inputs);
/// The output for these inputs; fails the test where the layer reports an error.
TensorSpec output_of(const std::string& yaml, const std::vector<TensorSpec>& inputs);

using Values = std::vector<float>;

/// n distinct numbers, evenly spread over [low, high], in an order that `seed` shuffles: no two so near that
/// a small change exchanges them.
Values spread_values(int64_t n, float low, float high, uint32_t seed);

/// Plain arrays go in and come out, whatever layouts the kernel wants. Scratch, and all that a call must
/// overwrite, is filled with NaNs before each call.
class LayerRun {
 public:
  /// On a CPU of its own where no device is given. Values are such as the device's arrays hold as they are.
  explicit LayerRun(const LayerCase& c, test::Device* device = nullptr);

  struct Gradients {
    std::vector<Values> inputs, parameters;
  };
  Values forward(bool in_place = false);
  /// After forward.
  Gradients backward(const Values& diff_output, bool in_place = false);

  const LayerRequirements& requirements() const { return kernel_->requirements(); }
  int64_t output_elements() const { return case_.batch * output.shape.elements(); }

  std::vector<Values> inputs;  // of int32: whole numbers
  std::vector<Values> parameters;
  std::vector<ParameterSpec> parameter_specs;
  TensorSpec output;
  float share = 1;

 private:
  Ops& ops() const { return device_->ops(); }
  /// Until the next forward call.
  void* hold(test::Bytes bytes);
  test::Bytes to_device(const Values& values, const TensorSpec& spec, Layout layout) const;
  Values to_host(const void* data, const TensorSpec& spec, Layout layout) const;
  Layout wanted(size_t input) const;
  void use_parameters();

  LayerCase case_;
  std::unique_ptr<test::Device> own_device_;
  test::Device* device_;
  Configured<Layer> layer_;
  std::unique_ptr<PreparedLayer> kernel_;
  LayerArguments args_;
  std::vector<test::Bytes> held_;  // of the last forward call
  test::Array<float> scratch_;
  test::Array<uint64_t> step_;
};

}  // namespace dtrain

namespace dtrain::test {

/// For DEVICE_TEST_CASE. What layers do does not depend on threads and instruction sets.
template <class Use>
void on_every_cpu(Use&& use) {
  use(*cpu_device());
}

}  // namespace dtrain::test
