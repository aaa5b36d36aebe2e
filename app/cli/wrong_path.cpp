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

/// Returns the runs in a folder. Returns an empty list if the path is itself a run, or is not a folder.
std::vector<std::string> runs_in(const std::string& path) {
  if (file_type(path) != FileType::directory || RunDirectory(path).is_run()) return {};
  std::vector<std::string> runs = find_runs(path);
  // Removes the folder itself. find_runs() also returns the folder if another program wrote files to it that
  // have the names of a run's files.
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
    throw UserError(
        fmt::format("{0}: expected a configuration (a YAML file), but found a run; use `dtrain resume {0}` "
                    "to continue the run",
                    path));
  if (const std::vector<std::string> runs = runs_in(path); !runs.empty())
    throw UserError(
        fmt::format("{}: expected a configuration (a YAML file), but found a folder of runs ({}); use "
                    "`dtrain resume RUN` to continue a run",
                    path, list_some(runs)));
  if (file_type(path) == FileType::file && ends_as(path, {".csv", ".tsv", ".csv.gz", ".tsv.gz"}))
    throw UserError(
        fmt::format("{0}: expected a configuration (a YAML file), but found a table; use `dtrain new {0}` to "
                    "write a configuration for this table",
                    path));
}

void reject_wrong_run(const std::string& path, const std::string& command) {
  if (const std::vector<std::string> runs = runs_in(path); !runs.empty())
    throw UserError(fmt::format("{}: expected a run, but found a folder of runs; give one of these runs: {}",
                                path, list_some(runs, 10)));
  if (file_type(path) != FileType::file || !ends_as(path, {".yaml", ".yml"})) return;
  const std::optional<RunDirectory> run = newest_directory(fs::path(path).stem().string());
  throw UserError(
      run ? fmt::format("{}: expected a run, but found a configuration; its run is {}, so use `dtrain {} {}`",
                        path, run->path(), command, run->path())
          : fmt::format("{0}: expected a run, but found a configuration; use `dtrain fit {0}` to train it",
                        path));
}

void reject_file_of_run(const std::string& path) {
  if (file_type(path) == FileType::file && RunDirectory::is_file_of_run(path))
    throw UserError(
        fmt::format("{}: this file belongs to a run and would be overwritten; give another --output", path));
}

}  // namespace dtrain
