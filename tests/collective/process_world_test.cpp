// Communication among processes, which are threads here.
#include "collective/process_world.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collective/process_group.h"
#include "collective/team.h"
#include "device/device.h"
#include "support/processes.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns an element of a replica's array. The sum of these elements over several replicas depends on the
/// order of addition.
template <class T>
T value_of(int replica, int64_t i) {
  return static_cast<T>(std::sin(static_cast<double>(replica * 1000 + i)) * std::pow(10.0, replica % 5));
}

template <class T>
std::vector<T> array_of(int replica, int64_t n) {
  std::vector<T> array;
  for (int64_t i = 0; i < n; ++i) array.push_back(value_of<T>(replica, i));
  return array;
}

/// Returns the sums over all replicas, added in the same order as in a run with a single process.
template <class T>
std::vector<T> sum_of(int replicas, int64_t n) {
  std::vector<std::vector<T>> arrays;
  std::vector<const T*> parts;
  for (int replica = 0; replica < replicas; ++replica) arrays.push_back(array_of<T>(replica, n));
  for (const auto& array : arrays) parts.push_back(array.data());
  std::vector<T> sums(static_cast<size_t>(n));
  SumTree(replicas).add<T>(parts, sums.data(), {0, n});
  return sums;
}

/// Returns the partial sums that this process contributes to the sum tree: one array for each subtree of its
/// replicas.
std::vector<std::vector<float>> sums_of_nodes(const ReplicaRanks& ranks, int64_t n) {
  std::vector<std::vector<float>> sums;
  for (const Range& node : subtrees(ranks.of(ranks.process), ranks.total())) {
    std::vector<std::vector<float>> arrays;
    std::vector<const float*> parts;
    for (int64_t replica = node.begin; replica < node.end; ++replica)
      arrays.push_back(array_of<float>(static_cast<int>(replica), n));
    for (const auto& array : arrays) parts.push_back(array.data());
    sums.emplace_back(static_cast<size_t>(n));
    SumTree(static_cast<int>(node.size())).add<float>(parts, sums.back().data(), {0, n});
  }
  return sums;
}

}  // namespace

TEST_CASE("broadcast, all_gather, all_reduce_max and any give the same results in all processes") {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    CAPTURE(size);
    Processes processes(size);
    processes.run([&](World& world) {
      for (int round = 0; round < 20; ++round) {
        int number = world.rank() == 0 ? 100 + round : -1;
        world.broadcast(std::as_writable_bytes(std::span(&number, 1)));
        if (number != 100 + round) throw Error("wrong broadcast");
        if (world.broadcast_text(world.rank() == 0 ? "first" : "another text") != "first")
          throw Error("wrong text");
        const std::string mine(static_cast<size_t>(world.rank() * 3), 'x');
        const std::vector<std::string> texts = world.all_gather_texts(mine);
        for (int rank = 0; rank < size; ++rank)
          if (texts[static_cast<size_t>(rank)].size() != static_cast<size_t>(rank * 3))
            throw Error("wrong texts");
        std::vector<int64_t> values{world.rank(), -world.rank()};
        world.all_reduce_max(values);
        if (values != std::vector<int64_t>{size - 1, 0}) throw Error("wrong maxima");
        if (world.any(false) || !world.any(world.rank() == size - 1)) throw Error("wrong any");
      }
      const ReplicaRanks ranks = world.replica_ranks(world.rank() + 1);
      if (ranks.total() != size * (size + 1) / 2) throw Error("wrong total");
      if (ranks.first() != world.rank() * (world.rank() + 1) / 2) throw Error("wrong first rank");
      if (ranks.local() != world.rank() + 1) throw Error("wrong count");
    });
    CHECK(processes.queues().is_empty());
  }
}

