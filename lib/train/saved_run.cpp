#include "train/saved_run.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "checkpoint/directory_lock.h"
#include "config/load/load.h"
#include "run/record/training_state.h"
#include "run/run_config_parser.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

/// Maximum number of times that checkpoints are looked up if a run in progress removes them before they are
/// opened.
constexpr int kMostLooks = 100;

/// Throws UserError if a directory exists but cannot be read. Otherwise it would be treated as a directory
/// without checkpoints.
void check_can_be_listed(const std::string& directory) {
  std::error_code error;
  const fs::directory_iterator listing(directory, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw UserError(fmt::format("{}: could not be read: {}", directory, error.message()));
}

/// Throws the error for a directory without checkpoints.
[[noreturn]] void refuse_without_checkpoints(const RunDirectory& directory) {
  throw UserError(
      directory.is_run()
          ? fmt::format(
                "{}: the run has not saved a checkpoint yet; use `dtrain fit CONFIG --resume` to start it",
                directory.path())
          : fmt::format("{}: expected a run directory (with checkpoints/ckpt-....h5 in it) or a checkpoint, "
                        "but this folder contains no checkpoints",
                        directory.path()));
}

}  // namespace

RunConfig saved_config(const Checkpoint& checkpoint, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  ConfigNode node =
      parse_yaml(checkpoint.content().config_yaml, checkpoint.path() + " (its configuration)", diagnostics);
  diagnostics.throw_if_errors();
  node = apply_sets(std::move(node), sets, diagnostics);
  diagnostics.throw_if_errors();
  auto config = parse_run_config(node, "", diagnostics, ConfigUse::model);
  diagnostics.throw_if_errors();
  config->dataset.facts = saved_facts(checkpoint);
  return std::move(*config);
}

TrainingState saved_state(const Checkpoint& checkpoint) {
  const CheckpointContent& content = checkpoint.content();
  return TrainingState::from_json(content.state, content.history, content.tables);
}

DataFacts saved_facts(const Checkpoint& checkpoint) {
  const Json& state = checkpoint.content().state;
  if (const Json* facts = state.find("facts")) return DataFacts::from_json(*facts);
  // Checkpoints of earlier versions contain only the column names of the training split.
  const Json* data = state.find("data");
  const Json* train = data ? data->find("train") : nullptr;
  const Json* fields = train ? train->find("fields") : nullptr;
  return fields ? DataFacts{{FieldNames::from_json(*fields), {}, {}, {}}, {}, {}} : DataFacts();
}

std::optional<Checkpoint> load_newest(const RunDirectory& directory,
                                      const std::function<void(const std::string&)>& warn) {
  const DirectoryLock lock(directory.checkpoint_directory(), DirectoryLock::Kind::shared);
  check_can_be_listed(directory.checkpoint_directory());
  // The lock prevents other processes from removing checkpoints in the meantime. On file systems without
  // locks, a checkpoint may have been removed between listing and opening, and newer checkpoints may exist.
  // In this case, the loop lists the checkpoints again.
  std::set<std::string> damaged;
  for (int looks = 0; looks < kMostLooks; ++looks) {
    const std::vector<std::string> paths = directory.checkpoints();
    bool gone = false;
    for (size_t i = paths.size(); i-- > 0 && !gone;) {
      if (damaged.contains(paths[i])) continue;
      try {
        return Checkpoint::load(paths[i]);
      } catch (const UserError& error) {
        gone = file_type(paths[i]) == FileType::nothing;
        if (gone) continue;
        damaged.insert(paths[i]);
        warn(std::string(error.what()) + (i > 0 ? "; using the previous checkpoint" : ""));
      }
    }
    if (gone) continue;
    if (paths.empty()) return std::nullopt;
    break;
  }
  throw UserError(fmt::format("{}: none of the checkpoints in this folder can be read",
                              directory.checkpoint_directory()));
}

namespace {

/// Returns the reason why a run has no best checkpoint, as part of an error message.
std::string why_no_best(const RunConfig& config, const TrainingState& state) {
  if (!config.checkpoint.best) return "its configuration has no `checkpoint: {best: {monitor: val_loss}}`";
  const std::string& monitor = config.checkpoint.best->monitor;
  const Json& last = state.history.last();
  if (last.is_null()) return "it has not finished an epoch";
  const Json* value = last.find(monitor);
  if (value && std::isnan(value->as_double())) return fmt::format("its monitor '{}' is nan", monitor);
  return fmt::format(
      "no epoch has ended since its monitor was changed to '{}' or its best checkpoint was lost", monitor);
}

/// Loads the best checkpoint, which the state in the newest checkpoint names. If the run is in progress, it
/// may replace the best checkpoint in the meantime. In this case, the new best checkpoint is looked up in the
/// newest checkpoint again.
Checkpoint best_of(const RunDirectory& directory, Checkpoint newest,
                   const std::function<void(const std::string&)>& warn) {
  for (int looks = 1;; ++looks) {
    const TrainingState state = saved_state(newest);
    if (!state.best)
      throw UserError(fmt::format("{}: the run has no best checkpoint, because {}", directory.path(),
                                  why_no_best(saved_config(newest, {}), state)));
    if (state.best->step == state.step) return newest;
    const std::string path = directory.checkpoint_path(state.best->step);
    try {
      return Checkpoint::load(path);
    } catch (const UserError&) {
      if (looks == kMostLooks || file_type(path) != FileType::nothing) throw;
    }
    auto newer = load_newest(directory, warn);
    if (!newer || newer->path() == newest.path())
      throw UserError(
          fmt::format("{}: this is the best checkpoint so far according to {}, but the file does not exist",
                      path, newest.path()));
    newest = *std::move(newer);
  }
}

}  // namespace

