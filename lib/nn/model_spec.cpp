#include "nn/model_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/yaml/scalar.h"

namespace dtrain {

namespace {

constexpr size_t kLongestName = 200;
constexpr int64_t kMostRepeats = 10'000;

bool is_name_part(std::string_view part) {
  const auto alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !part.empty() && alphanumeric(part.front()) && std::all_of(part.begin(), part.end(), [&](char c) {
    return alphanumeric(c) || c == '-' || c == '.';
  });
}

bool is_name(std::string_view text) {
  if (text.size() > kLongestName) return false;
  for (;;) {
    const size_t slash = text.find('/');
    if (!is_name_part(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

}  // namespace

bool Codec<Name>::parse(const ConfigNode& node, const std::string& where, Name& out,
                        Diagnostics& diagnostics) {
  if (!node.is_scalar() || !is_name(node.text()))
    return report_unexpected(
        node, where, "a name of letters, digits, '_', '-' and '.', at most 200 characters", diagnostics);
  out = {node.text(), node.mark()};
  return true;
}

bool Codec<Names>::parse(const ConfigNode& node, const std::string& where, Names& out,
                         Diagnostics& diagnostics) {
  out.items = node.is_sequence() ? node.items() : std::vector<ConfigNode>{node};
  if (out.items.empty()) return report_unexpected(node, where, "a name or a list of names", diagnostics);
  bool good = true;
  for (const ConfigNode& item : out.items)
    if (!item.is_scalar()) good = report_unexpected(item, where, "a name", diagnostics);
  return good;
}

ConfigNode Codec<Names>::write(const Names& value) {
  return value.items.size() == 1 ? value.items.front() : ConfigNode::sequence(value.items);
}

Json Codec<Names>::schema() {
  Json choices = Json::array();
  choices.push(json_type("string"));
  choices.push(json_type("array").set("items", json_type("string")).set("minItems", 1));
  return Json::object().set("anyOf", std::move(choices));
}

ConfigNode write_names(const std::vector<std::string>& names) {
  Names all;
  for (const std::string& name : names) all.items.push_back(Codec<std::string>::write(name));
  return Codec<Names>::write(all);
}

const Schema<ModelSpec>& ModelSpec::schema() {
  static const auto kSchema =
      Schema<ModelSpec>("The network: a graph of layers.")
          .required("inputs", &ModelSpec::inputs,
                    "a mapping from the inputs' names to their shapes, or to {shape, dtype}; `auto`: the "
                    "shape of the samples in the training split")
          .optional("blocks", &ModelSpec::blocks,
                    "reusable groups of layers, by name; a block is used like a layer")
          .required("layers", &ModelSpec::layers,
                    "the layers; a layer without `inputs` reads the layer above")
          .optional("outputs", &ModelSpec::outputs,
                    "the layers whose outputs are the model's outputs; default: the last layer")
          .optional("freeze", &ModelSpec::freeze, "layers that training does not change, by name or pattern")
          .optional(
              "weights", &ModelSpec::weights,
              "pretrained weights that training starts with; default: new weights from the initializers");
  return kSchema;
}

const Schema<InputSpec>& InputSpec::schema() {
  static const auto kSchema = Schema<InputSpec>("An input of the model.")
                                  .required("shape", &InputSpec::shape,
                                            "shape of one sample, without the batch axis; `auto`: the shape "
                                            "of the samples in the training split")
                                  .optional("dtype", &InputSpec::dtype, "type of the elements");
  return kSchema;
}

const Schema<RecomputeSegment>& RecomputeSegment::schema() {
  static const auto kSchema = Schema<RecomputeSegment>("Layers that are recomputed together.")
                                  .required("segment", &RecomputeSegment::name,
                                            "name of the segment; its layers must be consecutive");
  return kSchema;
}

bool Codec<Recompute>::parse(const ConfigNode& node, const std::string& where, Recompute& out,
                             Diagnostics& diagnostics) {
  out = {};
  if (node.is_mapping()) {
    out.segment.emplace();
    out.on = RecomputeSegment::schema().parse(node, where, *out.segment, diagnostics);
    return out.on;
  }
  if (node.is_scalar() && parse_bool(node.text()))
    return Codec<bool>::parse(node, where, out.on, diagnostics);
  return report_unexpected(node, where, "true, false or {segment: NAME}", diagnostics);
}

ConfigNode Codec<Recompute>::write(const Recompute& value) {
  return value.segment ? RecomputeSegment::schema().write(*value.segment) : Codec<bool>::write(value.on);
}

Json Codec<Recompute>::schema() {
  // Only the form {segment: NAME} is in the schema. The short form `recompute: NAME` is not allowed, because
  // `recompute: yes` would be read as the name of a segment.
  const Json segment = RecomputeSegment::schema().json_schema();
  return Json::object().set(
      "anyOf", Json::array().push(json_type("boolean")).push(segment.at("anyOf").items().front()));
}

namespace {

/// Returns the schema of the keys that both layers and blocks have.
const Schema<LayerKeys>& common_keys() {
  static const auto kSchema =
      Schema<LayerKeys>("The keys of every layer.")
          .optional(
              "name", &LayerKeys::name,
              "name of the layer; default: its type, with a number if the name is taken (`dense`, `dense_1`)")
          .optional("inputs", &LayerKeys::inputs,
                    "the layers or model inputs that the layer reads; default: the layer above")
          .optional("trainable", &LayerKeys::trainable, "whether training changes the layer's weights")
          .optional("device", &LayerKeys::device,
                    "device that computes the layer under the strategy `placed`; takes precedence over the "
                    "strategy's patterns. On a block: the default for its layers")
          .optional("recompute", &LayerKeys::recompute,
                    "true: the backward pass recomputes the layer's activations, which are then not kept in "
                    "memory; the results are the same, and a step takes longer. On a block: its layers are "
                    "recomputed together, and their `recompute` is ignored. `{segment: NAME}`: consecutive "
                    "layers with the same NAME are recomputed together");
  return kSchema;
}

}  // namespace

const Schema<LayerKeys>& LayerKeys::layer_schema() {
  static const auto kSchema =
      Schema<LayerKeys>(common_keys())
          .optional("shared_with", &LayerKeys::shared_with,
                    "an earlier layer of the same type, whose weights and options this layer uses. A `dense` "
                    "layer can also use the weights of an `embedding`: it then computes activation(x @ "
                    "transpose(embeddings)), and its only option is `activation`")
          .optional("activity_regularizer", &LayerKeys::activity_regularizer,
                    "penalty on the layer's outputs, added to the loss: the sum over the batch divided by "
                    "the number of samples; default: none")
          .optional("ignore_mask", &LayerKeys::ignore_mask,
                    "true: the layer treats padding as data, and its output has no mask; false: a layer that "
                    "cannot handle the mask of its input is reported as an error");
  return kSchema;
}

const Schema<LayerKeys>& LayerKeys::block_schema() {
  static const auto kSchema = Schema<LayerKeys>(common_keys())
                                  .optional("shared_with", &LayerKeys::shared_with,
                                            "an earlier use of the same block, whose weights and parameters "
                                            "this use shares, layer by layer")
                                  .optional("repeat", &LayerKeys::repeat,
                                            "number of copies in sequence; each copy reads the previous one",
                                            between<int64_t>(1, kMostRepeats));
  return kSchema;
}

LayerSpec take_keys(const ConfigNode& kind, const ConfigNode& options, const Schema<LayerKeys>& schema,
                    const std::vector<std::string>& fields, Diagnostics& diagnostics) {
  LayerSpec layer;
  layer.kind = kind;
  layer.options = options;
  if (!options.is_mapping()) return layer;
  const std::vector<std::string> names = schema.field_names();
  std::vector<ConfigNode::Entry> common, own;
  for (const ConfigNode::Entry& entry : options.entries()) {
    const std::string& key = entry.first.text();
    if (std::find(names.begin(), names.end(), key) != names.end()) {
      common.push_back(entry);
      continue;
    }
    const bool is_field = std::find(fields.begin(), fields.end(), key) != fields.end();
    const std::string meant = is_field || !suggestion(key, fields).empty() ? "" : suggestion(key, names);
    if (meant.empty())
      own.push_back(entry);
    else
      diagnostics.error(entry.first, fmt::format("unknown key '{}' in {}{}", key, kind.text(), meant));
  }
  layer.options = ConfigNode::mapping(std::move(own), options.mark());
  schema.parse(ConfigNode::mapping(std::move(common), kind.mark()), kind.text(), layer.keys, diagnostics);
  return layer;
}

}  // namespace dtrain
