// Writes a graph of layers as a PyTorch class, layer by layer: its modules, their weights, and the lines of
// forward().
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "interop/exported_model.h"
#include "nn/graph.h"

namespace dtrain {

/// A weight of a module: a parameter of a layer that is permuted by `axes` and then reshaped to `shape`.
struct TorchWeight {
  std::string module, name;  ///< "conv2d", "weight"
  int node = -1;             ///< node that owns the parameter
  int parameter = -1;        ///< index of the parameter; -1 if only the module has this weight, not the layer
  float value = 0;           ///< value of all elements if `parameter` is -1
  std::vector<int64_t> axes;  ///< permutation of the parameter's axes; empty if it is not permuted
  Shape shape;                ///< shape of the weight

  std::string key() const { return module + "." + name; }
};

class TorchBuilder;

/// The interface through which a conversion in lib/interop/layers exports one layer to PyTorch.
class TorchLayer {
 public:
  TorchLayer(TorchBuilder& builder, int node);
  /// Represents a layer that is given as an option of `outer`. The layer has the parameters and the module of
  /// `outer`. `variable`: the variable that holds the layer's input, channels last. Call take_output() to get
  /// its output.
  TorchLayer(const TorchLayer& outer, InnerNode inner, std::string variable);

  const GraphNode& node() const { return *node_; }
  /// Returns the layer's options with all defaults filled in.
  const Json& options() const { return options_; }
  const TensorSpec& input_spec(size_t input = 0) const;
  const TensorSpec& output_spec() const { return node_->outputs[0]; }
  size_t inputs() const { return node_->inputs.size(); }

  /// Returns the layout in which an input is available without a permute.
  ExportLayout layout(size_t input = 0) const;
  /// Returns the variable that holds an input in this layout. Adds a permute() if the input is not available
  /// in this layout yet.
  std::string input(size_t input, ExportLayout layout);

  /// Returns the variable that holds the mask of an input: a bool tensor [batch, positions] that is true for
  /// valid positions. Returns "" if the input has no mask. A layer that reads masks must get them from this
  /// function.
  std::string mask(size_t input = 0);
  /// Declares that the layer's predictions do not depend on the masks of its inputs.
  void ignore_masks() { has_read_mask_ = true; }
  /// Returns whether mask() or ignore_masks() was called.
  bool has_read_mask() const { return has_read_mask_; }
  /// Returns whether other layers read the mask that this layer creates.
  bool needs_mask() const;

  bool has_parameter(std::string_view name) const;
  /// Sets the module that computes the layer, for example "nn.Linear(4, 3)". Layers that share parameters
  /// also share the module.
  void set_module(const std::string& constructor);
  /// Stores a parameter of the layer as the weight `name` of the module. The parameter is permuted by `axes`
  /// and then reshaped to `shape`. If `axes` or `shape` is empty, it is not permuted or not reshaped.
  void weight(const std::string& name, std::string_view parameter, const std::vector<int64_t>& axes = {},
              const Shape& shape = {});
  /// Like weight(), but if the layer does not have this parameter, fills the weight with `value`.
  void weight_or(const std::string& name, std::string_view parameter, const Shape& shape, float value);
  /// Returns the expression that refers to the module, such as "self.dense".
  std::string module() const;

  /// Adds a line to forward() that assigns the expression to a new variable. Returns the variable.
  std::string add(const std::string& expression);
  /// Sets the variable that holds the layer's output.
  void set_output(const std::string& variable, ExportLayout layout);
  /// Sets the variable that holds the mask that this layer creates. The mask must have the format that mask()
  /// returns.
  void set_mask(const std::string& variable);
  /// Returns the variable that holds the output of an inner layer, channels last. Adds a permute() if needed.
  std::string take_output();

 private:
  /// An inner layer, which is not a node of the graph, with the variables of its input and output.
  struct Inner {
    InnerNode node;
    std::string input, output;
    ExportLayout output_layout = ExportLayout::channels_last;
  };

  TorchBuilder& builder_;
  int number_;
  std::shared_ptr<Inner> inner_;  // null if the layer is a node of the graph
  const GraphNode* node_;
  Json options_;
  bool has_read_mask_ = false;
};

/// Builds the PyTorch class for a graph, which must outlive this object.
class TorchBuilder {
 public:
  /// Converts all layers. Throws UserError if a layer cannot be converted to PyTorch.
  explicit TorchBuilder(const Graph& graph);

  const std::vector<std::string>& constructors() const { return constructors_; }  ///< lines of __init__()
  const std::vector<std::string>& lines() const { return lines_; }                ///< lines of forward()
  const std::vector<TorchWeight>& weights() const { return weights_; }
  /// Returns the variable that holds an input of the graph. It is an argument of forward().
  const std::string& input(size_t index) const { return inputs_[index]; }
  /// Returns the variable that holds an output of the graph, channels last.
  std::string output(size_t index) { return read(graph_.outputs[index], ExportLayout::channels_last); }
  /// Adds a line to forward() that assigns the expression to a new variable. Returns the variable.
  std::string add(const std::string& expression);
  /// Returns the names of the layers, indexed by the names of their modules.
  const std::map<std::string, std::string>& layers() const { return layers_; }
  /// Returns a name that is neither reserved by Python or nn.Module nor already used in this class.
  std::string unique(const std::string& wanted);

 private:
  friend class TorchLayer;

  std::string read(ValueRef value, ExportLayout layout);
  ExportLayout layout_of(ValueRef value) const;

  const Graph& graph_;
  std::vector<std::string> constructors_, lines_, inputs_;
  std::vector<TorchWeight> weights_;
  std::map<int, std::string> modules_;  // names of modules, indexed by the node that owns the parameters
  std::map<std::string, std::string> layers_;
  std::set<std::string> names_;
  struct Variables {
    // The variables that hold the output with channels last and with channels first; "" if there is none yet.
    std::string last, first;
  };
  std::map<ValueRef, Variables> values_;
  int variables_ = 0;
};

/// Returns the weights of a graph as weights of PyTorch modules, for reading files. The modules have the
/// names of the layers. Throws UserError if a layer cannot be converted to PyTorch.
std::vector<TorchWeight> torch_weights(const Graph& graph);

}  // namespace dtrain
