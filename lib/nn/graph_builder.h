// Lays layers and blocks as nodes of a graph, inferring shapes as it goes.
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

/// Stands for a value whose layer could not be made sense of. What reads it is parsed as usual, but has no
/// shapes to be checked.
inline constexpr ValueRef kUnknown{};

/// One list of layers being laid: the model's, or one use of a block.
struct Scope {
  std::string prefix;                           // "" or "basic_1/"
  const BlockParameters* parameters = nullptr;  // null for the model's
  std::map<std::string, ValueRef> values;       // what can be read, by local name
  // Where another use of the block begins the names of its layers, whose weights are these ones' ("one/").
  std::optional<std::string> shared_prefix = {};
  bool trainable = true;
  std::optional<WrittenDevice> device = {};  // of layers that name none
  int recompute = -1;                        // the segment that all of its layers belong to
  std::string block = {};                    // as GraphNode::block
  std::optional<ValueRef> flow;  // what the next layer reads unless it says; nothing where it must say
};

/// Errors go to `diagnostics`; nodes are laid also for what was wrong, so that what follows can refer to it.
class GraphBuilder {
 public:
  GraphBuilder(const std::map<std::string, Block>& blocks, Diagnostics& diagnostics)
      : blocks_(blocks), diagnostics_(diagnostics) {}

  /// A model input; `known` is whether `spec` is what was meant.
  void add_input(const ConfigNode& key, const InputSpec& spec, bool known, Scope& scope);
  /// Afterwards scope.flow is the last layer's value.
  void lay(const std::vector<ConfigNode>& layers, Scope& scope);
  /// The value of `name` in the scope, which counts as used then; reports ("'x' is not `what`") and returns
  /// kUnknown where there is none.
  ValueRef read(const ConfigNode& name, std::string_view what, const Scope& scope);
  /// What the scope's next layer would read, which counts as used then.
  ValueRef read_flow(const Scope& scope);
  /// What is known of a value.
  ModelOutput describe(ValueRef value) const;
  /// Reports units that are left to the data in layers that give none of these outputs, unless layers were
  /// misunderstood.
  void check_open_units(const std::vector<ModelOutput>& outputs);
  /// Reports values that nobody reads, unless layers were misunderstood, which would explain it.
  void check_all_used();
  /// Reports segments that are recomputed together and whose layers do not follow each other.
  void check_segments();
  /// Checks the blocks that nobody used as far as that can be done without shapes.
  void check_unused_blocks();

  /// Whether some layer is not what its writer meant it to be, which explains mistakes that follow.
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
  /// A use of a block that has been laid.
  struct Use {
    std::string kind;
    BlockParameters parameters;
  };
  std::optional<BlockParameters> bind(const LayerSpec& layer, const Scope& scope);
  const Use* shared_use(const LayerSpec& layer, const Scope& scope);
  bool may_open(const ConfigNode& kind);
  std::vector<ValueRef> inputs_of(const LayerSpec& layer, const Scope& scope);
  ConfigNode open_units_behind(ValueRef value) const;
  ValueRef add(GraphNode node);
  bool infer(GraphNode& node);
  bool count_one(const Mark& mark);
  void misunderstood(const Mark& mark, std::string message);
  std::string hint(const std::string& word, const std::vector<std::string>& candidates) const;

  const std::map<std::string, Block>& blocks_;
  Diagnostics& diagnostics_;
  std::vector<GraphNode> nodes_;
  std::vector<bool> known_, used_;                // by node
  std::unordered_set<std::string> names_;         // canonical, of nodes and of uses of blocks
  std::unordered_map<std::string, int> numbers_;  // the next of an automatic name, by canonical base
  std::unordered_map<std::string, int> layers_;   // the nodes of layers, by canonical name
  std::map<std::string, Use> uses_;               // of blocks, by canonical name
  std::map<std::string, int> named_segments_;     // by canonical name
  int segments_ = 0;                              // that are recomputed
  std::vector<std::string> open_;                 // blocks being laid, outermost first
  std::unordered_set<std::string> used_blocks_;
  int laid_ = 0;                // layers and uses of blocks
  bool full_ = false;           // too many: nothing more is laid
  bool misunderstood_ = false;  // some layer is not what its writer meant it to be
};

}  // namespace dtrain
