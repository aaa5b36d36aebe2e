// Tests plans with several slots, several concurrent microbatches, shared parameters and several outputs.
// Also tests printed plans.
#include "plan_run.h"
#include "program/operands.h"

namespace dtrain::test {
namespace {

/// A layer with two outputs: the halves of its input along the last axis.
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

DEVICE_TEST_CASE("a plan over two slots computes the same numbers as on one slot") {
  PlanRun one(device);
  one.run();
  const auto other = one_more(device);
  const Graph graph = graph_from(kModel);
  // Both slots have layers with and without parameters. A value is read on both slots, and its gradients from
  // both slots are added. The loss is not on the input's slot.
  std::vector<int> slots(graph.nodes.size(), 0);
  for (const char* name : {"frozen", "rows", "hidden", "classes"}) slots[node_named(graph, name)] = 1;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].is_activation_of_previous) slots[i] = slots[i - 1];
  PlanRun two({&device, other.get()}, graph, slots);
  two.run();
  CHECK(two.total == doctest::Approx(one.total).epsilon(device.tolerance(1e-6)));
  check_same(device, two.gradients, one.gradients);
  int transfers[2] = {0, 0}, instructions[2] = {0, 0};
  for (const Instruction& instruction : two.plan.program().instructions) {
    ++instructions[instruction.slot];
    if (instruction.name.ends_with("receive")) ++transfers[instruction.phase == Phase::backward ? 1 : 0];
  }
  CHECK(instructions[0] > 5);
  CHECK(instructions[1] > 5);
  CHECK(transfers[0] >= 3);
  CHECK(transfers[1] >= 3);
  for (const Instruction& instruction : one.plan.program().instructions)
    CHECK_FALSE(instruction.name.ends_with("receive"));
}

DEVICE_TEST_CASE("several microbatches can be in flight at the same time") {
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
    for (const Instruction& instruction : run.plan.program().instructions)
      if ((instruction.phase == Phase::backward) == backward) execute(instruction, microbatch.frame);
  };
  call(first, false);
  call(second, false);
  call(first, true);
  call(second, true);
  check_same(device, first.gradients(), expected[0]);
  check_same(device, second.gradients(), expected[1]);
}

DEVICE_TEST_CASE("a microbatch's gradients are added to those of earlier microbatches") {
  // One parameter is shared by layers on both slots, and no loss depends on the last layer's parameter.
  const std::string model = R"(
inputs: {image: [6, 6, 3]}
layers:
  - conv2d: {name: first, filters: 8, kernel_size: 3, padding: same, activation: tanh}
  - batch_normalization: {name: normal}
  - flatten: {}
  - dense: {name: narrow, units: 6}
  - dense: {name: a, units: 6, activation: tanh}
  - dense: {name: b, shared_with: a}
  - dense: {name: classes, units: 5}
  - dense: {name: apart, units: 3, inputs: a}
  - batch_normalization: {name: statistics}
outputs: [classes, statistics]
)";
  const auto other = one_more(device);
  for (const bool spread : {false, true}) {
    CAPTURE(spread);
    const Graph graph = graph_from(model);
    std::vector<int> slots(graph.nodes.size(), 0);
    if (spread)
      for (size_t i = node_named(graph, "b"); i < slots.size(); ++i) slots[i] = 1;
    PlanRun run({&device, other.get()}, graph, slots, nullptr, {.accumulates = true});
    const auto gradients = [&](uint64_t seed, const Values& before) {
      PlanRun::Microbatch microbatch(run, 1, seed, before);
      run_all(microbatch.frame, PlanRun::kStep);
      return microbatch.gradients();
    };
    const Values first = gradients(3, {}), second = gradients(4, {}), sum = gradients(4, first);
    CHECK(first != second);
    for (size_t i = 0; i < sum.size(); ++i) {
      CAPTURE(i);
      const bool is_padding = first[i] == PlanRun::kUntouched;
      const float expected = is_padding ? PlanRun::kUntouched : first[i] + second[i];
      CHECK(std::abs(sum[i] - expected) <= device.tolerance(1e-6) * (1 + std::abs(expected)));
    }
  }
}

