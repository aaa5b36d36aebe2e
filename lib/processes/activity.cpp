#include "processes/activity.h"

#include <ctime>
#include <sys/resource.h>
#include <utility>

namespace dtrain {

namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

Activity::Activity() : last_call_(Clock::now()), last_(used()) {}

Activity::Used Activity::used() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID),
          usage.ru_inblock + usage.ru_oublock + usage.ru_majflt};
}

bool Activity::since_last_call() {
  // Waiting threads also use a little CPU time, because they wake up from time to time.
  constexpr double kLeastShare = 0.01;
  const Clock::time_point now = Clock::now();
  const Used used_now = used(), before = std::exchange(last_, used_now);
  const std::chrono::duration<double> elapsed = now - std::exchange(last_call_, now);
  return used_now.cpu - before.cpu > kLeastShare * elapsed.count() || used_now.blocks != before.blocks;
}

}  // namespace dtrain
