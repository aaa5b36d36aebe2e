// Builds the nodes of a graph from layers and blocks and infers their shapes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "config/diagnostics.h"
#include "nn/graph.h"
#include "nn/model_spec.h"

namespace dtrain {

/// The value of a layer that has errors. Layers that read this value are parsed, but their shapes are not
/// checked.
inline constexpr ValueRef kUnknown{};

/// The state while a list of layers is added. The list is either the model's list of layers, or the list of
/// one use of a block.
struct Scope {
  std::string prefix;  // prefix of the layers' names: "" in the model's list, "basic_1/" in a use of a block
  const BlockParameters* parameters = nullptr;  // null outside blocks
  std::map<std::string, ValueRef> values;       // values that layers in this scope can read, by local name
  // If this use of a block shares the weights of another use: the name prefix of that other use, such as
  // "one/".
  std::optional<std::string> shared_prefix = {};
  bool trainable = true;
  std::optional<WrittenDevice> device = {};  // device of the layers that have no `device:` option
  int recompute = -1;            // recomputed segment of all layers in the scope; -1 if there is none
  std::string block = {};        // see GraphNode::block
  std::optional<ValueRef> flow;  // default input of the next layer; nullopt: the layer must name its inputs
};

/// Adds layers as nodes and reports errors to `diagnostics`. Layers with errors also get a node, so that
/// later layers can refer to them.
class GraphBuilder {
 public:
  GraphBuilder(const std::map<std::string, Block>& blocks, Diagnostics& diagnostics)
      : blocks_(blocks), diagnostics_(diagnostics) {}

  /// Allocates memory for this number of nodes, so that adding them does not copy the nodes before them.
  void reserve(size_t nodes) { nodes_.reserve(nodes); }
  /// Adds a model input; `known` is false if its spec had errors.
  void add_input(const ConfigNode& key, const InputSpec& spec, bool known, Scope& scope);
  /// Adds a list of layers. After the call, scope.flow is the value of the last layer.
  void lay(const std::vector<ConfigNode>& layers, Scope& scope);
  /// Returns the value of `name` in the scope and marks it as used. Reports "'x' is not `what`" and returns
  /// kUnknown if there is no such value.
  ValueRef read(const ConfigNode& name, std::string_view what, const Scope& scope);
  /// Returns the default input of the scope's next layer and marks it as used.
  ValueRef read_flow(const Scope& scope);
  /// Returns the name, shape and dtype of a value, as far as they are known.
  ModelOutput describe(ValueRef value) const;
  /// Reports layers with `units: auto` that produce none of the model's outputs. Reports nothing if there
  /// were earlier errors, because these may be the reason.
  void check_open_units(const std::vector<ModelOutput>& outputs);
  /// Reports values that no layer and no model output uses. Reports nothing if there were earlier errors,
  /// because these may be the reason.
  void check_all_used();
  /// Reports recomputed segments whose layers are not consecutive.
  void check_segments();
  /// Checks the layers of blocks that the model does not use. The shape of the input of such a block is
  /// unknown, so the check does not find errors in shapes.
  void check_unused_blocks();

  /// Returns whether some layer had an error that may cause follow-up errors.
  bool has_misunderstood() const { return misunderstood_; }
  std::vector<GraphNode> take_nodes() { return std::move(nodes_); }

 private:
  std::vector<std::optional<LayerSpec>> read_specs(const std::vector<ConfigNode>& layers, const Scope& scope);
  std::optional<LayerSpec> read_spec(const ConfigNode& node, const Scope& scope);
  void claim_name(const LayerSpec& layer, const Scope& scope);
  std::string automatic_name(const std::string& base);
  void add_layer(const LayerSpec& layer, Scope& scope);
  void share(const LayerSpec& layer, const Scope& scope, GraphNode& node);
  void share(const GraphNode& owner, int number, const Mark& mark, GraphNode& node);
  void share_as_block(const Scope& scope, GraphNode& node);
  void check_shared_shapes(const GraphNode& node, const ReportError& report_error);
  int segment_of(const LayerKeys& keys, const Scope& scope);
  void add_block(const LayerSpec& layer, Scope& scope);
  /// A use of a block whose layers were already added.
  struct Use {
    std::string kind;
    BlockParameters parameters;
  };
  std::optional<BlockParameters> bind(const LayerSpec& layer, const Scope& scope);
  const Use* shared_use(const LayerSpec& layer, const Scope& scope);
  bool may_open(const ConfigNode& kind);
  std::optional<ValueRef> layer_of_output(const std::string& name, const Scope& scope) const;
  std::vector<ValueRef> inputs_of(const LayerSpec& layer, const Scope& scope);
  ConfigNode open_units_behind(ValueRef value) const;
  ValueRef add(GraphNode node);
  bool infer(GraphNode& node);
  void pass_masks(GraphNode& node, const ReportError& report_error) const;
  void take_masks(GraphNode& node, const ReportError& report_error) const;
  ValueRef common_mask(const std::vector<ValueRef>& masks, const ReportError& report_error) const;
  bool count_one(const Mark& mark);
  void misunderstood(const Mark& mark, std::string message);
  std::string hint(const std::string& word, const std::vector<std::string>& candidates) const;

  const std::map<std::string, Block>& blocks_;
  Diagnostics& diagnostics_;
  std::vector<GraphNode> nodes_;
  std::vector<bool> known_, used_;                // indexed by node
  std::unordered_set<std::string> names_;         // canonical names of nodes and uses of blocks
  std::unordered_map<std::string, int> numbers_;  // number of the next automatic name, by canonical base name
  std::unordered_map<std::string, int> layers_;   // node index, by canonical layer name
  std::map<std::string, Use> uses_;               // uses of blocks, by canonical name
  std::map<std::string, int> named_segments_;     // segment index, by canonical name
  int segments_ = 0;                              // number of recomputed segments
  std::vector<std::string> open_;                 // blocks being added, outermost first
  std::unordered_set<std::string> used_blocks_;
  int laid_ = 0;                // number of layers and uses of blocks so far
  bool full_ = false;           // true if there are too many layers or errors; then no more layers are added
  bool misunderstood_ = false;  // whether some layer had an error that may cause follow-up errors
};

}  // namespace dtrain
