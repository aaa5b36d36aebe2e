#include "nn/layer_laying.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrain {

namespace {

constexpr int kMostLayers = 100'000;
constexpr size_t kMostErrors = 1000;      // then no more is laid
constexpr size_t kMostSuggestions = 100;  // a suggestion looks at every name
/// Of a table of rows, which no library looks at.
constexpr int64_t kMostTableElements = int64_t{1} << 40;

}  // namespace

void LayerLaying::misunderstood(const Mark& mark, std::string message) {
  misunderstood_ = true;
  diagnostics_.error(mark, std::move(message));
}

std::string LayerLaying::hint(const std::string& word, const std::vector<std::string>& candidates) const {
  return diagnostics_.count() < kMostSuggestions ? suggestion_or_list(word, candidates) : "";
}

void LayerLaying::lay_input(const Node& key, const InputText& text, bool known, Scope& scope) {
  GraphNode node;
  node.name = key.text();
  node.kind = "input";
  node.output = {key.text(), text.shape, text.dtype};
  node.mark = key.mark();
  names_.insert(node.name);
  const bool first = scope.values.empty();
  const Value value = static_cast<Value>(nodes_.size());
  nodes_.push_back(std::move(node));
  known_.push_back(known);
  used_.push_back(false);
  scope.values[key.text()] = value;
  scope.flow = first ? std::optional(value) : std::nullopt;
}

void LayerLaying::lay(const std::vector<Node>& layers, Scope& scope) {
  for (const auto& text : read_texts(layers, scope)) {
    if (full_ || !count_one(text ? text->kind.mark() : Mark())) return;
    if (!text)
      scope.flow = kUnknown;
    else if (blocks_.contains(text->kind.text()))
      lay_block(*text, scope);
    else
      lay_layer(*text, scope);
  }
}

bool LayerLaying::count_one(const Mark& mark) {
  if (++laid_ > kMostLayers)
    misunderstood(mark, fmt::format("the model has more than {} layers, blocks laid out", kMostLayers));
  full_ = laid_ > kMostLayers || diagnostics_.count() >= kMostErrors;
  misunderstood_ |= full_;
  return !full_;
}

/// All of a list before any is laid: automatic names keep clear of those that are given further down.
std::vector<std::optional<LayerText>> LayerLaying::read_texts(const std::vector<Node>& layers,
                                                              const Scope& scope) {
  std::vector<std::optional<LayerText>> texts;
  for (const Node& node : layers) {
    texts.push_back(read_text(node, scope));
    if (texts.back() && texts.back()->keys.name) claim_name(*texts.back(), scope);
  }
  return texts;
}

std::optional<LayerText> LayerLaying::read_text(const Node& node, const Scope& scope) {
  const size_t before = diagnostics_.count();
  const auto written = take_apart(node, "layer", "", "", diagnostics_);
  if (!written) {
    misunderstood_ = true;
    return std::nullopt;
  }
  const std::string& kind = written->name.text();
  const auto block = blocks_.find(kind);
  std::vector<std::string> fields = kinds<Layer>().fields(kind);
  if (block != blocks_.end())
    for (const auto& [parameter, value] : block->second.parameters) fields.push_back(parameter);
  const Node options = substitute(written->options, scope.parameters, diagnostics_);
  const bool known = diagnostics_.count() == before;
  LayerText text = take_keys(written->name, options,
                             block != blocks_.end() ? LayerKeys::block_schema() : LayerKeys::layer_schema(),
                             fields, diagnostics_);
  text.known = known;
  misunderstood_ |= diagnostics_.count() != before;
  return text;
}

void LayerLaying::claim_name(const LayerText& text, const Scope& scope) {
  const Name& name = *text.keys.name;
  if (!scope.prefix.empty() && name.text.find('/') != std::string::npos)
    misunderstood(name.mark, fmt::format("the name '{}': names inside of a block have no '/'", name.text));
  if (scope.values.contains(name.text) || !names_.insert(scope.prefix + name.text).second)
    misunderstood(name.mark, fmt::format("the name '{}' is taken already", name.text));
}

/// "dense", "dense_1", ... as Keras numbers them, past names that are taken.
std::string LayerLaying::automatic_name(const std::string& base) {
  for (;;) {
    const int number = numbers_[base]++;
    std::string name = number == 0 ? base : fmt::format("{}_{}", base, number);
    if (names_.insert(name).second) return name;
  }
}

Value LayerLaying::read(const Node& name, std::string_view what, const Scope& scope) {
  const auto found = scope.values.find(name.text());
  if (found == scope.values.end()) {
    std::vector<std::string> names;
    for (const auto& [known, value] : scope.values) names.push_back(known);
    misunderstood(name.mark(), fmt::format("'{}' is not {}{}", name.text(), what, hint(name.text(), names)));
    return kUnknown;
  }
  if (found->second != kUnknown) used_[static_cast<size_t>(found->second)] = true;
  return found->second;
}

Value LayerLaying::read_flow(const Scope& scope) {
  const Value value = scope.flow.value_or(kUnknown);
  if (value != kUnknown) used_[static_cast<size_t>(value)] = true;
  return value;
}

