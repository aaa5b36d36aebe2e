// Writes a graph of layers as an ONNX graph, layer by layer.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/json.h"
#include "interop/exported_model.h"
#include "interop/onnx/model.h"

namespace dtrain {

class OnnxBuilder;

/// The interface through which a conversion in lib/interop/layers exports one layer. It provides the layer's
/// options and inputs, and functions that add ONNX nodes.
class OnnxLayer {
 public:
  OnnxLayer(OnnxBuilder& builder, int node);
  /// Represents a layer that is given as an option of `outer`. The layer has the parameters of `outer`.
  /// `value`: the name of the layer's input, channels last. Call take_output() to get its output.
  OnnxLayer(const OnnxLayer& outer, InnerNode inner, std::string value);

  const GraphNode& node() const { return *node_; }
  /// Returns the layer's options with all defaults filled in.
  const Json& options() const { return options_; }
  const TensorSpec& input_spec(size_t input = 0) const;
  const TensorSpec& output_spec() const { return node_->outputs[0]; }
  size_t inputs() const { return node_->inputs.size(); }
  /// Returns the ONNX operator set version of the exported model.
  int64_t opset() const;
  /// Throws UserError if the model is exported for an operator set version below `least`.
  void require_opset(int64_t least) const;

  /// Returns the layout in which an input is available without a transpose.
  ExportLayout layout(size_t input = 0) const;
  /// Returns the name of an input in this layout. Adds a Transpose node if the input is not available in this
  /// layout yet.
  std::string input(size_t input, ExportLayout layout);

  /// Returns the mask of an input: an array [batch, positions] of the compute type, with 1 for valid
  /// positions and 0 for padding. Returns "" if the input has no mask. A layer that reads masks must get them
  /// from this function.
  std::string mask(size_t input = 0);
  /// Declares that the layer's predictions do not depend on the masks of its inputs.
  void ignore_masks() { has_read_mask_ = true; }
  /// Returns whether mask() or ignore_masks() was called.
  bool has_read_mask() const { return has_read_mask_; }
  /// Returns whether other layers read the mask that this layer creates.
  bool needs_mask() const;
  /// Returns whether the model computes in float16.
  bool is_float16() const;

  bool has_parameter(std::string_view name) const;
  /// Returns the initializer of a parameter. The axes of the array in Keras's layout are permuted by `axes`,
  /// and the result is reshaped to `shape`. If `axes` or `shape` is empty, the array is not permuted or not
  /// reshaped. Layers that share a parameter also share its initializer.
  std::string parameter(std::string_view name, const std::vector<int64_t>& axes = {},
                        const Shape& shape = {});
  /// Returns the values of a parameter.
  std::span<const float> values(std::string_view parameter) const;
  /// Returns an initializer for values that the conversion computed from the layer's parameters. `name` must
  /// be unique within the layer. Layers that share parameters also share the initializer.
  std::string array(const std::string& name, const Shape& shape, std::vector<float> values);
  /// Returns an initializer of floats in the compute type. integers() returns an initializer of int64, for
  /// example for a shape.
  std::string constant(float value);
  std::string constant(const std::vector<float>& values);
  std::string integers(const std::vector<int64_t>& values);
  /// Returns an initializer that is float32 even if the compute type is float16. Resize needs it for its
  /// scales.
  std::string float32(const std::vector<float>& values);

  /// Adds a node with one output. Returns the name of the output.
  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {});
  /// Sets the layer's output.
  void set_output(const std::string& value, ExportLayout layout);
  /// Sets the mask that this layer creates. It must have the format that mask() returns.
  void set_mask(const std::string& value);
  /// Returns the name of the output of an inner layer, channels last. Adds a Transpose node if needed.
  std::string take_output();

 private:
  /// An inner layer, which is not a node of the graph, with its input and output.
  struct Inner {
    InnerNode node;
    std::string input, output;
    ExportLayout output_layout = ExportLayout::channels_last;
  };

  std::string transposed(const std::string& value, size_t rank, ExportLayout to);

  OnnxBuilder& builder_;
  int number_;
  std::shared_ptr<Inner> inner_;  // null if the layer is a node of the graph
  const GraphNode* node_;
  Json options_;
  bool has_read_mask_ = false;
};

/// Builds the ONNX model from the nodes that the layers add.
class OnnxBuilder {
 public:
  OnnxBuilder(const ExportedModel& model, int64_t opset, OnnxType compute_type);

  /// Builds the whole model. Throws UserError if a layer needs an operator that this opset does not contain.
  OnnxModel build();

 private:
  friend class OnnxLayer;

  void add_input(size_t index);
  void add_output(size_t index, const std::string& name);
  void rename(const std::string& value, const std::string& name);
  /// Adds a binary operator `op` with the inputs `value` and `numbers`. `sample`: the shape of one sample of
  /// `value`. Returns the name of the output.
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
  std::set<std::string> names_;  // names of values, nodes and initializers
  struct Names {
    // name of the value with channels last and channels first; "": not available in this layout yet
    std::string last, first;
  };
  std::map<ValueRef, Names> values_;
  std::map<std::tuple<int, size_t, std::vector<int64_t>, std::vector<int64_t>>, std::string> parameters_;
  // Names of arrays, indexed by the node that owns the parameters and the name within the layer.
  std::map<std::pair<int, std::string>, std::string> arrays_;
  std::map<std::vector<float>, std::string> constants_;
  std::map<std::vector<int64_t>, std::string> integers_;
};

}  // namespace dtrain
