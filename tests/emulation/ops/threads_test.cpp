// The number of GPU threads per operation. With too few threads, most of the GPU would be idle.
#include "emulation/emulation.h"
#include "ops/losses.h"

namespace dtrain::test {
namespace {

template <class Run>
int64_t threads_of(const Run& run) {
  emulation::take_counts();
  run();
  return emulation::take_counts().threads;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("at least one warp computes each long row of a loss or of counts") {
    const auto device = gpu_device({.deterministic = true});
    const Extent extent{256, 1000};
    const TypedArray x = device->typed(distributions(extent, 1));
    const auto target = device->array(distributions(extent, 2));
    const auto total = device->array(Doubles(3 * 1000 + 1));
    CHECK(threads_of([&] {
            device->ops().row_loss({.kind = RowLossSpec::Kind::categorical_focal_crossentropy},
                                   {.prediction = x.data(),
                                    .target = view_of(target, extent),
                                    .total = total.data(),
                                    .rows = extent.rows,
                                    .columns = extent.columns});
          }) >= extent.rows * 32);
    const MetricArguments metric{.prediction = x.data(),
                                 .target = view_of(target, extent),
                                 .sums = total.data(),
                                 .rows = extent.rows,
                                 .columns = extent.columns};
    CHECK(threads_of([&] { device->ops().count({.kind = CountSpec::Kind::classes}, metric); }) >=
          extent.rows * 32);
  }

  TEST_CASE("at least one block computes each image of a global pooling") {
    const auto device = gpu_device({});
    const auto src = device->typed(random_floats(2 * 16 * 16 * 32, 1)), dst = device->typed(2 * 32);
    for (const auto kind : {PoolingSpec::Kind::max, PoolingSpec::Kind::average}) {
      PoolingSpec spec{.kind = kind, .batch = 2, .height = 16, .width = 16, .channels = 32, .padding = {}};
      spec.pool_height = spec.pool_width = 16;
      const auto pooling = device->ops().pooling(spec);
      const auto saved = device->memory(pooling->saved_bytes());
      CHECK(threads_of([&] { pooling->forward(src.data(), dst.data(), saved.data(), nullptr); }) >= 2 * 512);
    }
  }

  TEST_CASE("counts are computed by many threads even in deterministic mode") {
    const auto device = gpu_device({.deterministic = true});
    const Extent extent{10000, 8};
    const TypedArray x = device->typed(random_floats(extent.rows * extent.columns, 1));
    const auto target = device->array(random_floats(extent.rows * extent.columns, 2));
    const auto sums = device->array(Doubles(25));
    CHECK(threads_of([&] {
            device->ops().count({.kind = CountSpec::Kind::regression}, {.prediction = x.data(),
                                                                        .target = view_of(target, extent),
                                                                        .sums = sums.data(),
                                                                        .rows = extent.rows,
                                                                        .columns = extent.columns});
          }) >= 8192);
  }
}

}  // namespace dtrain::test
