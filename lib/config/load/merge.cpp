#include "config/load/merge.h"

#include <unordered_map>

namespace dtrain {

ConfigNode merged(const ConfigNode& base, const ConfigNode& over) {
  if (!base.is_mapping() || !over.is_mapping()) return over;
  if (base.is_unreadable()) return base;
  std::unordered_map<std::string_view, const ConfigNode::Entry*> replaced;
  for (const ConfigNode::Entry& entry : over.entries()) replaced.emplace(entry.first.text(), &entry);
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [key, value] : base.entries()) {
    const auto found = replaced.find(key.text());
    if (found == replaced.end()) {
      entries.emplace_back(key.as_inherited(), value);
    } else {
      entries.emplace_back(found->second->first, merged(value, found->second->second));
      replaced.erase(found);
    }
  }
  for (const ConfigNode::Entry& entry : over.entries())
    if (replaced.contains(entry.first.text())) entries.push_back(entry);
  return ConfigNode::mapping(std::move(entries), over.mark());
}

}  // namespace dtrain
