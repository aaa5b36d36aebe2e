#include "processes/control.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/threads.h"

namespace dtrain {

namespace {

/// Maximum length of an error message or a log line that is sent to other processes, in bytes. Longer texts
/// are truncated.
constexpr size_t kMostText = size_t{64} << 10;

/// Returns a message of this type.
Json typed(const char* type) {
  return Json::object().set("type", type);
}

/// Returns the text of a key; "" if the message has none.
std::string text_of(const Json& message, const char* key) {
  const Json* value = message.find(key);
  return value && value->is_string() ? value->as_string() : "";
}

/// Returns the integer of a key; `missing` if the message has none.
int64_t number_of(const Json& message, const char* key, int64_t missing) {
  const Json* value = message.find(key);
  return value && value->is_int() ? value->as_int() : missing;
}

/// Returns "in step 1203, reading data", or "before the first step, reading data".
std::string describe(int64_t step, const std::string& phase) {
  return fmt::format("{}{}{}", step > 0 ? fmt::format("in step {}", step) : "before the first step",
                     phase.empty() ? "" : ", ", phase);
}

}  // namespace

std::string process_name(const std::string& host, int rank, int size) {
  return fmt::format("{} (process {} of {})", host, rank, size);
}

ControlChannel::ControlChannel(int rank, std::vector<std::string> hosts, std::vector<Connection> connections,
                               Timing timing)
    : rank_(rank), hosts_(std::move(hosts)), last_beat_(Clock::now()), timing_(timing) {
  for (size_t i = 0; i < connections.size(); ++i)
    peers_.push_back(
        {rank == 0 ? static_cast<int>(i) + 1 : 0, std::move(connections[i]), Seconds(0), {}, false});
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0)
    throw Error(fmt::format(
        "cannot create the connections for heartbeats and error messages among the processes: {}; "
        "`ulimit -n` shows and changes the maximum number of open files",
        std::generic_category().message(errno)));
  thread_ = start_thread("the control channel among processes", [this] { run(); });
}

ControlChannel::~ControlChannel() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  post({});
  thread_.join();
  ::close(wake_);
}

void ControlChannel::set_progress(int64_t step, std::string_view phase) {
  const std::lock_guard lock(mutex_);
  own_progress_.set({step, std::string(phase)});
}

void ControlChannel::set_progress_source(std::function<Progress()> source) {
  const std::lock_guard lock(mutex_);
  own_progress_.set_source(std::move(source));
}

void ControlChannel::add_progress(Json& message) {
  const Progress progress = own_progress_.get();
  const std::string phase = progress.phase + (progress.waits ? ", waiting for other processes" : "");
  message.set("step", progress.step).set("phase", phase);
}

void ControlChannel::set_peer_timeout(std::chrono::duration<double> limit) {
  const std::lock_guard lock(mutex_);
  timing_.peer_timeout = limit;
}

void ControlChannel::set_hang_limit(std::chrono::duration<double> limit) {
  const std::lock_guard lock(mutex_);
  own_progress_.set_hang_limit(limit);
}

void ControlChannel::report_error(const std::string& message, int exit_code) {
  Json error = typed("error");
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_ = true;
    error.set("message", message.substr(0, kMostText)).set("exit_code", exit_code);
    add_progress(error);
  }
  post(std::move(error));
}

std::string ControlChannel::complete_own_error(const std::string& message) {
  Json error = typed("error").set("message", message);
  const std::lock_guard lock(mutex_);
  add_progress(error);
  return complete_error(rank_, error);
}

void ControlChannel::log(const std::string& line) {
  post(typed("log").set("line", line.substr(0, kMostText)));
}

void ControlChannel::say_goodbye() {
  post(typed("goodbye"));
}

std::optional<ControlChannel::Failure> ControlChannel::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<ControlChannel::Failure> ControlChannel::wait_for_failure(
    std::chrono::duration<double> limit) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return failure_.has_value(); });
  return failure_;
}

bool ControlChannel::wait_for_others(std::chrono::duration<double> limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.ended; });
  });
}

void ControlChannel::on_failure(const std::function<void(const std::string& message)>& handler) {
  std::string message;
  {
    const std::lock_guard lock(mutex_);
    failure_handler_ = handler;
    if (!failure_) return;
    message = failure_->message;
  }
  handler(message);
}

