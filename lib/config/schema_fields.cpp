#include "config/schema_fields.h"

namespace dtrain {

Json with_fields(const Json& schema, const ChangeFields& change) {
  Json result = schema;
  for (const char* keyword : {"anyOf", "oneOf"})
    if (const Json* choices = schema.find(keyword)) {
      Json changed = Json::array();
      for (const Json& choice : choices->items()) changed.push(with_fields(choice, change));
      result.set(keyword, std::move(changed));
    }
  if (const Json* properties = schema.find("properties")) result.set("properties", change(*properties));
  return result;
}

Json with_option_fields(const Json& kinds, const ChangeFields& change) {
  return with_fields(kinds, [&](const Json& properties) {
    Json changed = Json::object();
    for (const auto& [name, options] : properties.entries()) changed.set(name, with_fields(options, change));
    return changed;
  });
}

}  // namespace dtrain
