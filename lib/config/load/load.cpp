#include "config/load/load.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files/paths.h"
#include "config/load/files.h"
#include "config/load/merge.h"
#include "config/yaml/text.h"

namespace dtrain {

namespace {

/// Includes the files that `model`, `dataset` and `strategy` name. If a file cannot be read, its content is
/// ConfigNode::unreadable().
ConfigNode with_files(const ConfigNode& run, Diagnostics& diagnostics) {
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [key, value] : run.entries()) {
    const size_t before = diagnostics.count();
    const ConfigNode content = may_be_file(key.text()) ? include_file(value, diagnostics) : value;
    const bool is_good = diagnostics.count() == before;
    // Leaves out a strategy that cannot be read, because a run need not have a strategy.
    if (!is_good && key.text() == "strategy") continue;
    entries.emplace_back(key, is_good ? content : ConfigNode::unreadable(value.mark()));
  }
  return ConfigNode::mapping(std::move(entries), run.mark());
}

/// Reads a configuration and its chain of bases.
class RunReader {
 public:
  explicit RunReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  /// Reads a file and its bases. Returns null if an error was reported.
  ConfigNode read(const std::string& path, const Mark& named_at) {
    const size_t before = diagnostics_.count();
    ConfigNode run = read_config_file(path, named_at, diagnostics_);
    if (diagnostics_.count() != before) return {};
    if (!run.is_mapping()) {
      diagnostics_.error(
          run, fmt::format("the configuration of a run must be a mapping, but this file contains {}{}",
                           run.describe(), advice_for_colon(run)));
      return {};
    }
    if (const ConfigNode* base = run.find("base"); base && !base->is_null()) {
      open_.push_back(path);
      const ConfigNode below = read_base(*base);
      open_.pop_back();
      if (below.is_null()) return {};
      run = merged(below, run);
    }
    static constexpr std::array<std::string_view, 1> kDone{"base"};
    return with_files(run.without(kDone), diagnostics_);
  }

 private:
  static constexpr size_t kMostBases = 32;

  ConfigNode read_base(const ConfigNode& base) {
    if (!base.is_scalar()) {
      diagnostics_.error(base,
                         fmt::format("base: expected the path of a YAML file, found {}", base.describe()));
      return {};
    }
    const std::string path = without_dots(beside(base.text(), base.mark()));
    const auto is_same = [&](const std::string& other) {
      std::error_code error;
      return std::filesystem::equivalent(path, other, error);
    };
    if (const auto again = std::find_if(open_.begin(), open_.end(), is_same); again != open_.end()) {
      diagnostics_.error(base, fmt::format("base: '{}' is its own base ({} -> {})", path,
                                           fmt::join(again, open_.end(), " -> "), path));
      return {};
    }
    if (open_.size() > kMostBases) {
      diagnostics_.error(
          base, fmt::format("base: the chain of base configurations has more than {} files", kMostBases));
      return {};
    }
    return read(path, base.mark());
  }

  Diagnostics& diagnostics_;
  std::vector<std::string> open_;  // the files whose bases are being read; the first is the outermost file
};

}  // namespace

ConfigNode load_config(const std::string& path, const std::vector<std::string>& sets,
                       Diagnostics& diagnostics) {
  const ConfigNode run = RunReader(diagnostics).read(path, Mark{});
  return run.is_null() ? run : apply_sets(run, sets, diagnostics);
}

}  // namespace dtrain
