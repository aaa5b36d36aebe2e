#include "config/schema.h"

#include "config/scalar.h"

namespace dtrain {

Json to_json(const ConfigNode& node) {
  if (node.is_null()) return {};
  if (node.is_sequence()) {
    Json array = Json::array();
    for (const ConfigNode& item : node.items()) array.push(to_json(item));
    return array;
  }
  if (node.is_mapping()) {
    Json object = Json::object();
    for (const auto& [key, value] : node.entries()) object.set(key.text(), to_json(value));
    return object;
  }
  const std::string& text = node.text();
  if (node.quoted()) return text;
  if (text == "true" || text == "false") return text == "true";
  int64_t integer = 0;
  if (parse_number(text, integer) == std::errc()) return integer;
  double number = 0;
  if (parse_number(text, number) == std::errc()) return number;
  return text;
}

void report_unknown_keys(const ConfigNode& node, const std::string& what, std::span<const std::string> known,
                         Diagnostics& diagnostics) {
  for (const auto& [key, value] : node.entries()) {
    if (std::find(known.begin(), known.end(), key.text()) != known.end()) continue;
    const std::string hint = known.empty() ? "; it has no options" : suggestion_or_list(key.text(), known);
    diagnostics.error(key, fmt::format("unknown key '{}' in {}{}", key.text(), what, hint));
  }
}

bool is_positional(const ConfigNode& node, std::span<const std::string> fields) {
  if (!node.is_mapping()) return !node.is_null();
  if (node.entries().size() != 1) return false;
  const std::string& key = node.entries().front().first.text();
  // A near miss of a field's name is a misspelt field: it gets the better message.
  return std::find(fields.begin(), fields.end(), key) == fields.end() && !is_near(key, fields);
}

namespace {
thread_local SchemaDefinitions* living = nullptr;
}

SchemaDefinitions::SchemaDefinitions() {
  if (living) throw std::logic_error("SchemaDefinitions live already");
  living = this;
}

SchemaDefinitions::~SchemaDefinitions() {
  living = nullptr;
}

Json SchemaDefinitions::define(std::string name, const std::function<Json()>& make) {
  if (!living) return make();
  std::replace(name.begin(), name.end(), ' ', '_');
  if (!living->definitions_.find(name)) {
    living->definitions_.set(name, Json());  // for what refers to itself
    Json made = make();
    living->definitions_.set(name, std::move(made));
  }
  return Json::object().set("$ref", "#/$defs/" + name);
}

}  // namespace dtrain
