// Tests dtrain's convolution kernels. They are a fallback for convolutions for which cuDNN has no engine. No
// such convolution is known.
#include <doctest/doctest.h>

#include "ops/convolutions.h"
#include "ops/cuda/convolution/convolution_kernels.h"

namespace dtrain::test {
namespace {

void check(Device& device, const ConvolutionSpec& spec) {
  cuda::DirectConvolution convolution(dynamic_cast<cuda::CudaOps&>(device.ops()), spec);
  check_convolution(device, spec, convolution);
}

}  // namespace

TEST_CASE("on a GPU: convolutions without cuDNN match the reference" * doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    ConvolutionSpec uneven = spec_of(10, 4, 6, 2, 1, 1, {1, 0, 2, 1});
    uneven.kernel_width = 5;
    uneven.stride_width = 3;
    uneven.dilation_height = 2;
    ConvolutionSpec volume = volume_spec_of(5, 6, 3, 4, 3, 2, 1, {1, 0, 0, 1, 2, 1});
    volume.kernel_depth = 2;
    volume.stride_depth = 1;
    volume.dilation_depth = 3;
    ConvolutionSpec grouped = spec_of(7, 6, 9, 3, 2, 1, {0, 1, 0, 1}), grouped_volume = volume;
    grouped.groups = 3;
    grouped_volume.channels = 4;
    grouped_volume.groups = 2;
    for (ConvolutionSpec spec :
         {grouped, grouped_volume, spec_of(1, 1, 1, 1, 1, 1, {}), spec_of(9, 3, 8, 3, 1, 1, {1, 1, 1, 1}),
          spec_of(8, 6, 10, 3, 2, 1, {0, 1, 0, 1}), uneven, volume}) {
      CAPTURE(spec.channels);
      check(device, spec);
      spec.bias = true;
      spec.activation = {Activation::leaky_relu, 0.3f, false};
      check(device, spec);
    }
  });
}

}  // namespace dtrain::test
