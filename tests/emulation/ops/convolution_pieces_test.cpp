// Batches that are too large for cuDNN. The emulated machine has a limit that is so low that small batches
// exceed it.
#include "ops/cuda/convolution/convolution_pieces.h"

#include <cstdlib>
#include <cuda_runtime.h>
#include <string>

#include "emulation/emulation.h"
#include "ops/convolutions.h"
#include "support/text.h"

namespace dtrain::test {
namespace {

/// Uses a separate emulated machine for the lifetime of the object.
struct OtherMachine {
  explicit OtherMachine(const emulation::Machine& machine) { restart(machine); }
  ~OtherMachine() { restart({}); }
  OtherMachine(const OtherMachine&) = delete;
  OtherMachine& operator=(const OtherMachine&) = delete;

 private:
  static void restart(const emulation::Machine& machine) {
    CHECK(emulation::restart(machine) == "");
    cudaSetDevice(0);
  }
};

std::unique_ptr<Convolution> in_pieces(Device& device, const ConvolutionSpec& spec,
                                       const cuda::PieceLimits& limits) {
  return cuda::convolution_in_pieces(
      device.ops(), spec, [&](const ConvolutionSpec& piece) { return device.ops().convolution(piece); },
      limits);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE(
      "pieces of a batch have nearly equal sizes within the limits, and begin at addresses that cuDNN can "
      "read") {
    using enum DType;
    ConvolutionSpec spec = spec_of(8, 4, 6, 3, 1, 1, {});  // 8x10x4 = 320 and 6x8x6 = 288 elements
    CHECK(cuda::images_per_piece(spec, float32) == 3);
    spec.batch = 65535;
    CHECK(cuda::images_per_piece(spec, float32) == 65535);
    spec.batch = 65536;
    CHECK(cuda::images_per_piece(spec, float32) == 32768);
    spec.batch = 7;
    CHECK(cuda::images_per_piece(spec, float32, {.images = 3}) == 3);
    CHECK(cuda::images_per_piece(spec, float32, {.elements = 320 * 6}) == 4);
    CHECK(cuda::images_per_piece(spec, float32, {.elements = 320}) == 1);
    CHECK_THROWS_AS(cuda::images_per_piece(spec, float32, {.elements = 319}), Unsupported);
    // An image has 35 elements, which take 70 bytes. A piece must end at a multiple of 16 bytes, so the
    // smallest piece has 8 images.
    spec = spec_of(5, 1, 1, 1, 1, 1, {});
    spec.batch = 100;
    CHECK(cuda::images_per_piece(spec, bfloat16, {.images = 31}) == 24);
    CHECK(cuda::images_per_piece(spec, float32, {.images = 31}) == 28);
    CHECK(cuda::images_per_piece(spec, bfloat16, {.images = 8}) == 8);
    CHECK_THROWS_WITH_AS(cuda::images_per_piece(spec, bfloat16, {.elements = 35 * 7}),
                         "cuDNN supports arrays of at most 245 elements, but even the smallest possible part "
                         "of this batch has more elements: 8 images of up to 35 elements each",
                         Unsupported);
    // The arrays would have more than 2^31 elements, but this test does not allocate them.
    spec = spec_of(222, 64, 64, 3, 1, 1, {1, 1, 1, 1});
    spec.batch = 700;
    CHECK(cuda::images_per_piece(spec, bfloat16) == 350);
    spec = spec_of(46341, 1, 1, 3, 1, 1, {});
    CHECK_THROWS_AS(cuda::images_per_piece(spec, float32), Unsupported);
  }

  TEST_CASE("convolutions in pieces give the same results as for the whole batch") {
    // With 16-bit gradients, the gradient of each piece would be rounded before it is added to the sum.
    setenv("DTRAIN_FILTER_GRADIENT", "float32", 1);
    ConvolutionSpec strided = spec_of(8, 5, 7, 3, 2, 1, {0, 1, 0, 1}),
                    fused = spec_of(7, 16, 32, 3, 1, 1, {1, 1, 1, 1});
    fused.bias = true;
    fused.activation = {Activation::leaky_relu, 0.3f, false};
    const ConvolutionSpec volume = volume_spec_of(3, 4, 4, 6, 3, 1, 1, {1, 1, 1, 1, 1, 1});
    ConvolutionSpec grouped = spec_of(7, 4, 6, 3, 1, 1, {1, 1, 1, 1});
    grouped.groups = 2;
    for (ConvolutionSpec spec : {strided, fused, volume, grouped}) {
      spec.batch = 27;
      const int64_t image = std::max(spec.src_pixels() * spec.channels, spec.dst_pixels() * spec.filters);
      const OtherMachine machine({.dnn_elements = 20 * image});
      on_every_gpu([&](Device& device) {
        for (const int64_t images : {8, 20}) {  // maximum number of images per piece
          CAPTURE(images);
          const auto convolution = in_pieces(device, spec, {.elements = images * image});
          CHECK(convolution->remarks().warning == "");
          check_convolution(device, spec, *convolution);
        }
      });
    }
    unsetenv("DTRAIN_FILTER_GRADIENT");
  }

  TEST_CASE("a batch that is too large for cuDNN is divided into pieces") {
    ConvolutionSpec spec = spec_of(2, 1, 2, 2, 1, 1, {});
    spec.batch = 65540;
    for (const DType type : {DType::float32, DType::float16}) {
      const auto device = gpu_device({.type = type});
      const auto convolution = device->ops().convolution(spec);
      CHECK(convolution->remarks().warning == "");
      check_convolution(*device, spec, *convolution);
    }
  }

  TEST_CASE("slow convolutions are reported") {
    const auto warning = [](const ConvolutionSpec& spec) {
      return gpu_device({})->ops().convolution(spec)->remarks().warning;
    };
    const ConvolutionSpec spec = spec_of(8, 3, 4, 3, 1, 1, {});
    CHECK(warning(spec) == "");
    {
      const OtherMachine machine({.dnn_elements = 100});
      CHECK(contains(warning(spec),
                     "engine 0, which is its slowest engine, for forward, data gradient, filter gradient"));
    }
    ConvolutionSpec refused = spec_of(11, 3, 4, 3, 1, 1, {});
    refused.dilation_height = 2;
    CHECK(contains(warning(refused), "no engine for filter gradient, so dtrain's own kernels"));
    ConvolutionSpec inference = refused;
    inference.training = false;
    CHECK(warning(inference) == "");
    on_every_gpu(
        [&](Device& device) { check_convolution(device, refused, *device.ops().convolution(refused)); });
  }
}

}  // namespace dtrain::test
