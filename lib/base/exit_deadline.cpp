#include "base/exit_deadline.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace dtrain {

namespace {

std::atomic<int> holds{0};
std::atomic<bool> stuck_thread{false};

/// Prints the message and ends the process. Calls no destructor and allocates nothing, because other threads
/// may be in any state. Skips the message if standard error cannot accept it now (e.g. a stopped terminal),
/// so that writing cannot block the exit.
[[noreturn]] void end_process(const std::string& message, int exit_code) {
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) == 1 && (output.revents & POLLOUT)) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  }
  ::_exit(exit_code);
}

}  // namespace

std::chrono::duration<double> cleanup_limit() {
  const char* text = std::getenv("DTRAIN_CLEANUP_SECONDS");
  const double seconds = text ? std::strtod(text, nullptr) : 0;
  return std::chrono::duration<double>(seconds > 0 ? seconds : 30);
}

std::chrono::duration<double> connection_limit() {
  return 4 * cleanup_limit();
}

void note_stuck_thread() {
  stuck_thread = true;
}

bool has_stuck_thread() {
  return stuck_thread;
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

void ExitDeadline::arm(Ending ending) noexcept try {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  // On a terminal, a progress bar may be on the current line; the message starts a new one.
  if (!ending.message.empty() && ::isatty(STDERR_FILENO) == 1) ending.message.insert(0, "\n");
  thread_ = std::thread([this, end = std::move(ending)] { wait(end); });
} catch (...) {  // if the thread cannot be started, there is no deadline
}

void ExitDeadline::arm(const std::string& why) noexcept try {
  arm(Ending{.message = fmt::format(
                 "error: {}\nerror: cleaning up did not finish within {:g} seconds; ending the process\n",
                 why, cleanup_limit().count())});
} catch (...) {  // if there is no memory for the message, there is no deadline
}

/// Waits in small steps, so that time during which the process is stopped (Ctrl-Z) does not count.
void ExitDeadline::wait(const Ending& ending) {
  using Seconds = std::chrono::duration<double>;
  Seconds left = ending.limit;
  std::unique_lock lock(mutex_);
  while (left > Seconds::zero()) {
    const Seconds step = std::min(left, Seconds(0.1));
    if (changed_.wait_for(lock, step, [this] { return in_time_; })) return;
    if (holds == 0) left -= step;
  }
  if (ending.tell_others) {
    ending.tell_others();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  end_process(ending.message, ending.exit_code);
}

}  // namespace dtrain
