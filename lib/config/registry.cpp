#include "config/registry.h"

#include "config/scalar.h"

namespace dtrain {

std::optional<WrittenKind> take_apart(const ConfigNode& node, const std::string& noun,
                                      const std::string& number_kind, const std::string& number_field,
                                      Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    const bool number = !number_kind.empty() && !node.quoted() && reads_as_number(node.text());
    if (!number) return WrittenKind{node, ConfigNode()};
    const ConfigNode field = ConfigNode::scalar(number_field, false, node.mark());
    return WrittenKind{ConfigNode::scalar(number_kind, false, node.mark()),
                       ConfigNode::mapping({{field, node}}, node.mark())};
  }
  if (node.is_mapping() && node.entries().size() == 1)
    return WrittenKind{node.entries().front().first, node.entries().front().second};

  const std::string found =
      node.is_mapping() ? fmt::format("a mapping of {} keys", node.entries().size()) : node.describe();
  const std::string form = number_kind.empty() ? "" : "a number, ";
  diagnostics.error(
      node, fmt::format("{}: expected {}a name, or a mapping of one key, the name, to its options; found {}",
                        noun, form, found));
  return std::nullopt;
}

ConfigNode resolved_kind(const std::string& name, const Mark& mark, const ConfigNode& options) {
  const ConfigNode key = ConfigNode::scalar(name, false, mark);
  if (options.entries().empty()) return key;
  return ConfigNode::mapping({{key, options}}, mark);
}

void report_unknown_kind(const ConfigNode& name, const std::string& noun, std::span<const std::string> names,
                         Diagnostics& diagnostics) {
  diagnostics.error(
      name, fmt::format("unknown {} '{}'{}", noun, name.text(), suggestion_or_list(name.text(), names)));
}

Json kind_schema(const std::string& name, bool bare, Json options) {
  if (bare) {
    Json or_nothing = Json::array();
    or_nothing.push(std::move(options)).push(json_type("null"));
    options = Json::object().set("anyOf", std::move(or_nothing));
  }
  Json object = json_type("object");
  object.set("properties", Json::object().set(name, std::move(options)));
  Json required = Json::array();
  object.set("required", required.push(name)).set("additionalProperties", false);
  if (!bare) return object;
  Json choices = Json::array();
  choices.push(Json::object().set("const", name)).push(std::move(object));
  return Json::object().set("oneOf", std::move(choices));
}

namespace {
thread_local std::vector<const void*> open_tables;
}

SchemaDescent::SchemaDescent(const void* table)
    : again_(std::find(open_tables.begin(), open_tables.end(), table) != open_tables.end()) {
  open_tables.push_back(table);
}

SchemaDescent::~SchemaDescent() {
  open_tables.pop_back();
}

}  // namespace dtrain
