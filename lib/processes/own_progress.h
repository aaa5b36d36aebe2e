// The progress of this process, and whether it hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "processes/activity.h"

namespace dtrain {

/// The step and the activity of a process, for messages about it.
struct ProcessProgress {
  int64_t step = 0;
  std::string phase;   // current work of the process, such as "reading data"
  bool waits = false;  // whether the process waits for other processes
  bool operator==(const ProcessProgress&) const = default;
};

/// Holds the progress of this process, and detects that the process hangs. Not thread-safe.
class OwnProgress {
 public:
  using Seconds = std::chrono::duration<double>;

  void set(ProcessProgress progress) { progress_ = std::move(progress); }
  /// Takes the progress from `source` from now on; null: only from set().
  void set_source(std::function<ProcessProgress()> source) { source_ = std::move(source); }
  /// Sets how long the process may do nothing; 0, the default: without a limit.
  void set_hang_limit(Seconds limit) { hang_limit_ = limit; }
  Seconds hang_limit() const { return hang_limit_; }

  ProcessProgress get();
  /// To be called regularly, with the time since the previous call. Returns whether the process has done
  /// nothing for the limit: its progress has a source, did not change and does not wait for other processes;
  /// no thread computed or read (processes/activity.h); no ExitDeadline is held; and standard output and
  /// error are being read. Checks these conditions at most five times a second, and returns false for other
  /// calls.
  bool hangs(Seconds elapsed);

 private:
  Activity activity_;
  ProcessProgress progress_;
  std::function<ProcessProgress()> source_;
  ProcessProgress last_;  // the progress when hangs() last looked
  Seconds hang_limit_{0};
  Seconds measured_{0};  // time since hangs() last looked
  Seconds idle_{0};      // time since the process last did anything
};

}  // namespace dtrain
