#include "report/differences.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace dtrain {

namespace {

struct Setting {
  size_t place;  // index among the settings of the run
  std::string value;
};
using Settings = std::map<std::string, Setting>;
using Row = std::vector<std::optional<std::string>>;

/// Removes ".constant.value" from the end of a key, because a number in place of a schedule is short for
/// {constant: {value: NUMBER}}.
std::string without_constant(const std::string& key) {
  constexpr std::string_view kConstant = ".constant.value";
  return key.ends_with(kConstant) ? key.substr(0, key.size() - kConstant.size()) : key;
}

Settings settings_of_run(const RunSettings& run) {
  Settings settings;
  for (const auto& [key, value] : run.resolved.entries())
    settings.emplace(without_constant(key), Setting{settings.size(), value.as_string()});
  return settings;
}

/// Returns the settings whose key is `key` or begins with `key` and a dot.
std::map<std::string, Setting> settings_under(const Settings& settings, const std::string& key) {
  const auto begin = settings.lower_bound(key + "."), end = settings.lower_bound(key + "/");
  std::map<std::string, Setting> found(begin, end);
  if (const auto itself = settings.find(key); itself != settings.end()) found.insert(*itself);
  return found;
}

/// Returns the components that follow `key` in longer keys. These components are either the name of the type
/// that the key chooses, or the names of the options of a type.
std::set<std::string> parts_under(const Settings& settings, const std::string& key) {
  std::set<std::string> parts;
  for (const auto& [below, setting] : settings_under(settings, key)) {
    if (below == key) continue;
    const size_t begin = key.size() + 1;
    parts.insert(below.substr(begin, below.find('.', begin) - begin));
  }
  return parts;
}

/// Returns the value of a key. If exactly one component can follow the key, the key chooses a type, and its
/// value is the name of the type. If several can follow, the value is that of the first option, because this
/// option is set if the user writes only a value (`dense: 2`).
std::optional<std::string> value_of(const Settings& settings, const std::string& key) {
  if (const auto found = settings.find(key); found != settings.end()) return found->second.value;
  const std::set<std::string> parts = parts_under(settings, key);
  if (parts.empty()) return std::nullopt;
  if (parts.size() == 1) return *parts.begin();
  const auto under = settings_under(settings, key);
  return std::min_element(under.begin(), under.end(),
                          [](const auto& a, const auto& b) { return a.second.place < b.second.place; })
      ->second.value;
}

class Comparison {
 public:
  explicit Comparison(const std::vector<RunSettings>& runs) {
    for (const RunSettings& run : runs) {
      runs_.push_back(settings_of_run(run));
      if (run.written.is_array()) {
        for (const Json& key : run.written.items()) written_.insert(without_constant(key.as_string()));
      } else {
        for (const auto& [key, setting] : runs_.back()) written_.insert(key);
      }
    }
  }

  std::vector<Difference> differences() {
    for (const std::string& key : written_) compare(key);
    std::map<std::string, int> below;  // number of rows for each key that the user has written
    for (const auto& [key, row] : rows_) ++below[written_as(key)];
    std::map<std::string, Row> named;
    for (const auto& [key, row] : rows_)
      named.emplace(below[written_as(key)] == 1 ? written_as(key) : key, row);
    std::vector<Difference> differences;
    for (const auto& [key, row] : named) differences.push_back({key, row});
    return differences;
  }

 private:
  /// Adds a row for the key if its value differs. If all runs chose the same type, compares the options of
  /// the type instead.
  void compare(const std::string& key) {
    const std::set<std::string> parts = parts_under(runs_.front(), key);
    const bool same_kind = std::all_of(runs_.begin(), runs_.end(), [&](const Settings& run) {
      return !run.contains(key) && parts_under(run, key) == parts;
    });
    if (same_kind) {
      for (const std::string& part : parts) compare(key + "." + part);
      return;
    }
    Row row;
    for (const Settings& run : runs_) row.push_back(value_of(run, key));
    if (std::any_of(row.begin(), row.end(), [&](const auto& value) { return value != row.front(); }))
      rows_.emplace(key, std::move(row));
  }

  /// Returns the longest key that the user has written and that is equal to `key` or to one of its parents.
  std::string written_as(std::string key) const {
    while (!written_.contains(key)) key.resize(key.rfind('.'));
    return key;
  }

  std::vector<Settings> runs_;
  std::set<std::string> written_;
  std::map<std::string, Row> rows_;  // indexed by resolved key
};

}  // namespace

std::vector<Difference> find_differences(const std::vector<RunSettings>& runs) {
  return Comparison(runs).differences();
}

}  // namespace dtrain
