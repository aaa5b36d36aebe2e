// Whole plans: their gradients, when those are ready, and what of a step reaches them.
#include "nn/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "layer_harness.h"
#include "nn_support.h"

namespace dtrain {
namespace {

constexpr int64_t kBatch = 4;

/// Branches, a value that two read, statistics, a frozen layer, and an output that no loss looks at.
constexpr const char* kModel = R"(
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

/// A graph's plan for training by the first output, over devices (the slots), with everything that it reads
/// and writes.
class PlanRun {
 public:
  explicit PlanRun(test::Device& on, const std::string& model = kModel)
      : PlanRun({&on}, good_graph(model), {}) {}
  /// `slots`: of each node; empty where all are on the first.
  PlanRun(std::vector<test::Device*> on, Graph made, std::vector<int> slots_of_nodes)
      : devices(std::move(on)),
        slots(std::move(slots_of_nodes)),
        graph(std::move(made)),
        layout(graph),
        plan(graph, layout, heads(), ops(), slots, {Plan::Purpose::training, kBatch}) {
    values.resize(static_cast<size_t>(layout.size()));
    initialize(graph, layout, 1, values.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] += 0.1f * std::sin(static_cast<float>(i));
    values = devices[0]->exact(values);
  }

  /// A frame in memory of its own.
  class Microbatch {
   public:
    /// `seed`: of its samples.
    Microbatch(const PlanRun& run, float loss_scale, uint64_t seed) : run_(run), frame(run.plan) {
      std::vector<SlotArrays> arrays;
      for (size_t slot = 0; slot < run.devices.size(); ++slot) {
        const test::Device& device = *run.devices[slot];
        Memory m;
        m.arena = device.memory(run.plan.arena_bytes(static_cast<int>(slot)));
        m.values = device.array(run.values);
        m.weights = device.typed(run.values);
        m.totals = device.array(std::vector<double>(Plan::count_totals(run.heads())));
        m.state = device.array(std::vector<StepState>{{.now = {}, .gradient = {.loss_scale = loss_scale}}});
        m.gradients =
            device.array(Values(static_cast<size_t>(run.layout.with_gradient()), PlanRun::kUntouched));
        const bool copied = device.math.type != DType::float32;
        const auto* floats = reinterpret_cast<const std::byte*>(m.values.data());
        arrays.push_back({.arena = reinterpret_cast<std::byte*>(m.arena.data()),
                          .values = m.values.data(),
                          .weights = copied ? static_cast<const std::byte*>(m.weights.data()) : floats,
                          .gradients = m.gradients.data(),
                          .totals = m.totals.data(),
                          .state = m.state.data()});
        memory_.push_back(std::move(m));
      }
      frame.bind(arrays);
      load(seed);
    }

    /// Each parameter's from the slot of the layer whose it is.
    Values gradients() const {
      Values all = memory_[0].gradients.read();
      for (const ParameterSlice& slice : run_.layout.slices()) {
        const size_t slot =
            run_.slots.empty() ? 0 : static_cast<size_t>(run_.slots[static_cast<size_t>(slice.node)]);
        if (slot == 0 || slice.offset >= run_.layout.with_gradient()) continue;
        const Values its = memory_[slot].gradients.read();
        std::copy_n(its.begin() + slice.offset, slice.elements(), all.begin() + slice.offset);
      }
      return all;
    }
    double total() const {
      double sum = 0;
      for (const Memory& m : memory_) sum += m.totals.read()[0];
      return sum;
    }

   private:
    struct Memory {
      test::Array<float> arena, values, gradients;
      test::TypedArray weights;
      test::Array<double> totals;
      test::Array<StepState> state;
    };

