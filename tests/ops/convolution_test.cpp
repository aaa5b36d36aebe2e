#include <array>

#include <doctest/doctest.h>

#include "ops/convolutions.h"
#include "ops/fixture.h"

namespace dtrain::test {
namespace {

void check(Device& device, const ConvolutionSpec& spec) {
  check_convolution(device, spec, *device.ops().convolution(spec));
}

/// Checks a convolution three times: for training; for training with bias, activation and plain layouts; and
/// for inference with the same options.
void check_variants(Device& device, ConvolutionSpec spec) {
  check(device, spec);
  spec.bias = spec.plain_only = true;
  spec.activation = {Activation::leaky_relu, 0.3f, false};
  check(device, spec);
  spec.training = false;
  check(device, spec);
}

}  // namespace

DEVICE_TEST_CASE("convolutions match the reference forward and backward") {
  std::vector<ConvolutionSpec> specs = {
      spec_of(1, 1, 1, 1, 1, 1, {}),              // one element wide
      spec_of(8, 1, 32, 3, 1, 1, {}),             // first layer of an MNIST network
      spec_of(9, 3, 16, 3, 1, 1, {1, 1, 1, 1}),   // first layer of a CIFAR network
      spec_of(12, 3, 64, 7, 2, 1, {2, 3, 2, 3}),  // first layer of an ImageNet network
      spec_of(8, 16, 32, 3, 2, 1, {0, 1, 0, 1}),  // "same" with a stride
      spec_of(7, 32, 32, 3, 1, 1, {1, 1, 1, 1}),  // numbers of channels that are multiples of the block size
      spec_of(8, 64, 16, 1, 2, 1, {}),            // pointwise with a stride
      spec_of(6, 24, 16, 1, 1, 1, {}),            // pointwise without a stride: a matrix product
      spec_of(7, 24, 8, 3, 1, 1, {1, 1, 1, 1}),   // blocks of 8
      spec_of(7, 5, 7, 3, 1, 1, {1, 1, 1, 1}),    // no blocks
      // Only the number of input channels is a multiple of the block size.
      spec_of(7, 16, 10, 3, 1, 1, {1, 1, 1, 1}),
      spec_of(6, 10, 16, 3, 1, 1, {}),  //
      spec_of(11, 16, 16, 3, 1, 2, {2, 2, 2, 2}),
      spec_of(11, 4, 6, 3, 1, 3, {}),
  };
  ConvolutionSpec uneven = spec_of(10, 6, 12, 2, 1, 1, {});
  uneven.kernel_width = 5;
  uneven.stride_width = 3;
  specs.push_back(uneven);
  for (ConvolutionSpec spec : specs) {
    CAPTURE(spec.channels);
    CAPTURE(spec.filters);
    CAPTURE(spec.kernel_height);
    check(device, spec);
    spec.bias = true;
    spec.plain_only = true;
    check(device, spec);
    const auto plain = device.ops().convolution(spec);
    CHECK(plain->src_layout() == Layout::plain);
    CHECK(plain->dst_layout() == Layout::plain);
  }
}

DEVICE_TEST_CASE("volume convolutions match the reference forward and backward") {
  std::vector<ConvolutionSpec> specs = {
      volume_spec_of(2, 1, 1, 1, 1, 1, 1, {}),
      volume_spec_of(5, 6, 1, 16, 3, 1, 1, {}),  // first layer of a network
      volume_spec_of(4, 5, 3, 16, 3, 1, 1, {1, 1, 1, 1, 1, 1}),
      volume_spec_of(5, 6, 16, 32, 3, 2, 1, {0, 1, 0, 1, 1, 1}),  // "same" with a stride
      // Numbers of channels that are multiples of the block size.
      volume_spec_of(3, 4, 32, 32, 3, 1, 1, {1, 1, 1, 1, 1, 1}),
      volume_spec_of(4, 5, 24, 16, 1, 1, 1, {}),  // pointwise without a stride: a matrix product
      volume_spec_of(4, 5, 12, 16, 1, 2, 1, {}),  // pointwise with a stride
      volume_spec_of(4, 5, 5, 7, 2, 1, 1, {1, 0, 1, 0, 1, 0}),  // no blocks
      volume_spec_of(6, 7, 8, 16, 3, 1, 2, {2, 2, 2, 2, 2, 2}),
      volume_spec_of(1, 5, 4, 6, 3, 1, 1, {1, 1, 1, 1, 1, 1}),  // one plane
  };
  ConvolutionSpec flat = volume_spec_of(4, 5, 6, 8, 3, 1, 1, {1, 1, 1, 1, 0, 0});
  flat.kernel_depth = 1;
  ConvolutionSpec uneven = volume_spec_of(7, 6, 3, 5, 2, 1, 1, {});
  uneven.kernel_depth = 3;
  uneven.stride_depth = 2;
  uneven.kernel_width = 4;
  uneven.stride_width = 3;
  specs.push_back(flat);
  specs.push_back(uneven);
  for (const ConvolutionSpec& spec : specs) {
    CAPTURE(spec.depth);
    CAPTURE(spec.channels);
    CAPTURE(spec.filters);
    CAPTURE(spec.kernel_depth);
    check_variants(device, spec);
  }
}

TEST_CASE("strided convolutions of one pixel stay within their scratch memory") {
  on_every_cpu([](Device& device) {
    for (const auto& [channels, groups] : std::vector<std::array<int64_t, 2>>{
             {1, 1}, {2, 1}, {3, 1}, {5, 1}, {8, 1}, {12, 1}, {16, 1}, {16, 2}, {24, 2}, {32, 4}}) {
      CAPTURE(channels);
      CAPTURE(groups);
      ConvolutionSpec spec = spec_of(14, channels, 16, 1, 2, 1, {});
      spec.groups = groups;
      spec.batch = 8;
      spec.bias = true;
      spec.plain_only = true;
      const auto convolution = device.ops().convolution(spec);
      const Floats behind(4096, 7.0f);
      const auto its =
          static_cast<size_t>((convolution->scratch_bytes() + sizeof(float) - 1) / sizeof(float));
      Floats all(its + behind.size(), 7.0f);
      const auto scratch = device.array(all);
      const auto src = device.array(random_floats(8 * 14 * spec.width * channels, 1));
      const auto dst = device.array(random_floats(8 * 7 * spec.out_width() * 16, 2));
      const auto kernel = device.array(random_floats(channels / groups * 16, 3)),
                 bias = device.array(Floats(16));
      convolution->backward_filter(src.data(), dst.data(), kernel.data(), bias.data(), scratch.data());
      convolution->backward_data(dst.data(), kernel.data(), src.data(), nullptr, scratch.data());
      convolution->forward(src.data(), kernel.data(), bias.data(), dst.data(), nullptr, scratch.data());
      const Floats after = scratch.read();
      CHECK(Floats(after.begin() + static_cast<std::ptrdiff_t>(its), after.end()) == behind);
      check(device, spec);
    }
  });
}

DEVICE_TEST_CASE("convolutions with fused bias and activation match the reference") {
  for (const ActivationSpec& activation :
       {ActivationSpec{Activation::relu, 0, false}, ActivationSpec{Activation::leaky_relu, 0.3f, false},
        ActivationSpec{Activation::tanh, 0, false}, ActivationSpec{Activation::sigmoid, 0, false},
        ActivationSpec{Activation::elu, 0.7f, false}, ActivationSpec{Activation::softsign, 0, false},
        ActivationSpec{.kind = Activation::clipped_relu, .maximum = 1.5f}}) {
    CAPTURE(static_cast<int>(activation.kind));
    for (const int64_t filters : {7, 32}) {
      ConvolutionSpec spec = spec_of(7, 16, filters, 3, 1, 1, {1, 1, 1, 1});
      spec.bias = true;
      spec.activation = activation;
      check(device, spec);
      spec.training = false;
      check(device, spec);
    }
  }
}

DEVICE_TEST_CASE("convolutions with groups match the reference forward and backward") {
  // The sizes: channels, filters, groups.
  const std::vector<std::array<int64_t, 3>> sizes = {{4, 6, 2},   {6, 4, 2},   {6, 9, 3},   {8, 8, 4},
                                                     {16, 32, 2}, {32, 32, 2}, {32, 16, 4}, {64, 64, 4},
                                                     {48, 24, 3}, {5, 5, 5},   {4, 8, 4},   {16, 16, 16}};
  for (const auto& [channels, filters, groups] : sizes) {
    CAPTURE(channels);
    CAPTURE(filters);
    CAPTURE(groups);
    std::vector<ConvolutionSpec> specs = {
        spec_of(7, channels, filters, 3, 1, 1, {1, 1, 1, 1}),
        spec_of(8, channels, filters, 3, 2, 1, {0, 1, 0, 1}),  // "same" with a stride
        spec_of(6, channels, filters, 1, 1, 1, {}),            // pointwise
        spec_of(7, channels, filters, 1, 2, 1, {}),            // pointwise with a stride
        spec_of(9, channels, filters, 2, 1, 2, {1, 0, 2, 1}),
    };
    specs.push_back(volume_spec_of(4, 5, channels, filters, 3, 1, 1, {1, 1, 1, 1, 1, 1}));
    specs.push_back(volume_spec_of(3, 4, channels, filters, 1, 2, 1, {}));
    for (ConvolutionSpec spec : specs) {
      CAPTURE(spec.depth);
      CAPTURE(spec.kernel_height);
      CAPTURE(spec.stride_height);
      spec.groups = groups;
      check_variants(device, spec);
    }
  }
}

DEVICE_TEST_CASE("depthwise convolutions match the reference") {
  for (const int64_t channels : {1, 5, 16, 32}) {
    for (const int64_t multiplier : {1, 2, 3}) {
      for (const int64_t stride : {1, 2}) {
        CAPTURE(channels);
        CAPTURE(multiplier);
        ConvolutionSpec spec = spec_of(9, channels, channels * multiplier, 3, stride, 1, {1, 1, 1, 1});
        spec.depthwise = true;
        spec.bias = stride == 1;
        check(device, spec);
      }
    }
  }
}

DEVICE_TEST_CASE("depthwise convolutions match the reference for common and uncommon kernels and strides") {
  for (const int64_t kernel : {3, 5, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      CAPTURE(kernel);
      CAPTURE(stride);
      // With stride 1, padding is symmetric. With larger strides, padding is asymmetric, as for "same".
      const int64_t padding = kernel / 2, before = stride == 1 ? padding : padding - 1;
      ConvolutionSpec spec = spec_of(10, 16, 16, kernel, stride, 1, {before, padding, before, padding});
      spec.depthwise = spec.bias = true;
      spec.activation = {kernel == 5 ? Activation::leaky_relu : Activation::relu, 0.3f, false};
      check(device, spec);
      spec.padding = {};
      spec.bias = false;
      check(device, spec);
    }
  }
  ConvolutionSpec uneven = spec_of(12, 24, 24, 2, 1, 1, {1, 0, 2, 1});
  uneven.depthwise = true;
  uneven.kernel_width = 4;
  uneven.stride_width = 2;
  uneven.dilation_height = 3;
  check(device, uneven);
  uneven.filters = 72;
  check(device, uneven);
  // In this convolution, the last tile of channels is only partly filled, and there are more pixels than one
  // block of a GPU sums. The convolution is not tested on a CPU, because oneDNN computes sums of 2,000
  // pixels in float32, and the rounding error exceeds the tolerance.
  if (!device.is_gpu()) return;
  ConvolutionSpec wide = spec_of(20, 264, 264, 3, 1, 1, {1, 1, 1, 1});
  wide.depthwise = true;
  wide.batch = 5;
  check(device, wide);
}

// Does not run on a CPU, where oneDNN's relu fused with a convolution turns NaN into 0.
TEST_CASE("on a GPU: convolutions with relu keep NaN" * doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    ConvolutionSpec square = spec_of(5, 8, 8, 3, 1, 1, {1, 1, 1, 1}), depthwise = square;
    depthwise.depthwise = true;
    for (ConvolutionSpec spec : {square, depthwise, spec_of(5, 8, 8, 1, 1, 1, {})}) {
      CAPTURE(spec.depthwise);
      CAPTURE(spec.kernel_height);
      spec.bias = spec.plain_only = true;
      spec.activation.kind = Activation::relu;
      const auto convolution = device.ops().convolution(spec);
      const auto image = spec.height * spec.width * 8;
      Floats values = device.random(spec.batch * image, 1);
      std::fill_n(values.begin() + image, image, NAN);  // sets the second of three images to NaN
      const TypedArray src = device.typed(values), kernel = device.typed(device.random(9 * 8 * 8, 2)),
                       bias = device.typed(device.random(8, 3)), dst = device.typed(values.size());
      const auto scratch = device.memory(convolution->scratch_bytes()),
                 saved = device.memory(convolution->saved_bytes());
      convolution->forward(src.data(), kernel.data(), bias.data(), dst.data(), saved.data(), scratch.data());
      const Floats found = dst.read();
      for (size_t i = 0; i < found.size(); ++i)
        CHECK(std::isnan(found[i]) == (static_cast<int64_t>(i) / image == 1));
    }
  });
}

}  // namespace dtrain::test
