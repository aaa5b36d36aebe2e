#include "collective/messenger.h"

#include <chrono>
#include <utility>

#include "base/threads.h"
#include "collective/world.h"
#include "device/cpu/denormals.h"
#include "processes/backoff.h"

namespace dtrain {

namespace {

/// Time that a call of the transport may take to return after a failure. Without a failure, calls return
/// almost at once.
constexpr std::chrono::seconds kPatience(1);

}  // namespace

Messenger::Messenger(Transport& transport, std::function<std::string()> explain,
                     std::function<void(const std::string& why)> end_process)
    : transport_(transport),
      explain_(std::move(explain)),
      end_process_(std::move(end_process)),
      thread_(start_thread("exchanging messages", [this] { serve(); })) {}

Messenger::~Messenger() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  wait_until([this] { return ended_; });
  thread_.join();
}

void Messenger::start(Exchange& exchange) {
  {
    const std::lock_guard lock(mutex_);
    // If the messenger has failed, the exchange may still be running since an earlier call of start().
    if (exchange.state_ == Exchange::State::running) return;
    exchange.state_ = failure_ ? Exchange::State::failed : Exchange::State::running;
    if (failure_) return;
    new_.push_back(&exchange);
    ++unfinished_;
  }
  changed_.notify_one();
}

void Messenger::wait(Exchange& exchange) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return exchange.state_ != Exchange::State::running || failure_; });
  if (exchange.state_ == Exchange::State::running || exchange.state_ == Exchange::State::failed)
    throw ProcessFailed(*failure_);
}

void Messenger::release(Exchange& exchange) noexcept {
  wait_until([&] { return exchange.state_ != Exchange::State::running; });
}

void Messenger::release_all() noexcept {
  wait_until([this] { return unfinished_ == 0; });
}

void Messenger::wait_until(const std::function<bool()>& is_free) noexcept {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return is_free() || failure_; });
  if (end_process_ && !finished_.wait_for(lock, kPatience, is_free)) {
    const std::string why = *failure_;
    lock.unlock();
    end_process_(why);
    lock.lock();
  }
  finished_.wait(lock, is_free);
}

/// Stores the first failure and wakes the thread, which then fails all exchanges.
bool Messenger::interrupt(const std::string& why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = why;
  }
  transport_.abort();
  changed_.notify_one();
  finished_.notify_all();
  return true;
}

std::string Messenger::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_.value_or("");
}

void Messenger::check() const {
  if (const std::string why = failure(); !why.empty()) throw ProcessFailed(why);
}

void Messenger::serve() noexcept {
  // The threads of the replicas flush denormals, too. A run of one process adds arrays in the replicas'
  // threads, and a run of several processes adds some of them in this thread. The sums must have the same
  // bits in both cases.
  cpu::flush_denormals();
  std::vector<Exchange*> running;
  Backoff backoff;
  for (size_t known = 0; take_new(running); known = running.size()) {
    if (running.size() > known) backoff.reset();
    if (advance(running))
      backoff.reset();
    else
      backoff.wait();
  }
  if (!running.empty()) interrupt("the connection to the other processes was closed");
  while (!running.empty()) finish(running, 0, Exchange::State::failed);
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    // Notifies while the mutex is locked, because the destructor may destroy the object as soon as the mutex
    // is unlocked.
    finished_.notify_all();
  }
}

/// Moves new exchanges to the list of running ones. If no exchange is running, waits for a new one. After a
/// failure, makes all exchanges fail. Returns false if the messenger is closing.
bool Messenger::take_new(std::vector<Exchange*>& running) {
  std::unique_lock lock(mutex_);
  if (running.empty()) changed_.wait(lock, [this] { return closing_ || !new_.empty(); });
  running.insert(running.end(), new_.begin(), new_.end());
  new_.clear();
  if (failure_) {
    unfinished_ -= running.size();
    for (Exchange* exchange : std::exchange(running, {})) exchange->state_ = Exchange::State::failed;
    finished_.notify_all();
  }
  return !closing_;
}

/// Advances all running exchanges. Returns true if at least one exchange has finished. If the transport
/// reports an error, all exchanges fail.
bool Messenger::advance(std::vector<Exchange*>& running) {
  const size_t before = running.size();
  for (size_t i = 0; i < running.size();) try {
      if (running[i]->advance(transport_))
        finish(running, i, Exchange::State::done);
      else
        ++i;
    } catch (const std::exception& error) {
      note_error(error.what());
      return true;
    }
  return running.size() < before;
}

/// Makes all exchanges fail because the transport has reported an error. The error message for users is the
/// result of explain_(), or the transport's error if this result is empty. After interrupt(), the transport's
/// errors are only consequences of the interruption, so they are ignored.
void Messenger::note_error(const std::string& error) {
  if (!failure().empty()) return;
  const std::string why = explain_();
  interrupt(why.empty() ? error : why);
}

void Messenger::finish(std::vector<Exchange*>& running, size_t index, Exchange::State state) {
  {
    const std::lock_guard lock(mutex_);
    running[index]->state_ = state;
    --unfinished_;
  }
  running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
  finished_.notify_all();
}

}  // namespace dtrain
