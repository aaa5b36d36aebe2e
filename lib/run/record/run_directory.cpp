#include "run/record/run_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/append_file.h"
#include "base/files/new_file.h"
#include "base/files/paths.h"
#include "base/name_list.h"
#include "checkpoint/directory_lock.h"
#include "checkpoint/file.h"
#include "run/record/held_directory.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kConfig = "config.yaml";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kTable = "metrics.csv";
constexpr const char* kTables = "tables.jsonl";
constexpr const char* kSamples = "samples.json";
constexpr const char* kReport = "report.html";
constexpr const char* kEvents = "run.jsonl";
constexpr const char* kStopRequest = "stop-request";
constexpr const char* kTensorboard = "tensorboard";
/// The possible beginnings of run.jsonl, which is the first file that a run writes.
constexpr std::array<std::string_view, 2> kFirstEvents{R"({"event": "fit", "time": ")",
                                                       R"({"event": "resume", "time": ")"};
constexpr std::array kOwn{kConfig, kMetrics, kTable, kTables, kSamples, kReport, kEvents, kStopRequest};

std::string reason(int code) {
  return std::generic_category().message(code);
}

/// Returns the first of NAME-recovered, NAME-recovered-2, ... that does not exist in `parent`.
fs::path free_name(const fs::path& parent, const std::string& name) {
  std::error_code unknown;
  fs::path path = parent / (name + "-recovered");
  for (int n = 2; fs::exists(path, unknown); ++n) path = parent / fmt::format("{}-recovered-{}", name, n);
  return path;
}

bool exists(const Location& location) {
  return ::faccessat(location.directory, location.path.c_str(), F_OK, 0) == 0;
}

bool is_empty(const Location& location) {
  struct stat status {};
  return ::fstatat(location.directory, location.path.c_str(), &status, 0) == 0 && S_ISREG(status.st_mode) &&
         status.st_size == 0;
}

/// Removes the file if it exists. Returns false if it still exists.
bool remove(const Location& location) {
  return ::unlinkat(location.directory, location.path.c_str(), 0) == 0 || errno == ENOENT;
}

}  // namespace

/// The state that copies of a RunDirectory share.
struct RunDirectory::Held : HeldDirectory {
  using HeldDirectory::HeldDirectory;

  /// Returns 0 if checkpoints/ was created, else errno: EEXIST if it already existed.
  int make_checkpoints() const { return ::mkdirat(fd, kCheckpoints, 0777) == 0 ? 0 : errno; }

  bool made_checkpoints = false;
  std::vector<const char*> missing;  // run files that did not exist when the directory was opened
  bool missing_tensorboard = false;
};

bool is_event_file(std::string_view name) {
  return name.starts_with("events.out.tfevents.") && name.ends_with(".dtrain");
}

RunDirectory::RunDirectory(std::string path) : held_(std::make_shared<Held>(std::move(path))) {}

std::optional<RunDirectory> RunDirectory::around(const std::string& checkpoint_file) {
  const fs::path parent = fs::path(absolute_path(checkpoint_file)).parent_path();
  if (parent.filename() != kCheckpoints) return std::nullopt;
  return RunDirectory(parent.parent_path().string());
}

bool RunDirectory::is_file_of_run(const std::string& path) {
  const fs::path file(absolute_path(path));
  return std::find(kOwn.begin(), kOwn.end(), file.filename().string()) != kOwn.end() &&
         RunDirectory(file.parent_path().string()).is_run();
}

std::string RunDirectory::path() const {
  return held_->current_path();
}

Location RunDirectory::at(const std::string& name) const {
  if (held_->fd < 0) return held_->path + "/" + name;
  return {held_->fd, name, path() + "/" + name};
}

Location RunDirectory::checkpoint_at(int64_t step) const {
  return at(fmt::format("{}/{}", kCheckpoints, checkpoint_name(step)));
}

std::string RunDirectory::checkpoint_path(int64_t step) const {
  return checkpoint_directory() + "/" + checkpoint_name(step);
}

std::vector<int64_t> RunDirectory::steps() const {
  return checkpoint_steps(at(kCheckpoints));
}

std::vector<std::string> RunDirectory::checkpoints() const {
  std::vector<std::string> paths;
  for (const int64_t step : steps()) paths.push_back(checkpoint_path(step));
  return paths;
}

bool RunDirectory::has_checkpoint(int64_t step) const {
  return exists(checkpoint_at(step));
}

bool RunDirectory::has_begun() const {
  return exists(at(kConfig));
}

