#include "interop/keras/files/json.h"

namespace dtrain {

std::string text_at(const Json& object, const char* key) {
  const Json* value = value_at(object, key);
  return value && value->is_string() ? value->as_string() : "";
}

const Json* value_at(const Json& object, const char* key) {
  const Json* value = object.is_object() ? object.find(key) : nullptr;
  return value && !value->is_null() ? value : nullptr;
}

bool is_true_at(const Json& object, const char* key) {
  const Json* value = value_at(object, key);
  return value && value->is_bool() && value->as_bool();
}

}  // namespace dtrain
