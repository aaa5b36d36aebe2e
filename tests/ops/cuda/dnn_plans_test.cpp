// Tests the search for convolution plans: cuDNN searches plans for GPUs that are given by their properties.
// The tests need the library cuDNN, but neither a GPU nor a driver.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "device/cuda/check.h"
#include "ops/cuda/convolution/convolution_pieces.h"
#include "ops/cuda/convolution/dnn_convolution.h"
#include "ops/cuda/described_gpus.h"

namespace dtrain::test {
namespace {

using cuda::DnnConvolution;
using cuda::DnnDevice;

/// Returns a convolution of square images with square kernels, without padding.
ConvolutionSpec valid(int64_t batch, int64_t size, int64_t channels, int64_t filters, int64_t kernel,
                      int64_t stride = 1, int64_t dilation = 1) {
  ConvolutionSpec spec;
  spec.batch = batch;
  spec.height = spec.width = size;
  spec.channels = channels;
  spec.filters = filters;
  spec.kernel_height = spec.kernel_width = kernel;
  spec.stride_height = spec.stride_width = stride;
  spec.dilation_height = spec.dilation_width = dilation;
  return spec;
}

/// Returns the same convolution with Keras's padding "same". If the number of padding rows is odd, the
/// additional row is at the end.
ConvolutionSpec same(int64_t batch, int64_t size, int64_t channels, int64_t filters, int64_t kernel,
                     int64_t stride = 1, int64_t dilation = 1) {
  ConvolutionSpec spec = valid(batch, size, channels, filters, kernel, stride, dilation);
  const int64_t out = (size + stride - 1) / stride, extent = dilation * (kernel - 1) + 1;
  const int64_t all = std::max<int64_t>((out - 1) * stride + extent - size, 0);
  spec.padding = {all / 2, all - all / 2, all / 2, all - all / 2};
  return spec;
}

ConvolutionSpec wide() {
  ConvolutionSpec spec = valid(8, 100, 16, 16, 5);
  spec.height = spec.kernel_height = 1;
  spec.padding = {0, 0, 2, 2};
  return spec;
}

ConvolutionSpec uneven() {
  ConvolutionSpec spec = valid(3, 11, 5, 6, 3, 2, 2);
  spec.height = 10;
  spec.kernel_width = 2;
  spec.padding = {1, 2, 0, 1};
  return spec;
}

/// Returns the same convolution for cubic volumes.
ConvolutionSpec cubic(ConvolutionSpec spec) {
  spec.depth = spec.height;
  spec.kernel_depth = spec.kernel_height;
  spec.stride_depth = spec.stride_height;
  spec.dilation_depth = spec.dilation_height;
  spec.padding.front = spec.padding.top;
  spec.padding.back = spec.padding.bottom;
  return spec;
}

/// Returns convolutions that use cuDNN. (Pointwise convolutions without a stride are matrix products.)
std::vector<ConvolutionSpec> all_specs() {
  return {// ResNet-50
          valid(256, 230, 3, 64, 7, 2), same(256, 56, 64, 64, 3), valid(256, 56, 256, 128, 1, 2),
          valid(256, 56, 256, 512, 1, 2), same(256, 28, 128, 128, 3), valid(256, 28, 512, 256, 1, 2),
          valid(256, 28, 512, 1024, 1, 2), same(256, 14, 256, 256, 3), valid(256, 14, 1024, 512, 1, 2),
          valid(256, 14, 1024, 2048, 1, 2), same(256, 7, 512, 512, 3),
          // ResNet-20. With "same" and a stride of 2, one row of padding is at the end.
          same(128, 32, 3, 16, 3), same(128, 32, 16, 16, 3), same(128, 32, 16, 32, 3, 2),
          valid(128, 32, 16, 32, 1, 2), same(128, 16, 32, 32, 3), same(128, 16, 32, 64, 3, 2),
          valid(128, 16, 32, 64, 1, 2), same(128, 8, 64, 64, 3),
          // mnist-cnn
          valid(128, 28, 1, 32, 3), valid(128, 26, 32, 64, 3),
          // Transposed convolutions, with source and destination exchanged.
          same(64, 32, 64, 128, 4, 2), valid(64, 28, 32, 64, 2, 2), same(64, 28, 32, 64, 3, 2),
          // Even kernels, which also have asymmetric padding, and dilations.
          same(64, 28, 32, 32, 2), same(64, 32, 64, 64, 4), same(16, 28, 32, 32, 3, 1, 2), wide(), uneven(),
          // Few channels, odd numbers of channels, and a convolution whose extents are all 1.
          same(4, 9, 5, 7, 3), valid(8, 7, 64, 10, 7), valid(8, 17, 8, 8, 2, 5), valid(1, 1, 1, 1, 1),
          // volumes
          cubic(same(8, 32, 1, 32, 3)), cubic(same(8, 16, 32, 64, 3)), cubic(same(8, 16, 32, 64, 3, 2)),
          cubic(valid(8, 16, 64, 32, 1, 2)), cubic(same(4, 9, 5, 7, 3)),
          cubic(valid(4, 12, 16, 16, 3, 1, 2))};
}

/// All types and modes of computation.
const std::array<GpuMath, 8> kMath = {GpuMath{.type = DType::float32},
                                      {.type = DType::float32, .deterministic = true},
                                      {.type = DType::float32, .tf32 = true},
                                      {.type = DType::float32, .tf32 = true, .deterministic = true},
                                      {.type = DType::bfloat16},
                                      {.type = DType::bfloat16, .deterministic = true},
                                      {.type = DType::float16},
                                      {.type = DType::float16, .deterministic = true}};

/// Returns cuDNN's numerical notes of a plan's engine.
std::vector<cudnnBackendNumericalNote_t> notes_of(const DnnConvolution& plan) {
  cudnnBackendDescriptor_t engine = nullptr;
  int64_t count = 0;
  cuda::check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine), "an engine");
  const cuda::DnnDescriptor owner(engine);
  cuda::check(cudnnBackendGetAttribute(plan.engine().get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine),
              "a plan's engine");
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  cuda::check(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                       static_cast<int64_t>(notes.size()), &count, notes.data()),
              "an engine's notes");
  notes.resize(static_cast<size_t>(count));
  return notes;
}

