// Records the progress of this process, and detects whether the process hangs.
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
  /// Sets a function that returns the progress of the process. If it is null, the progress is the value
  /// passed to set().
  void set_source(std::function<ProcessProgress()> source) { source_ = std::move(source); }
  /// Sets the time for which the process may be idle before it counts as hanging. 0, the default, means no
  /// limit.
  void set_hang_limit(Seconds limit) { hang_limit_ = limit; }
  Seconds hang_limit() const { return hang_limit_; }

  ProcessProgress get();
  /// Returns true if the process has been idle for the time of set_hang_limit(). Must be called regularly;
  /// `elapsed` is the time since the previous call. The process is idle if its progress has a source, has not
  /// changed and is not waiting for other processes; if no other thread computed or read from disk
  /// (processes/activity.h); if no ExitDeadline is held; and if standard output and standard error do not
  /// block. These conditions are checked at most five times a second; other calls return false.
  bool hangs(Seconds elapsed);

 private:
  Activity activity_;
  ProcessProgress progress_;
  std::function<ProcessProgress()> source_;
  ProcessProgress last_;  // the progress at the last check by hangs()
  Seconds hang_limit_{0};
  Seconds measured_{0};  // time since the last check by hangs()
  Seconds idle_{0};      // time for which the process has been idle
};

}  // namespace dtrain
