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
    : limit_(limit), end_(std::move(end)), thread_([this] { watch(); }) {}

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

/// Looks now and then, so that nobody who works has to wake it.
void StandstillWatch::watch() {
  const Seconds interval =
      std::clamp<Seconds>(limit_ / 8, std::chrono::milliseconds(1), std::chrono::seconds(1));
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return closing_; }))
    if (stands_still()) return end_();
}

}  // namespace dtrain
