#include "config/load.h"

#include <fmt/format.h>

#include "config/files.h"

namespace dtrain {

ConfigNode load_config(const std::string& path, const std::vector<std::string>& sets,
                       Diagnostics& diagnostics) {
  const size_t before = diagnostics.count();
  const ConfigNode file = read_config_file(path, Mark{}, diagnostics);
  if (diagnostics.count() != before) return {};
  if (!file.is_mapping()) {
    diagnostics.error(file,
                      fmt::format("expected a run's configuration, a mapping, found {}", file.describe()));
    return {};
  }
  std::vector<ConfigNode::Entry> entries = file.entries();
  for (auto& [key, value] : entries)
    if (may_be_file(key.text())) value = include_file(value, diagnostics);
  return apply_sets(ConfigNode::mapping(std::move(entries), file.mark()), sets, diagnostics);
}

}  // namespace dtrain