TEST_CASE("sums have the same bits, no matter how the replicas are divided among processes") {
  for (const int replicas : {2, 3, 4, 5, 6})
    for (const int64_t n : {1, 7, 600, 5003}) {
      const std::vector<double> doubles = sum_of<double>(replicas, n);
      const std::vector<float> floats = sum_of<float>(replicas, n);
      for (const std::vector<int>& counts : divisions(replicas)) {
        CAPTURE(replicas);
        CAPTURE(n);
        CAPTURE(counts.size());
        Processes processes(static_cast<int>(counts.size()));
        processes.run([&](World& world) {
          const ReplicaRanks ranks = world.replica_ranks(counts[static_cast<size_t>(world.rank())]);
          std::vector<std::vector<double>> mine;
          std::vector<const double*> parts;
          for (int rank = 0; rank < ranks.local(); ++rank)
            mine.push_back(array_of<double>(ranks.first() + rank, n));
          for (const auto& array : mine) parts.push_back(array.data());
          std::vector<double> sums(static_cast<size_t>(n));
          world.sum(ranks, parts, sums);
          if (sums != doubles) throw Error("wrong sum of doubles");
          const auto background = world.background_sum_of_floats(ranks, n);
          for (int round = 0; round < 3; ++round) {
            auto nodes = sums_of_nodes(ranks, n);
            std::vector<float*> pointers;
            for (auto& node : nodes) pointers.push_back(node.data());
            background->start(pointers);
            background->wait();
            if (nodes[0] != floats) throw Error("wrong sum of floats");
          }
        });
        CHECK(processes.queues().is_empty());
      }
    }
}

TEST_CASE("processes may start sums in different orders, and sums run while other calls wait") {
  constexpr int kSums = 9;
  constexpr int64_t kFloats = 3000;
  Processes processes(3);
  processes.run([&](World& world) {
    const ReplicaRanks ranks = world.replica_ranks(1);
    std::vector<std::unique_ptr<BackgroundSum<float>>> sums;
    for (int i = 0; i < kSums; ++i) sums.push_back(world.background_sum_of_floats(ranks, kFloats + i));
    for (int round = 0; round < 10; ++round) {
      std::vector<std::vector<float>> arrays;
      for (int i = 0; i < kSums; ++i) arrays.push_back(array_of<float>(world.rank(), kFloats + i));
      for (int i = 0; i < kSums; ++i) {
        const int order[] = {i, 2 * i % kSums, kSums - 1 - i};
        const auto which = static_cast<size_t>(order[world.rank()]);
        float* const array = arrays[which].data();
        sums[which]->start({&array, 1});
        if (i == kSums / 2 && world.any(false)) throw Error("wrong any");
      }
      for (int i = 0; i < kSums; ++i) {
        sums[static_cast<size_t>(i)]->wait();
        if (arrays[static_cast<size_t>(i)] != sum_of<float>(3, kFloats + i)) throw Error("wrong sum");
      }
    }
  });
}

TEST_CASE("sums that exist at the same time have different tags, even after thousands of other sums") {
  constexpr int kTags = 9999;
  constexpr int64_t kFloats = 3000;
  Processes processes(2);
  processes.run([&](World& world) {
    const ReplicaRanks ranks = world.replica_ranks(1);
    std::vector<std::unique_ptr<BackgroundSum<float>>> sums;
    sums.push_back(world.background_sum_of_floats(ranks, kFloats));
    for (int i = 1; i < kTags; ++i) world.background_sum_of_floats(ranks, 1);
    sums.push_back(world.background_sum_of_floats(ranks, kFloats + 1));
    std::vector<std::vector<float>> arrays;
    for (int i = 0; i < 2; ++i) arrays.push_back(array_of<float>(world.rank(), kFloats + i));
    for (int i = 0; i < 2; ++i) {
      const auto which = static_cast<size_t>(world.rank() == 0 ? i : 1 - i);
      float* const array = arrays[which].data();
      sums[which]->start({&array, 1});
    }
    for (size_t i = 0; i < 2; ++i) {
      sums[i]->wait();
      if (arrays[i] != sum_of<float>(2, kFloats + static_cast<int64_t>(i))) throw Error("wrong sum");
    }
    while (sums.size() < kTags) sums.push_back(world.background_sum_of_floats(ranks, 1));
    CHECK_THROWS_AS(world.background_sum_of_floats(ranks, 1), UserError);
    sums.pop_back();
    CHECK_NOTHROW(world.background_sum_of_floats(ranks, 1));
  });
  CHECK(processes.queues().is_empty());
}

