#include "collective/team.h"

#include <fmt/format.h>

#include "base/threads.h"

namespace dtrain {

Team::Team(int size, bool spin)
    : members_(make_local_group(size, spin)), start_(size, spin), finish_(size, spin) {
  threads_.reserve(static_cast<size_t>(size));  // so that push_back() cannot throw after a thread has started
  try {
    for (int rank = 1; rank < size; ++rank)
      threads_.push_back(start_thread(fmt::format("replica {} of {}", rank + 1, size),
                                      [this, rank] { serve(*members_[static_cast<size_t>(rank)]); }));
  } catch (...) {  // the system has no more threads or memory: end the threads that have started
    start_.abort();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

Team::~Team() {
  work_ = nullptr;
  if (!threads_.empty()) start_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(const std::function<void(Collective&)>& work) {
  if (error_) std::rethrow_exception(error_);
  work_ = &work;
  if (size() > 1) start_.arrive_and_wait();
  work_on(*members_[0]);
  if (size() > 1) finish_.arrive_and_wait();
  if (error_) std::rethrow_exception(error_);
}

void Team::serve(Collective& member) try {
  for (;;) {
    start_.arrive_and_wait();
    if (!work_) return;
    work_on(member);
    finish_.arrive_and_wait();
  }
} catch (const Aborted&) {
  // The constructor could not start another thread and has aborted the group.
}

void Team::work_on(Collective& member) noexcept {
  try {
    (*work_)(member);
  } catch (const Aborted&) {
    // Another member has failed first. Only the error of that member is shown.
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
    member.abort();
    for (const auto& hook : on_abort_) hook();
  }
}

}  // namespace dtrain
