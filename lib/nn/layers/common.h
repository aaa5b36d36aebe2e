// What many layers share: a base class that holds their options, and checks of their inputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.h"
#include "nn/layer.h"

namespace dtrain {

/// A layer that holds its options and nothing else. The class Options has `static const Schema<Options>&
/// schema()`.
template <class Options>
class LayerWith : public Layer {
 public:
  explicit LayerWith(const Options& options) : options_(options) {}

 protected:
  const Options options_;
};

/// Whether there is one input; reports an error else.
bool one_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// The only input, of float32; null after reporting an error.
const TensorSpec* float_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// The only input, of float32 and with at least one axis, which is one `purpose` ("of channels"); null after
/// reporting an error.
const TensorSpec* float_input_with_axis(std::span<const TensorSpec> inputs, std::string_view purpose,
                                        const ReportError& report_error);
/// The only input, a float32 image of [height, width, channels]; null after reporting an error.
const TensorSpec* image_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// The only input, a float32 volume of [depth, height, width, channels]; null after reporting an error.
const TensorSpec* volume_input(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// Whether there are at least two inputs, all of float32; reports an error else.
bool several_float_inputs(std::span<const TensorSpec> inputs, const ReportError& report_error);
/// The first of at least two inputs, all of float32 and one shape; null after reporting an error.
const TensorSpec* equal_float_inputs(std::span<const TensorSpec> inputs, const ReportError& report_error);

/// What Layer::infer gives where the only output has the input's shape and dtype; `input` may be null, after
/// an error was reported.
std::vector<TensorSpec> same_as(const TensorSpec* input);

/// The number of elements of a whole batch of such samples.
inline int64_t batch_elements(const LayerRequest& request, const Shape& sample) {
  return request.batch * sample.elements();
}

/// Whether backward has gradients of trained parameters to give.
inline bool trains_parameters(const LayerRequest& request) {
  return request.training && request.trainable;
}

/// The check of a size that a layer is given; its upper end keeps products of a few of them within 64 bits.
inline Check<int64_t> extent() {
  return between<int64_t>(1, 1 << 30);
}

}  // namespace dtrain