TEST_CASE("in a sum over p processes, a process sends 2 (p - 1) / p times the size of the array") {
  constexpr int64_t kFloats = 48000;  // can be divided by the number of processes and by the grain of a part
  for (const int size : {2, 3, 4, 5}) {
    CAPTURE(size);
    Processes processes(size);
    std::vector<int64_t> sent(static_cast<size_t>(size));
    processes.run([&](World& world) {
      const ReplicaRanks ranks = world.replica_ranks(1);
      const auto sum = world.background_sum_of_floats(ranks, kFloats);
      std::vector<float> array = array_of<float>(world.rank(), kFloats);
      float* const pointer = array.data();
      const int64_t before = processes.queues().sent_by(world.rank());
      sum->start({&pointer, 1});
      sum->wait();
      sent[static_cast<size_t>(world.rank())] = processes.queues().sent_by(world.rank()) - before;
      if (sum->bytes() != static_cast<size_t>(kFloats / size * (size - 1)) * sizeof(float))
        throw Error("wrong memory");
    });
    for (const int64_t bytes : sent)
      CHECK(bytes == 2 * (size - 1) * kFloats / size * static_cast<int64_t>(sizeof(float)));
  }
}

TEST_CASE("each process receives its part of a sum, and gathers the parts of the other processes") {
  constexpr int64_t kFloats = 5000;
  for (const std::vector<int>& counts : divisions(5)) {
    CAPTURE(counts.size());
    const auto size = static_cast<int>(counts.size());
    const std::vector<float> whole = sum_of<float>(5, kFloats);
    // A process may have an empty part.
    std::vector<Range> parts;
    for (int process = 0; process < size; ++process)
      parts.push_back(process == 1 ? Range{}
                                   : part_of(kFloats, process == 0 ? 0 : process - 1, std::max(size - 1, 1)));
    Processes processes(size);
    processes.run([&](World& world) {
      const ReplicaRanks ranks = world.replica_ranks(counts[static_cast<size_t>(world.rank())]);
      const Range mine = parts[static_cast<size_t>(world.rank())];
      const auto background = world.background_sum_of_parts(ranks, parts);
      for (const bool waits : {true, false}) {
        auto nodes = sums_of_nodes(ranks, kFloats);
        std::vector<float*> pointers;
        for (auto& node : nodes) pointers.push_back(node.data());
        if (waits) {
          world.sum_parts(ranks, parts, pointers);
        } else {
          background->start(pointers);
          background->wait();
        }
        std::vector<float> values(static_cast<size_t>(kFloats), -1.0f);
        std::copy(nodes[0].begin() + mine.begin, nodes[0].begin() + mine.end, values.begin() + mine.begin);
        PartsOfProcesses lists;
        for (const Range part : parts) lists.push_back({part});
        std::vector<float> at_0 = values;
        world.all_gather_parts(lists, values);
        if (values != whole) throw Error("wrong sum of parts");
        world.gather_parts(lists, at_0);
        if (world.rank() == 0 && at_0 != whole) throw Error("wrong parts in process 0");
      }
    });
    CHECK(processes.queues().is_empty());
  }
}

TEST_CASE("layers gather values from the replicas of all processes, in the order of the ranks") {
  const std::vector<int> counts{2, 1, 3};
  Processes processes(3);
  processes.run([&](World& world) {
    const ReplicaRanks ranks = world.replica_ranks(counts[static_cast<size_t>(world.rank())]);
    Team team(ranks.local(), false);
    std::vector<Collective*> local;
    for (int rank = 0; rank < ranks.local(); ++rank) local.push_back(&team.member(rank));
    const auto members = make_process_group(local, world, ranks);
    team.run([&](Collective& one) {
      Collective& member = *members[static_cast<size_t>(one.rank())];
      if (member.size() != 6 || member.rank() != ranks.first() + one.rank()) throw Error("wrong rank");
      for (int round = 0; round < 50; ++round) {
        std::vector<double> mine{10.0 * round, 100.0 + member.rank()}, all(12);
        member.all_gather(mine, all);
        for (int rank = 0; rank < 6; ++rank)
          if (all[static_cast<size_t>(2 * rank)] != 10.0 * round ||
              all[static_cast<size_t>(2 * rank + 1)] != 100.0 + rank)
            throw Error("wrong values");
        if (round % 10 == 0) member.barrier();
        double rank_sum = member.rank();
        member.all_reduce({&rank_sum, 1});
        if (rank_sum != 15) throw Error("wrong sum");
      }
    });
  });
}