void ControlChannel::set_interrupt(std::function<void(const std::string& message)> interrupt) {
  const std::lock_guard lock(mutex_);
  interrupt_ = std::move(interrupt);
  if (interrupt_ && failure_) interrupt_(failure_->message);
}

void ControlChannel::on_hang(std::function<void(const std::string& message)> handler) {
  const std::lock_guard lock(mutex_);
  hang_handler_ = std::move(handler);
}

void ControlChannel::on_log(std::function<void(int rank, const std::string& line)> handler) {
  const std::lock_guard lock(mutex_);
  log_handler_ = std::move(handler);
}

/// Queues a message for all connections. A null message only wakes the thread.
void ControlChannel::post(Json message) {
  {
    const std::lock_guard lock(mutex_);
    if (!message.is_null()) posted_.push_back(std::move(message));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

void ControlChannel::run() {
  // Each iteration adds its duration to Peer::silence, but at most this time. If an iteration took longer,
  // this process itself was stopped (by Ctrl-Z, or because the machine was suspended), and may not have
  // received the messages of the other processes.
  constexpr Seconds kMostAtOnce(1);
  Clock::time_point before = Clock::now();
  for (;;) {
    wait();
    const Clock::time_point now = Clock::now();
    receive();
    const Seconds elapsed = std::min<Seconds>(now - before, kMostAtOnce);
    count_silence(elapsed);
    watch_own_progress(elapsed);
    before = now;
    send_posted();
    send_beats();
    for (Peer& peer : peers_) peer.connection.flush();
    const std::lock_guard lock(mutex_);
    if (stopping_ && posted_.empty()) break;
  }
  close_connections();
}

void ControlChannel::wait() {
  std::vector<pollfd> descriptors = {{wake_, POLLIN, 0}};
  for (const Peer& peer : peers_) {
    if (!peer.connection.is_open()) continue;
    const int events = POLLIN | (peer.connection.has_output() ? POLLOUT : 0);
    descriptors.push_back({peer.connection.descriptor(), static_cast<short>(events), 0});
  }
  Seconds beat;
  {
    const std::lock_guard lock(mutex_);
    beat = timing_.beat;
  }
  const Seconds left = std::clamp<Seconds>(last_beat_ + beat - Clock::now(), Seconds(0), Seconds(0.25));
  ::poll(descriptors.data(), descriptors.size(), static_cast<int>(left.count() * 1000) + 1);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_, &count, sizeof count);
}

void ControlChannel::send_beats() {
  Json beat = typed("beat");
  {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - last_beat_ < timing_.beat) return;
    add_progress(beat);
  }
  last_beat_ = Clock::now();
  send_to_all(beat);
}

void ControlChannel::send_posted() {
  std::vector<Json> messages;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(posted_);
  }
  for (Json& message : messages) {
    if (rank_ == 0 && text_of(message, "type") == "error") message.set("message", complete_error(0, message));
    send_to_all(message);
  }
}

void ControlChannel::send_to_all(const Json& message) {
  for (Peer& peer : peers_) peer.connection.send(message);
}

void ControlChannel::receive() {
  for (Peer& peer : peers_)
    if (peer.connection.is_open()) receive_from(peer);
}

void ControlChannel::receive_from(Peer& peer) {
  std::vector<Json> messages;
  const bool open = peer.connection.receive(messages);
  if (!messages.empty()) peer.silence = Seconds(0);
  for (const Json& message : messages) handle(peer, message);
  if (open) return;
  peer.connection.close();
  if (!peer.ended)
    fail({fmt::format(
              "{}: the process ended without a message (it crashed or was killed); it was last seen {}",
              name_of(peer.rank), describe(peer.progress.step, peer.progress.phase)),
          1, true});
  mark_ended(peer);
}

void ControlChannel::handle(Peer& peer, const Json& message) {
  const std::string type = text_of(message, "type");
  if (type == "beat") {
    peer.progress = {number_of(message, "step", 0), text_of(message, "phase")};
  } else if (type == "error") {
    handle_error(peer, message);
  } else if (type == "log") {
    std::function<void(int, const std::string&)> handler;
    {
      const std::lock_guard lock(mutex_);
      handler = log_handler_;
    }
    if (handler) handler(peer.rank, text_of(message, "line"));
  } else if (type == "lost") {
    fail({text_of(message, "message")});
    mark_ended(peer);
  } else if (type == "goodbye") {
    mark_ended(peer);
  }
}