DEVICE_TEST_CASE("the gradient of a shared parameter is the sum over its layers") {
  const std::string model = R"(
inputs: {x: [6]}
layers:
  - dense: {name: a, units: 6, activation: tanh}
  - dense: {name: b, units: 6, activation: tanh}
  - dense: {name: classes, units: 5}
)";
  Graph graph = graph_from(model);
  PlanRun apart(device, model);
  const auto a = static_cast<int>(node_named(graph, "a")), b = static_cast<int>(node_named(graph, "b"));
  graph.nodes[static_cast<size_t>(b)].shared_with = a;
  const auto other = one_more(device);
  for (const bool spread : {false, true}) {
    CAPTURE(spread);
    std::vector<int> slots(graph.nodes.size(), 0);
    if (spread)
      for (int i = b; i < static_cast<int>(slots.size()); ++i) slots[static_cast<size_t>(i)] = 1;
    PlanRun shared({&device, other.get()}, graph, slots);
    REQUIRE(shared.layout.slices().size() == 4);
    // Both separate layers get the weights of the shared layers.
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

TEST_CASE("gradients of weights shared by `shared_with` match finite differences") {
  const auto device = test::cpu_device();
  PlanRun run(*device, R"(
inputs: {x: [6]}
layers:
  - dense: {name: a, units: 6, activation: tanh}
  - layer_normalization: {name: rows}
  - dense: {name: b, shared_with: a}
  - layer_normalization: {shared_with: rows}
  - dense: {name: c, shared_with: b}
  - dense: {name: classes, units: 5}
)");
  CHECK(run.layout.slices().size() == 6);
  run.check_slopes();
}

namespace {
/// Returns a model of sequences of words, with a vocabulary of 5. Its last layer has these options.
std::string words(const std::string& last) {
  return R"(
inputs: {x: {shape: [6], dtype: int32}}
layers:
  - embedding: {name: token, input_dim: 5, output_dim: 4}
  - flatten
  - dense: {name: mixed, units: 4, activation: tanh}
  - dense: {name: classes, activation: tanh, )" +
         last + "}\n";
}
}  // namespace

TEST_CASE("gradients of an embedding that a dense layer shares match finite differences") {
  const auto device = test::cpu_device();
  PlanRun run(*device, words("shared_with: token"));
  CHECK(run.layout.slices().size() == 3);
  run.check_slopes();
}

DEVICE_TEST_CASE("a dense layer with an embedding's weights equals one whose kernel is their transpose") {
  PlanRun apart(device, words("units: 5, use_bias: false"));
  const Graph graph = graph_from(words("shared_with: token"));
  const auto other = one_more(device);
  for (const bool spread : {false, true}) {
    CAPTURE(spread);
    std::vector<int> slots(graph.nodes.size(), 0);
    if (spread)
      for (size_t i = node_named(graph, "classes"); i < slots.size(); ++i) slots[i] = 1;
    PlanRun tied({&device, other.get()}, graph, slots);
    const auto transposed = [](size_t row, size_t column) { return column * 5 + row; };
    for (const ParameterSlice& slice : apart.layout.slices()) {
      const bool is_kernel = slice.layer == "classes";
      const ParameterSlice& from =
          is_kernel ? tied.slice("token", "embeddings") : tied.slice(slice.layer, slice.name);
      const float* const values = tied.values.data() + from.offset;
      float* const copy = apart.values.data() + slice.offset;
      std::copy_n(values, is_kernel ? 0 : slice.elements(), copy);
      for (size_t row = 0; row < 5 && is_kernel; ++row)
        for (size_t column = 0; column < 4; ++column)
          copy[transposed(row, column)] = values[row * 4 + column];
    }
    tied.run();
    apart.run();
    CHECK(tied.total == doctest::Approx(apart.total).epsilon(device.tolerance(1e-6)));
    const Values sum = tied.gradient("token", "embeddings"), read = apart.gradient("token", "embeddings"),
                 projected = apart.gradient("classes", "kernel");
    for (size_t row = 0; row < 5; ++row)
      for (size_t column = 0; column < 4; ++column)
        CHECK(
            std::abs(sum[row * 4 + column] - (read[row * 4 + column] + projected[transposed(row, column)])) <=
            device.tolerance(1e-5));
    CHECK(sum != read);
  }
}

TEST_CASE("moving statistics that layers share are the mean of the layers' statistics") {
  const auto device = test::cpu_device();
  const auto model = [](const std::string& second) {
    return R"(
inputs: {x: [6]}
layers:
  - batch_normalization: {name: a}
  - dense: {name: between, units: 6, activation: tanh}
  - batch_normalization: {name: b)" +
           second + R"(}
  - dense: {name: classes, units: 5}
)";
  };
  PlanRun shared(*device, model(", shared_with: a")), apart(*device, model(""));
  for (const ParameterSlice& slice : apart.layout.slices()) {
    const ParameterSlice& from = shared.slice(slice.layer == "b" ? "a" : slice.layer, slice.name);
    std::copy_n(shared.values.begin() + from.offset, slice.elements(), apart.values.begin() + slice.offset);
  }
  shared.run();
  apart.run();
  CHECK(shared.total == doctest::Approx(apart.total).epsilon(1e-6));
  for (const ParameterSlice& slice : shared.layout.slices()) {
    if (slice.layer != "a") continue;
    CAPTURE(slice.name);
    const Values found = shared.gradient("a", slice.name), of_a = apart.gradient("a", slice.name),
                 of_b = apart.gradient("b", slice.name);
    CHECK(of_a != of_b);
    const float users = slice.moving_average ? 2.0f : 1.0f;
    for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - (of_a[i] + of_b[i]) / users) <= 1e-6);
  }
}

