#include "run/weight_columns.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "data/augment/augmentation.h"
#include "nn/divisors.h"

namespace dtrain {

namespace {

/// Returns the reason why the model needs divisors, as part of an error message.
std::string reason_of(const RunConfig& config) {
  const Graph& graph = config.graph;
  const auto value_of = [](const Head& head) { return head.mask ? head.mask->value : ValueRef(); };
  const Head& first = config.heads[0];
  for (const Head& head : config.heads)
    if (value_of(head) != value_of(first))
      return fmt::format("the outputs '{}' and '{}' have different masks",
                         graph.layer_name(first.output.node), graph.layer_name(head.output.node));
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const GraphNode& node) {
    return static_cast<bool>(node.activity_penalty());
  });
  return fmt::format("'{}' has an activity_regularizer",
                     graph.layer_name(static_cast<int>(found - graph.nodes.begin())));
}

/// Returns whether the mask of the output is made from images, which augmentations change.
bool is_augmented(const RunConfig& config, const Head& head) {
  if (!head.mask) return false;
  const auto source = source_of(config.graph, *head.mask);
  if (!source) return false;
  const TensorSpec& spec = config.graph.spec({config.graph.inputs[source->input]});
  return spec.dtype == DType::float32 && is_picture(spec.shape);
}

}  // namespace

void check_divisors(const RunConfig& config, Diagnostics& diagnostics) {
  const Graph& graph = config.graph;
  const auto has_loss = [](const Head& head) { return head.loss != nullptr; };
  if (!std::all_of(config.heads.begin(), config.heads.end(), has_loss)) return;
  if (!needs_divisors(graph, config.heads)) return;
  const std::string reason = reason_of(config);
  for (const Head& head : config.heads) {
    if (!head.mask || source_of(graph, *head.mask)) continue;
    const GraphNode& creator = graph.nodes[static_cast<size_t>(head.mask->value.node)];
    diagnostics.error(
        creator.mark,
        fmt::format("{} '{}' computes the mask of the output '{}' from the output of another layer. In this "
                    "model, masks must be known before a step, because {}, so they must be computed directly "
                    "from an input of the model. Connect '{}' to an input of the model, or set `ignore_mask: "
                    "true` on a layer after it",
                    creator.kind, creator.name, graph.layer_name(head.output.node), reason, creator.name));
  }
  const auto augmented = [&](const Head& head) { return is_augmented(config, head); };
  for (const Configured<Augmentation>& augmentation : config.dataset.augment)
    if (augmentation->mixing() || std::any_of(config.heads.begin(), config.heads.end(), augmented))
      return diagnostics.error(
          config.place({"dataset", "augment"}),
          fmt::format("augment: {} changes the masks or weights of samples. In this model, they must be "
                      "known before a step, because {}; remove the augmentation",
                      augmentation.name, reason));
}

std::vector<WeightColumns> weight_columns(const RunConfig& config) {
  std::vector<WeightColumns> outputs;
  for (const Head& head : config.heads) {
    WeightColumns columns;
    if (head.mask) {
      const MaskSource source = source_of(config.graph, *head.mask).value();
      columns.mask = {source.input, source.padding, head.mask->shape.elements()};
    }
    if (head.weights) columns.weights = config.graph.inputs.size() + config.heads.size();
    outputs.push_back(columns);
  }
  return outputs;
}

}  // namespace dtrain
