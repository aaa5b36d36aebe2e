// The part of GraphBuilder that handles shared parameters and recomputed segments.
#include <algorithm>

#include <fmt/format.h>

#include "nn/graph_builder.h"

namespace dtrain {

namespace {
/// Returns whether a layer of this kind can share the weights of the node.
bool can_share(const GraphNode& node, std::string_view kind) {
  return node.kind == kind || (node.layer && node.layer->tied_kind() == kind);
}
}  // namespace

/// Makes the node share the weights of the layer that `shared_with:` names. The node is either another use of
/// that layer or a layer of a different kind (Layer::tied). If sharing is not possible, reports an error and
/// leaves the node without a layer.
void GraphBuilder::share(const LayerSpec& layer, const Scope& scope, GraphNode& node) {
  const Name& name = *layer.keys.shared_with;
  const auto found = layers_.find(scope.prefix + name.text);
  if (found == layers_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, number] : layers_)
      if (known.starts_with(scope.prefix) && can_share(nodes_[static_cast<size_t>(number)], node.kind))
        names.push_back(known.substr(scope.prefix.size()));
    std::sort(names.begin(), names.end());
    return misunderstood(name.mark, fmt::format("shared_with: '{}' is not an earlier {} layer{}", name.text,
                                                node.kind, names.empty() ? "" : hint(name.text, names)));
  }
  const GraphNode& named = nodes_[static_cast<size_t>(found->second)];
  const int number = named.shared_with >= 0 ? named.shared_with : found->second;
  const GraphNode& owner = nodes_[static_cast<size_t>(number)];
  if (!named.layer && named.kind != node.kind) return;  // the errors of that layer were already reported
  if (!can_share(named, node.kind))
    return misunderstood(name.mark, fmt::format("shared_with: '{}' is a {} layer, but this is a {} layer",
                                                name.text, named.kind, node.kind));
  Configured<Layer> itself = named.layer;
  if (named.kind != node.kind) {
    const size_t before = diagnostics_.count();
    itself = named.layer->tied(layer.kind, layer.options, diagnostics_);
    misunderstood_ |= diagnostics_.count() != before;
  } else if (layer.options.is_mapping()) {
    for (const auto& [key, value] : layer.options.entries())
      diagnostics_.error(
          key,
          fmt::format("{} '{}' shares the weights and the options of '{}' (shared_with); remove this option",
                      node.kind, node.name, named.name));
  }
  if (known_[static_cast<size_t>(number)] && owner.parameters.empty())
    diagnostics_.error(name.mark,
                       fmt::format("shared_with: {} '{}' has no weights to share", owner.kind, owner.name));
  if (named.kind == node.kind) {
    if (node.activity_regularizer)
      diagnostics_.error(node.mark,
                         fmt::format("{} '{}' shares the weights and the options of '{}' (shared_with), "
                                     "including its activity_regularizer; remove activity_regularizer here",
                                     node.kind, node.name, named.name));
    node.activity_regularizer = activity_regularizer_of(nodes_, found->second);
  }
  share(owner, number, node.mark, node);
  node.layer = std::move(itself);
}

void GraphBuilder::share(const GraphNode& owner, int number, const Mark& mark, GraphNode& node) {
  if (!node.trainable && owner.trainable)
    diagnostics_.error(mark, fmt::format("{} '{}' is not trainable, but it shares the weights of '{}', which "
                                         "is trained; set `trainable: false` in both layers",
                                         node.kind, node.name, owner.name));
  node.trainable = owner.trainable;
  node.layer = owner.layer;
  node.shared_with = number;
}

/// `node` is a layer in a use of a block that shares the weights of another use of the block. If the
/// corresponding layer of the other use has parameters, `node` shares them.
void GraphBuilder::share_as_block(const Scope& scope, GraphNode& node) {
  const auto found = layers_.find(*scope.shared_prefix + node.name.substr(scope.prefix.size()));
  if (found == layers_.end()) return;
  const int first = nodes_[static_cast<size_t>(found->second)].shared_with;
  const int number = first >= 0 ? first : found->second;
  const GraphNode& owner = nodes_[static_cast<size_t>(number)];
  if (owner.parameters.empty()) return;
  node.activity_regularizer = activity_regularizer_of(nodes_, number);
  share(owner, number, node.mark, node);
}

/// Reports an error if this layer needs a different shape for a shared parameter than the layer that owns the
/// parameter.
void GraphBuilder::check_shared_shapes(const GraphNode& node, const ReportError& report_error) {
  if (node.shared_with < 0 || !known_[static_cast<size_t>(node.shared_with)]) return;
  const GraphNode& owner = nodes_[static_cast<size_t>(node.shared_with)];
  for (size_t i = 0; i < std::min(node.parameters.size(), owner.parameters.size()); ++i)
    if (node.parameters[i].shape != owner.parameters[i].shape)
      report_error(fmt::format(
          "the layer needs a {0} of shape {1}, but the {0} that it shares with '{2}' has the shape {3}",
          node.parameters[i].name, node.parameters[i].shape.str(), owner.name,
          owner.parameters[i].shape.str()));
}

/// Returns the recomputed segment of a layer or block with these keys. If the scope has a segment, returns
/// that segment. Otherwise returns the segment that `recompute:` names, or a new segment. Returns -1 if the
/// layer or block is not recomputed.
int GraphBuilder::segment_of(const LayerKeys& keys, const Scope& scope) {
  if (scope.recompute >= 0 || !keys.recompute.on) return scope.recompute;
  if (!keys.recompute.segment) return segments_++;
  const std::string name = scope.prefix + keys.recompute.segment->name.text;
  const auto [found, is_new] = named_segments_.emplace(name, segments_);
  if (is_new) ++segments_;
  return found->second;
}

void GraphBuilder::check_segments() {
  std::vector<bool> ended(static_cast<size_t>(segments_), false);
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const int before = nodes_[i - 1].recompute, here = nodes_[i].recompute;
    if (here == before) continue;
    if (here >= 0 && ended[static_cast<size_t>(here)])
      diagnostics_.error(nodes_[i].mark, fmt::format("recompute: the layers of a segment must be "
                                                     "consecutive, but '{0}', which is not in the segment of "
                                                     "'{1}', comes between '{1}' and an earlier layer of "
                                                     "that segment",
                                                     nodes_[i - 1].name, nodes_[i].name));
    if (before >= 0) ended[static_cast<size_t>(before)] = true;
  }
}

}  // namespace dtrain
