// Values that may be `auto`.
#pragma once

#include <optional>

#include "config/check.h"
#include "config/codec.h"

namespace dtrain {

/// A value, or `auto`. For `auto`, the program chooses the value from the data or from the rest of the
/// configuration.
template <class V>
struct OrAuto {
  std::optional<V> value;
  ConfigNode written;  // the scalar `auto` as written; null if a value is given

  OrAuto() = default;
  OrAuto(V given) : value(std::move(given)) {}
};

/// Returns true for `[auto]`, a list whose only item is the scalar `auto`.
inline bool is_list_of_auto(const ConfigNode& node) {
  if (!node.is_sequence() || node.items().size() != 1) return false;
  const ConfigNode& item = node.items().front();
  return item.is_scalar() && !item.quoted() && item.text() == "auto";
}

template <class V>
struct Codec<OrAuto<V>> {
  static bool parse(const ConfigNode& node, const std::string& where, OrAuto<V>& out,
                    Diagnostics& diagnostics) {
    out = {};
    if (node.is_scalar() && !node.quoted() && node.text() == "auto") {
      out.written = node;
      return true;
    }
    if (is_list_of_auto(node)) return report_unexpected(node, where, "auto without brackets", diagnostics);
    V value{};
    if (!Codec<V>::parse(node, where, value, diagnostics)) return false;
    out.value = std::move(value);
    return true;
  }
  static ConfigNode write(const OrAuto<V>& value) {
    return value.value ? Codec<V>::write(*value.value) : ConfigNode::scalar("auto");
  }
  static Json schema() {
    return Json::object().set(
        "anyOf", Json::array().push(Codec<V>::schema()).push(Json::object().set("const", "auto")));
  }
};

/// Converts a check of a value to a check of a value that may be `auto`. `auto` always passes.
template <class V>
Check<OrAuto<V>> or_auto(const Check<V>& check) {
  return {check.expected, [holds = check.holds](const OrAuto<V>& v) { return !v.value || holds(*v.value); },
          check.schema};
}

}  // namespace dtrain