    void load(uint64_t seed) {
      REQUIRE(frame.columns().size() == 2);
      const View &samples = frame.columns()[0], &classes = frame.columns()[1];
      const auto context_of = [&](size_t column) -> Context& {
        const PlanBuffer& buffer =
            run_.plan.buffers()[static_cast<size_t>(run_.plan.columns()[column].buffer)];
        return run_.devices[static_cast<size_t>(buffer.slot)]->context();
      };
      const Values pixels = spread_values(samples.elements(), -1, 1, static_cast<int>(seed));
      const auto bytes = test::bytes_of_values(pixels, run_.devices[0]->math.type);
      context_of(0).copy_to_device(samples.data, bytes.data(), bytes.size());
      std::vector<int32_t> numbers = {2, 0, 4, 1};
      std::rotate(numbers.begin(), numbers.begin() + static_cast<long>(seed % 4), numbers.end());
      context_of(1).copy_to_device(classes.data, numbers.data(), numbers.size() * sizeof(int32_t));
    }

    const PlanRun& run_;
    std::vector<Memory> memory_;

   public:
    Frame frame;
  };

  /// on_ready is given the gradients as they are by then.
  using OnReady = std::function<void(int64_t end, const Values& gradients)>;
  void run(const StepInfo& info = kStep, float loss_scale = 1, const OnReady& on_ready = nullptr,
           uint64_t seed = 3) {
    Microbatch microbatch(*this, loss_scale, seed);
    plan.run(microbatch.frame, info, [&](int64_t end) {
      if (on_ready) on_ready(end, microbatch.gradients());
    });
    gradients = microbatch.gradients();
    total = microbatch.total();
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

  /// Differences of the loss, for some elements of every trained parameter.
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

  static constexpr float kUntouched = 12345;
  static constexpr StepInfo kStep{.seed = 1, .first_sample = 0, .global_batch = kBatch};
  std::vector<test::Device*> devices;
  std::vector<int> slots;
  Graph graph;
  ParameterLayout layout;
  Plan plan;
  Values values, gradients;
  double total = 0;

 private:
  std::vector<Ops*> ops() const {
    std::vector<Ops*> all;
    for (const test::Device* device : devices) all.push_back(&device->ops());
    return all;
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
};

/// Another device like this one.
std::unique_ptr<test::Device> one_more(const test::Device& device) {
  return device.is_gpu() ? test::gpu_device(device.math) : test::cpu_device();
}

/// The same bits, but where a GPU may add in another order.
void check_same(const test::Device& device, const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    if (!device.is_gpu() || device.math.deterministic)
      CHECK(found[i] == expected[i]);
    else
      CHECK(std::abs(found[i] - expected[i]) <= device.tolerance(1e-5) * (1 + std::abs(expected[i])));
  }
}

int node_named(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].name == name) return static_cast<int>(i);
  FAIL("no node " << name);
  return 0;
}

/// Two halves of the last axis.
class Halves final : public Layer {
 public:
  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs, const ReportError&) const override {
    TensorSpec half{{}, inputs[0].shape, DType::float32};
    half.shape[half.shape.rank() - 1] /= 2;
    return {half, half};
  }
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<Prepared>(request);
  }
  std::string keras_class() const override { return "Halves"; }
  Json keras_config() const override { return Json::object(); }

 private:
  class Prepared final : public PreparedLayer {
   public:
    explicit Prepared(const LayerRequest& request)
        : context_(request.ops.context()),
          rows_(request.batch),
          units_(request.outputs[0].shape.elements()) {}
    void forward(const LayerArguments& args) override {
      for (int64_t row = 0; row < rows_; ++row)
        for (size_t half = 0; half < 2; ++half)
          copy(args.outputs[half], row, args.inputs[0], 2 * row + static_cast<int64_t>(half));
    }
    void backward(const LayerArguments& args) override {
      for (int64_t row = 0; row < rows_; ++row)
        for (size_t half = 0; half < 2; ++half) {
          const int64_t to = 2 * row + static_cast<int64_t>(half);
          if (args.diff_outputs[half])
            copy(args.diff_inputs[0], to, args.diff_outputs[half], row);
          else
            context_.enqueue_zero(at(args.diff_inputs[0], to), bytes());
        }
    }

   private:
    size_t bytes() const { return static_cast<size_t>(units_) * sizeof(float); }
    float* at(void* array, int64_t row) const { return static_cast<float*>(array) + row * units_; }
    void copy(void* to, int64_t to_row, const void* from, int64_t from_row) {
      context_.enqueue_copy(at(to, to_row), at(const_cast<void*>(from), from_row), bytes());
    }
    Context& context_;
    int64_t rows_, units_;
  };
};

}  // namespace

