// For containers of texts in which a text is looked up without a copy of it.
#pragma once

#include <functional>
#include <string_view>

namespace dtrain {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

}  // namespace dtrain
