// A thread that exchanges messages with other processes while the threads of the replicas compute.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "processes/transport.h"

namespace dtrain {

/// An exchange of messages with other processes. Its owner must not change or destroy it, or the memory that
/// it sends and receives, until Messenger::wait() has returned without an exception, or release() has
/// returned. After a failure, the transport may still write to this memory.
class Exchange {
 public:
  virtual ~Exchange() = default;

 private:
  friend class Messenger;
  /// Starts transfers, or tests whether the started transfers have finished. Returns true once all transfers
  /// of the exchange have finished. The messenger's thread calls this function repeatedly. The function never
  /// waits.
  virtual bool advance(Transport& transport) = 0;

  enum class State { idle, running, done, failed };
  State state_ = State::idle;  // protected by the messenger's mutex
};

/// A list of transfers that have been started and have not all finished.
class Transfers {
 public:
  void add(Transport::Request request) { requests_.push_back(request); }
  /// Tests the transfers, and returns whether all have finished.
  bool done(Transport& transport) {
    std::erase_if(requests_, [&](Transport::Request request) { return transport.test(request); });
    return requests_.empty();
  }

 private:
  std::vector<Transport::Request> requests_;
};

/// Runs exchanges on a separate thread. Several exchanges can run at the same time. Only this thread uses
/// the transport, except for Transport::abort().
class Messenger {
 public:
  /// The transport must outlive the messenger. `explain` is called after an error of the transport. It
  /// returns the reason of the error, or "" if the transport's own message should be used. `end_process` must
  /// end the process; its argument is the reason why the process has failed. If `end_process` is null,
  /// release() waits without a time limit. Throws Error if the system cannot start a thread.
  Messenger(Transport& transport, std::function<std::string()> explain,
            std::function<void(const std::string& why)> end_process = nullptr);
  /// Makes running exchanges fail. May end the process, for the same reason as release().
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  /// Starts an exchange. After a failure, the exchange fails at once. Safe on any thread.
  void start(Exchange& exchange);
  /// Waits until the exchange has finished, if it was started. May be called by several threads. Throws
  /// ProcessFailed as soon as the transport has failed or interrupt() was called. The exchange may still be
  /// running after this exception, because a call of the transport may never return. (In Open MPI, some calls
  /// never return after another process was killed.)
  void wait(Exchange& exchange);
  /// Waits until the exchange is not running, so that the caller may destroy it. After a failure, the
  /// transport has one second to return. If it does not return, this function ends the process, because the
  /// transport still uses the exchange and its memory.
  void release(Exchange& exchange) noexcept;
  /// Calls release() for all exchanges.
  void release_all() noexcept;
  /// Makes all unfinished and later exchanges fail with ProcessFailed(why). Only the first call has an
  /// effect. Returns true for the first call. Safe on any thread; returns at once.
  bool interrupt(const std::string& why) noexcept;
  /// Returns the reason why exchanges fail, or "" if they do not fail. Safe on any thread.
  std::string failure() const;
  /// Throws ProcessFailed if failure() is not empty. Safe on any thread.
  void check() const;

 private:
  void serve() noexcept;
  bool take_new(std::vector<Exchange*>& running);
  bool advance(std::vector<Exchange*>& running);
  void finish(std::vector<Exchange*>& running, size_t index, Exchange::State state);
  void note_error(const std::string& error);
  /// Waits until `is_free` returns true. The mutex is locked while `is_free` is called. Like release(), ends
  /// the process if the transport does not return within a second after a failure.
  void wait_until(const std::function<bool()>& is_free) noexcept;

  Transport& transport_;
  const std::function<std::string()> explain_;
  const std::function<void(const std::string& why)> end_process_;
  mutable std::mutex mutex_;  // protects the data members from here to failure_, and the states of exchanges
  std::condition_variable changed_, finished_;
  std::vector<Exchange*> new_;
  size_t unfinished_ = 0;  // number of exchanges that were started and have not finished
  bool closing_ = false, ended_ = false;
  std::optional<std::string> failure_;
  std::thread thread_;
};

}  // namespace dtrain
