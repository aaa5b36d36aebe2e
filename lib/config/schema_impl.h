// The definitions for schema.h; include that.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <type_traits>

#include <fmt/format.h>

namespace dtrain {

/// The value as JSON: plain scalars by what they read as.
Json to_json(const ConfigNode& node);
/// Reports every key of `node` (a mapping) that is not in `known`.
void report_unknown_keys(const ConfigNode& node, const std::string& what, std::span<const std::string> known,
                         Diagnostics& diagnostics);
/// Whether a positional value, not a mapping of fields, was meant: see Schema::positional.
bool is_positional(const ConfigNode& node, std::span<const std::string> fields);

/// A check of numbers; an optional one without a value passes.
template <class V, class Holds>
Check<V> number_check(std::string expected, Holds holds, Json schema) {
  const auto passes = [holds](const V& value) {
    if constexpr (requires { value.has_value(); })
      return !value || holds(*value);
    else
      return holds(value);
  };
  return {std::move(expected), passes, std::move(schema)};
}

/// The number in a bound, which may be written as an optional.
template <class V>
auto bound(const V& value) {
  if constexpr (requires { value.value(); })
    return value.value();
  else
    return value;
}

template <class N>
Json json_number(N value) {
  if constexpr (std::integral<N>)
    return Json(static_cast<int64_t>(value));
  else
    return Json(static_cast<double>(value));
}

template <class V>
Check<V> at_least(V low) {
  const auto limit = bound(low);
  return number_check<V>(
      fmt::format("a number of at least {}", limit), [limit](const auto& value) { return value >= limit; },
      Json::object().set("minimum", json_number(limit)));
}

template <class V>
Check<V> greater_than(V low) {
  const auto limit = bound(low);
  return number_check<V>(
      fmt::format("a number greater than {}", limit), [limit](const auto& value) { return value > limit; },
      Json::object().set("exclusiveMinimum", json_number(limit)));
}

template <class V>
Check<V> between(V low, V high) {
  const auto least = bound(low), most = bound(high);
  return number_check<V>(
      fmt::format("a number from {} to {}", least, most),
      [least, most](const auto& value) { return value >= least && value <= most; },
      Json::object().set("minimum", json_number(least)).set("maximum", json_number(most)));
}

template <class V>
Check<V> between_excluding_high(V low, V high) {
  const auto least = bound(low), limit = bound(high);
  return number_check<V>(
      fmt::format("a number of at least {} and less than {}", least, limit),
      [least, limit](const auto& value) { return value >= least && value < limit; },
      Json::object().set("minimum", json_number(least)).set("exclusiveMaximum", json_number(limit)));
}

template <class T>
template <class V>
Schema<T>& Schema<T>::required(std::string name, V T::*member, std::string doc, Check<V> check) {
  return add(std::move(name), member, std::move(doc), std::move(check), true);
}

template <class T>
template <class V>
Schema<T>& Schema<T>::optional(std::string name, V T::*member, std::string doc, Check<V> check) {
  return add(std::move(name), member, std::move(doc), std::move(check), false);
}

template <class T>
template <class V>
Schema<T>& Schema<T>::add(std::string name, V T::*member, std::string doc, Check<V> check, bool required) {
  Field field{std::move(name), std::move(doc), required, {}, {}, {}};
  field.parse = [member, check](const ConfigNode& node, const std::string& where, T& out,
                                Diagnostics& diagnostics) {
    V value = out.*member;
    const bool well_formed = Codec<V>::parse(node, where, value, diagnostics);
    // What fails a check is not taken, for nobody else may rely on it.
    if (well_formed && check.holds && !check.holds(value))
      return report_unexpected(node, where, check.expected, diagnostics);
    out.*member = std::move(value);  // of a list, what is good even where the rest is not
    return well_formed;
  };
  field.write = [member](const T& value) { return Codec<V>::write(value.*member); };
  field.schema = [schema = check.schema] {
    Json json = Codec<V>::schema();
    for (const auto& [key, value] : schema.entries()) json.set(key, value);
    return json;
  };
  fields_.push_back(std::move(field));
  return *this;
}

template <class T>
Schema<T>& Schema<T>::positional(std::string name) {
  if (!find(name)) throw std::logic_error("positional: no field '" + name + "'");
  positional_ = std::move(name);
  return *this;
}

template <class T>
Schema<T>& Schema<T>::rule(std::function<void(const T&, const ConfigNode&, Diagnostics&)> rule) {
  rules_.push_back(std::move(rule));
  return *this;
}

template <class T>
Schema<T>& Schema<T>::details(std::vector<std::string> names) {
  for (const std::string& name : names)
    if (!find(name)) throw std::logic_error("details: no field '" + name + "'");
  details_ = std::move(names);
  return *this;
}

template <class T>
bool Schema<T>::is_detail(std::string_view name) const {
  return details_ && std::find(details_->begin(), details_->end(), name) != details_->end();
}

/// Whether an unknown key does not look like one that counts.
template <class T>
bool Schema<T>::is_harmless(const std::string& unknown_key) const {
  std::vector<std::string> counting;
  for (const Field& field : fields_)
    if (!is_detail(field.name)) counting.push_back(field.name);
  const std::string meant = suggestion(unknown_key, field_names());
  return std::none_of(counting.begin(), counting.end(), [&](const std::string& name) {
    return meant.find("'" + name + "'") != std::string::npos;
  });
}

template <class T>
const typename Schema<T>::Field* Schema<T>::find(std::string_view name) const {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.name == name; });
  return found == fields_.end() ? nullptr : &*found;
}

