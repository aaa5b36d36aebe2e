#include "base/exit_deadline.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

namespace dtrain {

namespace {

std::atomic<int> holds{0};

/// Prints the message and ends the process. Calls no destructor and allocates nothing, because other threads
/// may be in any state. Skips the message if standard error cannot accept it now (e.g. a stopped terminal),
/// so that writing cannot block the exit.
[[noreturn]] void end_process(const std::string& message) {
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) == 1 && (output.revents & POLLOUT)) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  }
  ::_exit(1);
}

}  // namespace

std::chrono::duration<double> cleanup_limit() {
  const char* text = std::getenv("DTRAIN_CLEANUP_SECONDS");
  const double seconds = text ? std::strtod(text, nullptr) : 0;
  return std::chrono::duration<double>(seconds > 0 ? seconds : 30);
}

ExitDeadline::Hold::Hold() {
  ++holds;
}

ExitDeadline::Hold::~Hold() {
  --holds;
}

bool ExitDeadline::is_held() {
  return holds > 0;
}

ExitDeadline::~ExitDeadline() {
  {
    const std::lock_guard lock(mutex_);
    in_time_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ExitDeadline::arm(const std::string& why) noexcept try {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  // On a terminal, a progress bar may be on the current line; the message starts a new one.
  std::string message =
      fmt::format("{}error: {}\nerror: cleaning up did not finish within {:g} seconds; ending the process\n",
                  ::isatty(STDERR_FILENO) == 1 ? "\n" : "", why, cleanup_limit().count());
  thread_ = std::thread([this, text = std::move(message)] { wait(text); });
} catch (...) {  // if the thread cannot be started, there is no deadline
}

/// Waits in small steps, so that time during which the process is stopped (Ctrl-Z) does not count.
void ExitDeadline::wait(const std::string& message) {
  using Seconds = std::chrono::duration<double>;
  Seconds left = cleanup_limit();
  std::unique_lock lock(mutex_);
  while (left > Seconds::zero()) {
    const Seconds step = std::min(left, Seconds(0.1));
    if (changed_.wait_for(lock, step, [this] { return in_time_; })) return;
    if (holds == 0) left -= step;
  }
  end_process(message);
}

}  // namespace dtrain
