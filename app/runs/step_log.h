// Logs every step's loss and time to a file, for measuring and comparing runs.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "train/trainer.h"

namespace dtrain {

/// Appends a line {"step", "loss", "seconds"} for each step: the global step (from 1), the mean loss of its
/// batch, and the time at which the step ended, in seconds since the process started (see
/// seconds_since_start()). Each line is written immediately. Forwards all events to `next`.
class StepLog final : public Observer {
 public:
  /// Throws UserError if the file cannot be written.
  StepLog(const std::string& path, Observer& next);

  void on_step(const Progress& progress) override;
  void on_validation(int64_t epoch, int64_t epochs, int64_t step, int64_t steps) override {
    next_.on_validation(epoch, epochs, step, steps);
  }
  void on_epoch(const Json& record, int64_t epochs) override;
  void on_note(const std::string& message) override { next_.on_note(message); }
  void on_warning(const std::string& message) override { next_.on_warning(message); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  Observer& next_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Returns the seconds since the process started. Of the time before main(), only CPU time is counted.
double seconds_since_start();

}  // namespace dtrain
