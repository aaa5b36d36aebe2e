// Runs the processes of a run as threads of a test. The World of each process sends messages through queues
// in memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "collective/process_world.h"
#include "processes/transport.h"

namespace dtrain::test {

/// The messages among the processes. A message is copied when it is sent, and is received when test() is
/// called.
class Queues {
 public:
  explicit Queues(int size) : size_(size), bytes_(static_cast<size_t>(size)) {}

  int size() const { return size_; }
  void push(int from, int to, int tag, std::span<const std::byte> message) {
    const std::lock_guard lock(mutex_);
    bytes_[static_cast<size_t>(from)] += static_cast<int64_t>(message.size());
    messages_[{from, to, tag}].emplace_back(message.begin(), message.end());
  }
  /// Takes the oldest message from process `from` to process `to` from its queue, and copies it to `message`.
  /// Returns false if there is none.
  bool pop(int from, int to, int tag, std::span<std::byte> message) {
    const std::lock_guard lock(mutex_);
    auto& waiting = messages_[{from, to, tag}];
    if (waiting.empty()) return false;
    if (waiting.front().size() != message.size()) throw Error("a message has another size than expected");
    std::copy(waiting.front().begin(), waiting.front().end(), message.begin());
    waiting.pop_front();
    return true;
  }
  /// Bytes that a process has sent.
  int64_t sent_by(int process) {
    const std::lock_guard lock(mutex_);
    return bytes_[static_cast<size_t>(process)];
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return std::all_of(messages_.begin(), messages_.end(),
                       [](const auto& entry) { return entry.second.empty(); });
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> messages_;
  std::vector<int64_t> bytes_;
};

class QueueTransport final : public Transport {
 public:
  QueueTransport(Queues& queues, int rank) : queues_(queues), rank_(rank) {}

  /// Makes test() block until release() is called. Waits until another thread has called test(), but at most
  /// a second.
  void block() {
    std::unique_lock lock(mutex_);
    blocked_ = true;
    changed_.wait_for(lock, std::chrono::seconds(1), [this] { return inside_; });
  }
  /// Lets test() return. Before that, writes to the memory of all pending receives, as MPI may do until the
  /// process ends.
  void release() {
    const std::lock_guard lock(mutex_);
    blocked_ = false;
    changed_.notify_all();
  }
  /// Calls handler(bytes) before each send. To be called before the first send.
  void on_send(std::function<void(std::span<const std::byte>)> handler) { handler_ = std::move(handler); }

  int rank() const override { return rank_; }
  int size() const override { return queues_.size(); }
  Request send(int to, int tag, std::span<const std::byte> bytes) override {
    check();
    if (handler_) handler_(bytes);
    queues_.push(rank_, to, tag, bytes);
    return {kSent};
  }
  Request receive(int from, int tag, std::span<std::byte> bytes) override {
    check();
    receives_[++last_] = {from, tag, bytes};
    return {last_};
  }
  /// Completes receives in the order of the calls of receive(), as MPI does.
  bool test(Request request) override {
    wait_while_blocked();
    check();
    if (request.number == kSent) return true;
    for (auto next = receives_.begin(); next != receives_.end() && next->first <= request.number;) {
      const Receive& one = next->second;
      const bool is_next = std::none_of(receives_.begin(), next, [&](const auto& earlier) {
        return earlier.second.from == one.from && earlier.second.tag == one.tag;
      });
      next = is_next && queues_.pop(one.from, rank_, one.tag, one.bytes) ? receives_.erase(next)
                                                                         : std::next(next);
    }
    return !receives_.contains(request.number);
  }
  void abort() noexcept override { aborted_ = true; }

 private:
  static constexpr int64_t kSent = 0;
  struct Receive {
    int from, tag;
    std::span<std::byte> bytes;
  };
  void check() const {
    if (aborted_) throw Error("the transport was aborted");
  }
  void wait_while_blocked() {
    std::unique_lock lock(mutex_);
    if (!blocked_) return;
    inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !blocked_; });
    for (const auto& [number, one] : receives_) std::fill(one.bytes.begin(), one.bytes.end(), std::byte(1));
  }

  Queues& queues_;
  const int rank_;
  int64_t last_ = kSent;
  std::map<int64_t, Receive> receives_;  // indexed by number of the request
  std::atomic<bool> aborted_{false};
  std::function<void(std::span<const std::byte>)> handler_;
  std::mutex mutex_;  // protects blocked_ and inside_
  std::condition_variable changed_;
  bool blocked_ = false, inside_ = false;
};

/// The behavior of the transports of other processes after one process has failed. Open MPI's calls may never
/// return after a process was killed.
enum class AfterFailure { returns, never_returns };

/// Runs processes as threads. If one process fails, the Worlds of the other processes are interrupted.
class Processes {
 public:
  explicit Processes(int size, AfterFailure after = AfterFailure::returns)
      : queues_(size), after_(after), ended_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      transports_.push_back(std::make_unique<QueueTransport>(queues_, rank));
      ProcessWorld::Hooks hooks;
      hooks.abort = [this, rank](const std::string& why, bool) { fail(rank, why); };
      hooks.end_process = [this, rank](const std::string&) {
        ended_[static_cast<size_t>(rank)] = true;
        transport(rank).release();
      };
      worlds_.push_back(std::make_unique<ProcessWorld>(*transports_.back(), std::move(hooks)));
    }
  }
  ~Processes() {
    for (const auto& transport : transports_) transport->release();
  }

  Queues& queues() { return queues_; }
  QueueTransport& transport(int rank) { return *transports_[static_cast<size_t>(rank)]; }
  ProcessWorld& world(int rank) { return *worlds_[static_cast<size_t>(rank)]; }
  /// Reports to the other processes that process `rank` has failed.
  void fail(int rank, const std::string& why) {
    for (int other = 0; other < queues_.size(); ++other) {
      if (other == rank) continue;
      if (after_ == AfterFailure::never_returns) transport(other).block();
      world(other).interrupt("another process: " + why);
    }
  }
  /// Returns true if the process has ended because its transport does not return. The transport in the test
  /// returns after the end of the process.
  bool has_ended(int rank) const { return ended_[static_cast<size_t>(rank)]; }

  /// Calls work(world) on one thread per process and waits for all. Rethrows the exception of the process
  /// that failed first.
  void run(const std::function<void(World&)>& work) {
    std::mutex mutex;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    for (const auto& world : worlds_)
      threads.emplace_back([&, one = world.get()] {
        try {
          work(*one);
        } catch (const std::exception& error) {
          {
            const std::lock_guard lock(mutex);
            if (!first) first = std::current_exception();
          }
          one->abort(error.what(), false);
        }
      });
    for (std::thread& thread : threads) thread.join();
    if (first) std::rethrow_exception(first);
  }

 private:
  Queues queues_;
  const AfterFailure after_;
  std::vector<std::atomic<bool>> ended_;
  std::vector<std::unique_ptr<QueueTransport>> transports_;
  std::vector<std::unique_ptr<ProcessWorld>> worlds_;
};

/// Returns all ways to divide `replicas` replicas among processes. Each way lists the number of replicas of
/// each process.
inline std::vector<std::vector<int>> divisions(int replicas) {
  std::vector<std::vector<int>> all{{replicas}};
  for (int first = 1; first < replicas; ++first)
    for (std::vector<int> rest : divisions(replicas - first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  return all;
}

}  // namespace dtrain::test
