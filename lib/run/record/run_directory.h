// The directory of a run. It contains config.yaml, metrics.jsonl, metrics.csv, tables.jsonl, samples.json,
// run.jsonl, report.html, checkpoints/, tensorboard/, and the file by which `dtrain stop` requests the end of
// the run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint.h"

namespace dtrain {

/// Returns whether a file in tensorboard/ was written by dtrain (report/tensorboard.h), judging by its name.
bool is_event_file(std::string_view name);

/// The directory of a run. Copies of this object refer to the same directory. While the directory is held
/// (locked), it may be renamed, because it is accessed by a file descriptor. If it is not held, it is
/// accessed by its path.
class RunDirectory {
 public:
  explicit RunDirectory(std::string path);
  /// Returns the run directory that contains a checkpoint file (DIR/checkpoints/ckpt-...h5), or nullopt.
  static std::optional<RunDirectory> around(const std::string& checkpoint_file);
  /// Returns whether `path` is a file that a run writes in its directory: config.yaml, metrics.csv and
  /// others.
  static bool is_file_of_run(const std::string& path);

  /// Returns the path that was given, or the current path if the directory was renamed while held.
  std::string path() const;
  std::string checkpoint_directory() const { return path() + "/checkpoints"; }
  std::string checkpoint_path(int64_t step) const;
  /// Returns the paths of the checkpoints, by ascending step.
  std::vector<std::string> checkpoints() const;
  bool has_checkpoint(int64_t step) const;
  /// Returns whether the directory has a config.yaml, which every run writes at its start.
  bool has_begun() const;

  /// Returns whether dtrain (this or an earlier version) created the directory. This is the case if it
  /// contains a checkpoint, a run.jsonl that begins like one written by dtrain, or an empty run.jsonl and a
  /// folder checkpoints/, which a run may leave if the machine loses power.
  bool is_run() const;

  /// Returns whether any process, including this one, is training in the directory.
  bool is_held() const;
  /// Creates the directories, locks the run against all other processes of this machine until the last copy
  /// of this object is destroyed, and removes partial files of killed runs. Returns false if another process
  /// holds the lock. Throws UserError if the directories cannot be created, or if they contain files that
  /// have the names of a run's files but were not written by a run. Does nothing if the directory is already
  /// held.
  bool try_hold();
  /// Like try_hold(), but throws UserError if another process holds the directory.
  void hold();
  /// Undoes hold() for a run that failed to start, unless there are checkpoints or metrics of finished
  /// epochs: removes the directories and run files that did not exist before.
  void discard();
  /// Asks the process that trains in the directory, on any machine, to save and end. Throws Error if the
  /// request cannot be written.
  void request_stop() const;
  /// Returns whether request_stop() was called for this run, and removes the request. (Requests to earlier
  /// runs are removed by hold().)
  bool take_stop_request() const;
  /// Ensures that the held directory still exists. Recreates checkpoints/ if it is missing. If the whole
  /// directory is missing, creates a directory NAME-recovered in the same parent directory, or in /tmp if
  /// that fails, and uses it from then on (see path()). Returns a message for the user, or "" if nothing was
  /// missing. Throws Error if nothing can be created.
  std::string ensure();

  /// Each of these functions writes its file atomically.
  void write_config(const std::string& yaml) const;
  void write_metrics(const std::string& lines) const;
  void write_table(const std::string& csv) const;
  void write_samples(const std::string& json) const;
  /// Writes tables.jsonl; removes it if `lines` is empty.
  void write_tables(const std::string& lines) const;
  void write_report(const std::string& html) const;
  /// These functions append lines to metrics.jsonl and metrics.csv. The files are not synchronized to disk,
  /// because checkpoints also contain all lines.
  void append_metrics(std::string_view line) const;
  void append_table(std::string_view rows) const;
  /// Appends a line to run.jsonl, which records when and with which software the run was started, resumed and
  /// ended.
  void append_event(const Json& event) const;
  /// The folder of TensorBoard files, which may not exist.
  std::string tensorboard_directory() const { return path() + "/tensorboard"; }

  /// Writes the checkpoint of `step` atomically. Throws NoSpace or another Error, and then leaves existing
  /// files unchanged.
  void save(int64_t step, const CheckpointContent& content) const;
  /// Removes all checkpoints except the newest `keep` checkpoints and the checkpoint of step `best`. Removes
  /// none while another process is looking up the newest checkpoint.
  void prune(int64_t keep, std::optional<int64_t> best) const;
  /// Frees disk space for a new checkpoint of `step` by removing the oldest checkpoint that prune(keep, ...)
  /// would remove anyway after the new checkpoint was written. Never removes the newest existing checkpoint,
  /// or checkpoints of the steps in `kept`. Returns false if there is no checkpoint to remove.
  bool make_room(int64_t step, int64_t keep, const std::vector<int64_t>& kept) const;
  /// Renames the checkpoints of steps after `step`, so that no run resumes from them, but none of them is
  /// lost: appends ".set-aside" to their names, and a number if this name is taken. Returns the new paths.
  std::vector<std::string> set_aside_after(int64_t step) const;
  /// Removes the files of a run that will be overwritten.
  void clear() const;

 private:
  struct Held;

  /// If the run would replace files that were not written by a run, calls discard() and throws UserError.
  void reject_foreign_files();
  void remove_event_files() const;
  Location at(const std::string& name) const;
  Location checkpoint_at(int64_t step) const;
  std::vector<int64_t> steps() const;
  bool holds_checkpoint(int64_t step) const;
  void append(const std::string& name, std::string_view line) const;
  void write_text(const std::string& name, const std::string& text) const;

  std::shared_ptr<Held> held_;
};

}  // namespace dtrain
