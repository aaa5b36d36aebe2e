#include "processes/agreement.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace dtrain {

namespace {

using Fact = std::pair<std::string, std::string>;  // name and value

/// Appends the facts of a JSON value. A fact of a nested object is named "outer.inner".
void flatten(const Json& json, const std::string& name, std::vector<Fact>& facts) {
  if (!json.is_object()) {
    facts.emplace_back(name, json.is_string() ? json.as_string() : json.dump());
    return;
  }
  for (const auto& [key, value] : json.entries())
    flatten(value, name.empty() ? key : name + "." + key, facts);
}

/// Returns "process 0" or "processes 0, 2 to 4", for ascending ranks.
std::string list_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    for (end = begin + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[begin]);
    if (end > begin + 1) text += fmt::format(" to {}", ranks[end - 1]);
  }
  return (ranks.size() == 1 ? "process " : "processes ") + text;
}

/// Returns a text such as "node1 (process 0), node2 (processes 1 to 3)".
std::string describe_processes(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, std::vector<int>>> by_host;
  for (const int rank : ranks) {
    const std::string& host = hosts[static_cast<size_t>(rank)];
    auto group =
        std::find_if(by_host.begin(), by_host.end(), [&](const auto& one) { return one.first == host; });
    if (group == by_host.end()) group = by_host.insert(by_host.end(), {host, {}});
    group->second.push_back(rank);
  }
  constexpr size_t kMostHosts = 4;
  std::string text;
  for (size_t i = 0; i < std::min(by_host.size(), kMostHosts); ++i) {
    const auto& [host, own] = by_host[i];
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", host, list_ranks(own));
  }
  if (by_host.size() > kMostHosts)
    text += " and " + format_plural(static_cast<int64_t>(by_host.size() - kMostHosts), "more machine");
  return text;
}

/// A callback of dl_iterate_phdr(). Copies the build id of the first object, which is the program itself, to
/// the string `result`, and ends the iteration.
int take_build_id(dl_phdr_info* object, size_t, void* result) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* bytes = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    const unsigned char* const end = bytes + segment.p_memsz;
    const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
    while (bytes + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, bytes, sizeof note);
      const unsigned char* const name = bytes + sizeof note;
      const unsigned char* const content = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        for (size_t j = 0; j < note.n_descsz; ++j)
          *static_cast<std::string*>(result) += fmt::format("{:02x}", content[j]);
      bytes = content + padded(note.n_descsz);
    }
  }
  return 1;
}

}  // namespace

std::string describe_differences(const std::vector<Json>& facts, const std::vector<std::string>& hosts) {
  std::vector<std::string> names;  // names of facts, in the order of their first appearance
  std::map<std::string, std::map<int, std::string>> values;
  for (size_t rank = 0; rank < facts.size(); ++rank) {
    std::vector<Fact> own;
    flatten(facts[rank], "", own);
    for (auto& [name, value] : own) {
      if (!values.contains(name)) names.push_back(name);
      values[name][static_cast<int>(rank)] = std::move(value);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    for (int rank = 0; rank < static_cast<int>(facts.size()); ++rank) {
      const auto found = values[name].find(rank);
      const std::string value = found == values[name].end() ? "missing" : found->second;
      auto group =
          std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == value; });
      if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
      group->second.push_back(rank);
    }
    if (groups.size() == 1) continue;
    text += fmt::format("{}{}: ", text.empty() ? "" : "\n", name);
    for (size_t i = 0; i < groups.size(); ++i)
      text += fmt::format("{}{} on {}", i == 0 ? "" : "; ", groups[i].first,
                          describe_processes(groups[i].second, hosts));
  }
  return text;
}

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(take_build_id, &id);
  return id.empty() ? "unknown" : id;
}

}  // namespace dtrain
