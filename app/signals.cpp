#include "signals.h"

#include <csignal>
#include <unistd.h>

namespace dtrain {

namespace {

// What a signal handler touches has to be global.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_stop_signal(int number) {
  if (stop_signal.exchange(number) != 0) ::_exit(128 + number);
}

}  // namespace

const std::atomic<int>& catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return stop_signal;
}

void ignore_write_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace dtrain
