// A transparent hash: looks up strings in containers by string_view, without a copy.
#pragma once

#include <functional>
#include <string_view>

namespace dtrain {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

}  // namespace dtrain