TEST_CASE("several groups of replicas gather values at the same time, without waiting for each other") {
  constexpr int kGroups = 3;
  const std::vector<int> counts{2, 1};
  Processes processes(2);
  processes.run([&](World& world) {
    const ReplicaRanks ranks = world.replica_ranks(counts[static_cast<size_t>(world.rank())]);
    std::vector<std::vector<std::unique_ptr<Collective>>> locals, groups;
    for (int group = 0; group < kGroups; ++group) {
      locals.push_back(make_local_group(ranks.local(), false));
      std::vector<Collective*> members;
      for (const auto& member : locals.back()) members.push_back(member.get());
      groups.push_back(make_process_group(members, world, ranks));
    }
    Team team(kGroups * ranks.local(), false);
    team.run([&](Collective& thread) {
      const int group = thread.rank() % kGroups;
      Collective& member = *groups[static_cast<size_t>(group)][static_cast<size_t>(thread.rank() / kGroups)];
      // Different processes start with different groups.
      std::this_thread::sleep_for(std::chrono::milliseconds(5 * ((group + world.rank()) % kGroups)));
      for (int round = 0; round < 20 * (group + 1); ++round) {
        double sum = 100.0 * group + round + member.rank();
        member.all_reduce({&sum, 1});
        if (sum != 3 * (100.0 * group + round) + 3) throw Error("wrong sum");
        if (round % 10 == 0) member.barrier();
      }
    });
  });
  CHECK(processes.queues().is_empty());
}

TEST_CASE("messages of one channel arrive in order, and messages of different channels in any order") {
  Processes processes(2);
  processes.run([](World& world) {
    const int other = 1 - world.rank();
    std::vector<std::unique_ptr<ProcessMessage>> sent, received;
    std::vector<int> numbers(6), found(6);
    for (int i = 0; i < 6; ++i) {
      sent.push_back(world.make_message(other, i % 2));
      received.push_back(world.make_message(other, i % 2));
      numbers[static_cast<size_t>(i)] = 10 * world.rank() + i;
    }
    const auto bytes = [](int& number) { return std::as_writable_bytes(std::span(&number, 1)); };
    for (const size_t i : {1u, 3u, 5u, 0u, 2u, 4u}) received[i]->receive(bytes(found[i]), nullptr);
    for (size_t i = 0; i < 6; ++i) sent[i]->send(bytes(numbers[i]), nullptr);
    for (const auto& message : sent) message->wait();
    for (const auto& message : received) message->wait();
    for (int i = 0; i < 6; ++i)
      if (found[static_cast<size_t>(i)] != 10 * other + i) throw Error("a message is in the wrong place");
  });
  CHECK(processes.queues().is_empty());
}

namespace {

/// An event that completes when the test calls complete().
class Signal final : public Event {
 public:
  void complete() { completed_ = true; }
  void record() override {}
  void synchronize() override {}
  bool has_completed() const noexcept override { return completed_; }

 private:
  std::atomic<bool> completed_{false};
};

}  // namespace

TEST_CASE("a message is sent after its event, and before the later messages of its channel") {
  Processes processes(2);
  processes.run([](World& world) {
    const int other = 1 - world.rank();
    const auto bytes = [](int& number) { return std::as_writable_bytes(std::span(&number, 1)); };
    Signal written, read;
    std::vector<std::unique_ptr<ProcessMessage>> sent, received;
    for (const int channel : {0, 0, 1}) {
      sent.push_back(world.make_message(other, channel));
      received.push_back(world.make_message(other, channel));
    }
    std::vector<int> numbers{-1, 2, 3}, found(3, -1);
    sent[0]->send(bytes(numbers[0]), &written);
    sent[1]->send(bytes(numbers[1]), nullptr);
    sent[2]->send(bytes(numbers[2]), nullptr);
    received[0]->receive(bytes(found[0]), &read);
    received[1]->receive(bytes(found[1]), nullptr);
    received[2]->receive(bytes(found[2]), nullptr);
    received[2]->wait();  // channel 1 does not wait for channel 0
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    numbers[0] = 1;
    written.complete();
    sent[0]->wait();
    sent[1]->wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (found != std::vector<int>{-1, -1, 3}) throw Error("a message was received early");
    read.complete();
    received[0]->wait();
    received[1]->wait();
    if (found != std::vector<int>{1, 2, 3}) throw Error("the messages are in another order");
  });
  CHECK(processes.queues().is_empty());
}

TEST_CASE("if a process fails, waiting for a message ends even if the message's event never completes") {
  Processes processes(2);
  processes.run([](World& world) {
    int number = 0;
    Signal never;
    const auto message = world.make_message(1 - world.rank(), 0);
    message->send(std::as_bytes(std::span(&number, 1)), &never);
    if (world.rank() == 1) world.abort("the GPU failed", false);
    CHECK_THROWS_AS(message->wait(), ProcessFailed);
  });
  CHECK(processes.queues().is_empty());
}
