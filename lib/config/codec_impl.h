// The definitions for codec.h; include that.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "config/scalar.h"

namespace dtrain {

/// Reports "where: expected X, found Y" at the node; returns false, so that a parser can return it.
bool report_unexpected(const ConfigNode& node, const std::string& where, std::string_view expected,
                       Diagnostics& diagnostics);
/// Reports "where: unknown value 'x'; did you mean 'y'?" (or the list of all values); returns false.
bool report_unknown_value(const ConfigNode& node, const std::string& where,
                          std::span<const std::string> values, Diagnostics& diagnostics);
/// Of a division of numbers: 1/255.
inline constexpr std::string_view kDivisionPattern = "^[-+.0-9eE]+ */ *[-+.0-9eE]+$";
/// {"type": name}
Json json_type(std::string_view name);
/// A scalar that reads back as this string: quoted where plain text would be taken for something else.
ConfigNode string_node(std::string text);

template <>
struct Codec<bool> {
  static bool parse(const ConfigNode& node, const std::string& where, bool& out, Diagnostics& diagnostics);
  static ConfigNode write(bool value) { return ConfigNode::scalar(value ? "true" : "false"); }
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
struct Codec<ConfigNode> {
  static bool parse(const ConfigNode& node, const std::string&, ConfigNode& out, Diagnostics&) {
    out = node;
    return true;
  }
  static ConfigNode write(const ConfigNode& value) { return value; }
  static Json schema() { return Json::object(); }
};

template <std::integral V>
struct Codec<V> {
  static bool parse(const ConfigNode& node, const std::string& where, V& out, Diagnostics& diagnostics) {
    using Limits = std::numeric_limits<V>;
    if (!node.is_scalar() || node.quoted()) return report_unexpected(node, where, "an integer", diagnostics);
    const std::string& text = node.text();
    V value{};
    const std::errc error = parse_number(text, value);
    if (error == std::errc()) {
      out = value;
      return true;
    }
    // from_chars of an unsigned type takes no sign, yet -1 is an integer out of range rather than none.
    int64_t negative = 0;
    const bool out_of_range =
        error == std::errc::result_out_of_range ||
        (std::unsigned_integral<V> && parse_number(text, negative) != std::errc::invalid_argument);
    return report_unexpected(
        node, where,
        out_of_range ? fmt::format("an integer from {} to {}", Limits::min(), Limits::max()) : "an integer",
        diagnostics);
  }
  static ConfigNode write(V value) { return ConfigNode::scalar(fmt::format("{}", value)); }
  static Json schema() {
    Json json = json_type("integer");
    if constexpr (std::unsigned_integral<V>) json.set("minimum", 0);
    return json;
  }
};

template <std::floating_point V>
struct Codec<V> {
  static bool parse(const ConfigNode& node, const std::string& where, V& out, Diagnostics& diagnostics) {
    V value{};
    if (!node.is_scalar() || node.quoted() || parse_real(node.text(), value) != std::errc())
      return report_unexpected(node, where, "a finite number", diagnostics);
    using Single = std::numeric_limits<float>;
    const V size = std::abs(value);
    if (size != 0 && (size < static_cast<V>(Single::min()) || size > static_cast<V>(Single::max())))
      return report_unexpected(
          node, where,
          fmt::format("0, or a number of {:.2g} to {:.2g} in size, as float32 holds them", Single::min(),
                      Single::max()),
          diagnostics);
    out = value;
    return true;
  }
  static ConfigNode write(V value) { return ConfigNode::scalar(real_text(value)); }
  static Json schema() {
    Json types = Json::array();
    types.push("number").push("string");
    return Json::object().set("type", std::move(types)).set("pattern", kDivisionPattern);
  }
};

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
    throw std::logic_error("an enum's value has no name in names_of");
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
