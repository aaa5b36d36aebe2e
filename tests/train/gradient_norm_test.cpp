// Tests that the gradient norm and the resulting step do not depend on how the model and its state are
// divided.
#include <bit>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/philox.h"
#include "engine/update/slot_state.h"
#include "run/placement.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// A model with parameters of many sizes. Some of its weights are frozen and have no optimizer state, and two
/// layers share weights.
constexpr auto kModel = R"(
model:
  inputs: {x: [70]}
  layers:
    - dense: {units: 131, name: first, activation: tanh}
    - batch_normalization: {name: norm}
    - dense: {units: 131, name: kept, trainable: false}
    - dense: {units: 131, name: second, activation: tanh}
    - dense: {name: again, shared_with: second}
    - dense: {units: 1, name: narrow}
    - dense: {units: 37, name: wide}
    - dense: {units: 3, name: head}
dataset: {train: {synthetic: {samples: 40, target: {classes: 3}}}}
train:
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {lamb: {learning_rate: 0.01, weight_decay: 0.1}}
  clip_norm: 0.1
  batch_size: 8
strategy: )";

float element(const ParameterSlice& slice, int64_t i) {
  const Philox random = Philox::of(11, stream_of(slice.path()));
  return std::exp2(8 * uniform01(random(0, static_cast<uint64_t>(i)).v[0]) - 4);
}

/// Returns a gradient in the given layout. The padding between the parameters is zero.
std::vector<float> gradient_of(const ParameterLayout& layout) {
  std::vector<float> gradient(static_cast<size_t>(layout.with_gradient()));
  for (const ParameterSlice& slice : layout.slices())
    for (int64_t i = 0; i < slice.elements() && slice.offset < layout.with_gradient(); ++i)
      gradient[static_cast<size_t>(slice.offset + i)] = element(slice, i);
  return gradient;
}

/// Runs the part of a step that one thread computes. The first replica contributes the whole gradient; the
/// other replicas contribute zeros.
void step(Worker& worker, SlotState& slot, const ParameterLayout& layout, const StepState& state,
          Collective& everyone) {
  slot.allocate_parameters(worker);
  slot.allocate_slots(worker);
  worker.context().copy_to_device(worker.state(), &state, sizeof(state));
  everyone.barrier();
  // The gradient also serves as the weights, so that no weight and no norm is zero.
  if (worker.rank() == 0)
    slot.store().write(kParameters, {0, layout.with_gradient()}, gradient_of(layout).data());
  everyone.barrier();
  slot.store().finish_writing(worker);
  std::vector<float> gradient = gradient_of(layout);
  if (worker.rank() > 0) gradient.assign(gradient.size(), 0.0f);
  worker.context().copy_to_device(worker.gradients(), gradient.data(), gradient.size() * sizeof(float));
  everyone.barrier();
  slot.begin(worker, true);
  if (StateShards* shards = slot.reducer().shards_of(worker)) {
    shards->begin(true);
    if (slot.bytes(worker).gradients > 0)
      shards->reduce({0, layout.with_gradient()}, worker.rank() == 0 ? worker.gradients() : nullptr);
  }
  const UpdateProgram& program = slot.program(worker.rank());
  for (const auto* part : {&program.reduction, &program.on_device, &program.on_host}) slot.run(*part, worker);
}

struct Step {
  double squares = 0;          // squared gradient norm computed by each thread
  std::vector<float> weights;  // all weights after the step
};

