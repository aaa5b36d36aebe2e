// Writes a graph of layers as a class of PyTorch's, layer by layer: its modules, their weights, and the lines
// of forward().
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "interop/exported_model.h"
#include "nn/graph.h"

namespace dtrain {

/// One weight of a module: a parameter of a layer with its axes in another order and then in another shape.
struct TorchWeight {
  std::string module, name;   ///< "conv2d", "weight"
  int node = -1;              ///< the layer, an owner of its parameters
  int parameter = -1;         ///< its number there; -1: the module has to have the weight, the layer has none
  float value = 0;            ///< of all elements if there is no parameter
  std::vector<int64_t> axes;  ///< of the parameter, in the order of the weight; empty: as they are
  Shape shape;                ///< of the weight

  std::string key() const { return module + "." + name; }
};

class TorchBuilder;

/// One layer of the graph as its row in lib/interop/layers sees it.
class TorchLayer {
 public:
  TorchLayer(TorchBuilder& builder, int node);

  const GraphNode& node() const { return *node_; }
  /// The layer's options, all defaults written.
  const Json& options() const { return options_; }
  const TensorSpec& input_spec(size_t input = 0) const;
  const TensorSpec& output_spec() const { return node_->outputs[0]; }
  size_t inputs() const { return node_->inputs.size(); }

  /// The layout that an input has already.
  ExportLayout layout(size_t input = 0) const;
  /// The variable that holds an input in this layout.
  std::string input(size_t input, ExportLayout layout);

  bool has_parameter(std::string_view name) const;
  /// The module that computes the layer: "nn.Linear(4, 3)". Layers that share parameters share the module.
  void set_module(const std::string& constructor);
  /// The module's weight `name` is this parameter of the layer.
  void weight(const std::string& name, std::string_view parameter, const std::vector<int64_t>& axes = {},
              const Shape& shape = {});
  /// The same; where the layer has no such parameter, the weight is `value` all over.
  void weight_or(const std::string& name, std::string_view parameter, const Shape& shape, float value);
  /// "self.dense": the module in an expression.
  std::string module() const;

  /// Adds a line to forward(), and gives the variable that holds its value.
  std::string add(const std::string& expression);
  /// The layer's output is this variable.
  void set_output(const std::string& variable, ExportLayout layout);

 private:
  TorchBuilder& builder_;
  int number_;
  const GraphNode* node_;
  Json options_;
};

/// Collects the class. Refers to the graph.
class TorchBuilder {
 public:
  /// Takes all layers in. Throws UserError for one that has no row for PyTorch.
  explicit TorchBuilder(const Graph& graph);

  const std::vector<std::string>& constructors() const { return constructors_; }  ///< lines of __init__()
  const std::vector<std::string>& lines() const { return lines_; }                ///< of forward()
  const std::vector<TorchWeight>& weights() const { return weights_; }
  /// The variable of the graph's input, the parameter of forward().
  const std::string& input(size_t index) const { return inputs_[index]; }
  /// The variable that holds an output of the graph, channels last.
  std::string output(size_t index) { return read(graph_.outputs[index], ExportLayout::channels_last); }
  /// Adds a line behind all others, and gives its variable.
  std::string add(const std::string& expression);
  /// The layers' names by the modules' names.
  const std::map<std::string, std::string>& layers() const { return layers_; }
  /// A name that Python and nn.Module have not taken, nor this class before.
  std::string unique(const std::string& wanted);

 private:
  friend class TorchLayer;

  std::string read(ValueRef value, ExportLayout layout);
  ExportLayout layout_of(ValueRef value) const;

  const Graph& graph_;
  std::vector<std::string> constructors_, lines_, inputs_;
  std::vector<TorchWeight> weights_;
  std::map<int, std::string> modules_;  // by the owner of the parameters
  std::map<std::string, std::string> layers_;
  std::set<std::string> names_;
  struct Variables {
    std::string last, first;  // in either layout; "": there is none yet
  };
  std::map<ValueRef, Variables> values_;
  int variables_ = 0;
};

/// The weights of a graph as PyTorch's modules have them, for reading files: the layers' own names are the
/// modules'. Throws UserError for a layer that has no row for PyTorch.
std::vector<TorchWeight> torch_weights(const Graph& graph);

}  // namespace dtrain