bool RunDirectory::is_held() const {
  return held_->is_held();
}

bool RunDirectory::holds_checkpoint(int64_t step) const {
  return begins_as_checkpoint(checkpoint_at(step));
}

bool RunDirectory::is_run() const {
  const std::string first = first_bytes(at(kEvents), kFirstEvents.back().size());
  for (const std::string_view event : kFirstEvents)
    if (first.starts_with(event)) return true;
  // If the machine loses power, run.jsonl may exist without its first line, which was not on the disk yet. A
  // run creates checkpoints/ before run.jsonl.
  if (is_empty(at(kEvents)) && exists(at(kCheckpoints)) && !held_->made_checkpoints) return true;
  const std::vector<int64_t> all = steps();
  return std::any_of(all.begin(), all.end(), [this](int64_t step) { return holds_checkpoint(step); });
}

void RunDirectory::hold() {
  if (!try_hold())
    throw UserError(fmt::format(
        "{}: another dtrain process is training in this directory; give another directory with --output",
        held_->path));
}

bool RunDirectory::try_hold() {
  if (held_->fd >= 0) return true;
  if (!held_->open()) return false;
  const int error = held_->make_checkpoints();
  held_->made_checkpoints = error == 0;
  if (error != 0 && error != EEXIST) {
    const std::string path = checkpoint_directory();
    discard();
    throw UserError(fmt::format("{}: cannot be created: {}", path, reason(error)));
  }
  for (const char* name : kOwn)
    if (!exists(at(name))) held_->missing.push_back(name);
  held_->missing_tensorboard = !exists(at(kTensorboard));
  reject_foreign_files();
  take_stop_request();
  remove_leftovers(at(kConfig));
  remove_leftovers(checkpoint_at(0));
  return true;
}

void RunDirectory::reject_foreign_files() {
  if (is_run()) return;
  std::vector<std::string> in_the_way;
  for (const char* name : kOwn)
    if (exists(at(name))) in_the_way.emplace_back(name);
  for (const int64_t step : steps())
    in_the_way.push_back(fmt::format("{}/{}", kCheckpoints, checkpoint_name(step)));
  if (in_the_way.empty()) return;
  const std::string path = held_->path;
  discard();
  constexpr size_t kMostShown = 6;
  throw UserError(fmt::format(
      "{}: this directory contains {}, which dtrain did not write. The run would replace files with these "
      "names; give another directory with --output",
      path, list_some(in_the_way, kMostShown)));
}

void RunDirectory::discard() {
  if (held_->fd < 0 || !steps().empty()) return;
  const auto& missing = held_->missing;
  const bool wrote_metrics = std::find(missing.begin(), missing.end(), kMetrics) != missing.end();
  if (wrote_metrics && !first_bytes(at(kMetrics), 1).empty()) return;
  for (const char* name : missing) remove(at(name));
  if (held_->missing_tensorboard) remove_event_files();
  // Directories that are not empty are kept.
  if (held_->made_checkpoints) ::unlinkat(held_->fd, kCheckpoints, AT_REMOVEDIR);
  for (auto path = held_->made.rbegin(); path != held_->made.rend(); ++path) ::rmdir(path->c_str());
  held_->close();
}

void RunDirectory::request_stop() const {
  write_text(kStopRequest, "dtrain stop\n");
}

bool RunDirectory::take_stop_request() const {
  const Location request = at(kStopRequest);
  return ::unlinkat(request.directory, request.path.c_str(), 0) == 0;
}

std::string RunDirectory::ensure() {
  if (held_->fd < 0) {
    make_directories(checkpoint_directory(), held_->made);
    return "";
  }
  if (!held_->is_gone()) {
    const int error = held_->make_checkpoints();
    if (error == EEXIST) return "";
    if (error == 0)
      return fmt::format("{}: the directory was removed during the run; it was created again",
                         checkpoint_directory());
    // These two errors also mean that the directory was removed: no file can be created in a removed
    // directory, even if fstat() did not report the removal.
    if (error != ENOENT && error != ESTALE)
      throw Error(fmt::format("{}: cannot be created: {}", checkpoint_directory(), reason(error)));
  }
  const fs::path removed = held_->absolute;
  std::string why;
  for (const fs::path& parent : {removed.parent_path(), fs::path("/tmp")}) {
    try {
      held_->close();
      held_->made.clear();
      held_->path = free_name(parent, removed.filename().string()).string();
      held_->open();
      held_->make_checkpoints();
      return fmt::format("{}: the directory was removed during the run, which now saves in {}",
                         removed.string(), held_->path);
    } catch (const Error& error) {
      why = error.what();
    }
  }
  throw Error(fmt::format("{}: the directory was removed during the run; {}", removed.string(), why));
}