std::vector<Value> LayerLaying::inputs_of(const LayerText& text, const Scope& scope) {
  std::vector<Value> inputs;
  if (text.keys.inputs) {
    for (const Node& name : text.keys.inputs->items)
      inputs.push_back(name.is_scalar() ? read(name, "defined before this layer", scope) : kUnknown);
  } else if (scope.flow) {
    inputs.push_back(read_flow(scope));
  } else {
    std::vector<std::string> names;
    for (const auto& node : nodes_) names.push_back(node.name);
    misunderstood(text.kind.mark(),
                  fmt::format("{} must say which of the model's inputs it reads (inputs: ...): {}",
                              text.kind.text(), fmt::join(names, ", ")));
    inputs.push_back(kUnknown);
  }
  return inputs;
}

void LayerLaying::lay_layer(const LayerText& text, Scope& scope) {
  GraphNode node;
  node.kind = text.kind.text();
  node.name = text.keys.name ? scope.prefix + text.keys.name->text : automatic_name(scope.prefix + node.kind);
  node.inputs = inputs_of(text, scope);
  node.trainable = scope.trainable && text.keys.trainable;
  node.mark = text.kind.mark();
  if (!kinds<Layer>().contains(node.kind)) {
    std::vector<std::string> all = kinds<Layer>().names();
    for (const auto& [name, block] : blocks_) all.push_back(name);
    misunderstood(node.mark, fmt::format("unknown layer '{}'{}", node.kind, hint(node.kind, all)));
  } else if (text.known) {
    const size_t before = diagnostics_.count();
    node.layer = kinds<Layer>().parse(text.kind, text.options, diagnostics_);
    misunderstood_ |= diagnostics_.count() != before;
  }

  const std::string local = node.name.substr(scope.prefix.size());
  GraphNode activation;
  if (node.layer) activation.layer = node.layer->activation();
  activation.name = node.name + "/activation";
  activation.kind = activation.layer.name;
  activation.trainable = node.trainable;
  activation.is_activation_of_previous = true;
  activation.mark = node.mark;

  Value value = add(std::move(node));
  if (activation.layer) {
    if (!names_.insert(activation.name).second)
      misunderstood(activation.mark, fmt::format("the name '{}' is taken already", activation.name));
    activation.inputs = {value};
    used_[static_cast<size_t>(value)] = true;
    value = add(std::move(activation));
  }
  scope.values[local] = value;
  scope.flow = value;
}

Value LayerLaying::add(GraphNode node) {
  const bool known = infer(node);
  nodes_.push_back(std::move(node));
  known_.push_back(known);
  used_.push_back(false);
  return static_cast<Value>(nodes_.size()) - 1;
}

/// Output and parameters; false where they cannot be known.
bool LayerLaying::infer(GraphNode& node) {
  std::vector<TensorSpec> inputs;
  for (const Value value : node.inputs) {
    if (value == kUnknown || !known_[static_cast<size_t>(value)]) return false;
    inputs.push_back(nodes_[static_cast<size_t>(value)].output);
  }
  if (!node.layer) return false;
  const size_t before = diagnostics_.count();
  const auto complain = [&](const std::string& message) {
    diagnostics_.error(node.mark, fmt::format("{} '{}': {}", node.kind, node.name, message));
  };
  auto output = node.layer->infer(inputs, complain);
  if (diagnostics_.count() != before) return false;
  if (!output) throw std::logic_error(fmt::format("{} refuses its inputs and does not say why", node.kind));
  node.output = std::move(*output);
  node.output.name = node.name;
  const auto check_size = [&](const std::string& what, const Shape& shape, int64_t most) {
    if (shape.exceeds(most))
      complain(fmt::format("its {} of {} has more than the {} elements that are possible", what, shape.str(),
                           most));
  };
  check_size("output", node.output.shape, kMostArrayElements);
  node.parameters = node.layer->parameters(inputs);
  for (const ParameterSpec& parameter : node.parameters)
    check_size(parameter.name, parameter.shape,
               node.layer->indices() ? kMostTableElements : kMostArrayElements);
  return diagnostics_.count() == before;
}

ModelOutput LayerLaying::describe(Value value) const {
  if (value == kUnknown) return {};
  const auto at = static_cast<size_t>(value);
  const GraphNode& node = nodes_[at];
  ModelOutput output{value, nodes_[node.is_activation_of_previous ? at - 1 : at].name, std::nullopt};
  if (known_[at]) output.spec = node.output;
  // A misspelt kind gives a layer another name than it was meant to have.
  if (!node.layer && node.kind != "input" && !kinds<Layer>().contains(node.kind)) output.name.clear();
  return output;
}

void LayerLaying::check_all_used() {
  if (misunderstood_) return;
  std::vector<Mark> reported;  // each place in a block once, however often it is laid
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const GraphNode& node = nodes_[i];
    if (used_[i]) continue;
    const auto same = [&](const Mark& mark) { return mark.str() == node.mark.str(); };
    if (std::any_of(reported.begin(), reported.end(), same)) continue;
    reported.push_back(node.mark);
    const std::string& name = node.is_activation_of_previous ? nodes_[i - 1].name : node.name;
    diagnostics_.error(node.mark, node.kind == "input"
                                      ? fmt::format("the input '{}' is read by no layer", name)
                                      : fmt::format("the output of '{}' is used by nobody", name));
    if (diagnostics_.count() >= kMostErrors) return;
  }
}

}  // namespace dtrain
