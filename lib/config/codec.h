// How a C++ type is read from and written to a configuration. A new type needs one specialisation of Codec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/shape.h"
#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Each specialisation has
///   static bool parse(const ConfigNode&, const std::string& where, V& out, Diagnostics&);  // reports at the
///   node, false then static ConfigNode write(const V&); static Json schema();
/// `where` is the field as messages name it ("conv2d's kernel_size").
/// Present: bool, int, int64_t, uint64_t (within the type's range), float, double (1e-3 or 1/255; what
/// float32 holds, for that is what everything is computed in), std::string, std::vector<V>, std::optional<V>
/// (null is none), Shape (a list of positive integers, at most kMostArrayElements in all), DType, Size2,
/// enums with names_of<E>, Configured<Base> (registry.h), ConfigNode (anything), and structs with a `static
/// const Schema<T>& schema()` (schema.h).
template <class V>
struct Codec;

/// Height and width; written as one number for both or as [height, width]. From 1 to kMostExtent each.
struct Size2 {
  static constexpr int64_t kMostExtent = INT32_MAX;  // libraries' windows count in 32 bits
  int64_t height = 1;
  int64_t width = 1;
  bool operator==(const Size2&) const = default;
};

/// To give an enum its names, specialise: template <> inline const EnumNames<E> names_of<E> = {{E::same,
/// "same"}, ...};
template <class E>
using EnumNames = std::vector<std::pair<E, std::string>>;
template <class E>
inline const EnumNames<E> names_of;

}  // namespace dtrain

#include "config/codec_impl.h"
