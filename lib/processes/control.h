// The control channel tells the processes of a run about failures while they wait for each other's data. It
// does not use MPI, whose calls may block forever after a process has died.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json.h"
#include "processes/connection.h"
#include "processes/own_progress.h"

namespace dtrain {

/// Returns a name such as "node2 (process 1 of 4)".
std::string process_name(const std::string& host, int rank, int size);

/// Connects process 0 with each other process of the run. A thread of each process sends heartbeats, which
/// contain the progress of the process, and watches its connections. Process 0 tells all other processes
/// about a failure. All functions may be called from any thread, and return at once unless stated otherwise.
/// Handlers must not wait for other processes, and must not destroy the channel.
class ControlChannel {
 public:
  struct Timing {
    std::chrono::duration<double> beat{0.25};  // time between heartbeats
    // Time without a message after which another process counts as failed.
    std::chrono::duration<double> peer_timeout{30};
  };

  /// `hosts`: the name of each process's machine. `connections`: in process 0, a connection to each other
  /// process, by rank; in other processes, a single connection to process 0 (see processes/rendezvous.h).
  ControlChannel(int rank, std::vector<std::string> hosts, std::vector<Connection> connections,
                 Timing timing);
  /// Sends the waiting messages and ends the thread, which takes at most a second. If say_goodbye() was not
  /// called before and no process has failed, the other processes assume that this process has died.
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  using Progress = ProcessProgress;
  /// Sets the progress of this process, which is sent with heartbeats and errors.
  void set_progress(int64_t step, std::string_view phase);
  /// Sets a function that returns the progress of this process. The function is called before each heartbeat
  /// and each error message. Null removes the function. After set_progress_source() has returned, the
  /// previous function is no longer called.
  void set_progress_source(std::function<Progress()> source);
  /// Sets the time without a message after which another process counts as failed. Time in which this process
  /// itself was stopped does not count.
  void set_peer_timeout(std::chrono::duration<double> limit);
  /// Sets the time after which a hanging process is an error. A process hangs if all of the following are
  /// true: its progress source returns the same progress and is not waiting for other processes; the process
  /// is not active (processes/activity.h); it is not writing a file that an ExitDeadline waits for; and its
  /// output does not block. With 0, the default, a hanging process is never reported.
  void set_hang_limit(std::chrono::duration<double> limit);

  /// Tells the other processes that this process has failed and ends. They end with the same exit code. Calls
  /// after the first call, or after a failure of another process, have no effect.
  void report_error(const std::string& message, int exit_code = 1);
  /// Returns an error message of this process with its name, step and phase added.
  std::string complete_own_error(const std::string& message);
  /// Sends a line to process 0, which calls its on_log() handler with it.
  void log(const std::string& line);
  /// Announces the normal end of this process.
  void say_goodbye();

  /// A failure of another process.
  struct Failure {
    std::string message;  // message for the user, with host, rank, step and phase
    int exit_code = 1;
    /// True if this process itself noticed the failure, or if this is process 0 and the failed process has
    /// reported it. False if process 0 has reported it, or if this is process 0 and another process has
    /// reported that process 0 did not respond.
    bool noticed_here = false;
    bool silent = false;  // true if the failed process does not respond, so that it may never end by itself
  };
  /// Returns whether another process has failed. Only reads an atomic variable.
  bool has_failure() const noexcept { return other_failed_; }
  /// Returns the first failure of another process; nullopt if there is none, or if this process failed first.
  std::optional<Failure> failure() const;
  /// Like failure(), but waits up to `limit` for a failure.
  std::optional<Failure> wait_for_failure(std::chrono::duration<double> limit) const;
  /// Waits until every connected process has called say_goodbye() or has failed, but at most for the time
  /// `limit`. Returns false if the time has run out.
  bool wait_for_others(std::chrono::duration<double> limit);

  // The handlers set below must not throw. They run on the thread of the channel. If a failure has already
  // happened when a handler is set, the handler runs on the thread that sets it.
  /// Sets the function that is called once, at the first failure of another process. If another process has
  /// already failed, on_failure() calls the function at once.
  void on_failure(const std::function<void(const std::string& message)>& handler);
  /// Sets a second function that is called with the message of the first failure. Null removes it. If the
  /// function uses an object that is destroyed before the channel, the function must be removed before the
  /// object is destroyed.
  void set_interrupt(std::function<void(const std::string& message)> interrupt);
  /// Sets the function that is called when this process hangs. Its argument is the error message, which
  /// contains the name, step and phase of this process. The error has then already been sent to the other
  /// processes.
  void on_hang(std::function<void(const std::string& message)> handler);
  /// Sets the function that is called for each line that another process logs. Has an effect only in process
  /// 0.
  void on_log(std::function<void(int rank, const std::string& line)> handler);

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  /// The state of another process as this process knows it. Used by the channel's thread only, except for
  /// `ended`.
  struct Peer {
    int rank;
    Connection connection;
    Seconds silence{0};  // time since the last message
    Progress progress;   // progress in the last heartbeat
    bool ended = false;  // whether the process has called say_goodbye() or has failed
  };

  void run();
  /// Waits for messages, at most until the next heartbeat is due.
  void wait();
  void send_beats();
  void send_posted();
  void receive();
  void receive_from(Peer& peer);
  void handle(Peer& peer, const Json& message);
  void handle_error(Peer& peer, const Json& message);
  /// Returns the error message that the process `rank` has sent, with the name, step and phase of that
  /// process added.
  std::string complete_error(int rank, const Json& message) const;
  void count_silence(Seconds elapsed);
  void watch_own_progress(Seconds elapsed);
  /// Sends the remaining output and receives the remaining input, so that the other side gets all messages.
  void close_connections();
  /// Handles the first failure. Process 0 sends the failure to all other processes. Any other process sends
  /// the failure to process 0 only if process 0 did not respond, because process 0 may respond again later.
  /// Then calls the failure handler.
  void fail(const Failure& failure);
  void send_to_all(const Json& message);
  void post(Json message);
  void mark_ended(Peer& peer);
  /// Adds this process's progress to a message. The caller holds the mutex.
  void add_progress(Json& message);
  std::string name_of(int rank) const;

  const int rank_;
  const std::vector<std::string> hosts_;
  std::vector<Peer> peers_;
  int wake_ = -1;  // an eventfd that ends wait()
  Clock::time_point last_beat_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Timing timing_;
  OwnProgress own_progress_;
  std::vector<Json> posted_;  // messages to be sent by send_posted()
  std::optional<Failure> failure_;
  bool failed_ = false;  // whether this process or another one has failed
  std::atomic<bool> other_failed_{false};
  bool stopping_ = false;
  std::function<void(const std::string&)> failure_handler_, interrupt_, hang_handler_;
  std::function<void(int, const std::string&)> log_handler_;

  std::thread thread_;
};

}  // namespace dtrain
