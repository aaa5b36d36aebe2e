#include "train/standstill.h"

#include <algorithm>
#include <utility>

namespace dtrain {

StandstillWatch::Scope::Scope(StandstillWatch* watch, std::atomic<int> StandstillWatch::*count)
    : watch_(watch), count_(count) {
  if (!watch_) return;
  watch_->move();
  ++(watch_->*count_);
}

StandstillWatch::Scope::~Scope() {
  if (!watch_) return;
  watch_->move();
  --(watch_->*count_);
}

StandstillWatch::StandstillWatch(Seconds limit, std::function<void()> end)
    : limit_(limit), end_(std::move(end)), thread_([this, begun = Clock::now()] { watch(begun); }) {}

StandstillWatch::~StandstillWatch() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool StandstillWatch::stands_still() const {
  if (waiting_ == 0 || reading_ > 0) return false;
  const Clock::time_point last{Clock::duration(last_move_)};
  return Clock::now() - last >= limit_;
}

/// Looks now and then, so that nobody who works has to wake it. A process that was stopped and goes on, as by
/// Ctrl-Z or a scheduler, has not stood still: this thread did not look in that time either.
void StandstillWatch::watch(Clock::time_point looked) {
  const Seconds interval =
      std::clamp<Seconds>(limit_ / 8, std::chrono::milliseconds(1), std::chrono::seconds(1));
  constexpr Seconds kHeldUp(1);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return closing_; })) {
    const Clock::time_point now = Clock::now();
    if (now - std::exchange(looked, now) > interval + kHeldUp) move();
    if (stands_still()) return end_();
  }
}

}  // namespace dtrain
