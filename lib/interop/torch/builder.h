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

/// One weight of a module: a parameter of a layer, permuted and then reshaped.
struct TorchWeight {
  std::string module, name;  ///< "conv2d", "weight"
  int node = -1;             ///< node that owns the parameter
  int parameter = -1;  ///< index of the parameter; -1: the module needs the weight, but the layer has none
  float value = 0;     ///< value of all elements if there is no parameter
  std::vector<int64_t> axes;  ///< permutation of the parameter's axes; empty: unchanged
  Shape shape;                ///< shape of the weight

  std::string key() const { return module + "." + name; }
};

class TorchBuilder;

/// The interface that a conversion in lib/interop/layers uses for one layer.
class TorchLayer {
 public:
  TorchLayer(TorchBuilder& builder, int node);
  /// Represents a layer that is an option of `outer` and has its parameters and module. `variable` holds its
  /// input, channels last. take_output() returns its output.
  TorchLayer(const TorchLayer& outer, InnerNode inner, std::string variable);

  const GraphNode& node() const { return *node_; }
  /// Returns the layer's options with all defaults filled in.
  const Json& options() const { return options_; }
  const TensorSpec& input_spec(size_t input = 0) const;
  const TensorSpec& output_spec() const { return node_->outputs[0]; }
  size_t inputs() const { return node_->inputs.size(); }

  /// Returns the layout in which an input is available without a permute.
  ExportLayout layout(size_t input = 0) const;
  /// Returns the variable that holds an input in this layout; adds a permute if needed.
  std::string input(size_t input, ExportLayout layout);

  /// Returns the variable of an input's mask, bool [batch, positions], true for valid positions; "" if the
  /// input has none. A layer must get the masks that it reads from this function.
  std::string mask(size_t input = 0);
  /// States that the layer's predictions do not depend on the masks of its inputs.
  void ignore_masks() { has_read_mask_ = true; }
  /// Returns whether mask() or ignore_masks() was called.
  bool has_read_mask() const { return has_read_mask_; }
  /// Returns whether other layers read the mask that this layer creates.
  bool needs_mask() const;

  bool has_parameter(std::string_view name) const;
  /// Sets the module that computes the layer: "nn.Linear(4, 3)". Layers that share parameters share the
  /// module.
  void set_module(const std::string& constructor);
  /// Stores a parameter of the layer as the module's weight `name`, permuted by `axes` and then reshaped to
  /// `shape`. Empty `axes` leave the axes unchanged, and an empty `shape` leaves the shape unchanged.
  void weight(const std::string& name, std::string_view parameter, const std::vector<int64_t>& axes = {},
              const Shape& shape = {});
  /// Like weight(), but fills the weight with `value` if the layer has no such parameter.
  void weight_or(const std::string& name, std::string_view parameter, const Shape& shape, float value);
  /// Returns the expression that refers to the module, such as "self.dense".
  std::string module() const;

  /// Adds a line to forward(). Returns the variable that holds the expression's value.
  std::string add(const std::string& expression);
  /// Sets the variable that holds the layer's output.
  void set_output(const std::string& variable, ExportLayout layout);
  /// Sets the variable of the mask that this layer creates, in the form that mask() returns.
  void set_mask(const std::string& variable);
  /// Returns the variable that holds the output of an inner layer, channels last; adds a permute if needed.
  std::string take_output();

 private:
  /// The values of an inner layer, which the graph does not have.
  struct Inner {
    InnerNode node;
    std::string input, output;
    ExportLayout output_layout = ExportLayout::channels_last;
  };

  TorchBuilder& builder_;
  int number_;
  std::shared_ptr<Inner> inner_;  // null for a node of the graph
  const GraphNode* node_;
  Json options_;
  bool has_read_mask_ = false;
};

/// Builds the class. Keeps a reference to the graph.
class TorchBuilder {
 public:
  /// Converts all layers. Throws UserError for a layer without a conversion to PyTorch.
  explicit TorchBuilder(const Graph& graph);

  const std::vector<std::string>& constructors() const { return constructors_; }  ///< lines of __init__()
  const std::vector<std::string>& lines() const { return lines_; }                ///< lines of forward()
  const std::vector<TorchWeight>& weights() const { return weights_; }
  /// Returns the variable of the graph's input, a parameter of forward().
  const std::string& input(size_t index) const { return inputs_[index]; }
  /// Returns the variable that holds an output of the graph, channels last.
  std::string output(size_t index) { return read(graph_.outputs[index], ExportLayout::channels_last); }
  /// Appends a line to forward(). Returns its variable.
  std::string add(const std::string& expression);
  /// Returns the layers' names, by module name.
  const std::map<std::string, std::string>& layers() const { return layers_; }
  /// Returns a name that is not reserved by Python or nn.Module and not used in this class.
  std::string unique(const std::string& wanted);

 private:
  friend class TorchLayer;

  std::string read(ValueRef value, ExportLayout layout);
  ExportLayout layout_of(ValueRef value) const;

  const Graph& graph_;
  std::vector<std::string> constructors_, lines_, inputs_;
  std::vector<TorchWeight> weights_;
  std::map<int, std::string> modules_;  // indexed by the node that owns the parameters
  std::map<std::string, std::string> layers_;
  std::set<std::string> names_;
  struct Variables {
    // Name of the output's variable in each layout (channels last, first); "": none yet.
    std::string last, first;
  };
  std::map<ValueRef, Variables> values_;
  int variables_ = 0;
};

/// Returns the weights of a graph in the form of PyTorch's modules, for reading files. The modules have the
/// names of the layers. Throws UserError for a layer without a conversion to PyTorch.
std::vector<TorchWeight> torch_weights(const Graph& graph);

}  // namespace dtrain
