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
    return report_unexpected(node, where, "a name of at most 200 letters, digits, '_', '-' and '.'",
                             diagnostics);
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
                    "the inputs of the model: a mapping from their names to their shapes, or to {shape, "
                    "dtype}. `auto` means the shape of the samples in the training split")
          .optional("blocks", &ModelSpec::blocks,
                    "Reusable groups of layers, by name. A block is used like a layer.")
          .required("layers", &ModelSpec::layers,
                    "the layers of the model. A layer without `inputs` reads the layer above it")
          .optional("outputs", &ModelSpec::outputs,
                    "Layers whose outputs are the outputs of the model. Default: the last layer.")
          .optional(
              "freeze", &ModelSpec::freeze,
              "names or patterns (such as 'encoder/*') of the layers whose weights training does not change")
          .optional(
              "weights", &ModelSpec::weights,
              "Pretrained weights with which training starts. Default: new weights from the initializers.");
  return kSchema;
}

const Schema<InputSpec>& InputSpec::schema() {
  static const auto kSchema = Schema<InputSpec>("An input of the model.")
                                  .required("shape", &InputSpec::shape,
                                            "shape of one sample, without the batch axis. `auto` means the "
                                            "shape of the samples in the training split")
                                  .optional("dtype", &InputSpec::dtype, "type of the elements");
  return kSchema;
}

const Schema<RecomputeSegment>& RecomputeSegment::schema() {
  static const auto kSchema =
      Schema<RecomputeSegment>("Layers that are recomputed together.")
          .required("segment", &RecomputeSegment::name,
                    "name of the segment. The layers of a segment must be consecutive");
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
          .optional("name", &LayerKeys::name,
                    "Name of the layer. Default: the type of the layer, with a number if the name is already "
                    "used (`dense`, `dense_1`).")
          .optional("inputs", &LayerKeys::inputs,
                    "Layers or model inputs that the layer reads. Default: the layer above.")
          .optional("trainable", &LayerKeys::trainable, "whether training changes the layer's weights")
          .optional(
              "device", &LayerKeys::device,
              "Device that computes the layer under the strategy `placed`. It takes precedence over the "
              "patterns of the strategy. On a block, it is the default for the layers of the block.")
          .optional("recompute", &LayerKeys::recompute,
                    "If true, the backward pass recomputes the activations of the layer instead of keeping "
                    "them in memory. The results are the same, but a step takes longer. With `{segment: "
                    "NAME}`, consecutive layers with the same NAME are recomputed together. On a block, all "
                    "layers of the block are recomputed together, and their own `recompute` is ignored.");
  return kSchema;
}

}  // namespace

const Schema<LayerKeys>& LayerKeys::layer_schema() {
  static const auto kSchema =
      Schema<LayerKeys>(common_keys())
          .optional("shared_with", &LayerKeys::shared_with,
                    "An earlier layer of the same type. This layer uses the weights and the options of that "
                    "layer. A `dense` layer can also use the weights of an `embedding`. It then computes "
                    "activation(x @ transpose(embeddings)), and its only option is `activation`.")
          .optional("activity_regularizer", &LayerKeys::activity_regularizer,
                    "Penalty on the outputs of the layer, which is added to the loss. The penalty is summed "
                    "over the batch and divided by the number of samples. Default: no penalty.")
          .optional("ignore_mask", &LayerKeys::ignore_mask,
                    "If true, the layer treats padding as data, and its output has no mask. If false, an "
                    "error is reported if the input has a mask that the layer does not support.");
  return kSchema;
}

const Schema<LayerKeys>& LayerKeys::block_schema() {
  static const auto kSchema =
      Schema<LayerKeys>(common_keys())
          .optional(
              "shared_with", &LayerKeys::shared_with,
              "An earlier use of the same block. Each layer shares the weights of the corresponding layer in "
              "the earlier use. The parameters of the block are also taken from the earlier use.")
          .optional(
              "repeat", &LayerKeys::repeat,
              "Number of copies of the block in sequence. Each copy reads the output of the previous copy.",
              between<int64_t>(1, kMostRepeats));
  return kSchema;
}

LayerSpec take_keys(const ConfigNode& kind, const ConfigNode& options, const Schema<LayerKeys>& schema,
                    const std::vector<std::string>& fields, Diagnostics& diagnostics) {
  LayerSpec layer;
  layer.kind = kind;
  layer.options = options;
  if (!options.is_mapping()) return layer;
  const std::vector<std::string>& names = schema.field_names();
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
