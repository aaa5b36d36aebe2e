#include "config/codec.h"

#include <cmath>
#include <concepts>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"
#include "config/yaml/scalar.h"

namespace dtrain {

namespace {

constexpr size_t kMostShown = 60;  // maximum length of a value in a message, in characters

}  // namespace

bool report_unexpected(const ConfigNode& node, const std::string& where, std::string_view expected,
                       Diagnostics& diagnostics) {
  diagnostics.error(node, fmt::format("{}: expected {}, found {}", where, expected, node.describe()));
  return false;
}

bool report_unknown_value(const ConfigNode& node, const std::string& where,
                          std::span<const std::string> values, Diagnostics& diagnostics) {
  if (!node.is_scalar())
    return report_unexpected(node, where, fmt::format("one of {}", fmt::join(values, ", ")), diagnostics);
  diagnostics.error(node, fmt::format("{}: unknown value '{}'{}", where, shortened(node.text(), kMostShown),
                                      suggestion_or_list(node.text(), values)));
  return false;
}

Json json_type(std::string_view name) {
  return Json::object().set("type", name);
}

ConfigNode string_node(std::string text) {
  const bool quoted = reads_as_other_than_string(text) || !plain_is_safe(text);
  return ConfigNode::scalar(std::move(text), quoted);
}

bool Codec<bool>::parse(const ConfigNode& node, const std::string& where, bool& out,
                        Diagnostics& diagnostics) {
  const auto value = node.is_scalar() && !node.quoted() ? parse_bool(node.text()) : std::nullopt;
  if (!value) return report_unexpected(node, where, "true or false", diagnostics);
  out = *value;
  return true;
}

/// All configurations that are written share two nodes, because a large model has many boolean options.
ConfigNode Codec<bool>::write(bool value) {
  static const ConfigNode kTrue = ConfigNode::scalar("true"), kFalse = ConfigNode::scalar("false");
  return value ? kTrue : kFalse;
}

bool Codec<std::string>::parse(const ConfigNode& node, const std::string& where, std::string& out,
                               Diagnostics& diagnostics) {
  if (!node.is_scalar()) return report_unexpected(node, where, "a string", diagnostics);
  out = node.text();
  return true;
}

template <class V>
bool IntegerCodec<V>::parse(const ConfigNode& node, const std::string& where, V& out,
                            Diagnostics& diagnostics) {
  using Limits = std::numeric_limits<V>;
  if (!node.is_scalar() || node.quoted()) return report_unexpected(node, where, "an integer", diagnostics);
  const std::string& text = node.text();
  V value{};
  const std::errc error = parse_number(text, value);
  if (error == std::errc()) {
    out = value;
    return true;
  }
  // std::from_chars() accepts no minus sign for an unsigned type. But the message for -1 should say that it
  // is out of range, instead of saying that it is not an integer.
  int64_t negative = 0;
  const bool out_of_range =
      error == std::errc::result_out_of_range ||
      (std::unsigned_integral<V> && parse_number(text, negative) != std::errc::invalid_argument);
  return report_unexpected(
      node, where,
      out_of_range ? fmt::format("an integer from {} to {}", Limits::min(), Limits::max()) : "an integer",
      diagnostics);
}

template <class V>
ConfigNode IntegerCodec<V>::write(V value) {
  return ConfigNode::scalar(std::to_string(value));
}

template <class V>
Json IntegerCodec<V>::schema() {
  Json json = json_type("integer");
  if constexpr (std::unsigned_integral<V>) json.set("minimum", 0);
  return json;
}

template struct IntegerCodec<int>;
template struct IntegerCodec<int64_t>;
template struct IntegerCodec<uint64_t>;

template <class V>
bool RealCodec<V>::parse(const ConfigNode& node, const std::string& where, V& out, Diagnostics& diagnostics) {
  V value{};
  if (!node.is_scalar() || node.quoted() || parse_real(node.text(), value) != std::errc())
    return report_unexpected(node, where, "a finite number", diagnostics);
  using Single = std::numeric_limits<float>;
  const V size = std::abs(value);
  if (size != 0 && (size < static_cast<V>(Single::min()) || size > static_cast<V>(Single::max())))
    return report_unexpected(
        node, where,
        fmt::format("0, or a number whose absolute value is between {:.2g} and {:.2g} (the range of float32)",
                    Single::min(), Single::max()),
        diagnostics);
  out = value;
  return true;
}

template <class V>
ConfigNode RealCodec<V>::write(V value) {
  return ConfigNode::scalar(real_text(value));
}

template <class V>
Json RealCodec<V>::schema() {
  Json types = Json::array();
  types.push("number").push("string");
  return Json::object().set("type", std::move(types)).set("pattern", kDivisionPattern);
}

template struct RealCodec<float>;
template struct RealCodec<double>;

namespace {

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const DType type : kDataTypes) names.emplace_back(name_of(type));
    return names;
  }();
  return kNames;
}

