// The directory of a run: config.yaml, metrics.jsonl, checkpoints/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

class RunDirectory {
 public:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  /// The run directory that a checkpoint file stands in (DIR/checkpoints/ckpt-...h5), or nothing.
  static std::optional<RunDirectory> around(const std::string& checkpoint_file);

  const std::string& path() const { return path_; }
  std::string checkpoint_directory() const { return path_ + "/checkpoints"; }
  std::string checkpoint_path(int64_t step) const;
  /// By step, ascending.
  std::vector<std::string> checkpoints() const;

  /// Makes the directories; throws UserError where that fails.
  void create() const;
  /// Keeps every other process from training here, until it is gone or its process ends. Makes the directory.
  /// Throws UserError where another has it.
  class Lock {
   public:
    explicit Lock(int fd) : fd_(fd) {}
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock();

   private:
    int fd_;
  };
  Lock lock() const;

  /// Both whole or not at all.
  void write_config(const std::string& yaml) const;
  void write_metrics(const std::string& lines) const;
  /// Adds a line to those that stand there, without waiting for the disk: checkpoints hold them all.
  void append_metrics(std::string_view line) const;

  /// Removes all checkpoints but the newest `keep` and that of step `best`; none while another process looks
  /// for the newest one.
  void prune(int64_t keep, std::optional<int64_t> best) const;
  /// Gives checkpoints after `step` another name (".set-aside" behind it, numbered where that is taken), so
  /// that they are neither resumed from nor lost; returns their paths.
  std::vector<std::string> set_aside_after(int64_t step) const;
  /// Removes config, metrics and checkpoints of a run that is to be overwritten.
  void clear() const;

 private:
  std::string path_;
};

}  // namespace dtrain
