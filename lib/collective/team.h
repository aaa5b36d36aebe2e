// The threads of a process's replicas.
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

/// `size` threads that run one piece of work at a time together: member 0 is the thread that owns the Team,
/// the others wait in between. The first exception of any member aborts the group, ends the Team's
/// usefulness, and comes out of run().
class Team {
 public:
  Team(int size, bool spin);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  /// The collective of a member, for its thread while work runs.
  Collective& member(int rank) { return *members_[static_cast<size_t>(rank)]; }
  /// work(collective) on every member; returns when all are done. Called by the owner's thread only.
  void run(const std::function<void(Collective&)>& work);
  /// The hook is called by the member that failed, with the group's abort: for whatever else the others may
  /// wait in. It must neither throw nor wait. Hooks are set between runs by the owner's thread.
  void on_abort(std::function<void()> hook) { on_abort_.push_back(std::move(hook)); }

 private:
  void serve(Collective& member);
  void work_on(Collective& member) noexcept;

  std::vector<std::unique_ptr<Collective>> members_;
  Barrier start_, finish_;
  const std::function<void(Collective&)>* work_ = nullptr;  // null: the threads end
  std::vector<std::function<void()>> on_abort_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace dtrain
