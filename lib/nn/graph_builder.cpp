#include "nn/graph_builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrain {

namespace {

constexpr int kMostLayers = 100'000;
constexpr size_t kMostErrors = 1000;  // no more layers are added after this many errors
/// After this many errors, messages no longer suggest names, because finding a similar name is slow.
constexpr size_t kMostSuggestions = 100;
/// Maximum number of elements in the table of an embedding. Other arrays have a lower limit, because external
/// libraries compute with them.
constexpr int64_t kMostTableElements = int64_t{1} << 40;

}  // namespace

void GraphBuilder::misunderstood(const Mark& mark, std::string message) {
  misunderstood_ = true;
  diagnostics_.error(mark, std::move(message));
}

std::string GraphBuilder::hint(const std::string& word, const std::vector<std::string>& candidates) const {
  return diagnostics_.count() < kMostSuggestions ? suggestion_or_list(word, candidates) : "";
}

void GraphBuilder::add_input(const ConfigNode& key, const InputSpec& spec, bool known, Scope& scope) {
  GraphNode node;
  node.name = key.text();
  node.kind = "input";
  node.outputs = {{key.text(), spec.shape.value.value_or(Shape()), spec.dtype}};
  node.mark = key.mark();
  names_.insert(node.name);
  const bool first = scope.values.empty();
  const ValueRef value{static_cast<int>(nodes_.size())};
  nodes_.push_back(std::move(node));
  known_.push_back(known && spec.shape.value);
  used_.push_back(false);
  scope.values[key.text()] = value;
  scope.flow = first ? std::optional(value) : std::nullopt;
}

void GraphBuilder::lay(const std::vector<ConfigNode>& layers, Scope& scope) {
  for (const auto& layer : read_specs(layers, scope)) {
    if (full_ || !count_one(layer ? layer->kind.mark() : Mark())) return;
    if (!layer)
      scope.flow = kUnknown;
    else if (blocks_.contains(layer->kind.text()))
      add_block(*layer, scope);
    else
      add_layer(*layer, scope);
  }
}

bool GraphBuilder::count_one(const Mark& mark) {
  if (++laid_ > kMostLayers)
    misunderstood(
        mark, fmt::format("the model has more than {} layers (the layers of a block count again at each use)",
                          kMostLayers));
  full_ = laid_ > kMostLayers || diagnostics_.count() >= kMostErrors;
  misunderstood_ |= full_;
  return !full_;
}

/// Reads a whole list of layers before any layer is added, because automatic names must avoid names that
/// users gave to later layers of the list.
std::vector<std::optional<LayerSpec>> GraphBuilder::read_specs(const std::vector<ConfigNode>& layers,
                                                               const Scope& scope) {
  std::vector<std::optional<LayerSpec>> specs;
  specs.reserve(layers.size());
  for (const ConfigNode& node : layers) {
    specs.push_back(read_spec(node, scope));
    if (specs.back() && specs.back()->keys.name) claim_name(*specs.back(), scope);
  }
  return specs;
}

std::optional<LayerSpec> GraphBuilder::read_spec(const ConfigNode& node, const Scope& scope) {
  const size_t before = diagnostics_.count();
  auto written = take_apart(node, "layer", "", "", diagnostics_);
  if (!written) {
    misunderstood_ = true;
    return std::nullopt;
  }
  const auto block = blocks_.find(written->name.text());
  if (block == blocks_.end())
    if (const std::string name = registry<Layer>().canonical(written->name.text()); !name.empty())
      written->name = ConfigNode::scalar(name, false, written->name.mark());
  const std::string& kind = written->name.text();
  const bool is_block = block != blocks_.end();
  std::vector<std::string> parameters;
  if (is_block)
    for (const auto& [parameter, value] : block->second.parameters) parameters.push_back(parameter);
  const ConfigNode options = substitute(written->options, scope.parameters, diagnostics_);
  const bool known = diagnostics_.count() == before;
  LayerSpec layer =
      take_keys(written->name, options, is_block ? LayerKeys::block_schema() : LayerKeys::layer_schema(),
                is_block ? parameters : registry<Layer>().fields(kind), diagnostics_);
  const ConfigNode* const shared = options.find("shared_with");
  layer.known = known && (layer.keys.shared_with || !shared || shared->is_null());
  misunderstood_ |= diagnostics_.count() != before;
  return layer;
}

