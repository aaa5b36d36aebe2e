#include "interop/onnx/builder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"
#include "config/schema.h"
#include "interop/graph_masks.h"
#include "interop/layer_formats.h"
#include "interop/permuted.h"

namespace dtrain {

namespace {

/// Returns the permutation that converts a batch to layout `to`. `rank`: the rank of a sample.
std::vector<int64_t> transpose_axes(size_t rank, ExportLayout to) {
  std::vector<int64_t> axes(rank + 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (to == ExportLayout::channels_first)
    std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
  else
    std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return axes;
}

OnnxType onnx_type(DType type) {
  switch (type) {
    case DType::int32:
      return OnnxType::int32;
    case DType::uint8:
      return OnnxType::uint8;
    default:
      return OnnxType::float32;
  }
}

}  // namespace

OnnxLayer::OnnxLayer(OnnxBuilder& builder, int node)
    : builder_(builder), number_(node), node_(&builder.model_.graph->nodes[static_cast<size_t>(node)]) {
  const ConfigNode options = options_of(node_->layer);
  options_ = options.is_null() ? Json::object() : to_json(options);
}

OnnxLayer::OnnxLayer(const OnnxLayer& outer, InnerNode inner, std::string value)
    : builder_(outer.builder_),
      number_(outer.number_),
      inner_(std::make_shared<Inner>(Inner{std::move(inner), std::move(value), {}})),
      node_(&inner_->node.node),
      options_(inner_->node.options) {}

const TensorSpec& OnnxLayer::input_spec(size_t input) const {
  if (inner_) return inner_->node.input;
  return builder_.model_.graph->spec(node_->inputs[input]);
}

int64_t OnnxLayer::opset() const {
  return builder_.onnx_.opset;
}

void OnnxLayer::require_opset(int64_t least) const {
  if (opset() < least)
    throw UserError(
        fmt::format("{} '{}' needs opset {} or later, but the export uses opset {}; use --opset {}",
                    node_->kind, node_->name, least, opset(), least));
}

ExportLayout OnnxLayer::layout(size_t input) const {
  if (inner_) return ExportLayout::channels_last;
  return builder_.layout_of(node_->inputs[input]);
}

std::string OnnxLayer::transposed(const std::string& value, size_t rank, ExportLayout to) {
  return add("Transpose", {value}, {{"perm", transpose_axes(rank, to)}});
}

std::string OnnxLayer::take_output() {
  const size_t rank = output_spec().shape.rank();
  if (rank < 2 || inner_->output_layout == ExportLayout::channels_last) return inner_->output;
  return transposed(inner_->output, rank, ExportLayout::channels_last);
}

std::string OnnxLayer::input(size_t input, ExportLayout layout) {
  if (inner_) {
    const size_t rank = inner_->node.input.shape.rank();
    const bool is_plain = rank < 2 || layout == ExportLayout::channels_last;
    return is_plain ? inner_->input : transposed(inner_->input, rank, layout);
  }
  return builder_.read(node_->inputs[input], layout);
}

std::string OnnxLayer::mask(size_t input) {
  has_read_mask_ = true;
  const ValueRef mask = mask_of_input(*node_, input);
  return mask == ValueRef() ? "" : builder_.values_.at(mask).last;
}

bool OnnxLayer::needs_mask() const {
  return creates_read_mask(*builder_.model_.graph, number_);
}

bool OnnxLayer::is_float16() const {
  return builder_.compute_type_ == OnnxType::float16;
}

void OnnxLayer::set_mask(const std::string& value) {
  builder_.values_[mask_of_creator(*builder_.model_.graph, number_)].last = value;
}

bool OnnxLayer::has_parameter(std::string_view name) const {
  return std::any_of(node_->parameters.begin(), node_->parameters.end(),
                     [&](const ParameterSpec& parameter) { return parameter.name == name; });
}

std::string OnnxLayer::parameter(std::string_view name, const std::vector<int64_t>& axes,
                                 const Shape& shape) {
  for (size_t i = 0; i < node_->parameters.size(); ++i)
    if (node_->parameters[i].name == name) return builder_.parameter(number_, i, axes, shape);
  throw std::logic_error(fmt::format("{} has no parameter '{}'", node_->kind, name));
}

std::span<const float> OnnxLayer::values(std::string_view parameter) const {
  for (size_t i = 0; i < node_->parameters.size(); ++i)
    if (node_->parameters[i].name == parameter)
      return builder_.model_.values(builder_.model_.graph->owner(number_), i);
  throw std::logic_error(fmt::format("{} has no parameter '{}'", node_->kind, parameter));
}

std::string OnnxLayer::array(const std::string& name, const Shape& shape, std::vector<float> values) {
  const int owner = builder_.model_.graph->owner(number_);
  std::string& known = builder_.arrays_[{owner, name}];
  if (known.empty())
    known = builder_.floats(builder_.model_.graph->nodes[static_cast<size_t>(owner)].name + "/" + name, shape,
                            std::move(values));
  return known;
}

std::string OnnxLayer::constant(float value) {
  return builder_.floats("constant", {}, {value});
}

std::string OnnxLayer::constant(const std::vector<float>& values) {
  return builder_.floats("constants", {static_cast<int64_t>(values.size())}, values);
}

std::string OnnxLayer::float32(const std::vector<float>& values) {
  const OnnxType inner = std::exchange(builder_.compute_type_, OnnxType::float32);
  const std::string name =
      builder_.floats(node_->name + "/numbers", {static_cast<int64_t>(values.size())}, values);
  builder_.compute_type_ = inner;
  return name;
}

std::string OnnxLayer::integers(const std::vector<int64_t>& values) {
  return builder_.integers(values);
}

std::string OnnxLayer::add(const std::string& op, std::vector<std::string> inputs,
                           std::vector<OnnxAttribute> attributes) {
  return builder_.add_node(node_->name, op, std::move(inputs), std::move(attributes));
}

void OnnxLayer::set_output(const std::string& value, ExportLayout layout) {
  if (inner_) {
    inner_->output = value;
    inner_->output_layout = layout;
    return;
  }
  OnnxBuilder::Names& names = builder_.values_[{number_, 0}];
  (layout == ExportLayout::channels_first && output_spec().shape.rank() >= 2 ? names.first : names.last) =
      value;
}

OnnxBuilder::OnnxBuilder(const ExportedModel& model, int64_t opset, OnnxType compute_type)
    : model_(model), compute_type_(compute_type) {
  onnx_.opset = opset;
  onnx_.name = model.name;
}

OnnxModel OnnxBuilder::build() {
  const Graph& graph = *model_.graph;
  for (const ExportedInput& input : model_.inputs) names_.insert(input.given.name);
  std::vector<std::string> outputs;
  for (const ExportedOutput& output : model_.outputs) outputs.push_back(unique(output.name));
  for (size_t i = 0; i < graph.inputs.size(); ++i) add_input(i);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.kind == "input") continue;
    const LayerFormats& formats = formats_of(node.kind);
    if (!formats.onnx)
      throw UserError(fmt::format("{} '{}' cannot be exported to ONNX yet", node.kind, node.name));
    OnnxLayer layer(*this, static_cast<int>(i));
    formats.onnx(layer);
    if (reads_masks(node) && !layer.has_read_mask())
      throw UserError(fmt::format(
          "{} '{}' cannot be exported to ONNX yet, because it reads a mask, which the export does "
          "not support for this layer",
          node.kind, node.name));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) add_output(i, outputs[i]);
  for (const auto& [key, value] : model_.metadata.entries())
    onnx_.metadata.emplace_back(key, value.is_string() ? value.as_string() : value.dump());
  return std::move(onnx_);
}

