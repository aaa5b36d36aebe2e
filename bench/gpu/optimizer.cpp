// Times the update of all parameters, compared to a plain memory copy.
#include <array>

#include "bench.h"

namespace dtrain::bench {
namespace {

constexpr double kFloats = static_cast<double>(kParameters) * sizeof(float);

void measure_update(Json& rows, const GpuMath& math) {
  Bench bench(math);
  const Buffer weights = bench.floats(kParameters), gradient = bench.floats(kParameters, 1e-3f),
               momentum = bench.floats(kParameters, 1e-3f),
               velocity = bench.context().allocate(size_t{kParameters} * 4);
  const bool copies = math.type != DType::float32;
  const Buffer copy = copies ? bench.room(kParameters) : Buffer();
  const Buffer state = bench.context().allocate(sizeof(StepState));
  StepState host;
  host.now.learning_rate = 1e-4;
  bench.context().copy_to_device(state.data(), &host, sizeof host);
  const std::array slots{momentum.f32(), velocity.f32()};
  const OptimizerRule adam = math::Adam{0.9, 0.999, 1e-7f};
  const double seconds = bench.seconds([&] {
    bench.ops().update(adam, {.state = static_cast<const StepState*>(state.data()),
                              .weights = weights.f32(),
                              .gradient = gradient.f32(),
                              .slots = slots,
                              .weights_copy = copy.data(),
                              .n = kParameters});
  });
  // The update reads the weights, the gradient and both optimizer slots, and writes the weights and both
  // slots.
  rows.push(row("adam" + std::string(copies ? " with bf16 copy" : ""), seconds,
                7 * kFloats + (copies ? kFloats / 2 : 0), 0));
}

}  // namespace

Json measure_optimizer() {
  Json rows = Json::array();
  {
    Bench bench({});
    const Buffer from = bench.floats(kParameters), to = bench.context().allocate(from.bytes());
    const double copying =
        bench.seconds([&] { bench.context().enqueue_copy(to.data(), from.data(), from.bytes()); });
    rows.push(row("copy", copying, 2 * kFloats, 0));
    const Buffer squares = bench.context().allocate(sizeof(double));
    const double summing = bench.seconds(
        [&] { bench.ops().sum_of_squares(from.f32(), static_cast<double*>(squares.data()), kParameters); });
    rows.push(row("sum of squares", summing, kFloats, 0));
  }
  measure_update(rows, {});
  measure_update(rows, {.type = DType::bfloat16});
  return rows;
}

}  // namespace dtrain::bench
