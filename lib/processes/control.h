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

/// A thread of each process sends heartbeats with the process's progress, and watches the connections, of
/// which there is one between process 0 and each other process. Process 0 tells the others about a failure.
/// All functions may be called from any thread, and return at once unless stated otherwise. Handlers must
/// neither wait for others nor destroy the channel.
class ControlChannel {
 public:
  struct Timing {
    std::chrono::duration<double> beat{0.25};        // time between heartbeats
    std::chrono::duration<double> peer_timeout{30};  // silence that counts as a failure
  };

  /// `hosts`: the name of each process's machine. `connections`: in process 0 one to each other process, in
  /// the order of ranks; otherwise one to process 0 (processes/rendezvous.h).
  ControlChannel(int rank, std::vector<std::string> hosts, std::vector<Connection> connections,
                 Timing timing);
  /// Sends the messages that are waiting, and ends the thread, within a second. Without say_goodbye() or an
  /// earlier failure, the other processes assume that this process has died.
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  using Progress = ProcessProgress;
  /// Sets the progress of this process until it is set again.
  void set_progress(int64_t step, std::string_view phase);
  /// Calls `source` for the progress of this process before each heartbeat and error; null: calls nothing.
  /// After this function has returned, the previous source is no longer called.
  void set_progress_source(std::function<Progress()> source);
  /// Sets the seconds of silence after which another process counts as lost. Time in which this process was
  /// itself stopped does not count.
  void set_peer_timeout(std::chrono::duration<double> limit);
  /// Reports an error of this process if it hangs for `limit`. A process hangs if its progress source returns
  /// the same progress and does not wait for other processes, if the process is idle (processes/activity.h)
  /// and writes no file that an ExitDeadline waits for, and if its output is being read. 0, the default:
  /// never reports this.
  void set_hang_limit(std::chrono::duration<double> limit);

  /// Tells the others that this process has failed and ends; they end with this exit code, too. Only the
  /// first call of a process counts, and none after a failure of another process.
  void report_error(const std::string& message, int exit_code = 1);
  /// Returns an error message of this process with its name, step and phase added.
  std::string complete_own_error(const std::string& message);
  /// Sends a line to process 0, which passes it to its handler on_log().
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
    bool silent = false;  // the process does not respond, and may never end by itself
  };
  /// Returns whether another process has failed. Only reads an atomic variable.
  bool has_failure() const noexcept { return other_failed_; }
  /// Returns the first failure of another process; nullopt if there is none, or if this process failed first.
  std::optional<Failure> failure() const;
  /// Like failure(), but first waits for a failure, at most this long.
  std::optional<Failure> wait_for_failure(std::chrono::duration<double> limit) const;
  /// Waits until every connected process has called say_goodbye() or has failed, at most this long. Returns
  /// false if the time ran out.
  bool wait_for_others(std::chrono::duration<double> limit);

  // Handlers must not throw. They run on the channel's thread, or on the caller's thread if the failure has
  // happened before the call.
  /// Sets the function that is called once, at the first failure of another process; at once if the failure
  /// has happened already.
  void on_failure(const std::function<void(const std::string& message)>& handler);
  /// Sets another function that is called with the message of the first failure; null removes it. An object
  /// that the function uses must remove it if the object is destroyed before the channel.
  void set_interrupt(std::function<void(const std::string& message)> interrupt);
  /// Sets the function that is called with the completed error when this process hangs. The other processes
  /// have been informed before the call.
  void on_hang(std::function<void(const std::string& message)> handler);
  /// Sets the function that process 0 calls for a line that another process logs. Only for process 0.
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
  /// Returns the message of a process's error with its name, step and phase.
  std::string complete_error(int rank, const Json& message) const;
  void count_silence(Seconds elapsed);
  void watch_own_progress(Seconds elapsed);
  /// Sends the remaining output and receives the remaining input, so that the other side gets all messages.
  void close_connections();
  /// Handles the first failure: process 0 sends it to all other processes; another process sends it to
  /// process 0 if process 0 was silent, in case process 0 continues. Then calls the handler.
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
