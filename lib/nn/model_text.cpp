#include "nn/model_text.h"

#include <algorithm>

#include <fmt/format.h>

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

bool Codec<Name>::parse(const Node& node, const std::string& where, Name& out, Diagnostics& diagnostics) {
  if (!node.is_scalar() || !is_name(node.text()))
    return report_unexpected(
        node, where, "a name of letters, digits, '_', '-' and '.', at most 200 characters", diagnostics);
  out = {node.text(), node.mark()};
  return true;
}

bool Codec<Names>::parse(const Node& node, const std::string& where, Names& out, Diagnostics& diagnostics) {
  out.items = node.is_sequence() ? node.items() : std::vector<Node>{node};
  if (out.items.empty()) return report_unexpected(node, where, "a name or a list of names", diagnostics);
  bool good = true;
  for (const Node& item : out.items)
    if (!item.is_scalar()) good = report_unexpected(item, where, "a name", diagnostics);
  return good;
}

Node Codec<Names>::write(const Names& value) {
  return value.items.size() == 1 ? value.items.front() : Node::sequence(value.items);
}

Json Codec<Names>::schema() {
  Json choices = Json::array();
  choices.push(json_type("string"));
  choices.push(json_type("array").set("items", json_type("string")).set("minItems", 1));
  return Json::object().set("anyOf", std::move(choices));
}

Node write_names(const std::vector<std::string>& names) {
  Names all;
  for (const std::string& name : names) all.items.push_back(Codec<std::string>::write(name));
  return Codec<Names>::write(all);
}

const Schema<ModelText>& ModelText::schema() {
  static const auto kSchema =
      Schema<ModelText>("The network: a graph of layers.")
          .required("inputs", &ModelText::inputs, "name of each input: its shape, or {shape, dtype}")
          .optional("blocks", &ModelText::blocks, "pieces of graph by name, to be used like layers")
          .required("layers", &ModelText::layers, "the layers, each reading the one above unless it says")
          .optional("outputs", &ModelText::outputs, "the layers that are the model's outputs (the last one)");
  return kSchema;
}

const Schema<InputText>& InputText::schema() {
  static const auto kSchema =
      Schema<InputText>("An input of the model.")
          .required("shape", &InputText::shape, "of one sample, without the batch axis")
          .optional("dtype", &InputText::dtype, "of its elements")
          .positional("shape");
  return kSchema;
}

const Schema<LayerKeys>& LayerKeys::layer_schema() {
  static const auto kSchema =
      Schema<LayerKeys>("The keys of every layer.")
          .optional("name", &LayerKeys::name, "its name (the kind, numbered)")
          .optional("inputs", &LayerKeys::inputs, "the layers or model inputs that it reads (the one above)")
          .optional("trainable", &LayerKeys::trainable, "whether training changes its weights");
  return kSchema;
}

const Schema<LayerKeys>& LayerKeys::block_schema() {
  static const auto kSchema =
      Schema<LayerKeys>(layer_schema())
          .optional("repeat", &LayerKeys::repeat, "how often it is laid, each reading the one before",
                    between<int64_t>(1, kMostRepeats));
  return kSchema;
}

LayerText take_keys(const Node& kind, const Node& options, const Schema<LayerKeys>& schema,
                    const std::vector<std::string>& fields, Diagnostics& diagnostics) {
  LayerText text;
  text.kind = kind;
  text.options = options;
  if (!options.is_mapping()) return text;
  const std::vector<std::string> names = schema.field_names();
  std::vector<Node::Entry> common, own;
  for (const Node::Entry& entry : options.entries()) {
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
  text.options = Node::mapping(std::move(own), options.mark());
  schema.parse(Node::mapping(std::move(common), kind.mark()), kind.text(), text.keys, diagnostics);
  return text;
}

}  // namespace dtrain
