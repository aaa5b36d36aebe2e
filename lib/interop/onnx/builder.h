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

/// The interface that a conversion in lib/interop/layers uses for one layer: its options, its inputs, and
/// functions that add nodes.
class OnnxLayer {
 public:
  OnnxLayer(OnnxBuilder& builder, int node);
  /// Represents a layer that is an option of `outer` and has its parameters. `value`: the name of its input,
  /// channels last. take_output() returns its output.
  OnnxLayer(const OnnxLayer& outer, InnerNode inner, std::string value);

  const GraphNode& node() const { return *node_; }
  /// Returns the layer's options with all defaults filled in.
  const Json& options() const { return options_; }
  const TensorSpec& input_spec(size_t input = 0) const;
  const TensorSpec& output_spec() const { return node_->outputs[0]; }
  size_t inputs() const { return node_->inputs.size(); }
  /// Returns the operator set of the exported model.
  int64_t opset() const;
  /// Throws UserError if the model is exported for an older operator set.
  void require_opset(int64_t least) const;

  /// Returns the layout in which an input is available without a transpose.
  ExportLayout layout(size_t input = 0) const;
  /// Returns the name of an input in this layout; adds a transpose if needed.
  std::string input(size_t input, ExportLayout layout);

  /// Returns the mask of an input, [batch, positions] with 1 for valid positions and 0 for padding, in the
  /// compute type; "" if the input has none. A layer must get the masks that it reads from this function.
  std::string mask(size_t input = 0);
  /// States that the layer's predictions do not depend on the masks of its inputs.
  void ignore_masks() { has_read_mask_ = true; }
  /// Returns whether mask() or ignore_masks() was called.
  bool has_read_mask() const { return has_read_mask_; }
  /// Returns whether other layers read the mask that this layer creates.
  bool needs_mask() const;
  /// Returns whether the model computes in float16.
  bool is_float16() const;

  bool has_parameter(std::string_view name) const;
  /// Returns the initializer of a parameter, with Keras's axes permuted by `axes` and then reshaped to
  /// `shape`. Empty `axes` leave the axes unchanged, and an empty `shape` leaves the shape unchanged. Layers
  /// that share a parameter share the initializer.
  std::string parameter(std::string_view name, const std::vector<int64_t>& axes = {},
                        const Shape& shape = {});
  /// Returns the values of a parameter.
  std::span<const float> values(std::string_view parameter) const;
  /// Returns an initializer with values that were computed from the layer's parameters; `name` is unique
  /// within the layer. Layers that share parameters share the initializer.
  std::string array(const std::string& name, const Shape& shape, std::vector<float> values);
  /// Returns an initializer of floats, or of integers (for shapes, for example).
  std::string constant(float value);
  std::string constant(const std::vector<float>& values);
  std::string integers(const std::vector<int64_t>& values);
  /// Returns an initializer that is always float32, independent of the compute type (Resize's scales).
  std::string float32(const std::vector<float>& values);

  /// Adds a node with one output. Returns the output's name.
  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {});
  /// Sets the layer's output.
  void set_output(const std::string& value, ExportLayout layout);
  /// Sets the mask that this layer creates, in the form that mask() returns.
  void set_mask(const std::string& value);
  /// Returns the name of the output of an inner layer, channels last; adds a transpose if needed.
  std::string take_output();

 private:
  /// The values of an inner layer, which the graph does not have.
  struct Inner {
    InnerNode node;
    std::string input, output;
    ExportLayout output_layout = ExportLayout::channels_last;
  };

  std::string transposed(const std::string& value, size_t rank, ExportLayout to);

  OnnxBuilder& builder_;
  int number_;
  std::shared_ptr<Inner> inner_;  // null for a node of the graph
  const GraphNode* node_;
  Json options_;
  bool has_read_mask_ = false;
};

/// Collects the nodes of a whole model.
class OnnxBuilder {
 public:
  OnnxBuilder(const ExportedModel& model, int64_t opset, OnnxType compute_type);

  /// Builds the whole model. Throws UserError for a layer that this opset has no operator for.
  OnnxModel build();

 private:
  friend class OnnxLayer;

  void add_input(size_t index);
  void add_output(size_t index, const std::string& name);
  void rename(const std::string& value, const std::string& name);
  /// Adds a node with inputs `value` and `numbers`, for samples of this shape. Returns the output's name.
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
    std::string last, first;  // name in each layout (channels last, first); "": not available yet
  };
  std::map<ValueRef, Names> values_;
  std::map<std::tuple<int, size_t, std::vector<int64_t>, std::vector<int64_t>>, std::string> parameters_;
  // Names of arrays, by owner and name within the layer.
  std::map<std::pair<int, std::string>, std::string> arrays_;
  std::map<std::vector<float>, std::string> constants_;
  std::map<std::vector<int64_t>, std::string> integers_;
};

}  // namespace dtrain
