#include "interop/torch/builder.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "config/schema.h"
#include "interop/graph_masks.h"
#include "interop/layer_formats.h"
#include "interop/permuted.h"

namespace dtrain {

namespace {

/// Returns the names that modules cannot have: the keywords of Python, the names that the script uses, and
/// the attributes of nn.Module.
const std::set<std::string>& taken_names() {
  static const std::set<std::string> names = [] {
    std::istringstream words(R"(
      False None True and as assert async await break class continue def del elif else except finally for
      from global if import in is lambda nonlocal not or pass raise return try while with yield F nn self
      torch average_pool
      T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double
      dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half
      ipu load_state_dict modules mtia named_buffers named_children named_modules named_parameters
      parameters register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
      register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
      register_load_state_dict_pre_hook register_module register_parameter register_state_dict_post_hook
      register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory state_dict to
      to_empty train training type xpu zero_grad)");
    return std::set<std::string>(std::istream_iterator<std::string>(words), {});
  }();
  return names;
}

std::string identifier(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  const bool is_good = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                       name[0] != '_' && !taken_names().contains(name);
  return is_good ? name : "layer_" + name;
}

/// Returns the expression that converts a batch to layout `to`: "x.permute(0, 3, 1, 2)" for images.
std::string permuted_expression(const std::string& variable, size_t rank, ExportLayout to) {
  std::string axes = "0";
  if (to == ExportLayout::channels_first) axes += fmt::format(", {}", rank);
  for (size_t i = 1; i < rank; ++i)
    axes += fmt::format(", {}", to == ExportLayout::channels_first ? i : i + 1);
  if (to == ExportLayout::channels_last) axes += ", 1";
  return fmt::format("{}.permute({})", variable, axes);
}

}  // namespace

TorchLayer::TorchLayer(TorchBuilder& builder, int node)
    : builder_(builder), number_(node), node_(&builder.graph_.nodes[static_cast<size_t>(node)]) {
  const ConfigNode options = options_of(node_->layer);
  options_ = options.is_null() ? Json::object() : to_json(options);
}

TorchLayer::TorchLayer(const TorchLayer& outer, InnerNode inner, std::string variable)
    : builder_(outer.builder_),
      number_(outer.number_),
      inner_(std::make_shared<Inner>(Inner{std::move(inner), std::move(variable), {}})),
      node_(&inner_->node.node),
      options_(inner_->node.options) {}

const TensorSpec& TorchLayer::input_spec(size_t input) const {
  if (inner_) return inner_->node.input;
  return builder_.graph_.spec(node_->inputs[input]);
}

ExportLayout TorchLayer::layout(size_t input) const {
  if (inner_) return ExportLayout::channels_last;
  return builder_.layout_of(node_->inputs[input]);
}

std::string TorchLayer::take_output() {
  const size_t rank = output_spec().shape.rank();
  if (rank < 2 || inner_->output_layout == ExportLayout::channels_last) return inner_->output;
  return add(permuted_expression(inner_->output, rank, ExportLayout::channels_last));
}

std::string TorchLayer::input(size_t input, ExportLayout layout) {
  if (inner_) {
    const size_t rank = inner_->node.input.shape.rank();
    const bool is_plain = rank < 2 || layout == ExportLayout::channels_last;
    return is_plain ? inner_->input : add(permuted_expression(inner_->input, rank, layout));
  }
  return builder_.read(node_->inputs[input], layout);
}

std::string TorchLayer::mask(size_t input) {
  has_read_mask_ = true;
  const ValueRef mask = mask_of_input(*node_, input);
  return mask == ValueRef() ? "" : builder_.values_.at(mask).last;
}

bool TorchLayer::needs_mask() const {
  return creates_read_mask(builder_.graph_, number_);
}

void TorchLayer::set_mask(const std::string& variable) {
  builder_.values_[mask_of_creator(builder_.graph_, number_)].last = variable;
}

bool TorchLayer::has_parameter(std::string_view name) const {
  return std::any_of(node_->parameters.begin(), node_->parameters.end(),
                     [&](const ParameterSpec& parameter) { return parameter.name == name; });
}

void TorchLayer::set_module(const std::string& constructor) {
  const int owner = builder_.graph_.owner(number_);
  std::string& name = builder_.modules_[owner];
  if (!name.empty()) return;
  const std::string& layer = builder_.graph_.nodes[static_cast<size_t>(owner)].name;
  name = builder_.unique(layer);
  builder_.layers_[name] = layer;
  builder_.constructors_.push_back(fmt::format("self.{} = {}", name, constructor));
}

void TorchLayer::weight(const std::string& name, std::string_view parameter, const std::vector<int64_t>& axes,
                        const Shape& shape) {
  if (node_->shared_with >= 0) return;  // the layer that owns the parameters has already added the module
  for (size_t i = 0; i < node_->parameters.size(); ++i) {
    if (node_->parameters[i].name != parameter) continue;
    Shape stored = axes.empty() ? node_->parameters[i].shape : permuted(node_->parameters[i].shape, axes);
    if (shape.rank() > 0) stored = shape;
    builder_.weights_.push_back(
        {builder_.modules_.at(number_), name, number_, static_cast<int>(i), 0, axes, stored});
    return;
  }
  throw std::logic_error(fmt::format("{} has no parameter '{}'", node_->kind, parameter));
}

void TorchLayer::weight_or(const std::string& name, std::string_view parameter, const Shape& shape,
                           float value) {
  if (has_parameter(parameter)) return weight(name, parameter);
  if (node_->shared_with < 0)
    builder_.weights_.push_back({builder_.modules_.at(number_), name, number_, -1, value, {}, shape});
}

std::string TorchLayer::module() const {
  return "self." + builder_.modules_.at(builder_.graph_.owner(number_));
}

std::string TorchLayer::add(const std::string& expression) {
  return builder_.add(expression);
}

void TorchLayer::set_output(const std::string& variable, ExportLayout layout) {
  if (inner_) {
    inner_->output = variable;
    inner_->output_layout = layout;
    return;
  }
  TorchBuilder::Variables& variables = builder_.values_[{number_, 0}];
  (layout == ExportLayout::channels_first && output_spec().shape.rank() >= 2 ? variables.first
                                                                             : variables.last) = variable;
}

TorchBuilder::TorchBuilder(const Graph& graph) : graph_(graph) {
  for (const int input : graph.inputs) {
    inputs_.push_back(unique(graph.nodes[static_cast<size_t>(input)].name));
    values_[{input, 0}].last = inputs_.back();
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.kind == "input") continue;
    const LayerFormats& formats = formats_of(node.kind);
    if (!formats.torch)
      throw UserError(fmt::format("{} '{}' cannot be exported to PyTorch yet", node.kind, node.name));
    TorchLayer layer(*this, static_cast<int>(i));
    formats.torch(layer);
    if (reads_masks(node) && !layer.has_read_mask())
      throw UserError(
          fmt::format("{} '{}' cannot be exported to PyTorch yet, because it reads a mask, which the export "
                      "does not support for this layer",
                      node.kind, node.name));
  }
}

