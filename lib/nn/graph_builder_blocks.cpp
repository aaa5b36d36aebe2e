// The part of GraphBuilder that expands blocks.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/graph_builder.h"

namespace dtrain {

namespace {
constexpr size_t kDeepest = 100;  // maximum nesting depth of blocks

/// `use` is a use of a block, and `name` is its name. If this use shares the weights of another use of the
/// block, returns the name prefix of the other use. Returns nullopt if the use has its own weights.
std::optional<std::string> shared_prefix(const LayerSpec& use, const std::string& name, const Scope& scope) {
  if (use.keys.shared_with) return scope.prefix + use.keys.shared_with->text + "/";
  if (scope.shared_prefix) return *scope.shared_prefix + name.substr(scope.prefix.size()) + "/";
  return std::nullopt;
}

}  // namespace

/// Returns whether the block `kind` may be expanded. Reports an error if the block contains itself, or if
/// blocks are nested too deeply.
bool GraphBuilder::may_open(const ConfigNode& kind) {
  const std::string& name = kind.text();
  if (const auto found = std::find(open_.begin(), open_.end(), name); found != open_.end()) {
    misunderstood(kind.mark(), fmt::format("block '{}' contains itself ({} > {})", name,
                                           fmt::join(found, open_.end(), " > "), name));
    return false;
  }
  if (open_.size() < kDeepest) return true;
  misunderstood(kind.mark(), fmt::format("blocks are nested more than {} levels deep", kDeepest));
  return false;
}

/// `layer` is a use of a block with the key `shared_with`. Returns the earlier use that this key names. If
/// the earlier use does not exist, reports an error and returns null.
const GraphBuilder::Use* GraphBuilder::shared_use(const LayerSpec& layer, const Scope& scope) {
  const Name& name = *layer.keys.shared_with;
  const auto found = uses_.find(scope.prefix + name.text);
  if (found != uses_.end() && found->second.kind == layer.kind.text()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, use] : uses_)
    if (known.starts_with(scope.prefix) && use.kind == layer.kind.text())
      names.push_back(known.substr(scope.prefix.size()));
  misunderstood(name.mark, fmt::format("shared_with: '{}' is not an earlier use of block '{}'{}", name.text,
                                       layer.kind.text(), names.empty() ? "" : hint(name.text, names)));
  return nullptr;
}

/// Returns the values of the block's parameters in this use of the block. Returns nullopt after reporting
/// an error.
std::optional<BlockParameters> GraphBuilder::bind(const LayerSpec& layer, const Scope& scope) {
  const ConfigNode& options = layer.options;
  if (layer.keys.shared_with) {
    const Use* shared = shared_use(layer, scope);
    if (shared && options.is_mapping())
      for (const auto& [key, value] : options.entries())
        diagnostics_.error(key, fmt::format("block '{}' shares the weights and the parameters of '{}' "
                                            "(shared_with); remove this parameter",
                                            layer.kind.text(), layer.keys.shared_with->text));
    return shared ? std::optional(shared->parameters) : std::nullopt;
  }
  BlockParameters parameters = blocks_.at(layer.kind.text()).parameters;
  if (options.is_null()) return parameters;
  if (!options.is_mapping()) {
    report_unexpected(options, fmt::format("block '{}'", layer.kind.text()),
                      "a mapping from parameter names to values", diagnostics_);
    return std::nullopt;
  }
  bool good = true;
  for (const auto& [key, value] : options.entries()) {
    const auto found = parameters.find(key.text());
    if (found != parameters.end()) {
      found->second = value;
      continue;
    }
    std::vector<std::string> names;
    for (const auto& [name, unused] : parameters) names.push_back(name);
    diagnostics_.error(key, fmt::format("unknown parameter '{}' of block '{}'{}", key.text(),
                                        layer.kind.text(), hint(key.text(), names)));
    good = false;
  }
  return good ? std::optional(std::move(parameters)) : std::nullopt;
}

void GraphBuilder::add_block(const LayerSpec& layer, Scope& scope) {
  const std::string& kind = layer.kind.text();
  const Block& block = blocks_.at(kind);
  const std::vector<ValueRef> inputs = inputs_of(layer, scope);
  if (inputs.size() > 1)
    misunderstood(layer.keys.inputs->items[1].mark(),
                  fmt::format("block '{}' has one input, but `inputs` lists {}", kind, inputs.size()));
  const auto parameters = bind(layer, scope);
  misunderstood_ |= !parameters;
  bool good = inputs.size() == 1 && parameters && layer.known && may_open(layer.kind);
  if (good) used_blocks_.insert(kind);
  ValueRef flow = good ? inputs.front() : kUnknown;

  const std::string base = scope.prefix + (layer.keys.name ? layer.keys.name->text : kind);
  for (int64_t copy = 0; copy < layer.keys.repeat && !full_; ++copy) {
    if (copy > 0 && !count_one(layer.kind.mark())) break;
    // The first copy gets the given name, which claim_name() has reserved. Later layers that read this name
    // get the value of the last copy.
    const std::string name = layer.keys.name && copy == 0 ? base : automatic_name(base);
    // If this copy has errors, further copies would only repeat them, so their layers are not added. Further
    // copies still get names, because other layers may read them.
    if (good) {
      const size_t before = diagnostics_.count();
      Scope inner{.prefix = name + "/",
                  .parameters = &*parameters,
                  .values = {{"input", flow}},
                  .shared_prefix = shared_prefix(layer, name, scope),
                  .trainable = scope.trainable && layer.keys.trainable,
                  .device = layer.keys.device ? layer.keys.device : scope.device,
                  .recompute = segment_of(layer.keys, scope),
                  .block = scope.block.empty() ? name : scope.block,
                  .flow = flow};
      open_.push_back(kind);
      lay(block.layers, inner);
      open_.pop_back();
      uses_.emplace(name, Use{kind, *parameters});
      good = diagnostics_.count() == before;
      // After an error, no layer reads this value. read_flow() marks it as used, so that it is not also
      // reported as unused.
      const ValueRef last = good ? *inner.flow : read_flow(inner);
      flow = good || layer.keys.repeat == 1 ? last : kUnknown;
    }
    scope.values[layer.keys.name ? layer.keys.name->text : name.substr(scope.prefix.size())] = flow;
  }
  scope.flow = flow;
}

void GraphBuilder::check_unused_blocks() {
  const size_t laid = nodes_.size();
  for (const auto& [name, block] : blocks_) {
    if (used_blocks_.contains(name) || block.layers.empty()) continue;
    // Adds the layers of the block. The shape of the block's input is unknown, because the model does not use
    // the block.
    Scope scope{.prefix = name + "/",
                .parameters = &block.parameters,
                .values = {{"input", kUnknown}},
                .flow = kUnknown};
    open_.push_back(name);
    lay(block.layers, scope);
    open_.pop_back();
  }
  nodes_.resize(laid);
}

}  // namespace dtrain