void OnnxBuilder::add_input(size_t index) {
  const ExportedInput& input = model_.inputs[index];
  const ValueRef ref{model_.graph->inputs[index]};
  const TensorSpec& wanted = model_.graph->spec(ref);
  const OnnxType type = onnx_type(input.given.dtype);
  onnx_.inputs.push_back({input.given.name, type, input.given.shape});
  std::string value = input.given.name;
  const OnnxType to = wanted.dtype == DType::float32 ? compute_type_ : onnx_type(wanted.dtype);
  if (to != type) value = add_node(value, "Cast", {value}, {{"to", static_cast<int64_t>(to)}});
  if (!input.scale.empty()) {
    value = add_numbers(input.given.name, "Sub", value, input.center, input.given.shape);
    value = add_numbers(input.given.name, "Mul", value, input.scale, input.given.shape);
  }
  if (wanted.shape != input.given.shape) {
    std::vector<int64_t> shape = {0};  // 0 stands for the batch size
    shape.insert(shape.end(), wanted.shape.begin(), wanted.shape.end());
    value = add_node(input.given.name, "Reshape", {value, integers(shape)}, {});
  }
  values_[ref].last = value;
}

void OnnxBuilder::add_output(size_t index, const std::string& name) {
  const ExportedOutput& output = model_.outputs[index];
  const TensorSpec& spec = model_.graph->spec(model_.graph->outputs[index]);
  std::string value = read(model_.graph->outputs[index], ExportLayout::channels_last);
  if (output.finish == ExportedOutput::Finish::softmax)
    value = add_node(name, "Softmax", {value}, {{"axis", int64_t{-1}}});
  if (output.finish == ExportedOutput::Finish::sigmoid) value = add_node(name, "Sigmoid", {value}, {});
  const OnnxType inner = std::exchange(compute_type_, OnnxType::float32);
  if (spec.dtype == DType::float32 && inner != OnnxType::float32)
    value = add_node(name, "Cast", {value}, {{"to", static_cast<int64_t>(OnnxType::float32)}});
  if (!output.scale.empty()) {
    value = add_numbers(name, "Mul", value, output.scale.scale, spec.shape);
    value = add_numbers(name, "Add", value, output.scale.offset, spec.shape);
  }
  compute_type_ = inner;
  // Renames the value to the output's name. If the value is an input of the graph or is already another
  // output, adds an Identity node instead.
  const bool has_own_name = std::none_of(onnx_.nodes.begin(), onnx_.nodes.end(),
                                         [&](const OnnxNode& node) { return node.outputs[0] == value; }) ||
                            std::any_of(onnx_.outputs.begin(), onnx_.outputs.end(),
                                        [&](const OnnxValue& other) { return other.name == value; });
  if (has_own_name)
    onnx_.nodes.push_back({"Identity", unique(name + "/Identity"), {value}, {name}, {}});
  else
    rename(value, name);
  onnx_.outputs.push_back({name, onnx_type(spec.dtype), spec.shape});
}