std::string TorchBuilder::add(const std::string& expression) {
  std::string variable;
  do variable = fmt::format("v{}", variables_++);
  while (names_.contains(variable));  // an input may have the name v0
  lines_.push_back(fmt::format("{} = {}", variable, expression));
  return variable;
}

std::string TorchBuilder::unique(const std::string& wanted) {
  const std::string base = identifier(wanted);
  std::string name = base;
  for (int number = 1; !names_.insert(name).second; ++number) name = fmt::format("{}_{}", base, number);
  return name;
}

ExportLayout TorchBuilder::layout_of(ValueRef value) const {
  return values_.at(value).last.empty() ? ExportLayout::channels_first : ExportLayout::channels_last;
}

std::string TorchBuilder::read(ValueRef value, ExportLayout layout) {
  const size_t rank = graph_.spec(value).shape.rank();
  Variables& variables = values_.at(value);
  if (rank < 2) return variables.last;
  const bool first = layout == ExportLayout::channels_first;
  std::string& wanted = first ? variables.first : variables.last;
  if (wanted.empty())
    wanted = add(permuted_expression(first ? variables.last : variables.first, rank, layout));
  return wanted;
}

std::vector<TorchWeight> torch_weights(const Graph& graph) {
  const TorchBuilder builder(graph);
  std::vector<TorchWeight> weights = builder.weights();
  for (TorchWeight& weight : weights) weight.module = builder.layers().at(weight.module);
  return weights;
}

}  // namespace dtrain
