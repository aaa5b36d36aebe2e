// The part of GraphBuilder that determines which values have masks, and which masks layers read.
#include <algorithm>

#include <fmt/format.h>

#include "nn/graph_builder.h"

namespace dtrain {

namespace {

bool begins_with(const Shape& shape, const Shape& leading) {
  return leading.rank() <= shape.rank() && std::equal(leading.begin(), leading.end(), shape.begin());
}

}  // namespace

/// Returns the mask of a layer that merges inputs with these masks. As in Keras, there is none if an input
/// has none. Reports inputs with different masks.
ValueRef GraphBuilder::common_mask(const std::vector<ValueRef>& masks,
                                   const ReportError& report_error) const {
  if (std::find(masks.begin(), masks.end(), kUnknown) != masks.end()) return kUnknown;
  const auto other =
      std::find_if(masks.begin(), masks.end(), [&](ValueRef mask) { return mask != masks[0]; });
  if (other == masks.end()) return masks[0];
  const auto name = [&](ValueRef mask) { return nodes_[static_cast<size_t>(mask.node)].name; };
  report_error(
      fmt::format("its inputs have different masks, from '{}' and '{}'; layers can only merge inputs "
                  "that have the same mask",
                  name(masks[0]), name(*other)));
  return kUnknown;
}

/// Determines the masks that the node's layer reads and those of its outputs. Reports an error if the layer
/// cannot handle a mask.
void GraphBuilder::pass_masks(GraphNode& node, const ReportError& report_error) const {
  std::vector<ValueRef> masks;
  for (const ValueRef input : node.inputs)
    masks.push_back(nodes_[static_cast<size_t>(input.node)].mask_of_output(input.output));
  const auto masked =
      std::find_if(masks.begin(), masks.end(), [](ValueRef mask) { return mask != kUnknown; });
  node.output_masks.assign(node.outputs.size(), kUnknown);
  if (masked != masks.end()) {
    const GraphNode& source = nodes_[static_cast<size_t>(masked->node)];
    const MaskRule rule = node.layer->mask_rule();
    if (rule == MaskRule::refused)
      return report_error(fmt::format(
          "cannot handle the mask of its input, which '{}' creates: it would treat padding as data",
          source.name));
    if (rule == MaskRule::read) node.masks = masks;
    const ValueRef mask = rule == MaskRule::passed ? common_mask(masks, report_error) : masks[0];
    for (size_t k = 0; k < node.outputs.size() && mask != kUnknown; ++k) {
      if (rule == MaskRule::read && !node.layer->masks_output(k)) continue;
      const Shape& shape =
          nodes_[static_cast<size_t>(mask.node)].outputs[static_cast<size_t>(mask.output)].shape;
      if (!begins_with(node.outputs[k].shape, shape))
        return report_error(
            fmt::format("cannot handle the mask of its input: the mask of shape {} does not fit "
                        "an output of shape {}",
                        shape.str(), node.outputs[k].shape.str()));
      node.output_masks[k] = mask;
    }
  }
  if (node.layer->creates_mask())
    node.output_masks[0] = {static_cast<int>(nodes_.size()), static_cast<int>(node.outputs.size()) - 1};
  const auto is_none = [](ValueRef mask) { return mask == kUnknown; };
  if (std::all_of(node.output_masks.begin(), node.output_masks.end(), is_none)) node.output_masks.clear();
}

}  // namespace dtrain
