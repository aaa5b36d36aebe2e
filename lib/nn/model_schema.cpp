// The JSON schema of the model section.
#include "config/schema_fields.h"
#include "nn/graph.h"
#include "nn/model_spec.h"

namespace dtrain {

namespace {

/// Returns the schema of one of the keys that every layer has, such as `name`.
Json layer_key(const std::string& name) {
  const Json keys =
      SchemaDefinitions::define("layer_keys", [] { return LayerKeys::layer_schema().json_schema(); });
  if (const Json* reference = keys.find("$ref"))
    return Json::object().set("$ref", reference->as_string() + "/properties/" + name);
  return *keys.find("properties")->find(name);
}

/// Returns the schema of a layer. It has one alternative per kind of layer, and the properties of an
/// alternative are the options of this kind and the common keys.
Json layer_schema() {
  return with_option_fields(registry<Layer>().choices_schema(), [](const Json& options) {
    Json fields = options;
    for (const std::string& name : LayerKeys::layer_schema().field_names()) fields.set(name, layer_key(name));
    return fields;
  });
}

/// Returns the schema of a use of a block: the name of the block, or an object with this name as its only
/// key. The names of blocks and parameters are not checked, because each file defines its own names.
Json block_use_schema() {
  Json reserved = Json::array();
  for (const std::string& name : registry<Layer>().names()) reserved.push(name);
  Json not_a_layer = Json::object().set("not", Json::object().set("enum", std::move(reserved)));
  const Json keys = LayerKeys::block_schema().json_schema();
  Json use = json_type("object").set("properties", *keys.find("properties"));
  Json nothing_or_use = Json::array();
  nothing_or_use.push(std::move(use)).push(json_type("null"));
  Json object = json_type("object")
                    .set("minProperties", 1)
                    .set("maxProperties", 1)
                    .set("propertyNames", not_a_layer)
                    .set("additionalProperties", Json::object().set("anyOf", std::move(nothing_or_use)));
  Json name = json_type("string");
  for (const auto& [key, value] : not_a_layer.entries()) name.set(key, value);
  Json choices = Json::array();
  choices.push(std::move(name)).push(std::move(object));
  return Json::object()
      .set("title", "block")
      .set("description", "A use of a block.")
      .set("anyOf", std::move(choices));
}

}  // namespace

Json model_json_schema() {
  Json model = ModelSpec::schema().json_schema();
  Json properties = *model.find("properties");
  const auto refine = [&](const char* name, const char* keyword, Json schema) {
    Json property = *properties.find(name);
    property.set(keyword, std::move(schema));
    properties.set(name, std::move(property));
  };
  refine("inputs", "type", "object");
  refine("inputs", "additionalProperties", InputSpec::schema().json_schema());
  // The options of layers in blocks are not checked, because they may contain $names instead of values.
  refine("blocks", "additionalProperties", block_json_schema());
  Json layer = Json::array();
  layer.push(SchemaDefinitions::define("layer", layer_schema));
  layer.push(block_use_schema());
  refine("layers", "items", Json::object().set("anyOf", std::move(layer)));
  return model.set("properties", std::move(properties));
}

}  // namespace dtrain
