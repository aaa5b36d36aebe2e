// The threads of the replicas in this process.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "collective/barrier.h"
#include "collective/collective.h"

namespace dtrain {

/// A group of `size` threads that all run the same function at the same time. Member 0 is the thread that
/// owns the Team. The other threads wait between the calls of run(). The first exception of any member aborts
/// the group, makes the Team unusable and is rethrown by run().
class Team {
 public:
  Team(int size, bool spin);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  /// Returns the Collective of a member. The member's thread may use it during run().
  Collective& member(int rank) { return *members_[static_cast<size_t>(rank)]; }
  /// Calls work(collective) on every member and returns when all have finished. Only the owner's thread may
  /// call it.
  void run(const std::function<void(Collective&)>& work);
  /// Registers a hook that a failed member calls after it has aborted the group. Its purpose is to wake
  /// members that wait outside the group's collective calls. The hook must neither throw nor wait. Only the
  /// owner's thread may register hooks, and only while run() is not running.
  void on_abort(std::function<void()> hook) { on_abort_.push_back(std::move(hook)); }

 private:
  void serve(Collective& member);
  void work_on(Collective& member) noexcept;

  std::vector<std::unique_ptr<Collective>> members_;
  Barrier start_, finish_;
  const std::function<void(Collective&)>* work_ = nullptr;  // null tells the threads to exit
  std::vector<std::function<void()>> on_abort_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace dtrain
