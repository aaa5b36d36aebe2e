// A transparent hash, so that a string_view can be looked up in a container of strings without a copy.
#pragma once

#include <functional>
#include <string_view>

namespace dtrain {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

}  // namespace dtrain
