// Runs a single layer, without a graph, on a device. The layer is given as a YAML snippet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/layer.h"
#include "support/devices.h"
#include "support/one_cpu.h"

namespace dtrain::test {

struct LayerCase {
  std::string yaml;  // "dense: {units: 3}"
  std::vector<TensorSpec> inputs;
  ActivationSpec fused = {};
  bool training = true;
  bool trainable = true;
  bool inputs_need_gradient = true;
  Layout layout = Layout::plain;  // layout of the inputs; images only
  int64_t batch = 2;
  /// The range of random input and parameter values.
  float low = -1, high = 1;
  /// The mask of all inputs of shape [positions, features]. It has one value for each sample and position. If
  /// it is empty, the inputs have no mask.
  std::vector<uint8_t> mask = {};
};

/// Returns the layer of a snippet; fails the test if the snippet has errors.
Configured<Layer> layer_of(const std::string& yaml);
/// Returns the errors about the options of a snippet. If there are none, returns the errors of the layer
/// about its inputs. Returns "" if there are no errors at all.
std::string errors_of(const std::string& yaml, const std::vector<TensorSpec>& inputs);
/// Returns the output for these inputs; fails the test if the layer reports an error.
TensorSpec output_of(const std::string& yaml, const std::vector<TensorSpec>& inputs);

using Values = Floats;

/// Checks that every value is within `tolerance` of the expected one, relative to 1 + |expected|.
void check_values(const Values& values, const Doubles& expected, double tolerance = 1e-5);

/// Returns n distinct numbers, evenly spaced in [low, high] and shuffled by `seed`. No two are so close that
/// a small change would swap their order.
Values spread_values(int64_t n, float low, float high, uint32_t seed);

/// Runs a layer with plain arrays as inputs and outputs; converts to and from the layouts that it requires.
/// Scratch memory, and all arrays that a call must overwrite, are filled with NaN before each call.
class LayerRun {
 public:
  /// Creates a CPU device if `device` is null. All values of inputs and parameters are exactly representable
  /// in the device's arrays.
  explicit LayerRun(const LayerCase& c, Device* device = nullptr);

  struct Gradients {
    std::vector<Values> inputs, parameters;
  };
  Values forward(bool in_place = false);
  /// Computes the gradients. Must be called after forward().
  Gradients backward(const Values& diff_output, bool in_place = false);

  const LayerRequirements& requirements() const { return kernel_->requirements(); }
  int64_t output_elements() const { return case_.batch * output.shape.elements(); }

  std::vector<Values> inputs;  // values of each input; whole numbers for int32 inputs
  std::vector<Values> parameters;
  std::vector<ParameterSpec> parameter_specs;
  TensorSpec output;                // the first output
  std::vector<TensorSpec> outputs;  // all outputs
  std::vector<Values> further;      // outputs except the first, as of the last call of forward()
  // Gradients of `further` for backward(); empty if none of these outputs has a gradient.
  std::vector<Values> diff_further;
  float share = 1;
  uint64_t step = 5, first_sample = 0;

 private:
  Ops& ops() const { return device_->ops(); }
  /// Keeps the memory until the next forward call.
  void* hold(DeviceBytes bytes);
  DeviceBytes to_device(const Values& values, const TensorSpec& spec, Layout layout) const;
  Values to_host(const void* data, const TensorSpec& spec, Layout layout) const;
  Layout wanted(size_t input) const;
  void use_parameters();

  LayerCase case_;
  std::unique_ptr<Device> own_device_;
  Device* device_;
  Configured<Layer> layer_;
  std::unique_ptr<PreparedLayer> kernel_;
  LayerArguments args_;
  std::vector<DeviceBytes> held_;  // memory of the last forward call
  Array<float> scratch_;
  Array<uint64_t> step_;
};

}  // namespace dtrain::test
