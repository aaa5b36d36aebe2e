// The option `stages: auto` for models of realistic size.
#include "distribute/auto_stages.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "distribute/graph_flow.h"
#include "distribute/layer_times.h"
#include "support/devices.h"
#include "support/graphs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

double slowest(const std::vector<StageLoad>& loads) {
  double most = 0;
  for (const StageLoad& load : loads) most = std::max(most, load.seconds);
  return most;
}

std::vector<PipelineDevice> devices(size_t stages, const std::vector<double>& seconds = {}) {
  return std::vector<PipelineDevice>(stages, {{}, {}, seconds});
}

/// Tries all cuts in which each stage has at least one layer. Returns the time of the slowest stage in the
/// cut for which this time is shortest.
double best_of_all(const StageProblem& problem) {
  std::vector<size_t> begins;  // possible starts of stages
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    if (!problem.nodes[i].is_input && !problem.nodes[i].stays) begins.push_back(i);
  begins.erase(begins.begin());
  const size_t cuts = problem.devices.size() - 1;
  std::vector<bool> chosen(begins.size(), false);
  std::fill(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(cuts), true);
  double best = 1e30;
  do {
    std::vector<int> stages(problem.nodes.size(), 0);
    for (size_t b = 0; b < begins.size(); ++b)
      if (chosen[b])
        for (size_t i = begins[b]; i < stages.size(); ++i) ++stages[i];
    best = std::min(best, slowest(stage_loads(problem, stages)));
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return best;
}

/// Returns the number of stages if each stage gets as many layers as it can compute in `seconds`.
size_t stages_within(const StageProblem& problem, double seconds) {
  size_t stages = 1;
  double filled = 0;
  for (const double own : problem.devices[0].seconds) {
    if (filled + own > seconds) {
      ++stages;
      filled = 0;
    }
    filled += own;
  }
  return stages;
}

/// Checks that auto_stages() finds a cut that is as fast as the best of all cuts. `seconds`: the time of each
/// node. If it is empty, the times are estimated.
void check_all_cuts(const Graph& graph, const std::vector<size_t>& counts,
                    const std::vector<double>& seconds = {}) {
  const PipelineWork work{.samples = 8, .microbatches = 8, .seconds_per_byte = 1e-10};
  for (const size_t stages : counts) {
    CAPTURE(stages);
    const StageProblem problem = stage_problem(graph, devices(stages, seconds), work);
    const StageCut cut = auto_stages(graph, devices(stages, seconds), work);
    REQUIRE(cut.outcome == StageCut::Outcome::found);
    CHECK(slowest(cut.loads) <= 1.0001 * best_of_all(problem));
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (i > 0 && graph.nodes[i].is_activation_of_previous) CHECK(cut.stages[i] == cut.stages[i - 1]);
      if (i > 0) CHECK(cut.stages[i] >= cut.stages[i - 1]);
    }
    for (size_t stage = 0; stage < stages; ++stage)
      CHECK(std::count(cut.stages.begin(), cut.stages.end(), static_cast<int>(stage)) > 0);
  }
}

}  // namespace

TEST_CASE("no other cut of ResNet-50 into two or three stages is faster") {
  check_all_cuts(graph_of_config("configs/resnet50-synthetic.yaml"), {2, 3});
}

TEST_CASE("no other cut of ResNet-50 into two or three stages is faster by measured times") {
  const Graph graph = graph_of_config("configs/resnet50-synthetic.yaml");
  const auto device = test::cpu_device();
  check_all_cuts(graph, {2, 3}, measure_layer_seconds(graph, 1, device->ops(), 0.5));
}

TEST_CASE("ResNet-50 cannot be cut into the same number of faster stages") {
  const Graph graph = graph_of_config("configs/resnet50-synthetic.yaml");
  for (const size_t stages : {4, 8, 16}) {
    CAPTURE(stages);
    const StageProblem problem = stage_problem(graph, devices(stages), {.samples = 8});
    const double longest = slowest(choose_stages(problem).loads);
    CHECK(stages_within(problem, longest * (1 + 1e-9)) <= stages);
    CHECK(stages_within(problem, longest * (1 - 1e-9)) > stages);
  }
}

TEST_CASE("no other cut of the wide MLP is faster") {
  const Graph graph = graph_of_config("configs/wide-mlp.yaml");
  check_all_cuts(graph, {2, 3, 4, 5});
  const auto device = test::cpu_device();
  check_all_cuts(graph, {2, 3, 4, 5}, measure_layer_seconds(graph, 32, device->ops(), 0.5));
  // The first layer has 78 % of the parameters and gets its own device.
  const auto two = auto_stages(graph, devices(2), {.samples = 256});
  CHECK(two.stages.at(node_named(graph, "dense")) == 0);
  CHECK(two.stages.at(node_named(graph, "dense_1")) == 1);
  CHECK(auto_stages(graph, devices(6), {}).outcome == StageCut::Outcome::too_few_layers);
}

