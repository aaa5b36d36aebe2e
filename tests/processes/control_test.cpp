#include "processes/control.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "processes/rendezvous.h"

namespace dtrain {

namespace {

using std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

/// Waits until `condition` is true. Returns false after 5 seconds.
template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

/// Control channels of several simulated processes in this process, connected over the loopback interface.
struct Group {
  std::vector<std::unique_ptr<ControlChannel>> channels;

  explicit Group(int size, ControlChannel::Timing timing = {Seconds(0.05), Seconds(20)}) {
    ControlListener listener;
    const std::string invitation = listener.invitation();
    std::vector<std::future<Connection>> others;
    for (int rank = 1; rank < size; ++rank)
      others.push_back(std::async(std::launch::async, [&invitation, rank] {
        std::string problem;
        return connect_to_listener(invitation, rank, Seconds(5), problem);
      }));
    std::vector<std::string> hosts;
    for (int rank = 0; rank < size; ++rank) hosts.push_back("node" + std::to_string(rank + 1));
    channels.push_back(std::make_unique<ControlChannel>(0, hosts, listener.accept(size, Seconds(5)), timing));
    for (int rank = 1; rank < size; ++rank) {
      std::vector<Connection> one;
      one.push_back(others[static_cast<size_t>(rank - 1)].get());
      channels.push_back(std::make_unique<ControlChannel>(rank, hosts, std::move(one), timing));
    }
  }

  ControlChannel& operator[](size_t rank) { return *channels[rank]; }
  std::string failure(size_t rank) {
    if (!soon([&] { return channels[rank]->failure().has_value(); })) return "no failure";
    return channels[rank]->failure()->message;
  }
};

}  // namespace

TEST_CASE("processes that say goodbye end without a failure") {
  Group group(3);
  for (auto& channel : group.channels) channel->say_goodbye();
  for (auto& channel : group.channels) CHECK(channel->wait_for_others(Seconds(5)));
  for (auto& channel : group.channels) CHECK(!channel->failure());
}

TEST_CASE("an error of one process reaches all others once, with its step and phase") {
  Group group(3);
  std::atomic<int> calls{0};
  group[2].on_failure([&](const std::string&) { ++calls; });
  group[1].set_progress(12, "reading data");
  group[1].report_error("the disk is full");
  group[1].report_error("a second error");
  const std::string expected =
      "node2 (process 1 of 3): the disk is full (this happened in step 12, reading data)";
  CHECK(group.failure(0) == expected);
  CHECK(group.failure(2) == expected);
  CHECK(soon([&] { return calls == 1; }));
  CHECK(!group[1].failure());
  CHECK(group[0].failure()->noticed_here);
  CHECK(!group[2].failure()->noticed_here);
  int late = 0;
  group[0].on_failure([&](const std::string& message) { late += message == expected; });
  CHECK(late == 1);
}

TEST_CASE("an error before the first step says so, and names its phase") {
  Group group(2);
  group[1].set_progress(0, "reading the data");
  group[1].report_error("lost");
  CHECK(group.failure(0) ==
        "node2 (process 1 of 2): lost (this happened before the first step, reading the data)");
}

TEST_CASE("an error of process 0, and its exit code, reach the others") {
  Group group(2);
  group[0].report_error("config.yaml:3:1: error: unknown key", 2);
  CHECK(group.failure(1) == "node1 (process 0 of 2): config.yaml:3:1: error: unknown key");
  CHECK(group[1].failure()->exit_code == 2);
}

TEST_CASE("an error that is reported just before the end of a process is not lost") {
  for (int round = 0; round < 20; ++round) {
    Group group(3);
    group[0].report_error("lost");
    group.channels[0].reset();
    CHECK(group.failure(1) == "node1 (process 0 of 3): lost (this happened before the first step)");
    CHECK(group.failure(2) == group.failure(1));
  }
}

TEST_CASE("the death of a process is noticed at once") {
  Group group(3);
  group[1].set_progress(1203, "summing gradients");
  std::this_thread::sleep_for(milliseconds(200));  // a heartbeat is sent in this time
  group.channels[1].reset();
  const std::string expected =
      "node2 (process 1 of 3): the process ended without a message (it crashed or was killed); it was last "
      "seen in step 1203, summing gradients";
  CHECK(group.failure(0) == expected);
  CHECK(group.failure(2) == expected);
}

TEST_CASE("the death of process 0 is noticed by each other process") {
  Group group(3);
  group.channels[0].reset();
  for (const size_t rank : {1u, 2u}) {
    CHECK(group.failure(rank).find("node1 (process 0 of 3): the process ended without a message") == 0);
    CHECK(group[rank].failure()->noticed_here);
    CHECK(group[rank].wait_for_others(Seconds(5)));
  }
}

TEST_CASE("a silent process counts as lost after the timeout") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const Socket silent(ends[1]);  // open, but sends nothing
  std::vector<Connection> one;
  one.emplace_back(Socket(ends[0]));
  ControlChannel channel(0, {"node1", "node2"}, std::move(one), {Seconds(0.05), Seconds(20)});
  channel.set_peer_timeout(Seconds(0.5));
  const auto failure = channel.wait_for_failure(Seconds(5));
  REQUIRE(failure);
  CHECK(failure->message.find("node2 (process 1 of 2): no heartbeat for ") == 0);
  CHECK(channel.wait_for_others(Seconds(5)));
}

