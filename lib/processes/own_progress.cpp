#include "processes/own_progress.h"

#include <algorithm>
#include <array>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "base/exit_deadline.h"

namespace dtrain {

namespace {

/// Returns whether standard output or error blocks, for example because a pager or a stopped terminal does
/// not read it.
bool output_blocks() {
  std::array<pollfd, 2> outputs = {{{STDOUT_FILENO, POLLOUT, 0}, {STDERR_FILENO, POLLOUT, 0}}};
  ::poll(outputs.data(), outputs.size(), 0);
  return std::any_of(outputs.begin(), outputs.end(), [](const pollfd& one) { return one.revents == 0; });
}

}  // namespace

ProcessProgress OwnProgress::get() {
  if (source_) progress_ = source_();
  return progress_;
}

bool OwnProgress::hangs(Seconds elapsed) {
  // Measures the activity over at least this time. Messages of other processes cause additional calls of this
  // function, so the time between two calls may be very short. In such a short time, a waiting thread that
  // wakes up only from time to time might look active.
  constexpr Seconds kLeastMeasured(0.2);
  measured_ += elapsed;
  if (measured_ < kLeastMeasured) return false;
  const Seconds measured = std::exchange(measured_, Seconds(0));
  const bool is_active = activity_.since_last_call();
  if (hang_limit_ <= Seconds(0) || !source_) return false;
  const ProcessProgress progress = source_();
  const bool moved = progress != std::exchange(last_, progress);
  const bool is_idle =
      !moved && !progress.waits && !is_active && !ExitDeadline::is_held() && !output_blocks();
  idle_ = is_idle ? idle_ + measured : Seconds(0);
  return idle_ >= hang_limit_;
}

}  // namespace dtrain
