// Codec<V> reads and writes values of type V in a configuration. A new type needs a specialization.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/shape.h"
#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Every specialization has three functions:
///
///   static bool parse(const ConfigNode&, const std::string& where, V& out, Diagnostics&);
///   static ConfigNode write(const V&);
///   static Json schema();
///
/// `parse` reports an error at the node and returns false; `where` names the field in messages ("conv2d's
/// kernel_size"). `write` returns a node that `parse` reads back as an equal value. `schema` returns the JSON
/// schema of the values that `parse` accepts.
///
/// These types have a Codec:
/// - bool, std::string and ConfigNode (which accepts anything);
/// - int, int64_t and uint64_t, each within its type's range;
/// - float and double, written as a number (1e-3) or a division (1/255); within float32's range, because all
///   computation is in float32;
/// - std::vector<V>, written as a list, and std::optional<V>, where null means no value;
/// - Shape, a list of positive integers whose product is at most kMostArrayElements; DType; Size2; Size3;
/// - enums that have names (names_of<E>);
/// - structs that have a `static const Schema<T>& schema()` (schema.h);
/// - Configured<Base>, a choice among the types of a registry (registry.h).
template <class V>
struct Codec;

/// Height and width. Each is from 1 to kMostExtent. In a configuration, a Size2 is either one number for both
/// or a list [height, width].
struct Size2 {
  static constexpr int64_t kMostExtent = INT32_MAX;  // libraries use 32-bit window sizes
  int64_t height = 1;
  int64_t width = 1;
  bool operator==(const Size2&) const = default;
};

/// Depth, height and width. In a configuration, a Size3 is either one number for all three or a list [depth,
/// height, width]. For images, the height and width are also stored as a Size3, with depth 1.
struct Size3 {
  constexpr Size3() = default;
  constexpr Size3(int64_t d, int64_t h, int64_t w) : depth(d), height(h), width(w) {}
  constexpr Size3(const Size2& image) : height(image.height), width(image.width) {}

  int64_t depth = 1, height = 1, width = 1;
  bool operator==(const Size3&) const = default;
};

template <class E>
using EnumNames = std::vector<std::pair<E, std::string>>;

/// The names that an enum's values have in a configuration. To give an enum its names, specialize this
/// variable:
///
///   template <>
///   inline const EnumNames<Border> names_of<Border> = {{Border::valid, "valid"}, {Border::same, "same"}};
template <class E>
inline const EnumNames<E> names_of;

/// Reports "where: expected X, found Y" at the node. Always returns false, so that a parser can end with
/// `return report_unexpected(...)`.
bool report_unexpected(const ConfigNode& node, const std::string& where, std::string_view expected,
                       Diagnostics& diagnostics);
/// Reports "where: unknown value 'x'; did you mean 'y'?" (or a list of all values). Returns false.
bool report_unknown_value(const ConfigNode& node, const std::string& where,
                          std::span<const std::string> values, Diagnostics& diagnostics);
/// Regular expression for a division of two numbers, such as 1/255.
inline constexpr std::string_view kDivisionPattern = "^[-+.0-9eE]+ */ *[-+.0-9eE]+$";
/// Returns {"type": name}.
Json json_type(std::string_view name);
/// Returns a scalar that is parsed as this string. The scalar is quoted if YAML would otherwise give its text
/// another meaning, e.g. a number.
ConfigNode string_node(std::string text);

}  // namespace dtrain

#include "config/codec_impl.h"  // the specializations
