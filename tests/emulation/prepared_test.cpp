// The GPU's prepared operations against the CPU's.
#include <vector>

#include <doctest/doctest.h>

#include "emulation/sides.h"

namespace dtrain::emulation {
namespace {

ConvolutionSpec spec_of(int64_t size, int64_t channels, int64_t filters, int64_t kernel, int64_t stride,
                        int64_t dilation, Padding2 padding) {
  ConvolutionSpec spec;
  spec.batch = 2;
  spec.height = size;
  spec.width = size + 2;
  spec.channels = channels;
  spec.filters = filters;
  spec.kernel_height = spec.kernel_width = kernel;
  spec.stride_height = spec.stride_width = stride;
  spec.dilation_height = spec.dilation_width = dilation;
  spec.padding = padding;
  spec.plain_only = true;
  return spec;
}

void check_convolution(const ConvolutionSpec& spec) {
  CAPTURE(spec.channels);
  CAPTURE(spec.filters);
  CAPTURE(spec.kernel_height);
  CAPTURE(spec.stride_height);
  const int64_t src_size = spec.batch * spec.height * spec.width * spec.channels;
  const int64_t dst_size = spec.batch * spec.out_height() * spec.out_width() * spec.filters;
  const int64_t kernel_size =
      spec.kernel_height * spec.kernel_width * spec.filters * (spec.depthwise ? 1 : spec.channels);
  for (const bool deterministic : {true, false}) {
    compare(
        [&](Side& side) {
          const auto convolution = side.ops().convolution(spec);
          CHECK(convolution->src_layout() == Layout::plain);
          void* scratch = side.scratch(convolution->scratch_bytes());
          const void* src = side.values(random_floats(src_size, 1));
          const void* kernel = side.values(random_floats(kernel_size, 2, 0.5f));
          const void* diff_dst = side.values(random_floats(dst_size, 4, 0.5f));
          convolution->forward(src, kernel, spec.bias ? side.values(random_floats(spec.filters, 3)) : nullptr,
                               side.out(dst_size), scratch);
          convolution->backward_data(diff_dst, kernel, side.out(src_size), scratch);
          convolution->backward_filter(src, diff_dst, side.out_f32(kernel_size),
                                       spec.bias ? side.out_f32(spec.filters) : nullptr, scratch);
        },
        {.tolerance = 2e-5f, .shifts = {0}, .deterministic = deterministic, .rounding = 4});
  }
}

}  // namespace

TEST_CASE("emulated ops: matrix products") {
  constexpr int64_t kExtents[][3] = {{1, 1, 1}, {5, 3, 7}, {64, 10, 30}, {33, 65, 17}, {8, 16, 32}};
  for (const auto& [m, n, k] : kExtents) {
    for (int variant = 0; variant < 8; ++variant) {
      MatmulSpec spec{.m = m, .n = n, .k = k, .activation = {}};
      spec.transpose_a = (variant & 1) != 0;
      spec.transpose_b = (variant & 2) != 0;
      spec.float32_result = variant >= 4 && variant < 6;
      spec.bias = variant != 1 && !spec.float32_result;
      if (variant == 2 || variant == 7) spec.activation.kind = Activation::relu;
      if (variant == 3) spec.activation.kind = Activation::tanh;
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(variant);
      compare(
          [&, m = m, n = n, k = k](Side& side) {
            const auto matmul = side.ops().matmul(spec);
            void* scratch = side.scratch(matmul->scratch_bytes());
            const void* a = side.values(random_floats(m * k, 1));
            const void* b = side.values(random_floats(k * n, 2));
            const void* bias = spec.bias ? side.values(random_floats(n, 3)) : nullptr;
            void* c = spec.float32_result ? side.out_f32(m * n) : side.out(m * n);
            for (int i = 0; i < 2; ++i) matmul->run(a, b, bias, c, scratch);
          },
          {.shifts = {0}, .rounding = 6});
    }
  }
}

TEST_CASE("emulated ops: convolutions") {
  for (ConvolutionSpec spec : {
           spec_of(1, 1, 1, 1, 1, 1, {}),
           spec_of(6, 1, 8, 3, 1, 1, {}),
           spec_of(9, 3, 16, 3, 1, 1, {1, 1, 1, 1}),
           spec_of(8, 3, 6, 7, 2, 1, {2, 3, 2, 3}),
           spec_of(8, 16, 10, 3, 2, 1, {0, 1, 0, 1}),
           spec_of(8, 8, 16, 1, 2, 1, {}),
           spec_of(5, 8, 12, 1, 1, 1, {}),
           spec_of(9, 4, 6, 3, 1, 2, {2, 2, 2, 2}),
       }) {
    check_convolution(spec);
    spec.bias = true;
    spec.activation = {Activation::relu, 0, false};
    check_convolution(spec);
  }
}

TEST_CASE("emulated ops: depthwise convolutions") {
  for (const int64_t channels : {1, 5, 16}) {
    for (const int64_t multiplier : {1, 3}) {
      ConvolutionSpec spec = spec_of(7, channels, channels * multiplier, 3, 2, 1, {0, 1, 0, 1});
      spec.depthwise = true;
      spec.bias = true;
      spec.activation = {Activation::elu, 0.7f, false};
      check_convolution(spec);
    }
  }
}

TEST_CASE("emulated ops: pooling") {
  for (const auto kind : {PoolingSpec::Kind::max, PoolingSpec::Kind::average}) {
    for (const int64_t channels : {1, 6, 16, 40}) {
      for (const int variant : {0, 1, 2}) {
        PoolingSpec spec;
        spec.kind = kind;
        spec.batch = 2;
        spec.height = 9;
        spec.width = 7;
        spec.channels = channels;
        spec.pool_height = variant == 2 ? 3 : 2;
        spec.pool_width = variant == 0 ? 2 : 3;
        spec.stride_height = variant == 1 ? 1 : 2;
        spec.stride_width = 2;
        if (variant > 0) spec.padding = {1, 1, 0, 1};
        CAPTURE(channels);
        CAPTURE(variant);
        const int64_t src_size = 2 * 9 * 7 * channels;
        const int64_t dst_size = 2 * spec.out_height() * spec.out_width() * channels;
        compare([&](Side& side) {
          const auto pooling = side.ops().pooling(spec);
          void* scratch = side.scratch(pooling->scratch_bytes());
          void* saved = side.scratch(pooling->saved_bytes());
          pooling->forward(side.values(random_floats(src_size, 1)), side.out(dst_size), saved, scratch);
          pooling->backward(side.values(random_floats(dst_size, 2)), side.out(src_size), saved, scratch);
        });
      }
    }
  }
}

TEST_CASE("emulated ops: batch normalisation") {
  for (const int64_t channels : {1, 7, 32, 40}) {
    for (int variant = 0; variant < 8; ++variant) {
      BatchNormalizationSpec spec;
      spec.batch = 3;
      spec.height = variant & 1 ? 1 : 5;
      spec.width = variant & 1 ? 1 : 4;
      spec.channels = channels;
      spec.scale = spec.center = (variant & 2) != 0;
      spec.relu = (variant & 4) != 0;
      CAPTURE(channels);
      CAPTURE(variant);
      const int64_t n = spec.batch * spec.height * spec.width * channels;
      compare(
          [&](Side& side) {
            const auto norm = side.ops().batch_normalization(spec);
            void* scratch = side.scratch(norm->scratch_bytes());
            void* saved = side.scratch(norm->saved_bytes());
            const void* src = side.values(random_floats(n, 1));
            const float* gamma = spec.scale ? side.f32(random_floats(channels, 2)) : nullptr;
            const float* beta = spec.center ? side.f32(random_floats(channels, 3)) : nullptr;
            float *mean = side.out_f32(channels), *variance = side.out_f32(channels);
            norm->forward_training(src, gamma, beta, side.out(n), mean, variance, saved, scratch);
            norm->backward(src, gamma, mean, variance, side.values(random_floats(n, 4)), side.out(n),
                           spec.scale ? side.out_f32(channels) : nullptr,
                           spec.center ? side.out_f32(channels) : nullptr, saved, scratch);
            norm->forward_inference(src, gamma, beta, mean, variance, side.out(n), scratch);
          },
          {.tolerance = 1e-4f, .shifts = {0}, .rounding = 12});
    }
  }
}

}  // namespace dtrain::emulation
