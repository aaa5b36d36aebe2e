#include "signals.h"

#include <csignal>
#include <initializer_list>
#include <unistd.h>

namespace dtrain {

namespace {

// What a signal handler touches has to be global.
Requests requests;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

extern "C" void on_stop_signal(int number) {
  int none = 0;
  if (!requests.stop.compare_exchange_strong(none, number) && number != SIGHUP) ::_exit(128 + number);
}

extern "C" void on_save_signal(int) {
  requests.save = true;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Requests& catch_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) handle(number, on_stop_signal);
  handle(SIGUSR1, on_save_signal);
  return requests;
}

void ignore_write_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace dtrain
