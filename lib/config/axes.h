// An option that is a list of axes.
#pragma once

#include <cstdint>
#include <vector>

#include "config/codec.h"

namespace dtrain {

/// Axes of an array; written as one number or as a list.
struct Axes {
  std::vector<int64_t> axes;
};

template <>
struct Codec<Axes> {
  static bool parse(const ConfigNode& node, const std::string& where, Axes& out, Diagnostics& diagnostics) {
    out.axes.clear();
    if (node.is_sequence()) return Codec<std::vector<int64_t>>::parse(node, where, out.axes, diagnostics);
    return Codec<int64_t>::parse(node, where, out.axes.emplace_back(), diagnostics);
  }
  static ConfigNode write(const Axes& value) {
    return value.axes.size() == 1 ? Codec<int64_t>::write(value.axes.front())
                                  : Codec<std::vector<int64_t>>::write(value.axes);
  }
  static Json schema() {
    return Json::object().set(
        "anyOf", Json::array().push(Codec<int64_t>::schema()).push(Codec<std::vector<int64_t>>::schema()));
  }
};

}  // namespace dtrain