void ControlChannel::handle_error(Peer& peer, const Json& message) {
  // Process 0 adds the name, step and phase of the failed process before it sends the message to the other
  // processes.
  fail({rank_ == 0 ? complete_error(peer.rank, message) : text_of(message, "message"),
        static_cast<int>(number_of(message, "exit_code", 1)), rank_ == 0});
  // After an error, the process ends without calling say_goodbye().
  if (rank_ == 0) mark_ended(peer);
}

std::string ControlChannel::complete_error(int rank, const Json& message) const {
  // Exit code of user errors, whose messages do not state the step, because they do not depend on it.
  constexpr int kUserError = 2;
  std::string text = name_of(rank) + ": " + text_of(message, "message");
  if (number_of(message, "exit_code", 1) == kUserError) return text;
  return text + fmt::format(" (this happened {})",
                            describe(number_of(message, "step", 0), text_of(message, "phase")));
}

void ControlChannel::fail(const Failure& failure) {
  std::function<void(const std::string&)> handler;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_ = true;
    failure_ = failure;
    other_failed_ = true;
    handler = failure_handler_;
    if (interrupt_) interrupt_(failure.message);
  }
  changed_.notify_all();
  if (rank_ == 0) {
    send_to_all(typed("error").set("message", failure.message).set("exit_code", failure.exit_code));
  } else if (failure.silent) {
    send_to_all(typed("lost").set("message", failure.message));
  }
  for (Peer& peer : peers_) peer.connection.flush();
  if (handler) handler(failure.message);
}

void ControlChannel::count_silence(Seconds elapsed) {
  Seconds limit;
  {
    const std::lock_guard lock(mutex_);
    limit = timing_.peer_timeout;
  }
  for (Peer& peer : peers_) {
    if (peer.ended || !peer.connection.is_open()) continue;
    peer.silence += elapsed;
    if (peer.silence < limit) continue;
    fail(
        {fmt::format(
             "{}: no heartbeat for {:.0f} seconds; either its machine is down, or the network is cut, or the "
             "process is stopped; it was last seen {}",
             name_of(peer.rank), peer.silence.count(), describe(peer.progress.step, peer.progress.phase)),
         1, true, true});
    mark_ended(peer);
  }
}

void ControlChannel::watch_own_progress(Seconds elapsed) {
  std::function<void(const std::string&)> handler;
  Seconds limit;
  {
    const std::lock_guard lock(mutex_);
    if (!own_progress_.hangs(elapsed) || failed_) return;
    limit = own_progress_.hang_limit();
    handler = hang_handler_;
  }
  const std::string message = fmt::format(
      "the process hangs: for {:.0f} seconds it has neither computed nor read anything", limit.count());
  report_error(message);
  send_posted();
  for (Peer& peer : peers_) peer.connection.flush();
  if (handler) handler(complete_own_error(message));
}

void ControlChannel::mark_ended(Peer& peer) {
  {
    const std::lock_guard lock(mutex_);
    peer.ended = true;
  }
  changed_.notify_all();
}

/// Reads until the other side closes the connection, for at most half a second. If a socket is closed with
/// unread input, TCP resets the connection, and the other side loses the messages that it has not read yet.
void ControlChannel::close_connections() {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(500);
  bool announced = false;
  for (;;) {
    bool sent = true, open = false;
    std::vector<pollfd> descriptors;
    for (Peer& peer : peers_) {
      if (!peer.connection.is_open()) continue;
      peer.connection.flush();
      std::vector<Json> ignored;
      if (!peer.connection.receive(ignored)) {
        peer.connection.close();
        continue;
      }
      open = true;
      sent = sent && !peer.connection.has_output();
      descriptors.push_back({peer.connection.descriptor(), POLLIN, 0});
    }
    if (sent && !announced) {
      for (Peer& peer : peers_) peer.connection.finish_sending();
      announced = true;
    }
    if (!open || Clock::now() >= end) return;
    ::poll(descriptors.data(), descriptors.size(), 10);
  }
}

std::string ControlChannel::name_of(int rank) const {
  return process_name(hosts_[static_cast<size_t>(rank)], rank, static_cast<int>(hosts_.size()));
}

}  // namespace dtrain
