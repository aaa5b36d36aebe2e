#include "base/name_list.h"

#include <fmt/format.h>

namespace dtrain {

std::string list_some(const std::vector<std::string>& names, size_t most) {
  // If only one name is left, it is shown, because "and 1 more" would be about as long.
  const size_t shown = names.size() <= most + 1 ? names.size() : most;
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace dtrain