bool has(const std::vector<cudnnBackendNumericalNote_t>& notes, cudnnBackendNumericalNote_t note) {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

void check_plan(const Gpu& gpu, const DnnDevice& device, const ConvolutionSpec& spec, const GpuMath& math,
                DnnConvolution::Direction direction) {
  const auto plan = DnnConvolution::find(device, math, spec, direction, gpu.workspace_bytes);
  REQUIRE(plan);
  CHECK(plan->workspace_bytes() <= DnnConvolution::most_workspace(spec, math.type, gpu.workspace_bytes));
  const auto notes = notes_of(*plan);
  CHECK_FALSE(has(notes, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
  CHECK_FALSE(has(notes, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
  if (math.deterministic) CHECK_FALSE(has(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  // Among Winograd tiles, only 4x4 is as accurate as plain sums.
  CHECK_FALSE(has(notes, CUDNN_NUMERICAL_NOTE_FFT));
  CHECK_FALSE(has(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6));
  CHECK_FALSE(has(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13));
  CHECK(has(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD) == has(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4));
  // Tensor cores would round float32 to TF32.
  if (math.type == DType::float32 && !math.tf32) CHECK_FALSE(has(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
}

}  // namespace

TEST_CASE("cuDNN has plans for convolutions that satisfy the requirements") {
  if (const std::string why = why_not(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  using enum DnnConvolution::Direction;
  for (const Gpu& gpu : kGpus) {
    CAPTURE(gpu.name);
    const DnnDevice device = DnnDevice::described(gpu.properties, gpu.capability);
    for (const ConvolutionSpec& spec : all_specs()) {
      CAPTURE(spec.depth);
      CAPTURE(spec.height);
      CAPTURE(spec.channels);
      CAPTURE(spec.filters);
      CAPTURE(spec.kernel_height);
      for (const GpuMath& math : kMath) {
        if (gpu.always_deterministic && !math.deterministic) continue;
        CAPTURE(static_cast<int>(math.type));
        CAPTURE(math.tf32);
        CAPTURE(math.deterministic);
        for (const auto direction : {forward, backward_data, backward_filter}) {
          CAPTURE(static_cast<int>(direction));
          check_plan(gpu, device, spec, math, direction);
        }
      }
    }
  }
}

TEST_CASE("batches over 2^31 elements are divided to avoid cuDNN's slowest engine") {
  if (const std::string why = why_not(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  using enum DnnConvolution::Direction;
  for (const Gpu& gpu : kGpus) {
    CAPTURE(gpu.name);
    const DnnDevice device = DnnDevice::described(gpu.properties, gpu.capability);
    for (ConvolutionSpec spec :
         {same(700, 224, 64, 64, 3), same(140000, 32, 16, 16, 3), valid(3000, 230, 3, 64, 7, 2)}) {
      CAPTURE(spec.batch);
      for (const DType type : {DType::bfloat16, DType::float16}) {
        CAPTURE(static_cast<int>(type));
        ConvolutionSpec piece = spec;
        piece.batch = cuda::images_per_piece(spec, type);
        REQUIRE(piece.batch < spec.batch);
        for (const auto direction : {forward, backward_data, backward_filter}) {
          CAPTURE(static_cast<int>(direction));
          const auto plan =
              DnnConvolution::find(device, {.type = type}, piece, direction, gpu.workspace_bytes);
          REQUIRE(plan);
          CHECK(plan->engine_index() != 0);
        }
      }
    }
  }
}

}  // namespace dtrain::test
