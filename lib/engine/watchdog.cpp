#include "engine/watchdog.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/threads.h"

namespace dtrain {

Watchdog::Scope::Scope(Watchdog* watchdog, std::atomic<int> Watchdog::*count)
    : watchdog_(watchdog), count_(count) {
  if (!watchdog_) return;
  watchdog_->move();
  ++(watchdog_->*count_);
}

Watchdog::Scope::~Scope() {
  if (!watchdog_) return;
  watchdog_->move();
  --(watchdog_->*count_);
}

Watchdog::Watchdog(Seconds limit, Run run) : limit_(limit), run_(std::move(run)) {
  try {
    health_ = start_thread("watching the GPUs", [this] { watch_health(); });
    progress_ = start_thread("watching the run", [this, begun = Clock::now()] { watch_progress(begun); });
  } catch (...) {
    stop();
    throw;
  }
}

Watchdog::~Watchdog() {
  stop();
}

void Watchdog::stop() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread* thread : {&health_, &progress_})
    if (thread->joinable()) thread->join();
}

void Watchdog::check() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw Error(failure_);
}

void Watchdog::ask() {
  check();
  if (const std::string found = run_.find_failure(); !found.empty()) end(found);
  check();
}

void Watchdog::end(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = why;  // set before any thread is woken, so that check() reports it
  }
  run_.end(why);
}

void Watchdog::watch_health() {
  constexpr std::chrono::milliseconds kInterval{200};
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [this] { return closing_; })) {
    if (!failure_.empty()) return;
    lock.unlock();
    if (const std::string found = run_.find_failure(); !found.empty()) return end(found);
    lock.lock();
  }
}

bool Watchdog::stalls() const {
  if (waiting_ == 0 || working_ > 0) return false;
  const Clock::time_point last{Clock::duration(last_move_)};
  return Clock::now() - last >= limit_;
}

/// This thread polls, so that working threads need not wake it. A process that was suspended and continued
/// (Ctrl-Z, or a scheduler) has not stalled. This thread detects a suspension because the thread itself did
/// not run during that time.
void Watchdog::watch_progress(Clock::time_point looked) {
  const Seconds interval =
      std::clamp<Seconds>(limit_ / 8, std::chrono::milliseconds(1), std::chrono::seconds(1));
  constexpr Seconds kHeldUp(1);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return closing_; })) {
    const Clock::time_point now = Clock::now();
    if (now - std::exchange(looked, now) > interval + kHeldUp) move();
    if (!stalls()) continue;
    lock.unlock();
    return end(run_.describe_stall());
  }
}

}  // namespace dtrain
