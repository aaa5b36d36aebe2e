#include "sweep/sweep_folder.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/files/paths.h"
#include "base/json.h"
#include "base/name_list.h"
#include "checkpoint/hash.h"
#include "cli/invocation.h"
#include "report/run_files.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

constexpr std::array kNames{kSweepFile, "sweep.csv", "sweep.jsonl", "configs", "logs"};

/// Returns the content of sweep.json in a folder. Returns null if the file does not exist or was not written
/// by dtrain.
Json read_sweep(const std::string& folder) {
  std::ifstream file(folder + "/" + kSweepFile, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    Json sweep = Json::parse(text);
    const Json* runs = sweep.is_object() ? sweep.find("runs") : nullptr;
    const Json* configuration = sweep.is_object() ? sweep.find("configuration") : nullptr;
    if (runs && runs->is_object() && configuration && configuration->is_string()) return sweep;
  } catch (const UserError&) {  // written by another program
  }
  return {};
}

/// Returns the names of a sweep's files and folders that exist in a folder.
std::vector<std::string> names_in_the_way(const std::string& folder) {
  std::vector<std::string> names;
  for (const char* name : kNames)
    if (file_type(folder + "/" + name) != FileType::nothing) names.emplace_back(name);
  return names;
}

void make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw UserError(fmt::format("{}: cannot be created: {}", path, error.message()));
}

}  // namespace

SweepIdentity identify_sweep(const std::string& name, const std::string& written,
                             const std::vector<VariedKey>& varied) {
  std::string text = written;
  for (const VariedKey& key : varied) text += "\n" + key.key;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {name, fmt::format("{:016x}", checksum(Parts(&bytes, 1)))};
}

SweepFolder::SweepFolder(const SweepIdentity& identity, const std::string& output)
    : path_(output), configuration_(identity.configuration) {
  for (int number = 1;; ++number) {
    if (output.empty())
      path_ = fmt::format("runs/{}-sweep{}", identity.name, number == 1 ? "" : fmt::format("-{}", number));
    const Json sweep = read_sweep(path_);
    const std::vector<std::string> others =
        sweep.is_null() ? names_in_the_way(path_) : std::vector<std::string>();
    const bool is_this = !sweep.is_null() && sweep.at("configuration").as_string() == configuration_;
    if (is_this || (sweep.is_null() && others.empty())) return;
    if (output.empty()) continue;
    if (!sweep.is_null())
      throw UserError(
          fmt::format("{}: this directory contains a different sweep (different configuration or keys); "
                      "choose another directory with --output",
                      path_));
    throw UserError(
        fmt::format("{}: this directory contains {}, which dtrain did not write. The sweep would overwrite "
                    "files with these names; give another directory with --output",
                    path_, list_some(others, kNames.size())));
  }
}

void SweepFolder::begin(std::vector<PlannedRun>& runs) {
  make_directories(path_);
  if (lock_.emplace(path_, DirectoryLock::Kind::alone).refused())
    throw UserError(fmt::format(
        "{}: another process is training this sweep; wait until it has ended, or give another directory with "
        "--output",
        path_));
  make_directories(path_ + "/configs");
  make_directories(path_ + "/logs");
  const Json before = read_sweep(path_);
  Json all = before.is_null() ? Json::object() : before.at("runs");
  for (PlannedRun& run : runs)
    if (!run.other_name.empty() && all.find(run.other_name[0].name) && !all.find(run.name))
      run = PlannedRun(std::move(run.other_name[0]));
  for (const PlannedRun& run : runs) {
    Json values = Json::object();
    for (const auto& [key, value] : run.values) values.set(key, value);
    all.set(run.name, std::move(values));
  }
  Json sweep = Json::object().set("configuration", configuration_).set("time", format_time_now());
  write(kSweepFile, describe_invocation(sweep).set("runs", std::move(all)).dump(2) + "\n");
  for (const PlannedRun& run : runs) write_new_file(config_path(run), run.config);
}

void SweepFolder::write(const std::string& name, const std::string& text) const {
  write_new_file(path_ + "/" + name, text);
}

}  // namespace dtrain
