#include "program/compile_state.h"

#include <utility>

#include <fmt/format.h>

namespace dtrain {

CompileState::CompileState(const Graph& its_graph, const ModelLayout& its_layout,
                           std::span<const Head> its_heads, std::span<const int> its_slots,
                           std::vector<DType> types, const PlanKey& key, const PlanOptions& its_options)
    : graph(its_graph),
      layout(its_layout),
      heads(its_heads),
      slots(its_slots),
      compute_types(std::move(types)),
      options(its_options),
      states(graph.nodes.size()) {
  program.key = key;
  program.arenas.resize(compute_types.size());
  if (wants_losses())
    for (const Head& head : heads) loss_points.push_back({head.output, head.loss});
  // Estimates the size of the program, so that the vectors of a large program are not copied while they grow.
  // A typical node has two values, two calls and two instructions in training, and one of each otherwise.
  const size_t expected = graph.nodes.size() * (training() ? 2 : 1);
  program.values.reserve(expected);
  program.calls.reserve(expected);
  program.instructions.reserve(expected);
  for (size_t i = 0; i < states.size(); ++i) states[i].gradients.resize(graph.nodes[i].outputs.size());
}

ValueRef CompileState::computed(ValueRef ref) const {
  const int fused_into = state(ref.node).fused_into;
  return fused_into < 0 ? ref : ValueRef{fused_into, 0};
}

size_t CompileState::bytes_on(ValueRef ref, int slot) const {
  const DType type = graph.spec(ref).dtype;
  const size_t element = bytes_of(type == DType::float32 ? compute_type(slot) : type);
  return static_cast<size_t>(batch_shape(ref).elements()) * element;
}

std::string CompileState::name_of(ValueRef ref) const {
  const GraphNode& its = node(ref.node);
  if (static_cast<size_t>(ref.output) >= its.readable_outputs()) return "mask of " + its.name;
  return its.readable_outputs() == 1 ? its.name : fmt::format("{}:{}", its.name, ref.output);
}

ValueId CompileState::add_value(ProgramValue::Kind kind, ValueRef ref, int slot, Layout its_layout) {
  const bool is_gradient = kind == ProgramValue::Kind::gradient;
  return program.values.add({.kind = kind,
                             .of = ref,
                             .name = is_gradient ? "gradient of " + name_of(ref) : name_of(ref),
                             .layout = its_layout,
                             .slot = slot,
                             .bytes = bytes_on(ref, slot)});
}

ValueId CompileState::add_array(ProgramValue::Kind kind, std::string name, int slot, size_t bytes) {
  return program.values.add({.kind = kind, .of = {}, .name = std::move(name), .slot = slot, .bytes = bytes});
}

}  // namespace dtrain
