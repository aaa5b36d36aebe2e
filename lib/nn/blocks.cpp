#include <algorithm>

#include <fmt/format.h>

#include "nn/layer.h"
#include "nn/model_spec.h"

namespace dtrain {

namespace {

struct BlockText {
  ConfigNode parameters;
  std::vector<ConfigNode> layers;
};

const Schema<BlockText>& block_schema() {
  static const auto kSchema =
      Schema<BlockText>(
          "A reusable group of layers. In the layers of the block, `input` is the name of the block's input. "
          "The output of the block is the output of its last layer.")
          .optional("parameters", &BlockText::parameters,
                    "Parameters of the block: a mapping from their names to default values. In the options "
                    "of the block's layers, $name is replaced by the value of the parameter.")
          .required("layers", &BlockText::layers,
                    "the layers of the block, written as in the model. Their names are local to the block");
  return kSchema;
}

bool check_part(const ConfigNode& key, const std::string& what, Diagnostics& diagnostics) {
  Name name;
  if (!Codec<Name>::parse(key, what, name, diagnostics)) return false;
  if (name.text.find('/') == std::string::npos) return true;
  return report_unexpected(key, what, "a name without '/'", diagnostics);
}

BlockParameters parse_parameters(const ConfigNode& node, const std::string& block, Diagnostics& diagnostics) {
  BlockParameters parameters;
  if (node.is_null()) return parameters;
  if (!node.is_mapping()) {
    report_unexpected(node, block + ": parameters", "a mapping from parameter names to default values",
                      diagnostics);
    return parameters;
  }
  const std::vector<std::string>& taken = LayerKeys::block_schema().field_names();
  for (const auto& [key, value] : node.entries()) {
    if (!check_part(key, block + ": parameter", diagnostics)) continue;
    if (std::find(taken.begin(), taken.end(), key.text()) != taken.end())
      diagnostics.error(
          key, fmt::format("{}: '{}' is a key of every block and cannot be the name of a parameter", block,
                           key.text()));
    parameters.emplace(key.text(), value);
  }
  return parameters;
}

}  // namespace

std::map<std::string, Block> parse_blocks(const ConfigNode& node, Diagnostics& diagnostics) {
  std::map<std::string, Block> blocks;
  if (node.is_null()) return blocks;
  if (!node.is_mapping()) {
    report_unexpected(node, "blocks", "a mapping from block names to blocks", diagnostics);
    return blocks;
  }
  for (const auto& [key, value] : node.entries()) {
    if (!check_part(key, "block", diagnostics)) continue;
    const std::string what = fmt::format("block '{}'", key.text());
    if (registry<Layer>().contains(key.text()))
      diagnostics.error(key, fmt::format("{} has the same name as a layer type; choose another name", what));
    BlockText text;
    const bool good = block_schema().parse(value, what, text, diagnostics);
    Block& block = blocks[key.text()];
    block.parameters = parse_parameters(text.parameters, what, diagnostics);
    block.layers = std::move(text.layers);
    if (good && block.layers.empty()) diagnostics.error(key, fmt::format("{} has no layers", what));
  }
  return blocks;
}

Json block_json_schema() {
  return block_schema().json_schema();
}

ConfigNode substitute(const ConfigNode& node, const BlockParameters* parameters, Diagnostics& diagnostics) {
  if (node.is_sequence()) {
    std::vector<ConfigNode> items;
    for (const ConfigNode& item : node.items()) items.push_back(substitute(item, parameters, diagnostics));
    return ConfigNode::sequence(std::move(items), node.mark());
  }
  if (node.is_mapping()) {
    std::vector<ConfigNode::Entry> entries;
    for (const auto& [key, value] : node.entries())
      entries.emplace_back(key, substitute(value, parameters, diagnostics));
    return ConfigNode::mapping(std::move(entries), node.mark());
  }
  if (!node.is_scalar() || !node.text().starts_with('$')) return node;

  const std::string name = node.text().substr(1);
  if (!parameters) {
    diagnostics.error(node, fmt::format("'{}' refers to a block parameter, but is used outside a block; use "
                                        "it only in the layers of a block",
                                        node.text()));
    return node;
  }
  const auto found = parameters->find(name);
  if (found != parameters->end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : *parameters) names.push_back(known);
  diagnostics.error(node, fmt::format("the block has no parameter '{}'{}", name,
                                      names.empty() ? "; the block declares no parameters"
                                                    : suggestion_or_list(name, names)));
  return node;
}

}  // namespace dtrain
