// Helpers for layers: base classes and input checks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.h"
#include "nn/layer.h"

namespace dtrain {

/// Base class of layers that store only their options. The class Options must have `static const
/// Schema<Options>& schema()`.
template <class Options>
class LayerWith : public Layer {
 public:
  explicit LayerWith(const Options& options) : options_(options) {}

 protected:
  const Options options_;
};

/// Returns whether there is exactly one input. Reports an error otherwise.
bool one_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// Returns the only input, which must be float32. Returns null after reporting an error.
const TensorSpec* float_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// Returns the only input, which must be float32 and have at least one axis. Returns null after reporting
/// an error. `purpose` describes the axis in the message ("of channels").
const TensorSpec* float_input_with_axis(std::span<const TensorSpec> inputs, std::string_view purpose,
                                        const ReportError& report_error);
/// Returns the only input, which must be a float32 image of shape [height, width, channels]. Returns null
/// after reporting an error.
const TensorSpec* image_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// Returns the only input, which must be a float32 volume of shape [depth, height, width, channels]. Returns
/// null after reporting an error.
const TensorSpec* volume_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// Returns whether there are at least two inputs and all are float32. Reports an error otherwise.
bool several_float_inputs(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// Returns the first input. There must be at least two inputs, all float32 and of the same shape. Returns
/// null after reporting an error.
const TensorSpec* equal_float_inputs(std::span<const TensorSpec> inputs, const ReportError& report_error);

/// Returns the result of Layer::infer() for an output with the input's shape and dtype; an empty vector if
/// `input` is null.
std::vector<TensorSpec> same_as(const TensorSpec* input);

/// Base class of layers with one float32 input, of any shape, and one output of the same shape.
template <class Options>
class SameShapeLayer : public LayerWith<Options> {
 public:
  using LayerWith<Options>::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input(inputs, report_error));
  }
};

/// Returns the number of elements of a batch of samples of this shape.
inline int64_t batch_elements(const LayerRequest& request, const Shape& sample) {
  return request.batch * sample.elements();
}

/// Returns whether backward computes gradients of trained parameters.
inline bool trains_parameters(const LayerRequest& request) {
  return request.training && request.trainable;
}

/// Returns the check for options whose value is a size, such as `units`. The upper limit ensures that
/// products of a few sizes do not overflow 64 bits.
inline Check<int64_t> extent() {
  return between<int64_t>(1, 1 << 30);
}

}  // namespace dtrain
