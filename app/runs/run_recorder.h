// What a run directory gets to be looked at: report.html and TensorBoard's files.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "report/tensorboard.h"
#include "train/trainer.h"

namespace dtrain {

/// Sets the keys of an event of run.jsonl that tell what is trained: devices, parameters, layers, samples,
/// and the memory that each replica takes. Returns the event.
Json& describe_run(Json& event, Trainer& trainer);

/// Whatever the recorder observes it hands on to `next`. The report is written after the first epoch, then
/// whenever that takes next to nothing of the time, and at the end. Nothing of this is worth a run: what
/// cannot be written is a warning, once.
class RunRecorder final : public Observer {
 public:
  RunRecorder(RunDirectory directory, Observer& next) : directory_(std::move(directory)), next_(next) {}

  /// The trainer, which must live longer, is about to run.
  void begin(Trainer& trainer);
  /// The run has ended, and run.jsonl says how. `complete`: not by a signal or a failure, so that there is
  /// time to look at samples.
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

  void add_histograms(int64_t epoch);
  void write_report(bool running);
  void write_samples();

  const RunDirectory directory_;
  Observer& next_;
  Trainer* trainer_ = nullptr;
  std::unique_ptr<TensorBoard> tensorboard_;
  Clock::time_point reported_;
  Clock::duration between_{};  // two reports
  int64_t first_step_ = 0;     // from which this process goes on
  bool report_failed_ = false;
};

}  // namespace dtrain
