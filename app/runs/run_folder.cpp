#include "runs/run_folder.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/location.h"
#include "config/yaml/yaml.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRuns = "runs";

std::string directory_path(const std::string& name, int64_t number) {
  return number == 1 ? fmt::format("{}/{}", kRuns, name) : fmt::format("{}/{}-{}", kRuns, name, number);
}

/// Returns the number in a folder name that directory_path() may have created, or nullopt for other names.
std::optional<int64_t> number_of(const std::string& folder, const std::string& name) {
  int64_t number = 1;
  if (folder.starts_with(name + "-"))
    std::from_chars(folder.data() + name.size() + 1, folder.data() + folder.size(), number);
  return number >= 1 && fs::path(directory_path(name, number)).filename() == folder ? std::optional(number)
                                                                                    : std::nullopt;
}

/// Returns whether the directory contains a run with this name. The folder's name is ambiguous: runs/a-2 may
/// be the second run of a.yaml or the first run of a-2.yaml. Therefore the name in config.yaml decides. If
/// this file is missing, a folder without a number counts as a run with the folder's name.
bool is_run_with_name(const RunDirectory& directory, const std::string& name, int64_t number) {
  if (!directory.is_run()) return false;
  const std::string path = directory.path() + "/config.yaml";
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Diagnostics ignored;
  const ConfigNode config = parse_yaml(text, path, ignored);
  const ConfigNode* found = config.find("name");
  return found && found->is_scalar() ? found->text() == name : number == 1;
}

/// Returns the time when the run last started, resumed or ended: the modification time of run.jsonl. If
/// run.jsonl does not exist, returns the modification time of the newest checkpoint.
fs::file_time_type last_used(const RunDirectory& directory) {
  std::error_code missing;
  const fs::file_time_type time = fs::last_write_time(directory.path() + "/run.jsonl", missing);
  if (!missing) return time;
  const std::vector<std::string> checkpoints = directory.checkpoints();
  return checkpoints.empty() ? fs::file_time_type::min() : fs::last_write_time(checkpoints.back(), missing);
}

}  // namespace

RunDirectory take_free_directory(const std::string& name) {
  for (int64_t number = 1;; ++number) {
    RunDirectory directory(directory_path(name, number));
    // Checks again after locking: a run may have started and ended in between.
    if (directory.checkpoints().empty() && directory.try_hold() && directory.checkpoints().empty())
      return directory;
  }
}

std::optional<RunDirectory> newest_directory(const std::string& name) {
  std::optional<RunDirectory> newest;
  fs::file_time_type newest_time = fs::file_time_type::min();
  for (const std::string& folder : names_in(kRuns)) {
    const std::optional<int64_t> number = number_of(folder, name);
    if (!number) continue;
    const RunDirectory directory(directory_path(name, *number));
    if (!is_run_with_name(directory, name, *number)) continue;
    if (const fs::file_time_type time = last_used(directory); !newest || time > newest_time) {
      newest = directory;
      newest_time = time;
    }
  }
  return newest;
}

}  // namespace dtrain
