// Writes a graph of layers as an ONNX graph, layer by layer.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/json.h"
#include "interop/exported_model.h"
#include "interop/onnx/model.h"

namespace dtrain {

class OnnxBuilder;

/// One layer of the graph as its row in lib/interop/layers sees it: its options, its inputs, and the nodes
/// that the row adds.
class OnnxLayer {
 public:
  OnnxLayer(OnnxBuilder& builder, int node);

  const GraphNode& node() const { return *node_; }
  /// The layer's options, all defaults written.
  const Json& options() const { return options_; }
  const TensorSpec& input_spec(size_t input = 0) const;
  const TensorSpec& output_spec() const { return node_->outputs[0]; }
  size_t inputs() const { return node_->inputs.size(); }
  /// Throws UserError if the model is written for an older version of the operators.
  void require_opset(int64_t least) const;

  /// The layout that an input has already, so that no transpose is needed.
  ExportLayout layout(size_t input = 0) const;
  /// The name of an input in this layout.
  std::string input(size_t input, ExportLayout layout);

  bool has_parameter(std::string_view name) const;
  /// The initializer of a parameter with its axes in the order `axes` of Keras's and then in `shape`; empty:
  /// as they are. Layers that share a parameter share the initializer.
  std::string parameter(std::string_view name, const std::vector<int64_t>& axes = {},
                        const Shape& shape = {});
  /// An initializer of floats, or of integers (for shapes and the like).
  std::string constant(float value);
  std::string constant(const std::vector<float>& values);
  std::string integers(const std::vector<int64_t>& values);
  /// An initializer of float32, whatever the model computes with (Resize's scales).
  std::string float32(const std::vector<float>& values);

  /// Adds a node of one output, and gives the output's name.
  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {});
  /// The layer's output is this value.
  void set_output(const std::string& value, ExportLayout layout);

 private:
  OnnxBuilder& builder_;
  int number_;
  const GraphNode* node_;
  Json options_;
};

/// Collects the nodes of a whole model.
class OnnxBuilder {
 public:
  OnnxBuilder(const ExportedModel& model, int64_t opset, OnnxType compute_type);

  /// The whole model. Throws UserError for a layer that this opset has no operator for.
  OnnxModel build();

 private:
  friend class OnnxLayer;

  void add_input(size_t index);
  void add_output(size_t index, const std::string& name);
  void rename(const std::string& value, const std::string& name);
  /// A node whose second input are these numbers, for samples of this shape.
  std::string add_numbers(const std::string& place, const std::string& op, const std::string& value,
                          const std::vector<double>& numbers, const Shape& sample);
  std::string unique(const std::string& wanted);
  std::string add_node(const std::string& place, const std::string& op, std::vector<std::string> inputs,
                       std::vector<OnnxAttribute> attributes);
  std::string read(ValueRef value, ExportLayout layout);
  ExportLayout layout_of(ValueRef value) const;
  std::string floats(const std::string& wanted, const Shape& shape, std::vector<float> values);
  std::string integers(const std::vector<int64_t>& values);
  std::string parameter(int node, size_t index, const std::vector<int64_t>& axes, const Shape& shape);

  const ExportedModel& model_;
  OnnxType compute_type_;
  OnnxModel onnx_;
  std::set<std::string> names_;  // of values, nodes and initializers
  struct Names {
    std::string last, first;  // in either layout; "": not written yet
  };
  std::map<ValueRef, Names> values_;
  std::map<std::tuple<int, size_t, std::vector<int64_t>, std::vector<int64_t>>, std::string> parameters_;
  std::map<std::vector<float>, std::string> constants_;
  std::map<std::vector<int64_t>, std::string> integers_;
};

}  // namespace dtrain