Step step_under(const std::string& strategy, const std::string& optimizer) {
  const RunConfig config = config_from(kModel + strategy + "\n", {"train.optimizer=" + optimizer});
  const Placement placement = config.strategy->place(workload_of(config));
  const size_t slots = placement.replicas[0].size(), replicas = placement.replicas.size();
  const ModelLayout layout(config.graph, placement.slots, static_cast<int>(slots));
  Update::Options options;
  options.gradient_rule.clip_norm = 0.1f;
  const auto everyone = make_local_group(static_cast<int>(slots * replicas), false);

  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::unique_ptr<Update>> updates;
  std::vector<std::vector<std::unique_ptr<Collective>>> groups;
  std::vector<std::unique_ptr<SlotState>> states;
  for (size_t slot = 0; slot < slots; ++slot) {
    const ParameterLayout& own = layout.on(static_cast<int>(slot));
    updates.push_back(std::make_unique<Update>(own, config.train.optimizer.value.get(), options));
    groups.push_back(make_local_group(static_cast<int>(replicas), false));
    SlotStateRequest request{.model = layout,
                             .slot = static_cast<int>(slot),
                             .update = *updates.back(),
                             .sharded = placement.sharded,
                             .bucket_bytes = 4 << 20,
                             .ranks = {0, {static_cast<int>(replicas)}},
                             .world = single_process()};
    for (size_t rank = 0; rank < replicas; ++rank) {
      workers.push_back(std::make_unique<Worker>(
          static_cast<int>(rank),
          make_cpu_context(placement.replicas[rank][slot], {available_cores()[0]}, false), GpuMath{}, own));
      request.workers.push_back(workers.back().get());
      request.replicas.push_back(groups.back()[rank].get());
      request.everyone.push_back(everyone[slot * replicas + rank].get());
    }
    states.push_back(std::make_unique<SlotState>(request));
  }
  StepState state;
  state.now = config.train.optimizer->numbers(0, 0.01);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i)
    threads.emplace_back([&, i] {
      const size_t slot = i / replicas;
      workers[i]->context().attach();
      step(*workers[i], *states[slot], layout.on(static_cast<int>(slot)), state, *everyone[i]);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : workers) CHECK(*worker->squares() == *workers[0]->squares());
  Step result{*workers[0]->squares(), std::vector<float>(static_cast<size_t>(layout.whole().trained()))};
  layout.for_each_piece({0, layout.whole().trained()}, [&](const ModelLayout::Piece& piece) {
    states[static_cast<size_t>(piece.slot)]->store().read(kParameters, piece.on_slot,
                                                          result.weights.data() + piece.at);
  });
  return result;
}

}  // namespace

TEST_CASE("gradient norms, and the steps that use them, have the same bits under every strategy") {
  // lamb needs the norm of each whole parameter. adafactor also needs the means of the rows and columns of
  // each whole parameter.
  std::string optimizer;
  SUBCASE("lamb") {
    optimizer = "{lamb: {learning_rate: 0.01, weight_decay: 0.1}}";
  }
  SUBCASE("adafactor") {
    optimizer = "{adafactor: {learning_rate: 0.01, weight_decay: 0.1}}";
  }
  CAPTURE(optimizer);
  const Step alone = step_under("{single: {device: cpu:0}}", optimizer);
  const RunConfig config = config_from(std::string(kModel) + "single\n");
  const ParameterLayout layout(config.graph);
  long double expected = 0;
  for (const ParameterSlice& slice : layout.slices())
    for (int64_t i = 0; i < slice.elements() && slice.offset < layout.trained(); ++i)
      expected += std::pow(static_cast<long double>(element(slice, i)), 2);
  CHECK(alone.squares == doctest::Approx(static_cast<double>(expected)).epsilon(1e-14));

  std::vector<std::string> strategies{
      "{placed: {layers: {first: cpu:0, second: cpu:1, wide: cpu:0, head: cpu:1}}}",
      "{placed: {layers: {first: cpu:2, norm: cpu:0, narrow: cpu:1, wide: cpu:0, head: cpu:3}}}",
      "{pipeline: {devices: [cpu:0, cpu:1], stages: [second]}}",
      "{pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: [norm, wide], schedule: gpipe}}",
      "{pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [norm, narrow, head]}}",
      "{pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [wide], replicas: 2}}",
  };
  for (const char* devices : {"[cpu:0, cpu:1]", "[cpu:0, cpu:1, cpu:2]", "[cpu:0, cpu:1, cpu:2, cpu:3]"}) {
    strategies.push_back(std::string("{mirrored: {devices: ") + devices + "}}");
    for (const char* level : {"optimizer", "gradients", "parameters"})
      strategies.push_back(std::string("{sharded: {devices: ") + devices + ", level: " + level + "}}");
  }
  for (const std::string& strategy : strategies) {
    CAPTURE(strategy);
    const Step step = step_under(strategy, optimizer);
    CHECK(std::bit_cast<uint64_t>(step.squares) == std::bit_cast<uint64_t>(alone.squares));
    CHECK(std::memcmp(step.weights.data(), alone.weights.data(), alone.weights.size() * sizeof(float)) == 0);
  }
}