void GraphBuilder::claim_name(const LayerSpec& layer, const Scope& scope) {
  const Name& name = *layer.keys.name;
  if (!scope.prefix.empty() && name.text.find('/') != std::string::npos)
    misunderstood(
        name.mark,
        fmt::format("the name '{}' contains '/', which is not allowed in names inside a block", name.text));
  if (scope.values.contains(name.text) || !names_.insert(scope.prefix + name.text).second)
    misunderstood(name.mark, fmt::format("the name '{}' is already used; choose another name", name.text));
}

/// Returns the next unused name in the sequence "dense", "dense_1", ..., numbered as in Keras.
std::string GraphBuilder::automatic_name(const std::string& base) {
  for (;;) {
    const int number = numbers_[base]++;
    std::string name = number == 0 ? base : fmt::format("{}_{}", base, number);
    if (names_.insert(name).second) return name;
  }
}

/// Looks up the name of a second or later output, such as "lstm:1". Returns the layer ("lstm"). Returns
/// nullopt if the name has no ":", or if the scope has no such layer.
std::optional<ValueRef> GraphBuilder::layer_of_output(const std::string& name, const Scope& scope) const {
  const size_t colon = name.rfind(':');
  const auto layer = scope.values.find(name.substr(0, colon));
  if (colon == std::string::npos || layer == scope.values.end()) return std::nullopt;
  return layer->second;
}

ValueRef GraphBuilder::read(const ConfigNode& name, std::string_view what, const Scope& scope) {
  const auto found = scope.values.find(name.text());
  if (found == scope.values.end()) {
    if (const auto layer = layer_of_output(name.text(), scope)) {
      const bool known = *layer != kUnknown && known_[static_cast<size_t>(layer->node)];
      if (*layer != kUnknown) used_[static_cast<size_t>(layer->node)] = true;
      if (!known) return kUnknown;
      const GraphNode& node = nodes_[static_cast<size_t>(layer->node)];
      const size_t outputs = node.readable_outputs();
      misunderstood(name.mark(),
                    fmt::format("'{}' does not exist, because '{}' has {}", name.text(), node.name,
                                outputs == 1 ? "only one output; write its name without a number"
                                             : fmt::format("{} outputs, numbered from 0", outputs)));
      return kUnknown;
    }
    std::vector<std::string> names;
    for (const auto& [known, value] : scope.values) names.push_back(known);
    misunderstood(name.mark(), fmt::format("'{}' is not {}{}", name.text(), what, hint(name.text(), names)));
    return kUnknown;
  }
  if (found->second != kUnknown) used_[static_cast<size_t>(found->second.node)] = true;
  return found->second;
}

ValueRef GraphBuilder::read_flow(const Scope& scope) {
  const ValueRef value = scope.flow.value_or(kUnknown);
  if (value != kUnknown) used_[static_cast<size_t>(value.node)] = true;
  return value;
}

std::vector<ValueRef> GraphBuilder::inputs_of(const LayerSpec& layer, const Scope& scope) {
  std::vector<ValueRef> inputs;
  if (layer.keys.inputs) {
    for (const ConfigNode& name : layer.keys.inputs->items)
      inputs.push_back(name.is_scalar() ? read(name, "defined before this layer", scope) : kUnknown);
  } else if (scope.flow) {
    inputs.push_back(read_flow(scope));
  } else {
    std::vector<std::string> names;
    for (const auto& node : nodes_) names.push_back(node.name);
    misunderstood(layer.kind.mark(),
                  fmt::format("{} needs the option `inputs`, because the model has several inputs: {}",
                              layer.kind.text(), fmt::join(names, ", ")));
    inputs.push_back(kUnknown);
  }
  return inputs;
}

