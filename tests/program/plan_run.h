// Runs a training plan on one device or several, with all memory that it reads and writes.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "program/execute.h"
#include "support/graphs.h"
#include "support/layer_run.h"

namespace dtrain::test {

inline constexpr int64_t kBatch = 4;

/// A model with branches, a value with two readers, statistics, a frozen layer, and an output without a loss.
inline constexpr const char* kModel = R"(
inputs: {image: [6, 6, 3]}
layers:
  - conv2d: {name: first, filters: 8, kernel_size: 3, padding: same, activation: tanh}
  - batch_normalization: {name: normal}
  - conv2d: {name: frozen, filters: 8, kernel_size: 1, trainable: false}
  - add: {name: sum, inputs: [frozen, first]}
  - layer_normalization: {name: rows}
  - flatten: {}
  - dense: {name: hidden, units: 7, activation: sigmoid}
  - dense: {name: classes, units: 5}
  - dense: {name: apart, units: 3, inputs: hidden}
outputs: [classes, apart]
)";

/// A training plan for a graph whose first output has a loss, and all memory that the plan reads and writes.
/// Each device is a slot.
class PlanRun {
 public:
  explicit PlanRun(test::Device& on, const std::string& model = kModel, Collective* replicas = nullptr,
                   const PlanOptions& options = {})
      : PlanRun({&on}, graph_from(model), {}, replicas, options) {}
  /// `slots_of_nodes` has the slot of each node. If it is empty, all nodes are on slot 0.
  PlanRun(std::vector<test::Device*> on, Graph made, std::vector<int> slots_of_nodes,
          Collective* replicas = nullptr, PlanOptions options = {})
      : devices(std::move(on)),
        slots(std::move(slots_of_nodes)),
        graph(std::move(made)),
        model_layout(graph, slots, static_cast<int>(devices.size())),
        layout(model_layout.whole()),
        plan(graph, model_layout, heads(), ops(), slots, {Plan::Purpose::training, kBatch},
             with_replicas(options, replicas)) {
    values.resize(static_cast<size_t>(layout.size()));
    initialize(graph, layout, 1, values.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] += 0.1f * std::sin(static_cast<float>(i));
    values = devices[0]->exact(values);
  }

  /// A frame with separate memory.
  class Microbatch {
   public:
    /// `seed` generates the samples. If `before` is not empty, the gradients of the microbatch are added to
    /// it.
    Microbatch(const PlanRun& run, float loss_scale, uint64_t seed, const Values& before = {})
        : run_(run), frame(run.plan) {
      for (size_t slot = 0; slot < run.devices.size(); ++slot) {
        const test::Device& device = *run.devices[slot];
        Memory m;
        const int number = static_cast<int>(slot);
        const ArenaBytes& bytes = run.plan.arena_bytes(number);
        const Values own = run.values_on(number);
        m.arena = device.memory(bytes.frame);
        m.shared = device.memory(bytes.shared);
        m.values = device.array(own);
        m.weights = device.typed(own);
        m.totals = device.array(std::vector<double>(count_totals(run.heads())));
        m.state = device.array(std::vector<StepState>{{.now = {}, .gradient = {.loss_scale = loss_scale}}});
        m.gradients = device.array(run.gradients_on(number, before));
        const bool copied = device.math.type != DType::float32;
        const auto* floats = reinterpret_cast<const std::byte*>(m.values.data());
        frame.bind(number, {.arena = reinterpret_cast<std::byte*>(m.arena.data()),
                            .shared = reinterpret_cast<std::byte*>(m.shared.data()),
                            .values = m.values.data(),
                            .weights = copied ? static_cast<const std::byte*>(m.weights.data()) : floats,
                            .gradients = m.gradients.data(),
                            .accumulates = !before.empty(),
                            .totals = m.totals.data(),
                            .state = m.state.data()});
        memory_.push_back(std::move(m));
      }
      load(seed);
    }

