// The directory of a run: config.yaml, metrics.jsonl, metrics.csv, tables.jsonl, samples.json, run.jsonl,
// report.html, checkpoints/, tensorboard/.
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

/// Whether a file in tensorboard/ is one of dtrain's (report/tensorboard.h), by its name.
bool is_event_file(std::string_view name);

/// Copies are of the same directory. One that is held is written to wherever it is moved; the others go by
/// its path.
class RunDirectory {
 public:
  explicit RunDirectory(std::string path);
  /// The run directory that a checkpoint file stands in (DIR/checkpoints/ckpt-...h5), or nothing.
  static std::optional<RunDirectory> around(const std::string& checkpoint_file);

  /// The path as it was given; for a directory that was renamed since it was held, the path that it has now.
  std::string path() const;
  std::string checkpoint_directory() const { return path() + "/checkpoints"; }
  std::string checkpoint_path(int64_t step) const;
  /// The checkpoints' paths by step, ascending.
  std::vector<std::string> checkpoints() const;
  bool has_checkpoint(int64_t step) const;
  /// Whether a configuration was written, as every run does at its start.
  bool has_begun() const;

  /// Whether a run of dtrain, of this or an earlier version, made the directory: run.jsonl says so, or it
  /// holds a checkpoint.
  bool is_run() const;

  /// Whether another process, or this one, trains there now.
  bool is_held() const;
  /// Makes the directories, keeps every other process of this machine from training here until the last copy
  /// is gone, and removes what runs that were killed left half written. False where another process holds the
  /// directory. Throws UserError where the directories cannot be made, or where no run made them and they
  /// hold files under the names of a run's. Does nothing where it is held already.
  bool try_hold();
  /// The same; throws UserError where another process holds the directory.
  void hold();
  /// Undoes hold() for a run that did not come about, unless there are checkpoints: removes the directories
  /// and the files of a run that were not there before.
  void discard();
  /// Sees to it that there still is a directory to write to: checkpoints/ is made anew where it is gone;
  /// where the whole directory is, NAME-recovered takes its place, beside it or else in /tmp (path()). Gives
  /// what was done, for people; "" where all is well. Throws Error where nothing can be made. Of a directory
  /// that is held.
  std::string ensure();

  /// Each of these files appears whole or not at all.
  void write_config(const std::string& yaml) const;
  void write_metrics(const std::string& lines) const;
  void write_table(const std::string& csv) const;
  void write_samples(const std::string& json) const;
  /// tables.jsonl; removes it where there are no lines.
  void write_tables(const std::string& lines) const;
  void write_report(const std::string& html) const;
  /// Adds a line to those that stand there, without waiting for the disk: checkpoints hold them all.
  void append_metrics(std::string_view line) const;
  void append_table(std::string_view rows) const;
  /// Adds a line to run.jsonl, which says when and with what the run was begun, gone on with and ended.
  void append_event(const Json& event) const;
  /// The folder of TensorBoard's files, which may not be there.
  std::string tensorboard_directory() const { return path() + "/tensorboard"; }

  /// Writes the checkpoint of `step`, whole or not at all. Throws NoSpace, or another Error; what was there
  /// before is then as it was.
  void save(int64_t step, const CheckpointContent& content) const;
  /// Removes all checkpoints but the newest `keep` and that of step `best`; none while another process looks
  /// for the newest one.
  void prune(int64_t keep, std::optional<int64_t> best) const;
  /// Makes room for a checkpoint of `step`: removes the oldest one that prune(keep, ...) would remove once
  /// that is written, never the newest one that is there nor one of `kept`. False where there is none.
  bool make_room(int64_t step, int64_t keep, const std::vector<int64_t>& kept) const;
  /// Gives checkpoints after `step` another name (".set-aside" behind it, numbered where that is taken), so
  /// that they are neither resumed from nor lost; returns their paths.
  std::vector<std::string> set_aside_after(int64_t step) const;
  /// Removes the files of a run that is to be overwritten.
  void clear() const;

 private:
  struct Held;

  /// Throws UserError, after discard(), where a run would replace files that no run wrote.
  void refuse_foreign_files();
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
