// Times batch normalization, pooling and convolutions with the shapes of ResNet-50, and depthwise
// convolutions with the shapes of MobileNet and ConvNeXt: 224x224, batch 256, bfloat16.
#include <algorithm>

#include <fmt/format.h>

#include "bench.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kBatch = 256;
constexpr GpuMath kMath{.type = DType::bfloat16};

struct Images {
  int64_t extent, channels;  // `extent` is the height and the width
  int64_t elements() const { return kBatch * extent * extent * channels; }
  std::string name() const { return fmt::format("{}x{}x{}", extent, extent, channels); }
};

Buffer bytes(Bench& bench, size_t n) {
  return bench.context().allocate(std::max<size_t>(n, 1));
}

void measure_normalization(Json& rows, const Images& images) {
  Bench bench(kMath);
  const auto norm = bench.ops().batch_normalization({.batch = kBatch,
                                                     .height = images.extent,
                                                     .width = images.extent,
                                                     .channels = images.channels,
                                                     .relu = true});
  const Buffer src = bench.numbers(images.elements()), dst = bench.room(images.elements()),
               diff_dst = bench.numbers(images.elements()), diff_src = bench.room(images.elements()),
               gamma = bench.floats(images.channels), beta = bench.floats(images.channels),
               mean = bench.floats(images.channels), variance = bench.floats(images.channels),
               diff_gamma = bench.floats(images.channels), diff_beta = bench.floats(images.channels),
               diff_mean = bench.floats(images.channels), diff_variance = bench.floats(images.channels),
               saved = bytes(bench, norm->saved_bytes()), scratch = bytes(bench, norm->scratch_bytes());
  const double forward = bench.seconds([&] {
    norm->forward_training({.src = src.data(),
                            .gamma = gamma.f32(),
                            .beta = beta.f32(),
                            .dst = dst.data(),
                            .mean = mean.f32(),
                            .variance = variance.f32(),
                            .saved = saved.data(),
                            .scratch = scratch.data()});
  });
  const double backward = bench.seconds([&] {
    norm->backward({.src = src.data(),
                    .gamma = gamma.f32(),
                    .mean = mean.f32(),
                    .variance = variance.f32(),
                    .diff_dst = diff_dst.data(),
                    .diff_src = diff_src.data(),
                    .diff_gamma = diff_gamma.f32(),
                    .diff_beta = diff_beta.f32(),
                    .diff_mean = diff_mean.f32(),
                    .diff_variance = diff_variance.f32(),
                    .share = 1,
                    .saved = saved.data(),
                    .scratch = scratch.data()});
  });
  const double once = static_cast<double>(src.bytes());
  // The forward pass and the backward pass each read the images twice: the first time to compute sums, the
  // second time to compute the results.
  rows.push(row("batch norm and relu " + images.name() + " forward", forward, 3 * once, 0));
  rows.push(row("batch norm and relu " + images.name() + " backward", backward, 5 * once, 0));
}

void measure_pooling(Json& rows) {
  Bench bench(kMath);
  const Images images{114, 64};
  const PoolingSpec spec{.batch = kBatch,
                         .height = images.extent,
                         .width = images.extent,
                         .channels = images.channels,
                         .pool_height = 3,
                         .pool_width = 3,
                         .stride_height = 2,
                         .stride_width = 2,
                         .padding = {}};
  const auto pooling = bench.ops().pooling(spec);
  const Images out{spec.out_height(), images.channels};
  const Buffer src = bench.numbers(images.elements()), dst = bench.room(out.elements()),
               diff_dst = bench.numbers(out.elements()), diff_src = bench.room(images.elements()),
               saved = bytes(bench, pooling->saved_bytes()), scratch = bytes(bench, pooling->scratch_bytes());
  const double forward =
      bench.seconds([&] { pooling->forward(src.data(), dst.data(), saved.data(), scratch.data()); });
  const double backward = bench.seconds(
      [&] { pooling->backward(diff_dst.data(), diff_src.data(), saved.data(), scratch.data()); });
  const auto moved = static_cast<double>(src.bytes() + dst.bytes());
  rows.push(row("max pooling 3x3 " + images.name() + " forward", forward, moved, 0));
  rows.push(row("max pooling 3x3 " + images.name() + " backward", backward, moved, 0));
}

