// Measures the overhead of NCCL for a single replica. Both measurements replay the training step of the
// workload wide-mlp: one with the reductions of its gradients, and one without them.
#include "collective/collective.h"

#include <algorithm>
#include <array>
#include <deque>

#include "base/error.h"
#include "bench.h"
#include "products.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kBucket = 25'000'000 / sizeof(float);

/// Matrix products, gradient reductions and the update, in the order of a training step.
class Step {
 public:
  explicit Step(Bench& bench)
      : bench_(bench),
        layers_(wide_mlp(bench)),
        weights_(bench.floats(kParameters)),
        gradient_(bench.floats(kParameters, 1e-3f)),
        momentum_(bench.floats(kParameters, 1e-3f)),
        velocity_(bench.context().allocate(size_t{kParameters} * sizeof(float))),
        copy_(bench.room(kParameters)),
        state_(bench.context().allocate(sizeof(StepState))) {
    const StepState state;
    bench.context().copy_to_device(state_.data(), &state, sizeof state);
  }

  /// Enqueues the step. If `group` is not null, the step also reduces the gradients.
  void run(DeviceCollective* group) {
    for (DenseProducts& layer : layers_) layer.forward();
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      layer->by_kernel();
      if (group) sum(*group, layer->diff_kernel());
      if (layer->has_by_input()) layer->by_input();
    }
    if (group) group->join();
    const std::array slots{momentum_.f32(), velocity_.f32()};
    bench_.ops().update(math::Adam{0.9, 0.999, 1e-7f}, {.state = static_cast<const StepState*>(state_.data()),
                                                        .weights = weights_.f32(),
                                                        .gradient = gradient_.f32(),
                                                        .slots = slots,
                                                        .weights_copy = copy_.data(),
                                                        .n = kParameters});
  }

 private:
  static void sum(DeviceCollective& group, const Buffer& gradient) {
    const auto n = static_cast<int64_t>(gradient.bytes() / sizeof(float));
    for (int64_t i = 0; i < n; i += kBucket) group.all_reduce(gradient.f32() + i, std::min(kBucket, n - i));
  }

  Bench& bench_;
  std::deque<DenseProducts> layers_;
  Buffer weights_, gradient_, momentum_, velocity_, copy_, state_;
};

}  // namespace

Json measure_collective() {
  if (!nccl_available()) throw Error("NCCL is not available");
  Bench bench({.type = DType::bfloat16});
  Step step(bench);
  std::array<Context*, 1> contexts{&bench.context()};
  const auto groups = make_nccl_group(contexts, single_process());
  const auto captured = [&](DeviceCollective* group) {
    step.run(group);  // runs once, for the lazy initialization of libraries
    auto replay = bench.context().capture([&] { step.run(group); });
    if (!replay) throw Error("DTRAIN_CUDA_GRAPHS=0 disables replays, which this benchmark needs");
    return replay;
  };
  // The graphs must be destroyed before `groups`, because the destructor of a group waits for the graphs that
  // use it.
  const auto alone = captured(nullptr), summed = captured(groups[0].get());
  const auto without = [&] { alone->run(); };
  const auto with = [&] { summed->run(); };
  Json rows = Json::array();
  // Alternates between the two measurements, because the clock rate of a GPU drops as it warms up.
  for (int round = 1; round <= 3; ++round) {
    const std::string suffix = ", round " + std::to_string(round);
    rows.push(row("step without NCCL" + suffix, bench.seconds(without), 0, 0));
    rows.push(row("step with NCCL" + suffix, bench.seconds(with), 0, 0));
  }
  groups[0]->check();
  const Buffer all = bench.floats(kParameters);
  const double reducing = bench.seconds([&] {
    groups[0]->all_reduce(all.f32(), kParameters);
    groups[0]->join();
  });
  rows.push(row("all-reduce alone", reducing, 0, 0));
  return rows;
}

}  // namespace dtrain::bench
