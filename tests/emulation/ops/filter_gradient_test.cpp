// What cuDNN may have no engine for on a GPU, so that it is asked of the emulation alone.
#include "ops/convolutions.h"

namespace dtrain::test {
namespace {

/// The gradient of a filter's one channel, where all images and gradients are the same numbers.
Floats filter_gradient(const Device& device, const ConvolutionSpec& spec, float src, float diff_dst) {
  const int64_t weights = spec.kernel_height * spec.kernel_width * spec.channels * spec.filters;
  const auto convolution = device.ops().convolution(spec);
  const auto scratch = device.memory(convolution->scratch_bytes());
  const TypedArray images =
      device.typed(Floats(static_cast<size_t>(spec.batch * spec.height * spec.width * spec.channels), src));
  const TypedArray gradients = device.typed(Floats(
      static_cast<size_t>(spec.batch * spec.out_height() * spec.out_width() * spec.filters), diff_dst));
  const auto diff_kernel = device.floats(static_cast<size_t>(weights));
  convolution->backward_filter(images.data(), gradients.data(), diff_kernel.data(), nullptr, scratch.data());
  return diff_kernel.read();
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("filters' gradients are float32's, where cuDNN has an engine that gives them so") {
    for (const DType type : {DType::bfloat16, DType::float16}) {
      CAPTURE(static_cast<int>(type));
      const auto device = gpu_device({.type = type});
      ConvolutionSpec spec = spec_of(9, 1, 1, 3, 1, 1, {});
      spec.training = true;
      // More than float16 holds, and more digits than either type has.
      const double products = static_cast<double>(spec.batch * spec.out_height() * spec.out_width());
      CHECK(filter_gradient(*device, spec, 32, 33) == Floats(9, static_cast<float>(products * 32 * 33)));
    }
  }
}

}  // namespace dtrain::test