DEVICE_TEST_CASE("gradients are reported in prefixes, and are what they will be by then") {
  PlanRun run(device);
  std::vector<std::pair<int64_t, Values>> ready;
  run.run({.seed = 1, .first_sample = 0, .global_batch = kBatch}, 1,
          [&](int64_t end, const Values& gradients) { ready.emplace_back(end, gradients); });
  // The dense layers, the normalisations and the first convolution.
  CHECK(ready.size() >= 5);
  int64_t before = 0;
  for (const auto& [end, gradients] : ready) {
    CAPTURE(end);
    CHECK(end > before);
    before = end;
    CHECK(end <= run.layout.trained());
    CHECK(std::equal(gradients.begin(), gradients.begin() + static_cast<long>(end), run.gradients.begin()));
  }
  // The last one is all of them: what is left is padding.
  for (const ParameterSlice& slice : run.layout.slices())
    if (slice.offset < run.layout.trained()) CHECK(slice.offset + slice.elements() <= before);
  // And not everything was there before everything was ready.
  CHECK(ready.front().first < before);
}

DEVICE_TEST_CASE("a run writes the gradient of everything that is trained, and nothing else") {
  PlanRun run(device);
  run.run();
  Values expected(run.gradients.size(), PlanRun::kUntouched);
  for (const ParameterSlice& slice : run.layout.slices()) {
    if (slice.offset >= run.layout.with_gradient()) continue;
    for (int64_t i = 0; i < slice.elements(); ++i) expected[static_cast<size_t>(slice.offset + i)] = 0;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK((run.gradients[i] == PlanRun::kUntouched) == (expected[i] == PlanRun::kUntouched));
    CHECK(!std::isnan(run.gradients[i]));
  }
  for (const char* name : {"kernel", "bias"}) {
    const Values none = run.gradient("apart", name);
    CHECK(none == Values(none.size()));
    const Values some = run.gradient("classes", name);
    CHECK(some != Values(some.size()));
  }
}

DEVICE_TEST_CASE("the loss scale multiplies gradients, and not statistics") {
  PlanRun run(device);
  run.run();
  const Values plain = run.gradients;
  const double total = run.total;
  run.run({.seed = 1, .first_sample = 0, .global_batch = kBatch}, 8);
  CHECK(run.total == doctest::Approx(total));
  for (int64_t i = 0; i < run.layout.with_gradient(); ++i) {
    const float found = run.gradients[static_cast<size_t>(i)], one = plain[static_cast<size_t>(i)];
    if (one == PlanRun::kUntouched) continue;
    CAPTURE(i);
    // A power of two: little is rounded otherwise.
    const double expected =
        i < run.layout.trained() ? 8.0 * static_cast<double>(one) : static_cast<double>(one);
    CHECK(std::abs(static_cast<double>(found) - expected) <= 1e-3 + 1e-3 * std::abs(expected));
  }
}

DEVICE_TEST_CASE("gradients and statistics are a microbatch's share of the global batch's") {
  PlanRun run(device);
  run.run();
  const Values whole = run.gradients;
  run.run({.seed = 1, .first_sample = 0, .global_batch = 2 * kBatch});
  for (const auto& [layer, name] : {std::pair("classes", "kernel"), std::pair("normal", "moving_mean")}) {
    const ParameterSlice& slice = run.slice(layer, name);
    const Values half = run.gradient(layer, name);
    for (size_t i = 0; i < half.size(); ++i) {
      const double expected = 0.5 * static_cast<double>(whole[static_cast<size_t>(slice.offset) + i]);
      CHECK(std::abs(static_cast<double>(half[i]) - expected) <= device.tolerance(1e-6));
    }
  }
}