struct Convolved {
  Images images;
  int64_t filters, kernel, stride, padding;
  bool depthwise = false;
};

void measure_convolution(Json& rows, const Convolved& shape) {
  Bench bench(kMath);
  const int64_t p = shape.padding;
  const ConvolutionSpec spec{.batch = kBatch,
                             .height = shape.images.extent,
                             .width = shape.images.extent,
                             .channels = shape.images.channels,
                             .filters = shape.filters,
                             .kernel_height = shape.kernel,
                             .kernel_width = shape.kernel,
                             .stride_height = shape.stride,
                             .stride_width = shape.stride,
                             .padding = {p, p, p, p},
                             .depthwise = shape.depthwise,
                             .bias = true,
                             .activation = {}};
  const auto convolution = bench.ops().convolution(spec);
  const Images out{spec.out_height(), shape.filters};
  const int64_t channels = shape.depthwise ? 1 : shape.images.channels;  // channels of a filter
  const int64_t weights = shape.kernel * shape.kernel * channels * shape.filters;
  const Buffer src = bench.numbers(shape.images.elements()), kernel = bench.numbers(weights, 0.05f),
               bias = bench.numbers(shape.filters), dst = bench.room(out.elements()),
               diff_dst = bench.numbers(out.elements(), 0.01f),
               diff_src = bench.room(shape.images.elements()), diff_kernel = bench.floats(weights),
               diff_bias = bench.floats(shape.filters), scratch = bytes(bench, convolution->scratch_bytes()),
               saved = bytes(bench, convolution->saved_bytes());
  const double operations =
      2.0 * static_cast<double>(out.elements()) * static_cast<double>(weights / shape.filters);
  const double moved = shape.depthwise ? static_cast<double>(src.bytes() + dst.bytes()) : 0;
  const std::string name =
      fmt::format("{}convolution {}x{}/{} {} to {} ", shape.depthwise ? "depthwise " : "", shape.kernel,
                  shape.kernel, shape.stride, shape.images.name(), shape.filters);
  const auto measure = [&](const char* direction, const std::function<void()>& work) {
    rows.push(row(name + direction, bench.seconds(work), moved, operations));
  };
  measure("forward", [&] {
    convolution->forward(src.data(), kernel.data(), bias.data(), dst.data(), saved.data(), scratch.data());
  });
  measure("by images", [&] {
    convolution->backward_data(diff_dst.data(), kernel.data(), diff_src.data(), saved.data(), scratch.data());
  });
  measure("by kernel", [&] {
    convolution->backward_filter(src.data(), diff_dst.data(), diff_kernel.f32(), diff_bias.f32(),
                                 scratch.data());
  });
}

}  // namespace

Json measure_images() {
  Json rows = Json::array();
  for (const Images& images :
       {Images{112, 64}, Images{56, 64}, Images{56, 256}, Images{28, 512}, Images{14, 1024}, Images{7, 2048}})
    measure_normalization(rows, images);
  measure_pooling(rows);
  return rows;
}

Json measure_convolutions() {
  Json rows = Json::array();
  for (const Convolved& shape :
       {Convolved{{230, 3}, 64, 7, 2, 0}, Convolved{{56, 64}, 64, 3, 1, 1}, Convolved{{56, 64}, 256, 1, 1, 0},
        Convolved{{28, 128}, 128, 3, 1, 1}, Convolved{{56, 256}, 128, 1, 2, 0},
        Convolved{{14, 256}, 256, 3, 1, 1}, Convolved{{7, 512}, 512, 3, 1, 1},
        Convolved{{112, 32}, 32, 3, 1, 1, true}, Convolved{{56, 128}, 128, 3, 2, 1, true},
        Convolved{{28, 240}, 240, 5, 1, 2, true}, Convolved{{14, 384}, 384, 7, 1, 3, true}})
    measure_convolution(rows, shape);
  return rows;
}

}  // namespace dtrain::bench