Json positive_integer() {
  return json_type("integer").set("minimum", 1);
}

/// Parses one extent of a shape or window.
bool parse_positive(const ConfigNode& node, const std::string& where, int64_t& out,
                    Diagnostics& diagnostics) {
  int64_t value = 0;
  if (!Codec<int64_t>::parse(node, where, value, diagnostics)) return false;
  if (value < 1) return report_unexpected(node, where, "an integer of at least 1", diagnostics);
  if (value > Size2::kMostExtent)
    return report_unexpected(node, where, fmt::format("an integer from 1 to {}", Size2::kMostExtent),
                             diagnostics);
  out = value;
  return true;
}

/// Parses window sizes: either one number that is used for all of `extents`, or a list with one number for
/// each. `form` describes the list in messages.
bool parse_extents(const ConfigNode& node, const std::string& where, std::string_view form,
                   std::initializer_list<int64_t*> extents, Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    int64_t extent = 1;
    if (!parse_positive(node, where, extent, diagnostics)) return false;
    for (int64_t* one : extents) *one = extent;
    return true;
  }
  if (!node.is_sequence())
    return report_unexpected(node, where, fmt::format("an integer or {}", form), diagnostics);
  if (node.items().size() != extents.size()) {
    diagnostics.error(
        node, fmt::format("{}: expected {}, found a list of length {}", where, form, node.items().size()));
    return false;
  }
  bool good = true;
  auto item = node.items().begin();
  for (int64_t* one : extents) good = parse_positive(*item++, where, *one, diagnostics) && good;
  return good;
}

Json extents_schema(int64_t count) {
  Json choices = Json::array();
  choices.push(positive_integer())
      .push(
          json_type("array").set("items", positive_integer()).set("minItems", count).set("maxItems", count));
  return Json::object().set("anyOf", std::move(choices));
}

}  // namespace

bool Codec<DType>::parse(const ConfigNode& node, const std::string& where, DType& out,
                         Diagnostics& diagnostics) {
  const auto type = node.is_scalar() ? data_type_from(node.text()) : std::nullopt;
  if (!type) return report_unknown_value(node, where, dtype_names(), diagnostics);
  out = *type;
  return true;
}

Json Codec<DType>::schema() {
  Json values = Json::array();
  for (const std::string& name : dtype_names()) values.push(name);
  return Json::object().set("enum", std::move(values));
}

bool Codec<Shape>::parse(const ConfigNode& node, const std::string& where, Shape& out,
                         Diagnostics& diagnostics) {
  constexpr size_t kMostAxes = 16;
  if (!node.is_sequence()) return report_unexpected(node, where, "a list of positive integers", diagnostics);
  if (node.items().size() > kMostAxes) {
    diagnostics.error(
        node, fmt::format("{}: expected at most {} axes, found {}", where, kMostAxes, node.items().size()));
    return false;
  }
  std::vector<int64_t> extents;
  bool good = true;
  for (const ConfigNode& item : node.items()) {
    int64_t extent = 1;
    good = parse_positive(item, where, extent, diagnostics) && good;
    extents.push_back(extent);
  }
  if (!good) return false;
  const Shape shape(std::move(extents));
  if (shape.exceeds(kMostArrayElements)) {
    diagnostics.error(node, fmt::format("{}: the shape {} has more than {} elements", where, shape.str(),
                                        kMostArrayElements));
    return false;
  }
  out = shape;
  return true;
}

ConfigNode Codec<Shape>::write(const Shape& value) {
  return Codec<std::vector<int64_t>>::write(value.extents());
}

Json Codec<Shape>::schema() {
  return json_type("array").set("items", positive_integer());
}

bool Codec<Size2>::parse(const ConfigNode& node, const std::string& where, Size2& out,
                         Diagnostics& diagnostics) {
  Size2 size;
  if (!parse_extents(node, where, "[height, width]", {&size.height, &size.width}, diagnostics)) return false;
  out = size;
  return true;
}

ConfigNode Codec<Size2>::write(const Size2& value) {
  if (value.height == value.width) return Codec<int64_t>::write(value.height);
  return Codec<std::vector<int64_t>>::write({value.height, value.width});
}

Json Codec<Size2>::schema() {
  return extents_schema(2);
}

bool Codec<Size3>::parse(const ConfigNode& node, const std::string& where, Size3& out,
                         Diagnostics& diagnostics) {
  Size3 size;
  if (!parse_extents(node, where, "[depth, height, width]", {&size.depth, &size.height, &size.width},
                     diagnostics))
    return false;
  out = size;
  return true;
}

ConfigNode Codec<Size3>::write(const Size3& value) {
  if (value == Size3(value.depth, value.depth, value.depth)) return Codec<int64_t>::write(value.depth);
  return Codec<std::vector<int64_t>>::write({value.depth, value.height, value.width});
}

Json Codec<Size3>::schema() {
  return extents_schema(3);
}

}  // namespace dtrain