void open_best_checkpoint(const std::string& path, const std::function<void(const std::string&)>& warn,
                          const std::function<void(const std::string& file)>& open) {
  if (const auto imported = imported_model_at(path)) return open(*imported);
  if (file_type(path) != FileType::directory) return open(path);
  const RunDirectory directory = *run_directory_of(path);
  std::set<std::string> warned;
  const auto warn_once = [&](const std::string& text) {
    if (warned.insert(text).second) warn(text);
  };
  std::string before;  // path of the newest checkpoint in the previous iteration; "" in the first one
  for (int looks = 1;; ++looks) {
    const std::optional<Checkpoint> newest = load_newest(directory, warn_once);
    if (!newest) refuse_without_checkpoints(directory);
    const TrainingState state = saved_state(*newest);
    std::string file = state.best ? directory.checkpoint_path(state.best->step) : newest->path();
    // If the newest checkpoint is still the same, the run has not replaced the best checkpoint.
    if (newest->path() == before && file_type(file) == FileType::nothing) {
      warn_once(
          fmt::format("{}: this is the best checkpoint according to {}, but the file does not exist; using "
                      "the newest checkpoint",
                      file, newest->path()));
      file = newest->path();
    }
    before = newest->path();
    try {
      return open(file);
    } catch (const UserError&) {
      if (looks == kMostLooks || file_type(file) != FileType::nothing) throw;
    }
  }
}

Checkpoint load_best_checkpoint(const std::string& path,
                                const std::function<void(const std::string&)>& warn) {
  std::optional<Checkpoint> checkpoint;
  open_best_checkpoint(path, warn, [&](const std::string& file) { checkpoint = Checkpoint::load(file); });
  return *std::move(checkpoint);
}

std::optional<std::string> imported_model_at(const std::string& path) {
  std::string file = (fs::path(path) / kImportedWeights).string();
  if (file_type(path) != FileType::directory || file_type(file) != FileType::file) return std::nullopt;
  if (RunDirectory(path).is_run()) return std::nullopt;
  return file;
}

std::optional<RunDirectory> run_directory_of(const std::string& path) {
  const FileType type = file_type(path);
  if (type == FileType::nothing)
    throw UserError(fmt::format(
        "{}: expected a run directory or a checkpoint, but there is no such file or directory", path));
  if (type != FileType::directory) return RunDirectory::around(path);
  const fs::path given = real_path(path);
  const bool inside =
      given.filename() == "checkpoints" && file_type((given / "checkpoints").string()) == FileType::nothing;
  return RunDirectory(inside ? given.parent_path().string() : fs::path(path).string());
}

namespace {

/// Loads the best checkpoint, which `newest` names. If this fails and `which` is Which::best, throws
/// UserError. If this fails for another `which`, calls `warn` and loads the newest checkpoint.
std::pair<Checkpoint, Which> load_best(const RunDirectory& directory, Checkpoint newest,
                                       const std::function<void(const std::string&)>& warn, Which which) {
  try {
    return {best_of(directory, std::move(newest), warn), Which::best};
  } catch (const UserError& error) {
    if (which == Which::best)
      throw UserError(fmt::format("{}; omit --best to use the newest checkpoint", error.what()));
    warn(fmt::format("{}; using the newest checkpoint", error.what()));
  }
  return {load_newest(directory, warn).value(), Which::newest};
}

}  // namespace

SavedRun load_saved_run(const std::string& given, const std::vector<std::string>& sets,
                        const std::function<void(const std::string&)>& warn, Which which) {
  const std::string path = imported_model_at(given).value_or(given);
  std::optional<RunDirectory> directory = run_directory_of(path);
  if (file_type(path) != FileType::directory) {
    if (which == Which::best)
      throw UserError(fmt::format("{}: --best requires a run directory, but this is a single file", path));
    Checkpoint checkpoint = Checkpoint::load(path);
    RunConfig config = saved_config(checkpoint, sets);
    return {std::move(checkpoint), std::move(config), std::move(directory)};
  }
  std::optional<Checkpoint> newest = load_newest(*directory, warn);
  if (!newest) refuse_without_checkpoints(*directory);
  if (which == Which::preferred &&
      (!saved_config(*newest, sets).checkpoint.best || !saved_state(*newest).best))
    which = Which::newest;
  auto [checkpoint, loaded] = which == Which::newest ? std::pair{*std::move(newest), Which::newest}
                                                     : load_best(*directory, *std::move(newest), warn, which);
  RunConfig config = saved_config(checkpoint, sets);
  return {std::move(checkpoint), std::move(config), std::move(directory), loaded};
}

}  // namespace dtrain
