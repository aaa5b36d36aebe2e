#include "interop/keras/import/fold_blocks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "config/diagnostics.h"
#include "interop/keras/import/repeated_layers.h"
#include "interop/layer_formats.h"

namespace dtrain {

namespace {

struct FoldedBlock {
  BlockBody body;
  std::string name;
  std::vector<std::string> names;  // names of the layers within the block
};

/// Returns the part of a name up to and including its last separator; "" if there is none.
std::string_view up_to_separator(std::string_view text) {
  const size_t separator = text.find_last_of("_-./");
  return separator == std::string_view::npos ? "" : text.substr(0, separator + 1);
}

class BlockFolder {
 public:
  BlockFolder(const ConfigNode& model, const Graph& graph) : model_(model), graph_(graph), layers_(model) {
    for (const FlatLayer& layer : layers_.all()) taken_.insert(layer.name);
    for (const auto& [name, shape] : model.find("inputs")->entries()) taken_.insert(name.text());
  }

  FoldedModel fold() {
    for (size_t i = 0; i < layers_.all().size();) {
      const BlockRun run = layers_.longest_run(i, bodies());
      if (run.copies == 0 || begins_better_later(i, run)) {
        value_names_.push_back(layer(i).name);
        const FlatLayer& one = layer(i);
        add(one.kind, with_inputs(one.options, one, one.name), one.name);
        ++i;
      } else {
        use_block(i, run);
        i += run.size * run.copies;
      }
    }
    FoldedModel unchanged{model_, graph_, {}, {}};
    if (blocks_.empty()) return unchanged;
    std::vector<ConfigNode::Entry> blocks;
    for (const FoldedBlock& block : blocks_)
      blocks.push_back(ConfigNode::entry(block.name, ConfigNode::mapping({ConfigNode::entry(
                                                         "layers", ConfigNode::sequence(body_of(block)))})));
    std::vector<ConfigNode::Entry> entries;
    for (const auto& [key, value] : model_.entries()) {
      if (key.text() == "layers") entries.push_back(ConfigNode::entry("blocks", ConfigNode::mapping(blocks)));
      entries.emplace_back(key, key.text() == "layers" ? ConfigNode::sequence(written_) : value);
    }
    std::optional<FoldedModel> folded = checked(ConfigNode::mapping(std::move(entries)));
    return folded ? std::move(*folded) : std::move(unchanged);
  }

 private:
  const FlatLayer& layer(size_t number) const { return layers_.at(number); }

  std::vector<BlockBody> bodies() const {
    std::vector<BlockBody> all;
    for (const FoldedBlock& block : blocks_) all.push_back(block.body);
    return all;
  }

  /// Returns a rank for a run of equal blocks. A run with a higher rank makes more natural blocks. The most
  /// important criterion is that the names of the layers can be kept. The second criterion is that the first
  /// layer has weights, because an activation is more natural at the end of a block.
  int rank_of(size_t first, const BlockRun& run) const {
    return (kept_names({first, run.size}, run.copies).empty() ? 0 : 2) +
           (kind_has_weights(layer(first).kind) ? 1 : 0);
  }

  /// Returns true if a better run starts at a later layer of the first copy. A better run has the same size,
  /// at least as many copies and a higher rank.
  bool begins_better_later(size_t first, const BlockRun& run) const {
    if (run.block) return false;
    const int rank = rank_of(first, run);
    for (size_t later = first + 1; later < first + run.size; ++later) {
      const BlockRun other = layers_.longest_run(later, {});
      if (other.size == run.size && other.copies >= run.copies && rank_of(later, other) > rank) return true;
    }
    return false;
  }

  std::string unique_name(const std::string& base) {
    std::string name = base;
    for (int number = 1; !taken_.insert(name).second; ++number) name = fmt::format("{}_{}", base, number);
    return name;
  }

  /// Returns the longest common prefix of the names of a body's layers that ends with a separator.
  std::string_view common_prefix(const BlockBody& body) const {
    std::string_view prefix = layer(body.first).name;
    for (size_t i = body.first; i < body.first + body.size; ++i) {
      const std::string& name = layer(i).name;
      const auto end = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first;
      prefix = prefix.substr(0, static_cast<size_t>(end - prefix.begin()));
    }
    return up_to_separator(prefix);
  }

  /// Returns the names of a body's layers without their common prefix. Returns an empty list if these names
  /// differ between copies, or if they are empty or not unique.
  std::vector<std::string> kept_names(const BlockBody& body, size_t copies) const {
    std::vector<std::string> kept;
    std::set<std::string> different{"input"};
    for (size_t i = 0; i < body.size * copies; ++i) {
      const BlockBody copy{body.first + i / body.size * body.size, body.size};
      const std::string name = layer(body.first + i).name.substr(common_prefix(copy).size());
      if (i >= body.size && kept[i % body.size] != name) return {};
      if (i >= body.size) continue;
      if (name.empty() || !different.insert(name).second) return {};
      kept.push_back(name);
    }
    return kept;
  }

  std::vector<std::string> names_within(const BlockBody& body, size_t copies) const {
    if (std::vector<std::string> kept = kept_names(body, copies); !kept.empty()) return kept;
    std::vector<std::string> automatic;
    std::map<std::string, int> counts;
    for (size_t i = body.first; i < body.first + body.size; ++i) {
      const int count = counts[layer(i).kind]++;
      automatic.push_back(count == 0 ? layer(i).kind : fmt::format("{}_{}", layer(i).kind, count));
    }
    return automatic;
  }

