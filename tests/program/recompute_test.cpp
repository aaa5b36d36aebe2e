// Tests activations that are recomputed for the backward pass instead of being kept.
#include "plan_run.h"

namespace dtrain::test {
namespace {

/// Makes the nodes [first, last] of the graph one segment.
void make_segment(Graph& graph, const std::string& first, const std::string& last, int number = 0) {
  size_t end = node_named(graph, last);
  while (end + 1 < graph.nodes.size() && graph.nodes[end + 1].is_activation_of_previous) ++end;
  for (size_t i = node_named(graph, first); i <= end; ++i) graph.nodes[i].recompute = number;
}

int count(const Plan& plan, const std::string& end, Phase phase) {
  int found = 0;
  for (const Instruction& instruction : plan.program().instructions)
    if (instruction.phase == phase && instruction.name.ends_with(end)) ++found;
  return found;
}

/// Returns the maximum number of bytes that are live at a time, without the layers' scratch memory, whose
/// size depends on the processor.
size_t most_kept(const Plan& plan) {
  size_t most = 0;
  for (int at = 0; at < static_cast<int>(plan.program().instructions.size()); ++at) {
    size_t bytes = 0;
    for (const ProgramBuffer& buffer : plan.program().buffers)
      if (buffer.lifetime.first <= at && at <= buffer.lifetime.last &&
          !plan.program().name_of(buffer).starts_with("scratch of "))
        bytes += buffer.bytes;
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

DEVICE_TEST_CASE("recomputed segments give bit-identical gradients and totals") {
  PlanRun kept(device);
  kept.run();
  const std::pair<const char*, const char*> segments[] = {
      {"first", "first"}, {"first", "normal"},  {"first", "sum"},    {"normal", "rows"},
      {"sum", "hidden"},  {"first", "classes"}, {"hidden", "hidden"}};
  for (const auto& segment : segments) {
    INFO(segment.first << " to " << segment.second);
    Graph graph = graph_from(kModel);
    make_segment(graph, segment.first, segment.second);
    PlanRun anew({&device}, graph, {});
    anew.run();
    CHECK(anew.total == doctest::Approx(kept.total).epsilon(device.tolerance(1e-12)));
    check_same(device, anew.gradients, kept.gradients);
  }
  Graph graph = graph_from(kModel);
  make_segment(graph, "first", "normal", 0);
  make_segment(graph, "frozen", "rows", 1);
  make_segment(graph, "hidden", "classes", 2);
  PlanRun anew({&device}, graph, {});
  anew.run();
  check_same(device, anew.gradients, kept.gradients);
  CHECK(count(anew.plan, " forward", Phase::backward) >= 3);
}

TEST_CASE("recomputed dropout draws the same random numbers") {
  const auto device = test::cpu_device();
  const std::string model = R"(
inputs: {x: [30]}
layers:
  - dense: {name: a, units: 40, activation: tanh}
  - dropout: {name: b, rate: 0.5}
  - dense: {name: c, units: 40, activation: relu}
  - dropout: {name: d, rate: 0.25}
  - dense: {name: classes, units: 5}
)";
  PlanRun kept(*device, model);
  kept.run();
  Graph graph = graph_from(model);
  make_segment(graph, "a", "d");
  PlanRun anew({device.get()}, graph, {});
  anew.run();
  CHECK(anew.total == kept.total);
  CHECK(anew.gradients == kept.gradients);
}

TEST_CASE("recomputing the blocks of a deep network at least halves the memory of its activations") {
  const auto device = test::cpu_device();
  std::string model = "inputs: {x: [64]}\nlayers:\n";
  for (int block = 0; block < 12; ++block)
    for (const char* part : {"a", "b", "c"})
      model += "  - dense: {name: " + std::string(part) + std::to_string(block) +
               ", units: 64, activation: tanh}\n";
  model += "  - dense: {name: classes, units: 5}\n";
  PlanRun kept(*device, model);
  Graph graph = graph_from(model);
  for (int block = 0; block < 12; ++block)
    make_segment(graph, "a" + std::to_string(block), "c" + std::to_string(block), block);
  PlanRun anew({device.get()}, graph, {});
  CHECK(2 * most_kept(anew.plan) <= most_kept(kept.plan));
  CHECK(anew.plan.arena_bytes().frame < kept.plan.arena_bytes().frame);
  kept.run();
  anew.run();
  CHECK(anew.gradients == kept.gradients);
}

TEST_CASE("a segment over two slots is recomputed on both") {
  const auto device = test::cpu_device(), other = test::cpu_device();
  PlanRun kept(*device);
  kept.run();
  Graph graph = graph_from(kModel);
  std::vector<int> slots(graph.nodes.size(), 0);
  for (size_t i = node_named(graph, "sum"); i < slots.size(); ++i) slots[i] = 1;
  make_segment(graph, "first", "hidden");
  PlanRun anew({device.get(), other.get()}, graph, slots);
  anew.run();
  check_same(*device, anew.gradients, kept.gradients);
}

}  // namespace dtrain::test