template <class T>
ConfigNode Schema<T>::spelled_out(const ConfigNode& node) const {
  if (node.is_null()) return ConfigNode::mapping({}, node.mark());
  if (positional_.empty() || !is_positional(node, field_names())) return node;
  return ConfigNode::mapping({{ConfigNode::scalar(positional_, false, node.mark()), node}}, node.mark());
}

template <class T>
typename Schema<T>::Reading Schema<T>::read(const ConfigNode& node, const std::string& what, T& out,
                                            Diagnostics& diagnostics) const {
  const ConfigNode fields = spelled_out(node);
  if (!fields.is_mapping()) {
    report_unexpected(node, what, "a mapping", diagnostics);
    return Reading::wrong;
  }
  const size_t before = diagnostics.count();
  bool counts = !details_;  // whether a mistake is in more than details
  report_unknown_keys(fields, what, field_names(), diagnostics);
  if (diagnostics.count() != before && !counts)
    for (const auto& [key, value] : fields.entries())
      if (!find(key.text()) && !is_harmless(key.text())) counts = true;
  for (const Field& field : fields_) {
    if (const ConfigNode* value = fields.find(field.name)) {
      if (!field.parse(*value, fmt::format("{}'s {}", what, field.name), out, diagnostics))
        counts = counts || !is_detail(field.name);
    } else if (field.required) {
      diagnostics.error(fields, fmt::format("missing key '{}' in {} ({})", field.name, what, field.doc));
      counts = counts || !is_detail(field.name);
    }
  }
  if (diagnostics.count() == before) {
    for (const auto& rule : rules_) rule(out, fields, diagnostics);
    counts = true;
  }
  if (diagnostics.count() == before) return Reading::good;
  return counts ? Reading::wrong : Reading::in_details;
}

template <class T>
ConfigNode Schema<T>::write(const T& value) const {
  std::vector<ConfigNode::Entry> entries;
  for (const Field& field : fields_) entries.push_back(ConfigNode::entry(field.name, field.write(value)));
  return ConfigNode::mapping(std::move(entries));
}

template <class T>
Json Schema<T>::json_schema() const {
  const T defaults{};
  Json properties = Json::object(), required = Json::array();
  for (const Field& field : fields_) {
    Json property = field.schema();
    property.set("description", field.doc);
    if (field.required)
      required.push(field.name);
    else
      property.set("default", to_json(field.write(defaults)));
    properties.set(field.name, std::move(property));
  }
  Json object = json_type("object");
  object.set("description", doc_).set("properties", std::move(properties));
  if (!required.items().empty()) object.set("required", std::move(required));
  object.set("additionalProperties", false);
  if (positional_.empty()) return object;
  Json choices = Json::array();
  choices.push(std::move(object)).push(find(positional_)->schema());
  return Json::object().set("anyOf", std::move(choices));
}

template <class T>
std::vector<std::string> Schema<T>::field_names() const {
  std::vector<std::string> names;
  for (const Field& field : fields_) names.push_back(field.name);
  return names;
}

template <class T>
bool Schema<T>::has_required() const {
  return std::any_of(fields_.begin(), fields_.end(), [](const Field& field) { return field.required; });
}

/// A struct inside a struct: its own schema says how it is written.
template <class T>
requires requires {
  { T::schema() } -> std::same_as<const Schema<T>&>;
}
struct Codec<T> {
  static bool parse(const ConfigNode& node, const std::string& where, T& out, Diagnostics& diagnostics) {
    return T::schema().parse(node, where, out, diagnostics);
  }
  static ConfigNode write(const T& value) { return T::schema().write(value); }
  static Json schema() { return T::schema().json_schema(); }
};

}  // namespace dtrain