  FoldedBlock make_block(const BlockBody& body, size_t copies) {
    std::string name(common_prefix(body));
    while (!name.empty() && std::string_view("_-./0123456789").find(name.back()) != std::string_view::npos)
      name.pop_back();
    std::replace(name.begin(), name.end(), '/', '_');
    if (name.empty() || registry<Layer>().canonical(name) != "") name = "block";
    // The name must differ from the names of all other blocks and layers.
    return {body, unique_name(name), names_within(body, copies)};
  }

  void use_block(size_t first, const BlockRun& run) {
    size_t number = run.block.value_or(blocks_.size());
    if (!run.block) blocks_.push_back(make_block({first, run.size}, run.copies));
    const FoldedBlock& block = blocks_[number];
    const std::string name = run.block ? unique_name(block.name) : block.name;
    const size_t end = first + run.size * run.copies;
    ConfigNode options =
        with_inputs(ConfigNode::mapping({}), layer_reading(*layers_.input_of({first, run.size})), name);
    if (run.copies > 1) options = options.with("repeat", ConfigNode::scalar(fmt::format("{}", run.copies)));
    for (size_t i = first; i < end; ++i) value_names_.push_back(name);
    add(block.name, options, name);
    uses_.push_back(fmt::format("{}: {} to {}, {} {} {} layers", name, layer(first).name, layer(end - 1).name,
                                run.copies, run.copies == 1 ? "time" : "times", run.size));
  }

  static FlatLayer layer_reading(int input) {
    FlatLayer reader;
    reader.inputs = {input};
    reader.outputs = {""};
    return reader;
  }

  std::string value_name(int number) const {
    if (number >= 0) return value_names_[static_cast<size_t>(number)];
    return model_.find("inputs")->entries()[static_cast<size_t>(-number - 1)].first.text();
  }

  /// Adds `name` to the options. Also adds `inputs`, unless the layer reads only the layer directly above it,
  /// which is the default.
  ConfigNode with_inputs(ConfigNode options, const FlatLayer& layer, const std::string& name) const {
    std::vector<std::string> inputs;
    for (size_t i = 0; i < layer.inputs.size(); ++i)
      inputs.push_back(value_name(layer.inputs[i]) + layer.outputs[i]);
    options = options.with("name", ConfigNode::scalar(name));
    const bool is_single = model_.find("inputs")->entries().size() == 1;
    const std::string above = !above_.empty() ? above_ : is_single ? value_name(-1) : "";
    return inputs == std::vector{above} ? options : options.with("inputs", names_node(inputs));
  }

  static ConfigNode names_node(const std::vector<std::string>& names) {
    if (names.size() == 1) return ConfigNode::scalar(names.front());
    std::vector<ConfigNode> items;
    for (const std::string& name : names) items.push_back(ConfigNode::scalar(name));
    return ConfigNode::sequence(std::move(items));
  }

  void add(const std::string& kind, const ConfigNode& options, const std::string& name) {
    written_.push_back(ConfigNode::mapping({ConfigNode::entry(kind, options)}));
    above_ = name;
  }

  /// Returns the layers of a block as they are written in a configuration. Names that the layers would get
  /// automatically are left out.
  std::vector<ConfigNode> body_of(const FoldedBlock& block) const {
    std::vector<ConfigNode> written;
    std::map<std::string, int> counts;
    for (size_t i = 0; i < block.body.size; ++i) {
      const FlatLayer& one = layer(block.body.first + i);
      ConfigNode options = one.options;
      const int count = counts[one.kind]++;
      const std::string automatic = count == 0 ? one.kind : fmt::format("{}_{}", one.kind, count);
      if (block.names[i] != automatic) options = options.with("name", ConfigNode::scalar(block.names[i]));
      std::vector<std::string> inputs;
      for (const int read : one.inputs) {
        const int inside = read - static_cast<int>(block.body.first);
        inputs.push_back(inside < 0 ? "input" : block.names[static_cast<size_t>(inside)]);
      }
      const std::string above = i == 0 ? "input" : block.names[i - 1];
      if (inputs != std::vector{above}) options = options.with("inputs", names_node(inputs));
      const bool is_bare = options.is_null() || options.entries().empty();
      written.push_back(is_bare ? ConfigNode::scalar(one.kind)
                                : ConfigNode::mapping({ConfigNode::entry(one.kind, options)}));
    }
    return written;
  }

  /// Returns the folded model with the new names of its layers. Returns nullopt if the graph of the folded
  /// model differs from the graph of the flat model.
  std::optional<FoldedModel> checked(ConfigNode model) const {
    Diagnostics diagnostics;
    std::optional<Graph> graph = parse_model(model, diagnostics);
    if (diagnostics.has_errors() || !graph || graph->nodes.size() != graph_.nodes.size() ||
        graph->outputs != graph_.outputs)
      return std::nullopt;
    FoldedModel folded{std::move(model), {}, {}, uses_};
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      const GraphNode &before = graph_.nodes[i], &after = graph->nodes[i];
      if (before.kind != after.kind || before.inputs != after.inputs ||
          before.shared_with != after.shared_with || before.trainable != after.trainable)
        return std::nullopt;
      if (before.name != after.name) folded.names.emplace(before.name, after.name);
    }
    folded.graph = std::move(*graph);
    return folded;
  }

  const ConfigNode& model_;
  const Graph& graph_;
  RepeatedLayers layers_;
  std::vector<FoldedBlock> blocks_;
  std::vector<ConfigNode> written_;  // the layers of the folded model, including uses of blocks
  // for each layer of the flat model, the name of its output in the folded model
  std::vector<std::string> value_names_;
  std::vector<std::string> uses_;
  std::set<std::string> taken_;
  std::string above_;  // name of the last element of `written_`
};

}  // namespace

FoldedModel fold_blocks(const ConfigNode& model, const Graph& graph) {
  return BlockFolder(model, graph).fold();
}

}  // namespace dtrain