void GraphBuilder::add_layer(const LayerSpec& layer, Scope& scope) {
  GraphNode node;
  node.kind = layer.kind.text();
  node.name =
      layer.keys.name ? scope.prefix + layer.keys.name->text : automatic_name(scope.prefix + node.kind);
  node.inputs = inputs_of(layer, scope);
  node.trainable = scope.trainable && layer.keys.trainable;
  node.device = layer.keys.device ? layer.keys.device : scope.device;
  node.recompute = segment_of(layer.keys, scope);
  node.ignores_mask = layer.keys.ignore_mask;
  node.activity_regularizer = layer.keys.activity_regularizer;
  node.block = scope.block;
  node.mark = layer.kind.mark();
  if (!registry<Layer>().contains(node.kind)) {
    std::vector<std::string> all = registry<Layer>().names();
    for (const auto& [name, block] : blocks_) all.push_back(name);
    misunderstood(node.mark, fmt::format("unknown layer '{}'{}", node.kind, hint(node.kind, all)));
  } else if (layer.keys.shared_with) {
    share(layer, scope, node);
  } else if (layer.known) {
    const size_t before = diagnostics_.count();
    node.layer = registry<Layer>().parse(layer.kind, layer.options, diagnostics_);
    misunderstood_ |= diagnostics_.count() != before;
    if (scope.shared_prefix && node.layer) share_as_block(scope, node);
  }

  const std::string local = node.name.substr(scope.prefix.size());
  GraphNode activation;
  if (node.layer) activation.layer = node.layer->activation();
  activation.name = node.name + "/activation";
  activation.kind = activation.layer.name;
  activation.trainable = node.trainable;
  activation.device = node.device;
  activation.recompute = node.recompute;
  activation.block = node.block;
  activation.is_activation_of_previous = true;
  if (activation.layer) activation.activity_regularizer = std::exchange(node.activity_regularizer, {});
  activation.mark = node.mark;

  const size_t first = nodes_.size();
  layers_.emplace(node.name, static_cast<int>(first));
  ValueRef value = add(std::move(node));
  if (activation.layer) {
    if (!names_.insert(activation.name).second)
      misunderstood(activation.mark,
                    fmt::format("the name '{}' is already used; choose another name", activation.name));
    activation.inputs = {value};
    used_[static_cast<size_t>(value.node)] = true;
    value = add(std::move(activation));
  }
  scope.values[local] = value;
  for (size_t k = 1; known_[first] && k < nodes_[first].readable_outputs(); ++k)
    scope.values[fmt::format("{}:{}", local, k)] = {static_cast<int>(first), static_cast<int>(k)};
  scope.flow = value;
}

ValueRef GraphBuilder::add(GraphNode node) {
  const bool known = infer(node);
  nodes_.push_back(std::move(node));
  known_.push_back(known);
  used_.push_back(false);
  return {static_cast<int>(nodes_.size()) - 1};
}

/// Infers the outputs and parameters of the node. Returns false if they cannot be determined.
bool GraphBuilder::infer(GraphNode& node) {
  std::vector<TensorSpec> inputs;
  for (const ValueRef value : node.inputs) {
    if (value == kUnknown || !known_[static_cast<size_t>(value.node)]) return false;
    inputs.push_back(nodes_[static_cast<size_t>(value.node)].outputs[static_cast<size_t>(value.output)]);
  }
  if (!node.layer || !node.layer->open_units().is_null()) return false;
  const size_t before = diagnostics_.count();
  const auto report_error = [&](const std::string& message) {
    diagnostics_.error(node.mark, fmt::format("{} '{}': {}", node.kind, node.name, message));
  };
  node.outputs = node.layer->infer(inputs, report_error);
  if (diagnostics_.count() != before) return false;
  if (node.outputs.empty())
    throw std::logic_error(fmt::format("{} rejects its inputs without an error message", node.kind));
  const auto check_size = [&](const std::string& what, const Shape& shape, int64_t most) {
    if (shape.exceeds(most))
      report_error(fmt::format("the {} of shape {} has more than {} elements", what, shape.str(), most));
  };
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    node.outputs[i].name = i == 0 ? node.name : fmt::format("{}:{}", node.name, i);
    check_size("output", node.outputs[i].shape, kMostArrayElements);
  }
  node.parameters = node.layer->parameters(inputs);
  for (const ParameterSpec& parameter : node.parameters)
    check_size(parameter.name, parameter.shape,
               node.layer->indices() ? kMostTableElements : kMostArrayElements);
  for (const ParameterSpec& parameter : node.parameters)
    if (parameter.constraint)
      if (const std::string mistake = parameter.constraint->mistake_for(parameter.shape); !mistake.empty())
        report_error(fmt::format("the constraint on the {} of shape {} has an invalid axis: {}",
                                 parameter.name, parameter.shape.str(), mistake));
  for (const ParameterSpec& parameter : node.parameters)
    if (const OrthogonalPenalty& penalty = parameter.orthogonal; penalty)
      if (const std::string mistake = penalty.mistake_for(parameter.shape); !mistake.empty())
        report_error(fmt::format("orthogonal_regularizer cannot be applied to the {} of shape {}: {}",
                                 parameter.name, parameter.shape.str(), mistake));
  if (node.activity_regularizer && *node.activity_regularizer && (*node.activity_regularizer)->orthogonal)
    report_error(
        "activity_regularizer: expected l1, l2 or l1_l2, but found orthogonal_regularizer, which is only for "
        "weights");
  if (node.activity_regularizer && !node.layer->can_penalize_output())
    report_error(
        "activity_regularizer: this layer does not support the option, because Keras cannot apply the "
        "penalty to the output of this layer alone; add a layer after it, such as `activation: linear`, and "
        "give the regularizer to that layer");
  check_shared_shapes(node, report_error);
  pass_masks(node, report_error);
  return diagnostics_.count() == before;
}

