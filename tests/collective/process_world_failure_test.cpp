// Calls among processes end after a process or the transport has failed. The processes are threads here.
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "collective/process_world.h"
#include "support/processes.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Calls work() in process `rank`, which waits for the other process. The other process is killed, and from
/// then on the transport of process `rank` never returns. Returns whether process `rank` had to end before
/// work() returned, because the memory that the transport uses cannot be freed.
bool check_killed(int rank, const std::function<void(World&)>& work) {
  Processes processes(2, AfterFailure::never_returns);
  bool ended = false;
  const auto run = [&](World& world) {
    if (world.rank() != rank) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      throw Error("it was killed");
    }
    CHECK_THROWS_WITH_AS(work(world), "another process: it was killed", ProcessFailed);
    ended = processes.has_ended(rank);
    CHECK_THROWS_AS(world.any(false), ProcessFailed);
    CHECK_FALSE(world.position().waits);
    CHECK(processes.has_ended(rank) == ended);
  };
  CHECK_THROWS_WITH_AS(processes.run(run), "it was killed", Error);
  return ended;
}

const PartsOfProcesses kHalves{{{0, 500}}, {{500, 1000}}};

}  // namespace

TEST_CASE("if one process fails, the calls of all other processes end with an error") {
  for (const bool waits : {false, true}) {
    Processes processes(3);
    CHECK_THROWS_WITH_AS(processes.run([&](World& world) {
      const ReplicaRanks ranks = world.replica_ranks(1);
      if (world.rank() == 1) {
        if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        throw Error("it broke");
      }
      std::vector<float> array(10000);
      float* const pointer = array.data();
      const auto sum = world.background_sum_of_floats(ranks, 10000);
      sum->start({&pointer, 1});
      CHECK_THROWS_WITH_AS(sum->wait(), "another process: it broke", ProcessFailed);
      CHECK_THROWS_AS(world.any(false), ProcessFailed);
      CHECK(world.failure() == "another process: it broke");
      CHECK_FALSE(world.position().waits);
    }),
                         "it broke", Error);
  }
}

TEST_CASE("after a failure, a running sum may be destroyed") {
  Processes processes(2);
  CHECK_THROWS_WITH_AS(processes.run([&](World& world) {
    const ReplicaRanks ranks = world.replica_ranks(1);
    if (world.rank() == 1) throw Error("it broke");
    std::vector<float> array(10000);
    float* const pointer = array.data();
    const auto sum = world.background_sum_of_floats(ranks, 10000);
    sum->start({&pointer, 1});
  }),
                       "it broke", Error);
}

TEST_CASE("if the transport fails, waiting calls throw its error") {
  Queues queues(2);
  QueueTransport transport(queues, 0);
  ProcessWorld world(transport);
  std::thread fails([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    transport.abort();
  });
  CHECK_THROWS_WITH_AS(world.any(true), "the transport was aborted", ProcessFailed);
  fails.join();
}

TEST_CASE("if the transport fails because another process failed, calls throw the error of this process") {
  Queues queues(2);
  QueueTransport transport(queues, 0);
  ProcessWorld world(transport, {.failure_of_other = [](bool transport_failed) -> std::string {
                       return transport_failed ? "another process: it broke" : "";
                     }});
  CHECK(world.failure().empty());
  transport.abort();
  CHECK_THROWS_WITH_AS(world.any(true), "another process: it broke", ProcessFailed);
  CHECK(world.failure() == "another process: it broke");
}

TEST_CASE("the failure of another process is known even if no message is in flight") {
  Queues queues(2);
  QueueTransport transport(queues, 0);
  ProcessWorld world(transport, {.failure_of_other = [](bool) { return "another process: it broke"; }});
  CHECK(world.failure() == "another process: it broke");
}

TEST_CASE("if another process is killed, a call ends even if the transport never returns") {
  CHECK_FALSE(check_killed(1, [](World& world) {
    std::vector<std::byte> bytes(1000);
    world.broadcast(bytes);
  }));
  CHECK_FALSE(check_killed(1, [](World& world) { world.broadcast_text(""); }));
  CHECK_FALSE(check_killed(0, [](World& world) { world.all_gather_texts("text"); }));
  CHECK_FALSE(check_killed(0, [](World& world) {
    const std::vector<double> mine(10);
    const double* const values = mine.data();
    std::vector<double> sums(10);
    world.sum({0, {1, 1}}, {&values, 1}, sums);
  }));
  CHECK_FALSE(check_killed(0, [](World& world) {
    std::vector<float> values(1000);
    world.gather_parts(kHalves, values);
  }));
  CHECK_FALSE(check_killed(0, [](World& world) {
    std::vector<float> values(1000);
    world.all_gather_parts(kHalves, values);
  }));
  CHECK_FALSE(check_killed(0, [](World& world) { world.measure_round_trips(1, 100, 3); }));
}

TEST_CASE("if the transport never returns, the process ends before the transport's memory is freed") {
  CHECK(check_killed(0, [](World& world) {
    std::vector<float> values(1000);
    try {
      world.all_gather_parts_in_place(kHalves, values);
    } catch (const ProcessFailed&) {
      world.release();
      throw;
    }
  }));
  CHECK(check_killed(0, [](World& world) {
    std::vector<float> array(10000);
    float* const pointer = array.data();
    const auto sum = world.background_sum_of_floats({0, {1, 1}}, 10000);
    sum->start({&pointer, 1});
    sum->wait();
  }));
  CHECK(check_killed(0, [](World& world) {
    int number = 0;
    const auto message = world.make_message(1, 0);
    message->receive(std::as_writable_bytes(std::span(&number, 1)), nullptr);
    message->wait();
  }));
  CHECK(check_killed(0, [](World& world) {
    std::vector<std::byte> mine(8), all(16);
    world.make_gather()->all_gather(mine, all);
  }));
  Processes processes(2, AfterFailure::never_returns);
  std::thread waits([&] { CHECK_THROWS_AS(processes.world(0).any(false), ProcessFailed); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  processes.fail(1, "it was killed");
  waits.join();
  CHECK_FALSE(processes.has_ended(0));
  processes.world(0).release();
  CHECK(processes.has_ended(0));
}

TEST_CASE("a wait for a message ends when another process fails") {
  Processes processes(2);
  CHECK_THROWS_WITH_AS(processes.run([](World& world) {
    if (world.rank() == 1) throw Error("the disk failed");
    int number = 0;
    const auto message = world.make_message(1, 0);
    message->receive(std::as_writable_bytes(std::span(&number, 1)), nullptr);
    message->wait();
  }),
                       "the disk failed", Error);
}