DEVICE_TEST_CASE("a plan's gradients are those of its loss") {
  // Differences need more digits than the others have.
  if (device.math.type != DType::float32 || device.math.tf32) return;
  PlanRun run(device);
  run.check_slopes();
}

DEVICE_TEST_CASE("a plan over two slots gives one slot's numbers") {
  PlanRun one(device);
  one.run();
  const auto other = one_more(device);
  const Graph graph = good_graph(kModel);
  // Layers with and without parameters on either side, a value that both sides read, a sum of gradients from
  // both, the loss away from the input.
  std::vector<int> slots(graph.nodes.size(), 0);
  for (const char* name : {"frozen", "rows", "hidden", "classes"})
    slots[static_cast<size_t>(node_named(graph, name))] = 1;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].is_activation_of_previous) slots[i] = slots[i - 1];
  PlanRun two({&device, other.get()}, graph, slots);
  two.run();
  CHECK(two.total == doctest::Approx(one.total).epsilon(device.tolerance(1e-6)));
  check_same(device, two.gradients, one.gradients);
  int transfers[2] = {0, 0}, instructions[2] = {0, 0};
  for (const Instruction& instruction : two.plan.instructions()) {
    ++instructions[instruction.slot];
    if (instruction.name.ends_with("transfer"))
      ++transfers[instruction.phase == Instruction::Phase::backward ? 1 : 0];
  }
  CHECK(instructions[0] > 5);
  CHECK(instructions[1] > 5);
  CHECK(transfers[0] >= 3);
  CHECK(transfers[1] >= 3);
  for (const Instruction& instruction : one.plan.instructions())
    CHECK_FALSE(instruction.name.ends_with("transfer"));
}

DEVICE_TEST_CASE("several microbatches are under way at once") {
  PlanRun run(device);
  std::vector<Values> expected;
  for (const uint64_t seed : {3, 4}) {
    run.run(PlanRun::kStep, 1, nullptr, seed);
    expected.push_back(run.gradients);
  }
  CHECK(expected[0] != expected[1]);
  PlanRun::Microbatch first(run, 1, 3), second(run, 1, 4);
  for (PlanRun::Microbatch* microbatch : {&first, &second}) microbatch->frame.set_step(PlanRun::kStep);
  const auto call = [&](PlanRun::Microbatch& microbatch, bool backward) {
    for (const Instruction& instruction : run.plan.instructions())
      if ((instruction.phase == Instruction::Phase::backward) == backward) instruction.call(microbatch.frame);
  };
  call(first, false);
  call(second, false);
  call(first, true);
  call(second, true);
  check_same(device, first.gradients(), expected[0]);
  check_same(device, second.gradients(), expected[1]);
}

DEVICE_TEST_CASE("several layers have one parameter, and its gradient is the sum of theirs") {
  const std::string model = R"(
inputs: {x: [6]}
layers:
  - dense: {name: a, units: 6, activation: tanh}
  - dense: {name: b, units: 6, activation: tanh}
  - dense: {name: classes, units: 5}
)";
  Graph graph = good_graph(model);
  PlanRun apart(device, model);
  const int a = node_named(graph, "a"), b = node_named(graph, "b");
  graph.nodes[static_cast<size_t>(b)].shared_with = a;
  const auto other = one_more(device);
  for (const bool spread : {false, true}) {
    CAPTURE(spread);
    std::vector<int> slots(graph.nodes.size(), 0);
    if (spread)
      for (int i = b; i < static_cast<int>(slots.size()); ++i) slots[static_cast<size_t>(i)] = 1;
    PlanRun shared({&device, other.get()}, graph, slots);
    REQUIRE(shared.layout.slices().size() == 4);
    // Both of the layers that are apart get the shared ones' weights.
    for (const ParameterSlice& slice : apart.layout.slices()) {
      const ParameterSlice& from = shared.slice(slice.layer == "b" ? "a" : slice.layer, slice.name);
      std::copy_n(shared.values.begin() + from.offset, slice.elements(), apart.values.begin() + slice.offset);
    }
    shared.run();
    apart.run();
    CHECK(shared.total == doctest::Approx(apart.total).epsilon(device.tolerance(1e-6)));
    for (const char* name : {"kernel", "bias"}) {
      const Values sum = shared.gradient("a", name), of_a = apart.gradient("a", name),
                   of_b = apart.gradient("b", name);
      for (size_t i = 0; i < sum.size(); ++i)
        CHECK(std::abs(sum[i] - (of_a[i] + of_b[i])) <= device.tolerance(1e-6));
      CHECK(sum != of_a);
    }
  }
}