ModelOutput GraphBuilder::describe(ValueRef value) const {
  if (value == kUnknown) return {};
  const auto at = static_cast<size_t>(value.node);
  const GraphNode& node = nodes_[at];
  ModelOutput output{value, nodes_[node.is_activation_of_previous ? at - 1 : at].name, std::nullopt,
                     open_units_behind(value)};
  if (value.output > 0) output.name += fmt::format(":{}", value.output);
  if (known_[at]) output.spec = node.outputs[static_cast<size_t>(value.output)];
  // If the kind of a layer is unknown, its automatic name contains the misspelt kind. Therefore the correct
  // name is unknown.
  if (!node.layer && node.kind != "input" && !registry<Layer>().contains(node.kind)) output.name.clear();
  return output;
}

/// Returns the configuration node of `units: auto` in the layer that produces this value. Activation layers
/// between that layer and the value are skipped. Returns null if the layer has no `units: auto`.
ConfigNode GraphBuilder::open_units_behind(ValueRef value) const {
  while (value != kUnknown) {
    const GraphNode& node = nodes_[static_cast<size_t>(value.node)];
    if (!node.layer || node.inputs.empty()) break;
    if (!node.layer->elementwise() && !node.layer->is_softmax()) return node.layer->open_units();
    value = node.inputs.front();
  }
  return {};
}

void GraphBuilder::check_open_units(const std::vector<ModelOutput>& outputs) {
  if (misunderstood_) return;
  for (const GraphNode& node : nodes_) {
    const ConfigNode open = node.layer ? node.layer->open_units() : ConfigNode();
    const auto is_its = [&](const ModelOutput& output) { return output.open_units.same_as(open); };
    if (!open.is_null() && std::none_of(outputs.begin(), outputs.end(), is_its))
      diagnostics_.error(open, fmt::format("{} '{}': units must be a number, but is 'auto'; 'auto' is only "
                                           "possible in layers that produce an output of the model",
                                           node.kind, node.name));
  }
}

void GraphBuilder::check_all_used() {
  if (misunderstood_) return;
  // The locations that were already reported. A block that is used several times has one location, which is
  // reported only once.
  std::vector<Mark> reported;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const GraphNode& node = nodes_[i];
    if (used_[i]) continue;
    const auto same = [&](const Mark& mark) { return mark.str() == node.mark.str(); };
    if (std::any_of(reported.begin(), reported.end(), same)) continue;
    reported.push_back(node.mark);
    const std::string& name = node.is_activation_of_previous ? nodes_[i - 1].name : node.name;
    diagnostics_.error(
        node.mark,
        node.kind == "input"
            ? fmt::format("the input '{}' is not read by any layer", name)
            : fmt::format(
                  "the output of '{}' is not used: no layer reads it, and it is not an output of the model",
                  name));
    if (diagnostics_.count() >= kMostErrors) return;
  }
}

}  // namespace dtrain
