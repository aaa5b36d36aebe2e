// Writes a run directory's report.html and TensorBoard files.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "report/tensorboard.h"
#include "run/tensorboard_options.h"
#include "train/trainer.h"

namespace dtrain {

/// Sets the keys of a run.jsonl event that describe the training: devices, parameters, layers, samples, and
/// each replica's memory. Returns the event.
Json& describe_run(Json& event, Trainer& trainer);

/// Forwards all events to `next`. Writes the report after the first epoch, then at intervals that are long
/// compared with the time that writing takes, and at the end. A write failure causes one warning and does not
/// end the run.
class RunRecorder final : public Observer {
 public:
  RunRecorder(RunDirectory directory, Observer& next) : directory_(std::move(directory)), next_(next) {}

  /// Call before the trainer runs. The trainer must outlive the recorder.
  void begin(Trainer& trainer);
  /// Call after the run has ended and run.jsonl has its end event. `complete`: true if neither a signal nor a
  /// failure ended the run, so that there is time to evaluate samples.
  void end(bool complete);

  void on_step(const Progress& progress) override;
  void on_validation(int64_t epoch, int64_t epochs, int64_t step, int64_t steps) override {
    next_.on_validation(epoch, epochs, step, steps);
  }
  void on_epoch(const Json& record, int64_t epochs) override;
  void on_note(const std::string& message) override { next_.on_note(message); }
  void on_warning(const std::string& message) override { next_.on_warning(message); }

 private:
  using Clock = std::chrono::steady_clock;

  void write_report(bool running);
  void write_samples();

  const RunDirectory directory_;
  Observer& next_;
  Trainer* trainer_ = nullptr;
  TensorboardOptions options_;
  std::unique_ptr<TensorBoard> tensorboard_;
  Clock::time_point reported_;
  Clock::duration between_{};  // time between two reports
  int64_t first_step_ = 0;     // number of the run's steps that earlier processes completed
  bool report_failed_ = false;
};

}  // namespace dtrain
