#include "nn/divisors.h"

#include <algorithm>

namespace dtrain {

bool needs_divisors(const Graph& graph, std::span<const Head> heads) {
  const auto value_of = [](const Head& head) { return head.mask ? head.mask->value : ValueRef(); };
  const auto differs = [&](const Head& head) { return value_of(head) != value_of(heads[0]); };
  if (std::any_of(heads.begin(), heads.end(), differs)) return true;
  const auto has_penalty = [](const GraphNode& node) { return static_cast<bool>(node.activity_penalty()); };
  return !heads.empty() && heads[0].is_weighted() &&
         std::any_of(graph.nodes.begin(), graph.nodes.end(), has_penalty);
}

std::optional<MaskSource> source_of(const Graph& graph, const HeadMask& mask) {
  const GraphNode& creator = graph.nodes[static_cast<size_t>(mask.value.node)];
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (creator.inputs[0] == ValueRef{graph.inputs[i]}) return MaskSource{i, *creator.layer->padding()};
  return std::nullopt;
}

}  // namespace dtrain
