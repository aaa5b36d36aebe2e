// Specializations for codec.h; include codec.h instead.
#pragma once

namespace dtrain {

template <>
struct Codec<bool> {
  static bool parse(const ConfigNode& node, const std::string& where, bool& out, Diagnostics& diagnostics);
  static ConfigNode write(bool value);
  static Json schema() { return json_type("boolean"); }
};

template <>
struct Codec<std::string> {
  static bool parse(const ConfigNode& node, const std::string& where, std::string& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const std::string& value) { return string_node(value); }
  static Json schema() { return json_type("string"); }
};

template <>
struct Codec<DType> {
  static bool parse(const ConfigNode& node, const std::string& where, DType& out, Diagnostics& diagnostics);
  static ConfigNode write(DType value) { return ConfigNode::scalar(std::string(name_of(value))); }
  static Json schema();
};

template <>
struct Codec<Shape> {
  static bool parse(const ConfigNode& node, const std::string& where, Shape& out, Diagnostics& diagnostics);
  static ConfigNode write(const Shape& value);
  static Json schema();
};

template <>
struct Codec<Size2> {
  static bool parse(const ConfigNode& node, const std::string& where, Size2& out, Diagnostics& diagnostics);
  static ConfigNode write(const Size2& value);
  static Json schema();
};

template <>
struct Codec<Size3> {
  static bool parse(const ConfigNode& node, const std::string& where, Size3& out, Diagnostics& diagnostics);
  static ConfigNode write(const Size3& value);
  static Json schema();
};

template <>
struct Codec<ConfigNode> {
  static bool parse(const ConfigNode& node, const std::string&, ConfigNode& out, Diagnostics&) {
    out = node;
    return true;
  }
  static ConfigNode write(const ConfigNode& value) { return value; }
  static Json schema() { return Json::object(); }
};

/// Specializations for int, int64_t and uint64_t; defined in codec.cpp.
template <class V>
struct IntegerCodec {
  static bool parse(const ConfigNode& node, const std::string& where, V& out, Diagnostics& diagnostics);
  static ConfigNode write(V value);
  static Json schema();
};
template <>
struct Codec<int> : IntegerCodec<int> {};
template <>
struct Codec<int64_t> : IntegerCodec<int64_t> {};
template <>
struct Codec<uint64_t> : IntegerCodec<uint64_t> {};

/// Specializations for float and double; defined in codec.cpp.
template <class V>
struct RealCodec {
  static bool parse(const ConfigNode& node, const std::string& where, V& out, Diagnostics& diagnostics);
  static ConfigNode write(V value);
  static Json schema();
};
template <>
struct Codec<float> : RealCodec<float> {};
template <>
struct Codec<double> : RealCodec<double> {};

template <class V>
struct Codec<std::optional<V>> {
  static bool parse(const ConfigNode& node, const std::string& where, std::optional<V>& out,
                    Diagnostics& diagnostics) {
    out.reset();
    if (node.is_null()) return true;
    V value{};
    if (!Codec<V>::parse(node, where, value, diagnostics)) return false;
    out = std::move(value);
    return true;
  }
  static ConfigNode write(const std::optional<V>& value) {
    return value ? Codec<V>::write(*value) : ConfigNode();
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(Codec<V>::schema()).push(json_type("null"));
    return Json::object().set("anyOf", std::move(choices));
  }
};

template <class V>
struct Codec<std::vector<V>> {
  static bool parse(const ConfigNode& node, const std::string& where, std::vector<V>& out,
                    Diagnostics& diagnostics) {
    if (!node.is_sequence()) return report_unexpected(node, where, "a list", diagnostics);
    out.clear();
    bool good = true;
    for (const ConfigNode& item : node.items()) {
      V value{};
      good = Codec<V>::parse(item, where, value, diagnostics) && good;
      out.push_back(std::move(value));
    }
    return good;
  }
  static ConfigNode write(const std::vector<V>& values) {
    std::vector<ConfigNode> items;
    for (const auto& value : values) items.push_back(Codec<V>::write(value));
    return ConfigNode::sequence(std::move(items));
  }
  static Json schema() { return json_type("array").set("items", Codec<V>::schema()); }
};

template <class E>
requires std::is_enum_v<E>
struct Codec<E> {
  static bool parse(const ConfigNode& node, const std::string& where, E& out, Diagnostics& diagnostics) {
    if (node.is_scalar()) {
      for (const auto& [value, name] : names_of<E>) {
        if (name != node.text()) continue;
        out = value;
        return true;
      }
    }
    return report_unknown_value(node, where, names(), diagnostics);
  }
  static ConfigNode write(E value) {
    for (const auto& [known, name] : names_of<E>)
      if (known == value) return string_node(name);
    throw std::logic_error("an enum value has no name in names_of");
  }
  static Json schema() {
    Json values = Json::array();
    for (const std::string& name : names()) values.push(name);
    return Json::object().set("enum", std::move(values));
  }

 private:
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& [value, name] : names_of<E>) all.push_back(name);
    return all;
  }
};

}  // namespace dtrain