TEST_CASE("a stage needs memory for parameters, gradients, slots and kept activations") {
  Graph graph = graph_from(R"(
inputs: {x: [10]}
layers:
  - dense: {name: first, units: 20, activation: relu}
  - batch_normalization: {name: normal}
  - dense: {name: frozen, units: 20, trainable: false}
  - dense: {name: again, units: 20, trainable: false}
  - add: {name: sum, inputs: [again, first]}
)");
  graph.nodes[node_named(graph, "again")].shared_with = static_cast<int>(node_named(graph, "frozen"));
  const PipelineWork work{.samples = 6, .microbatches = 3, .slot_bytes = 8};
  const StageProblem problem = stage_problem(graph, devices(2), work);
  const auto node = [&](const std::string& name) { return problem.nodes[node_named(graph, name)]; };
  CHECK(node("x").is_input);
  CHECK(node("first").parameter_bytes == (10 * 20 + 20) * (4 + 4 + 8));
  CHECK(node("first").activation_bytes == 6 * 20 * 4);
  const StageNode activation = problem.nodes[node_named(graph, "first") + 1];
  CHECK(activation.stays);
  CHECK(activation.activation_bytes == 0);
  CHECK(node("normal").parameter_bytes == 2 * 20 * (4 + 4 + 8) + 2 * 20 * (4 + 4));
  CHECK(node("frozen").parameter_bytes == (20 * 20 + 20) * 4);
  CHECK(node("again").parameters_of == static_cast<int>(node_named(graph, "frozen")));
  CHECK(problem.devices[0].in_flight == 2);
  CHECK(problem.devices[1].in_flight == 1);
  // With 16-bit types, each weight also has a 16-bit copy, and activations need half the memory. Gradients
  // are stored as float32.
  const StageProblem mixed =
      stage_problem(graph, devices(2), {.samples = 6, .slot_bytes = 8, .element_bytes = 2});
  CHECK(mixed.nodes[node_named(graph, "first")].parameter_bytes == (10 * 20 + 20) * (4 + 2 + 4 + 8));
  CHECK(mixed.nodes[node_named(graph, "first")].activation_bytes == 6 * 20 * 2);
}

TEST_CASE(
    "a recomputed segment always keeps its outputs, and keeps its other activations only during its backward "
    "pass") {
  Graph graph = graph_from(R"(
inputs: {x: [10]}
layers:
  - dense: {name: a, units: 20}
  - dense: {name: b, units: 30}
  - dense: {name: c, units: 40}
  - dense: {name: d, units: 50}
  - dense: {name: e, units: 7}
)");
  for (const auto& [name, segment] : {std::pair{"a", 0}, {"b", 0}, {"c", 1}, {"d", 1}})
    graph.nodes[node_named(graph, name)].recompute = segment;
  const PipelineWork work{.samples = 6, .microbatches = 3};
  const StageProblem problem = stage_problem(graph, devices(2), work);
  const auto node = [&](const std::string& name) { return problem.nodes[node_named(graph, name)]; };
  constexpr int64_t kUnit = 6 * sizeof(float);
  CHECK(node("a").activation_bytes == 0);
  CHECK(node("b").activation_bytes == 30 * kUnit);
  CHECK(node("b").recomputed_bytes == 20 * kUnit);
  CHECK(node("d").activation_bytes == 50 * kUnit);
  CHECK(node("d").recomputed_bytes == 40 * kUnit);
  CHECK(node("e").activation_bytes == 7 * kUnit);
  const auto loads = stage_loads(problem, std::vector<int>{0, 0, 0, 0, 0, 1});
  const auto parameters = [&](const std::string& name) { return node(name).parameter_bytes; };
  // Two microbatches are in flight, so the kept activations (30 and 50 units) are stored twice. Only one
  // segment is recomputed at a time, so its 40 units are stored once.
  CHECK(loads[0].bytes == parameters("a") + parameters("b") + parameters("c") + parameters("d") +
                              2 * (30 + 50) * kUnit + 40 * kUnit);
  CHECK(choose_stages(problem).loads[0].bytes ==
        stage_loads(problem, choose_stages(problem).stages)[0].bytes);
}

TEST_CASE("a slower device gets fewer layers, and a device with less memory gets only layers that fit") {
  const Graph graph = graph_from(R"(
inputs: {x: [256]}
layers: [{dense: {units: 256}}, {dense: {units: 256}}, {dense: {units: 256}}, {dense: {units: 256}}]
)");
  const PipelineWork work{.samples = 64};
  std::vector<PipelineDevice> two = devices(2);
  const auto stages = [&] { return auto_stages(graph, two, work).stages; };
  CHECK(stages() == std::vector<int>{0, 0, 0, 1, 1});
  two[1].device.kind = DeviceId::Kind::gpu;
  CHECK(stages() == std::vector<int>{0, 0, 1, 1, 1});
  const int64_t layer = (256 * 256 + 256) * 8 + 64 * 256 * 4;
  // The second stage also keeps its input, which it receives from the first stage.
  two[1].bytes = 2 * layer + 64 * 256 * 4;
  CHECK(stages() == std::vector<int>{0, 0, 0, 1, 1});
  two[0].bytes = two[1].bytes = layer;
  CHECK(auto_stages(graph, two, work).outcome == StageCut::Outcome::too_little_memory);
}
