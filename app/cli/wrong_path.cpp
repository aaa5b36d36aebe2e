#include "cli/wrong_path.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/name_list.h"
#include "report/run_files.h"
#include "run/record/run_directory.h"
#include "runs/run_folder.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

/// Returns the runs in a folder; an empty list if the path is a run itself or no folder.
std::vector<std::string> runs_in(const std::string& path) {
  if (file_type(path) != FileType::directory || RunDirectory(path).is_run()) return {};
  std::vector<std::string> runs = find_runs(path);
  // The folder itself is found if another program's files have the names of a run's files.
  std::erase(runs, fs::path(path).lexically_normal().string());
  return runs;
}

bool ends_as(const std::string& path, std::initializer_list<std::string_view> endings) {
  for (const std::string_view ending : endings)
    if (path.ends_with(ending)) return true;
  return false;
}

}  // namespace

void reject_wrong_configuration(const std::string& path) {
  if (file_type(path) == FileType::directory && RunDirectory(path).is_run())
    throw UserError(fmt::format(
        "{0}: expected a configuration, a YAML file, found a run; `dtrain resume {0}` continues it", path));
  if (const std::vector<std::string> runs = runs_in(path); !runs.empty())
    throw UserError(
        fmt::format("{}: expected a configuration, a YAML file, found a folder of runs ({}); `dtrain resume "
                    "RUN` continues one",
                    path, list_some(runs)));
  if (file_type(path) == FileType::file && ends_as(path, {".csv", ".tsv", ".csv.gz", ".tsv.gz"}))
    throw UserError(
        fmt::format("{0}: expected a configuration, a YAML file, found a table; `dtrain new {0}` writes a "
                    "configuration for it",
                    path));
}

void reject_wrong_run(const std::string& path, const std::string& command) {
  if (const std::vector<std::string> runs = runs_in(path); !runs.empty())
    throw UserError(fmt::format("{}: expected a run, found a folder of runs; name one of them: {}", path,
                                list_some(runs, 10)));
  if (file_type(path) != FileType::file || !ends_as(path, {".yaml", ".yml"})) return;
  const RunDirectory run = newest_directory(fs::path(path).stem().string());
  throw UserError(
      run.is_run()
          ? fmt::format("{}: expected a run, found a configuration; its run is {}: `dtrain {} {}`", path,
                        run.path(), command, run.path())
          : fmt::format("{0}: expected a run, found a configuration; `dtrain fit {0}` trains it", path));
}

void reject_file_of_run(const std::string& path) {
  if (file_type(path) == FileType::file && RunDirectory::is_file_of_run(path))
    throw UserError(
        fmt::format("{}: this is a file of a run, which would be lost; give another --output", path));
}

}  // namespace dtrain