void OnnxBuilder::rename(const std::string& value, const std::string& name) {
  for (OnnxNode& node : onnx_.nodes) {
    std::replace(node.outputs.begin(), node.outputs.end(), value, name);
    std::replace(node.inputs.begin(), node.inputs.end(), value, name);
  }
  for (auto& [ref, names] : values_) {
    if (names.last == value) names.last = name;
    if (names.first == value) names.first = name;
  }
}

std::string OnnxBuilder::add_numbers(const std::string& place, const std::string& op,
                                     const std::string& value, const std::vector<double>& numbers,
                                     const Shape& sample) {
  const std::string operand =
      floats(place + "/" + op + "/numbers", shape_of_numbers(numbers, sample), narrowed(numbers));
  return add_node(place, op, {value, operand}, {});
}

std::string OnnxBuilder::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int number = 1; !names_.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
  return name;
}

std::string OnnxBuilder::add_node(const std::string& place, const std::string& op,
                                  std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes) {
  std::string name = unique(place + "/" + op);
  onnx_.nodes.push_back({op, name, std::move(inputs), {name}, std::move(attributes)});
  return name;
}

ExportLayout OnnxBuilder::layout_of(ValueRef value) const {
  return values_.at(value).last.empty() ? ExportLayout::channels_first : ExportLayout::channels_last;
}

std::string OnnxBuilder::read(ValueRef value, ExportLayout layout) {
  const size_t rank = model_.graph->spec(value).shape.rank();
  Names& names = values_.at(value);
  if (rank < 2) return names.last;
  const bool first = layout == ExportLayout::channels_first;
  std::string& wanted = first ? names.first : names.last;
  if (wanted.empty())
    wanted = add_node(model_.graph->nodes[static_cast<size_t>(value.node)].name, "Transpose",
                      {first ? names.last : names.first}, {{"perm", transpose_axes(rank, layout)}});
  return wanted;
}

std::string OnnxBuilder::floats(const std::string& wanted, const Shape& shape, std::vector<float> values) {
  const bool is_constant = shape.rank() == 0;
  if (is_constant) {
    if (const auto found = constants_.find(values); found != constants_.end()) return found->second;
    constants_[values] = fmt::format("constant/{}", values[0]);
  }
  const std::string name = unique(is_constant ? constants_[values] : wanted);
  if (is_constant) constants_[values] = name;
  if (compute_type_ == OnnxType::float16)
    for (const float value : values)
      if (std::abs(value) > kMostFloat16)
        throw UserError(
            fmt::format("{}: expected numbers in the range of float16, which is up to {}, but found {}; "
                        "export without --float16",
                        name, kMostFloat16, value));
  onnx_.initializers.push_back({name, compute_type_, shape, std::move(values), {}});
  return name;
}

std::string OnnxBuilder::integers(const std::vector<int64_t>& values) {
  std::string& name = integers_[values];
  if (!name.empty()) return name;
  name = unique("integers");
  onnx_.initializers.push_back({name, OnnxType::int64, {static_cast<int64_t>(values.size())}, {}, values});
  return name;
}

std::string OnnxBuilder::parameter(int node, size_t index, const std::vector<int64_t>& axes,
                                   const Shape& shape) {
  const int owner = model_.graph->owner(node);
  std::string& name = parameters_[{owner, index, axes, shape.extents()}];
  if (!name.empty()) return name;
  const GraphNode& layer = model_.graph->nodes[static_cast<size_t>(owner)];
  const ParameterSpec& spec = layer.parameters[index];
  const std::span<const float> values = model_.values(owner, index);
  Shape stored = axes.empty() ? spec.shape : permuted(spec.shape, axes);
  if (shape.rank() > 0) stored = shape;
  name = floats(
      layer.name + "/" + spec.name, stored,
      axes.empty() ? std::vector<float>(values.begin(), values.end()) : permuted(values, spec.shape, axes));
  return name;
}

}  // namespace dtrain