    /// Makes the frame run the all-reduces of its plan. Only for plans with one slot.
    void reduce_with(ParameterUpdate* update) {
      SlotArrays arrays = frame.arrays(0);
      arrays.update = update;
      frame.bind(0, arrays);
    }

    /// Returns the gradients in the whole layout. Each parameter's gradient is read from the parameter's
    /// slot.
    Values gradients() const {
      Values all(static_cast<size_t>(run_.layout.with_gradient()), PlanRun::kUntouched);
      run_.model_layout.for_each_piece(
          {0, run_.layout.with_gradient()}, [&](const ModelLayout::Piece& piece) {
            const Values its = memory_[static_cast<size_t>(piece.slot)].gradients.read();
            std::copy_n(its.begin() + piece.on_slot.begin, piece.on_slot.size(), all.begin() + piece.at);
          });
      return all;
    }
    double total() const {
      double sum = 0;
      for (const Memory& m : memory_) sum += m.totals.read()[0];
      return sum;
    }

   private:
    struct Memory {
      test::Array<float> arena, shared, values, gradients;
      test::TypedArray weights;
      test::Array<double> totals;
      test::Array<StepState> state;
    };

    void load(uint64_t seed) {
      REQUIRE(frame.columns().size() == 2);
      const View &samples = frame.columns()[0], &classes = frame.columns()[1];
      const auto context_of = [&](size_t column) -> Context& {
        const Program& program = run_.plan.program();
        const int slot = program.values[program.columns[column].value].slot;
        return run_.devices[static_cast<size_t>(slot)]->context();
      };
      if (samples.dtype == DType::int32) {
        std::vector<int32_t> indices(static_cast<size_t>(samples.elements()));
        for (size_t i = 0; i < indices.size(); ++i)
          indices[i] = static_cast<int32_t>((i * i + seed) % kIndices);
        context_of(0).copy_to_device(samples.data, indices.data(), indices.size() * sizeof(int32_t));
      } else {
        const Values pixels = spread_values(samples.elements(), -1, 1, static_cast<int>(seed));
        const auto bytes = test::bytes_of_values(pixels, run_.devices[0]->math.type);
        context_of(0).copy_to_device(samples.data, bytes.data(), bytes.size());
      }
      std::vector<int32_t> numbers = {2, 0, 4, 1};
      std::rotate(numbers.begin(), numbers.begin() + static_cast<long>(seed % 4), numbers.end());
      context_of(1).copy_to_device(classes.data, numbers.data(), numbers.size() * sizeof(int32_t));
    }

    const PlanRun& run_;
    std::vector<Memory> memory_;

   public:
    Frame frame;
  };

  /// `gradients` are the values at the time of the call.
  using OnReady = std::function<void(int64_t end, const Values& gradients)>;
  void run(const StepInfo& info = kStep, float loss_scale = 1, const OnReady& on_ready = nullptr,
           uint64_t seed = 3) {
    Microbatch microbatch(*this, loss_scale, seed);
    if (on_ready)
      run_and_report(microbatch, info, on_ready);
    else
      run_all(microbatch.frame, info);
    gradients = microbatch.gradients();
    total = microbatch.total();
  }

  /// Runs the program of a plan that has only one slot. Calls on_ready after each instruction that marks
  /// gradients as ready.
  void run_and_report(Microbatch& microbatch, const StepInfo& info, const OnReady& on_ready) const {
    microbatch.frame.set_step(info);
    for (const Instruction& instruction : plan.program().instructions) {
      execute(instruction, microbatch.frame);
      if (const auto* ready = std::get_if<GradientsReady>(&instruction.work))
        on_ready(ready->end, microbatch.gradients());
    }
  }

  /// Returns the slot's parameters, in the slot's layout.
  Values values_on(int slot) const {
    Values mine(static_cast<size_t>(model_layout.on(slot).size()));
    model_layout.for_each_piece({0, layout.size()}, [&](const ModelLayout::Piece& piece) {
      if (piece.slot == slot)
        std::copy_n(values.begin() + piece.at, piece.on_slot.size(), mine.begin() + piece.on_slot.begin);
    });
    return mine;
  }

