// The part of GraphBuilder that determines which values have masks, and which masks layers read.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "nn/graph_builder.h"

namespace dtrain {

namespace {

bool begins_with(const Shape& shape, const Shape& leading) {
  return leading.rank() <= shape.rank() && std::equal(leading.begin(), leading.end(), shape.begin());
}

}  // namespace

/// Returns the mask that all inputs have in common, given the mask of each input. Returns kUnknown if there
/// are no inputs or, as in Keras, if any input has no mask. Reports an error if the masks differ.
ValueRef GraphBuilder::common_mask(const std::vector<ValueRef>& masks,
                                   const ReportError& report_error) const {
  if (masks.empty() || std::find(masks.begin(), masks.end(), kUnknown) != masks.end()) return kUnknown;
  const auto other =
      std::find_if(masks.begin(), masks.end(), [&](ValueRef mask) { return mask != masks[0]; });
  if (other == masks.end()) return masks[0];
  const auto name = [&](ValueRef mask) { return nodes_[static_cast<size_t>(mask.node)].name; };
  report_error(
      fmt::format("the inputs have different masks, which '{}' and '{}' create; use inputs that have the "
                  "same mask, or set `ignore_mask: true`, so that the layer treats padding as data",
                  name(masks[0]), name(*other)));
  return kUnknown;
}

/// Determines the masks that the node's layer reads and the masks of its outputs. Reports an error if the
/// layer cannot handle a mask.
void GraphBuilder::pass_masks(GraphNode& node, const ReportError& report_error) const {
  node.output_masks.assign(node.outputs.size(), kUnknown);
  if (!node.ignores_mask) take_masks(node, report_error);
  if (node.layer->creates_mask())
    node.output_masks[0] = {static_cast<int>(nodes_.size()), static_cast<int>(node.outputs.size()) - 1};
  const auto is_none = [](ValueRef mask) { return mask == kUnknown; };
  if (std::all_of(node.output_masks.begin(), node.output_masks.end(), is_none)) node.output_masks.clear();
}

/// Applies the layer's mask rule to the masks of its inputs.
void GraphBuilder::take_masks(GraphNode& node, const ReportError& report_error) const {
  const auto is_masked = [](ValueRef mask) { return mask != kUnknown; };
  std::vector<ValueRef> masks;
  for (const ValueRef input : node.inputs)
    masks.push_back(nodes_[static_cast<size_t>(input.node)].mask_of_output(input.output));
  std::vector<ValueRef> given;
  std::copy_if(masks.begin(), masks.end(), std::back_inserter(given), is_masked);
  if (given.empty()) return;
  const MaskRule rule = node.layer->mask_rule();
  if (rule == MaskRule::refused)
    return report_error(
        fmt::format("the layer does not support masks, but its input has a mask, which '{}' creates; set "
                    "`ignore_mask: true` if the layer should treat padding as data",
                    nodes_[static_cast<size_t>(given[0].node)].name));
  if (rule == MaskRule::read) {
    node.masks = masks;
    if (is_masked(masks[0]) && !node.layer->creates_mask()) {
      const auto shape_of = [&](ValueRef value) -> const Shape& {
        return nodes_[static_cast<size_t>(value.node)].outputs[static_cast<size_t>(value.output)].shape;
      };
      const Shape &mask = shape_of(masks[0]), &input = shape_of(node.inputs[0]);
      if (mask.rank() + 1 != input.rank())
        return report_error(
            fmt::format("the layer does not support the mask of its input, because a mask of shape {} does "
                        "not mark the positions of an input of shape {}; set `ignore_mask: true` if the "
                        "layer should treat padding as data",
                        mask.str(), input.str()));
    }
    if (is_masked(masks[0])) given.erase(given.begin());
    common_mask(given, report_error);
    for (size_t k = 0; k < node.outputs.size(); ++k)
      if (node.layer->masks_output(k)) node.output_masks[k] = masks[0];
    return;
  }
  for (const ValueRef mask : given) {
    const Shape& shape =
        nodes_[static_cast<size_t>(mask.node)].outputs[static_cast<size_t>(mask.output)].shape;
    if (!begins_with(node.outputs[0].shape, shape))
      return report_error(fmt::format(
          "the layer does not support the mask of its input, because a mask of shape {} does not fit an "
          "output of shape {}; set `ignore_mask: true` if the layer should treat padding as data",
          shape.str(), node.outputs[0].shape.str()));
  }
  node.output_masks.assign(node.outputs.size(), common_mask(masks, report_error));
}

}  // namespace dtrain