TEST_CASE("each output of a layer gets the gradients from all its readers") {
  const auto device = test::cpu_device();
  for (const bool both : {true, false}) {
    CAPTURE(both);
    Graph graph = graph_from(both ? R"(
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
    // No configurable layer has several outputs, so the test replaces a dense layer.
    GraphNode& halves = graph.nodes[node_named(graph, "halves")];
    halves.layer = {"halves", std::make_shared<Halves>(), {}};
    halves.parameters.clear();
    halves.outputs = halves.layer->infer({{graph.spec(halves.inputs[0])}}, nullptr);
    REQUIRE(halves.outputs.size() == 2);
    GraphNode& reader = graph.nodes[node_named(graph, both ? "product" : "classes")];
    reader.inputs.back().output = 1;
    PlanRun run({device.get()}, graph, {});
    run.check_slopes();
  }
}

TEST_CASE("instructions list all their operands, and live buffers do not overlap") {
  const auto device = test::cpu_device(), other = test::cpu_device();
  Graph graph = graph_from(kModel);
  std::vector<int> slots(graph.nodes.size(), 0);
  for (size_t i = slots.size() / 2; i < slots.size(); ++i) slots[i] = 1;
  PlanRun run({device.get(), other.get()}, graph, slots);
  const Program& program = run.plan.program();
  const auto& buffers = program.buffers;
  IdVector<BufferId, char> written(buffers.size(), false);
  for (const ProgramArray& column : program.columns) written[program.values[column.value].buffer] = true;
  int now = 0;
  for (const Instruction& instruction : run.plan.program().instructions) {
    INFO(instruction.name);
    const Operands operands = operands_of(program, instruction);
    for (const ValueId value : operands.reads) CHECK(written[program.values[value].buffer]);
    for (const ValueId value : operands.writes) written[program.values[value].buffer] = true;
    for (const auto* touched : {&operands.reads, &operands.writes})
      for (const ValueId value : *touched) {
        const Lifetime& lifetime = buffers[program.values[value].buffer].lifetime;
        CHECK(lifetime.first <= now);
        CHECK(lifetime.last >= now);
      }
    ++now;
  }
  for (int a = 0; a < static_cast<int>(buffers.size()); ++a)
    for (int b = 0; b < a; ++b) {
      const ProgramBuffer &x = buffers[static_cast<BufferId>(a)], &y = buffers[static_cast<BufferId>(b)];
      const Lifetime p = x.lifetime, q = y.lifetime;
      if (x.slot != y.slot || p.first < 0 || q.first < 0 || p.first > q.last || q.first > p.last) continue;
      const bool apart = x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset;
      CHECK_MESSAGE(apart, program.name_of(x) << " and " << program.name_of(y));
    }
}

}  // namespace dtrain::test
