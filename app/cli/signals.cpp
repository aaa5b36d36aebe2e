#include "cli/signals.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <poll.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/console.h"

namespace dtrain {

namespace {

using Clock = std::chrono::steady_clock;

Requests signal_requests;
std::atomic<bool> requests_wanted{false}, requests_ignored{false};

/// Returns the signals that the signal thread handles; signals that the process ignores stay ignored.
sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

/// Ends the process by the signal's default action.
[[noreturn]] void end_by(int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(number);
  // The next line is reached only if the signal does not end the process, for example if the process has
  // PID 1 in a container.
  ::_exit(128 + number);
}

/// Acknowledges a stop request with a message. Prints nothing if standard error would block (because of a
/// stopped terminal or a full pipe), because this thread must stay responsive to signals.
void acknowledge(int number) {
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) != 1 || !(output.revents & POLLOUT)) return;
  print_note(
      fmt::format("SIG{}: stopping; to end the process at once without saving, send SIGINT or SIGTERM again "
                  "after at least one second",
                  ::sigabbrev_np(number)));
}

void serve(const sigset_t& signals) {
  constexpr std::chrono::seconds kTogether(1);
  std::optional<Clock::time_point> acknowledged;
  for (;;) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) continue;
    if (requests_ignored) continue;
    if (!requests_wanted) end_by(number);
    if (number == SIGUSR1) {
      signal_requests.save = true;
    } else if (!acknowledged) {
      signal_requests.stop = number;
      acknowledge(number);
      acknowledged = Clock::now();
    } else if (number != SIGHUP && Clock::now() - *acknowledged >= kTogether) {
      ::_exit(128 + number);
    }
  }
}

}  // namespace

void take_signals() {
  const sigset_t signals = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread(serve, signals).detach();
  } catch (const std::system_error&) {
    // The system could not start the thread. Commands that do not train can still work, so the signals get
    // their default actions again. A run needs threads and will report an error.
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

Requests& catch_signals() {
  requests_wanted = true;
  return signal_requests;
}

void ignore_stop_signals() {
  requests_ignored = true;
}

void ignore_write_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace dtrain