  /// Returns the slot's part of the gradients `all`, which have the whole layout, in the slot's layout. If
  /// `all` is empty, every element is kUntouched.
  Values gradients_on(int slot, const Values& all) const {
    Values mine(static_cast<size_t>(model_layout.on(slot).with_gradient()), kUntouched);
    if (all.empty()) return mine;
    model_layout.for_each_piece({0, layout.with_gradient()}, [&](const ModelLayout::Piece& piece) {
      if (piece.slot == slot)
        std::copy_n(all.begin() + piece.at, piece.on_slot.size(), mine.begin() + piece.on_slot.begin);
    });
    return mine;
  }

  const ParameterSlice& slice(const std::string& layer, const std::string& name) const {
    for (const ParameterSlice& slice : layout.slices())
      if (slice.layer == layer && slice.name == name) return slice;
    FAIL("no parameter " << layer << "/" << name);
    return layout.slices()[0];
  }
  Values gradient(const std::string& layer, const std::string& name) const {
    const ParameterSlice& place = slice(layer, name);
    const auto first = gradients.begin() + static_cast<long>(place.offset);
    return {first, first + static_cast<long>(place.elements())};
  }

  /// Checks gradients against finite differences of the loss, for some elements of every trained parameter.
  void check_slopes() {
    run();
    const Values found = gradients;
    const auto loss_with = [&](size_t i, float value) {
      const float before = values[i];
      values[i] = value;
      run();
      values[i] = before;
      return total / kBatch;
    };
    for (const ParameterSlice& slice : layout.slices()) {
      if (slice.offset >= layout.trained()) continue;
      INFO(slice.layer << "/" << slice.name);
      for (int64_t e = 0; e < slice.elements(); e += slice.elements() / 3 + 1) {
        const auto i = static_cast<size_t>(slice.offset + e);
        const float x = values[i], above = x + 1e-2f, below = x - 1e-2f;
        const double slope =
            (loss_with(i, above) - loss_with(i, below)) / (static_cast<double>(above) - below);
        CAPTURE(e);
        CHECK(std::abs(found[i] - slope) <= 1e-3 + 1e-2 * std::abs(slope));
      }
    }
  }

  std::vector<Head> heads() const {
    Diagnostics diagnostics;
    const auto loss = registry<Loss>().parse(
        parse_yaml("sparse_categorical_crossentropy: {from_logits: true}", "l.yaml", diagnostics),
        diagnostics);
    const auto target =
        loss->target(graph.spec(graph.outputs[0]), [](const std::string& m) { FAIL_CHECK(m); });
    return {{graph.outputs[0], loss.value, {}, *target}};
  }

  static constexpr float kUntouched = 12345;
  static constexpr uint64_t kIndices = 5;  // an int32 input has indices below this
  static constexpr StepInfo kStep{.seed = 1, .first_sample = 0, .global_batch = kBatch};
  std::vector<test::Device*> devices;
  std::vector<int> slots;
  Graph graph;
  ModelLayout model_layout;
  const ParameterLayout& layout;
  Plan plan;
  Values values, gradients;
  double total = 0;

 private:
  static PlanOptions with_replicas(PlanOptions options, Collective*& replicas) {
    if (replicas) options.replicas = {&replicas, 1};
    return options;
  }
  std::vector<Ops*> ops() const {
    std::vector<Ops*> all;
    for (const test::Device* device : devices) all.push_back(&device->ops());
    return all;
  }
};

/// Returns another device like this one.
inline std::unique_ptr<test::Device> one_more(const test::Device& device) {
  return device.is_gpu() ? test::gpu_device(device.math) : test::cpu_device();
}

/// Checks that the values are bit-identical, or close on a GPU that may add in another order.
inline void check_same(const test::Device& device, const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    if (!device.is_gpu() || device.math.deterministic)
      CHECK(found[i] == expected[i]);
    else
      CHECK(std::abs(found[i] - expected[i]) <= device.tolerance(1e-5) * (1 + std::abs(expected[i])));
  }
}

}  // namespace dtrain::test