TEST_CASE("a process that was silent learns that it was given up") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  Connection process_0{Socket(ends[1])};  // silent
  std::vector<Connection> one;
  one.emplace_back(Socket(ends[0]));
  ControlChannel channel(1, {"node1", "node2"}, std::move(one), {Seconds(0.05), Seconds(0.5)});
  const auto failure = channel.wait_for_failure(Seconds(5));
  REQUIRE(failure);
  CHECK(failure->silent);
  CHECK(failure->noticed_here);
  CHECK(channel.has_failure());
  std::vector<Json> messages;
  const auto is_lost = [](const Json& message) { return message.at("type").as_string() == "lost"; };
  CHECK(soon([&] {
    process_0.receive(messages);
    return std::any_of(messages.begin(), messages.end(), is_lost);
  }));
  const auto lost = std::find_if(messages.begin(), messages.end(), is_lost);
  REQUIRE(lost != messages.end());
  CHECK(lost->at("message").as_string() == failure->message);
}

TEST_CASE("process 0 ends when another process has given it up") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  Connection other{Socket(ends[1])};
  std::vector<Connection> one;
  one.emplace_back(Socket(ends[0]));
  ControlChannel channel(0, {"node1", "node2"}, std::move(one), {Seconds(0.05), Seconds(20)});
  other.send(Json::object().set("type", "lost").set("message", "node1: no heartbeat"));
  other.flush();
  const auto failure = channel.wait_for_failure(Seconds(5));
  REQUIRE(failure);
  CHECK(failure->message == "node1: no heartbeat");
  CHECK(!failure->noticed_here);
  CHECK(channel.wait_for_others(Seconds(5)));
}

namespace {

/// Two processes; process 1 stays at step 12 and hangs. The time between their heartbeats is long, because
/// all threads of this program count as activity of process 1.
struct HangingGroup : Group {
  std::promise<std::string> message;
  bool was_known = false;  // whether process 0 knew of the hang when the handler was called
  explicit HangingGroup(bool waits = false) : Group(2, {Seconds(1), Seconds(20)}) {
    channels[1]->on_hang([this](const std::string& text) {
      was_known = channels[0]->wait_for_failure(Seconds(2)).has_value();
      message.set_value(text);
    });
    channels[1]->set_progress_source([waits] {
      return ControlChannel::Progress{12, "reading samples", waits};
    });
    channels[1]->set_hang_limit(Seconds(1));
  }
  ~HangingGroup() { channels[1].reset(); }  // ends the thread that uses `message`
};

}  // namespace

TEST_CASE("a process that does nothing reports that it hangs") {
  HangingGroup group;
  const std::string expected =
      "node2 (process 1 of 2): the process hangs: for 1 seconds it has neither computed nor read anything "
      "(this happened in step 12, reading samples)";
  // This thread must not poll, because polling would count as activity.
  const auto failure = group[0].wait_for_failure(Seconds(5));
  REQUIRE(failure);
  CHECK(failure->message == expected);
  CHECK(group.message.get_future().get() == expected);
  CHECK(group.was_known);
  CHECK(!group[1].failure());
}

TEST_CASE("a process that computes or waits for others does not hang") {
  HangingGroup waiting(true);
  std::this_thread::sleep_for(milliseconds(2000));
  CHECK(!waiting[0].failure());
  HangingGroup computing;
  const auto end = std::chrono::steady_clock::now() + milliseconds(2000);
  while (std::chrono::steady_clock::now() < end) continue;
  CHECK(!computing[0].failure());
}

TEST_CASE("lines of the log reach process 0") {
  Group group(3);
  std::promise<std::string> line;
  group[0].on_log(
      [&](int rank, const std::string& text) { line.set_value(std::to_string(rank) + ": " + text); });
  group[2].log("slow");
  CHECK(line.get_future().get() == "2: slow");
}

TEST_CASE("a channel ends in limited time although the other side reads nothing") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const Socket silent(ends[1]);
  std::vector<Connection> one;
  one.emplace_back(Socket(ends[0]));
  auto channel = std::make_unique<ControlChannel>(0, std::vector<std::string>{"a", "b"}, std::move(one),
                                                  ControlChannel::Timing{Seconds(0.05), Seconds(20)});
  for (int i = 0; i < 100; ++i) channel->log(std::string(10000, 'x'));
  const auto start = std::chrono::steady_clock::now();
  channel.reset();
  CHECK(std::chrono::steady_clock::now() - start < milliseconds(5000));
}

TEST_CASE("a process of another run is not accepted, and learns that it has the wrong address") {
  ControlListener listener, other;
  // This token belongs to another run.
  const std::string token = Json::parse(other.invitation()).at("token").as_string();
  Json mixed = Json::parse(listener.invitation());
  mixed.set("token", token);
  std::string problem;
  auto stranger = std::async(std::launch::async,
                             [&] { return connect_to_listener(mixed.dump(), 1, Seconds(3), problem); });
  std::vector<Connection> accepted = listener.accept(2, Seconds(1));
  CHECK(!accepted[0].is_open());
  CHECK(!stranger.get().is_open());
  CHECK(problem.find("127.0.0.1:") != std::string::npos);
  CHECK(problem.find("is not process 0 of this run") != std::string::npos);
}

}  // namespace dtrain