TEST_CASE("a layer has several outputs, whose gradients come back from all who read them") {
  const auto device = test::cpu_device();
  for (const bool both : {true, false}) {
    CAPTURE(both);
    Graph graph = good_graph(both ? R"(
inputs: {x: [6]}
layers:
  - dense: {name: wide, units: 8, activation: tanh}
  - dense: {name: halves, units: 4, use_bias: false}
  - multiply: {name: product, inputs: [halves, halves]}
  - dense: {name: classes, units: 5}
)"
                                  : R"(
inputs: {x: [6]}
layers:
  - dense: {name: wide, units: 8, activation: tanh}
  - dense: {name: halves, units: 4, use_bias: false}
  - dense: {name: classes, units: 5}
)");
    // No layer of the configuration has several outputs: one takes the place of a dense one.
    GraphNode& halves = graph.nodes[static_cast<size_t>(node_named(graph, "halves"))];
    halves.layer = {"halves", std::make_shared<Halves>(), {}};
    halves.parameters.clear();
    halves.outputs = halves.layer->infer({{graph.spec(halves.inputs[0])}}, nullptr);
    REQUIRE(halves.outputs.size() == 2);
    GraphNode& reader = graph.nodes[static_cast<size_t>(node_named(graph, both ? "product" : "classes"))];
    reader.inputs.back().output = 1;
    PlanRun run({device.get()}, graph, {});
    run.check_slopes();
  }
}

TEST_CASE("instructions say all that they touch, and no two buffers are at one place at one time") {
  const auto device = test::cpu_device(), other = test::cpu_device();
  Graph graph = good_graph(kModel);
  std::vector<int> slots(graph.nodes.size(), 0);
  for (size_t i = slots.size() / 2; i < slots.size(); ++i) slots[i] = 1;
  PlanRun run({device.get(), other.get()}, graph, slots);
  const auto& buffers = run.plan.buffers();
  std::vector<bool> written(buffers.size(), false);
  for (const Plan::Array& column : run.plan.columns()) written[static_cast<size_t>(column.buffer)] = true;
  int now = 0;
  for (const Instruction& instruction : run.plan.instructions()) {
    INFO(instruction.name);
    for (const int buffer : instruction.reads) CHECK(written[static_cast<size_t>(buffer)]);
    for (const int buffer : instruction.writes) written[static_cast<size_t>(buffer)] = true;
    for (const auto* touched : {&instruction.reads, &instruction.writes})
      for (const int buffer : *touched) {
        CHECK(run.plan.lifetime_of(buffer).first <= now);
        CHECK(run.plan.lifetime_of(buffer).last >= now);
      }
    ++now;
  }
  for (int a = 0; a < static_cast<int>(buffers.size()); ++a)
    for (int b = 0; b < a; ++b) {
      const PlanBuffer &x = buffers[static_cast<size_t>(a)], &y = buffers[static_cast<size_t>(b)];
      const Lifetime p = run.plan.lifetime_of(a), q = run.plan.lifetime_of(b);
      if (x.slot != y.slot || p.first < 0 || q.first < 0 || p.first > q.last || q.first > p.last) continue;
      const bool apart = run.plan.offset_of(a) + x.bytes <= run.plan.offset_of(b) ||
                         run.plan.offset_of(b) + y.bytes <= run.plan.offset_of(a);
      CHECK_MESSAGE(apart, x.name << " and " << y.name);
    }
}

}  // namespace dtrain