void RunDirectory::write_text(const std::string& name, const std::string& text) const {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file(at(name), {&bytes, 1});
}

void RunDirectory::append(const std::string& name, std::string_view line) const {
  append_file(at(name), line);
}

void RunDirectory::write_config(const std::string& yaml) const {
  write_text(kConfig, yaml);
}

void RunDirectory::write_metrics(const std::string& lines) const {
  write_text(kMetrics, lines);
}

void RunDirectory::write_table(const std::string& csv) const {
  write_text(kTable, csv);
}

void RunDirectory::write_tables(const std::string& lines) const {
  if (!lines.empty()) return write_text(kTables, lines);
  remove(at(kTables));
}

void RunDirectory::write_samples(const std::string& json) const {
  write_text(kSamples, json);
}

void RunDirectory::write_report(const std::string& html) const {
  write_text(kReport, html);
}

void RunDirectory::append_table(std::string_view rows) const {
  append(kTable, rows);
}

/// Removes dtrain's event files only; other files are kept.
void RunDirectory::remove_event_files() const {
  const auto remove_folder = [](const Location& folder) {
    ::unlinkat(folder.directory, folder.path.c_str(), AT_REMOVEDIR);
  };
  for (const std::string& part : names_in(at(kTensorboard))) {
    const std::string folder = fmt::format("{}/{}", kTensorboard, part);
    for (const std::string& name : names_in(at(folder)))
      if (is_event_file(name)) remove(at(folder + "/" + name));
    remove_folder(at(folder));
  }
  remove_folder(at(kTensorboard));
}

void RunDirectory::append_metrics(std::string_view line) const {
  append(kMetrics, line);
}

void RunDirectory::append_event(const Json& event) const {
  append(kEvents, event.dump() + "\n");
}

void RunDirectory::save(int64_t step, const CheckpointContent& content) const {
  save_checkpoint(checkpoint_at(step), content);
}

void RunDirectory::prune(int64_t keep, std::optional<int64_t> best) const {
  const DirectoryLock lock(checkpoint_directory(), DirectoryLock::Kind::alone);
  // Another process holds the lock because it is looking up a checkpoint to read. Removes nothing now; the
  // next save removes the old checkpoints.
  if (lock.refused()) return;
  const std::vector<int64_t> all = steps();
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    if (best == all[i]) continue;
    remove(checkpoint_at(all[i]));  // a failure is harmless, because it only leaves one checkpoint too many
  }
}

bool RunDirectory::make_room(int64_t step, int64_t keep, const std::vector<int64_t>& kept) const {
  std::vector<int64_t> all = steps();
  // If there is already a checkpoint of this step, the old checkpoint is replaced only when the new one is
  // complete. Until then, the old checkpoint is the newest one.
  const size_t newest = std::erase(all, step) > 0 ? 0 : 1;
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size() + 1 && i + newest < all.size(); ++i) {
    if (std::find(kept.begin(), kept.end(), all[i]) != kept.end()) continue;
    return remove(checkpoint_at(all[i]));
  }
  return false;
}

std::vector<std::string> RunDirectory::set_aside_after(int64_t step) const {
  std::vector<std::string> aside;
  for (const int64_t newer : steps()) {
    if (newer <= step) continue;
    const Location from = checkpoint_at(newer);
    std::string suffix = ".set-aside";
    for (int n = 2; exists({from.directory, from.path + suffix, ""}); ++n)
      suffix = fmt::format(".set-aside-{}", n);
    if (::renameat(from.directory, from.path.c_str(), from.directory, (from.path + suffix).c_str()) != 0)
      throw Error(fmt::format("{}: cannot be renamed: {}", from.shown(), reason(errno)));
    aside.push_back(checkpoint_path(newer) + suffix);
  }
  return aside;
}

void RunDirectory::clear() const {
  const auto clear_away = [](const Location& location) {
    if (!remove(location))
      throw Error(fmt::format("{}: cannot be removed: {}", location.shown(), reason(errno)));
  };
  for (const int64_t step : steps()) clear_away(checkpoint_at(step));
  for (const char* name : kOwn) clear_away(at(name));
  remove_event_files();
}

}  // namespace dtrain
