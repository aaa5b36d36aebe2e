// Collective operations on arrays in GPU memory.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "collective/collective.h"
#include "collective/team.h"
#include "device/device.h"

using namespace dtrain;

TEST_CASE(
    "nccl_version() returns "
    " if and only if NCCL is unavailable") {
  CHECK(nccl_available() == !nccl_version().empty());
}

namespace {

bool have_gpus(int count) {
  const GpuPresence presence = gpu_presence();
  if (presence.count >= count) return true;
  MESSAGE("skipped: needs ", count, " GPUs, there are ", presence.count, " ", presence.reason);
  return false;
}

constexpr int64_t kFloats = 3 * 4096;
constexpr size_t kBytes = kFloats * sizeof(float);

/// The parts of a GPU replica that reductions need.
struct Replica {
  explicit Replica(int index) : context(make_gpu_context({DeviceId::Kind::gpu, index}, false)) {
    data = context->allocate(kBytes);
    host = context->allocate_host(kBytes);
  }

  /// Uploads the host data to the GPU, sums the data over all replicas in three buckets, and downloads the
  /// result.
  void step() {
    context->enqueue_copy(data.data(), host.data(), kBytes);
    for (int64_t bucket = 0; bucket < 3; ++bucket)
      group->all_reduce(data.f32() + bucket * (kFloats / 3), kFloats / 3);
    group->join();
    context->enqueue_copy(host.data(), data.data(), kBytes);
  }

  /// Runs a step. If `replayed`, captures the step in the first call and replays the captured step in every
  /// call. All members capture the step before any member replays it.
  void run(bool replayed, Collective& member) {
    if (replayed && !replay) {
      replay = context->capture([&] { step(); });
      member.barrier();
    }
    if (replayed && replay) return replay->run();
    step();
  }

  bool holds(float first) const {
    for (int64_t i = 0; i < kFloats; ++i)
      if (host.f32()[i] != first + static_cast<float>(i)) return false;
    return true;
  }

  std::unique_ptr<Context> context;
  Buffer data, host;
  std::unique_ptr<DeviceCollective> group;
  std::unique_ptr<CapturedGraph> replay;  ///< must be destroyed before the group
};

std::vector<Replica> make_replicas(int count) {
  std::vector<Replica> replicas;
  std::vector<Context*> contexts;
  for (int index = 0; index < count; ++index) {
    replicas.emplace_back(index);
    contexts.push_back(replicas.back().context.get());
  }
  auto groups = make_nccl_group(contexts, single_process());
  for (size_t rank = 0; rank < groups.size(); ++rank) replicas[rank].group = std::move(groups[rank]);
  return replicas;
}

Replica& of(std::vector<Replica>& replicas, const Collective& member) {
  return replicas[static_cast<size_t>(member.rank())];
}

/// Checks the results of steps on every replica. If `replayed`, the steps are captured once and then
/// replayed.
void check_steps(int count, bool replayed) {
  std::vector<Replica> replicas = make_replicas(count);
  Team team(count, false);
  team.run([&](Collective& member) { of(replicas, member).context->attach(); });
  for (int round = 0; round < 4; ++round) {
    team.run([&](Collective& member) {
      Replica& replica = of(replicas, member);
      // Exact sums: member r contributes (r == 0 ? i : 0) + round + r.
      std::iota(replica.host.f32(), replica.host.f32() + kFloats, 0.0f);
      for (int64_t i = 0; i < kFloats; ++i) {
        float& value = replica.host.f32()[i];
        if (member.rank() > 0) value = 0;
        value += static_cast<float>(round + member.rank());
      }
      replica.run(replayed && round > 0, member);
      replica.context->synchronize();
      replica.group->check();
    });
    const int sum = count * round + count * (count - 1) / 2;
    for (const Replica& replica : replicas) CHECK(replica.holds(static_cast<float>(sum)));
  }
}

/// Checks that all members end if one member fails in round `when`. The other members are waiting for sums
/// that never complete. From the third round on, the steps are replayed from captured graphs.
void check_failure(int failing, int when) {
  std::vector<Replica> replicas = make_replicas(2);
  Team team(2, false);
  team.on_abort([&] { replicas[0].group->abort(); });
  team.run([&](Collective& member) { of(replicas, member).context->attach(); });
  const auto work = [&](Collective& member) {
    Replica& replica = of(replicas, member);
    for (int round = 0; round <= when; ++round) {
      if (round == when && member.rank() == failing) throw Error("it broke");
      replica.run(round > 0, member);
      replica.context->synchronize();
      replica.group->check();
    }
  };
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH_AS(team.run(work), "it broke", Error);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  for (Replica& replica : replicas) CHECK_THROWS_AS(replica.group->check(), Aborted);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("NCCL sums arrays in buckets, in enqueued steps and in replayed steps") {
    for (const int count : {1, 2}) {
      if (!have_gpus(count)) return;
      CAPTURE(count);
      check_steps(count, false);
      check_steps(count, true);
    }
  }

  TEST_CASE("measure_all_reduce() measures the rate of sums over GPUs") {
    for (const int count : {1, 2}) {
      if (!have_gpus(count)) return;
      CHECK(measure_all_reduce(count, kBytes, single_process()) > 0);
    }
  }

  TEST_CASE("every call of an NCCL group throws after an abort") {
    if (!have_gpus(1)) return;
    std::vector<Replica> replicas = make_replicas(1);
    DeviceCollective& group = *replicas[0].group;
    group.check();
    group.abort();
    group.abort();
    CHECK_THROWS_AS(group.check(), Aborted);
    CHECK_THROWS_AS(group.all_reduce(replicas[0].data.f32(), kFloats), Aborted);
    group.join();
    replicas[0].context->synchronize();
  }

  TEST_CASE("an error of one replica wakes the replicas that wait in NCCL") {
    if (!have_gpus(2)) return;
    for (const int failing : {0, 1})
      for (const int when : {0, 1, 3}) {
        CAPTURE(failing);
        CAPTURE(when);
        check_failure(failing, when);
      }
  }

  TEST_CASE("an NCCL group requires different GPUs") {
    if (!have_gpus(1)) return;
    const auto first = make_gpu_context({DeviceId::Kind::gpu, 0}, false),
               second = make_gpu_context({DeviceId::Kind::gpu, 0}, false);
    const auto cpu = make_cpu_context({DeviceId::Kind::cpu, 0}, {0}, false);
    CHECK_THROWS_AS(make_nccl_group(std::vector<Context*>{first.get(), second.get()}, single_process()),
                    Error);
    CHECK_THROWS_AS(make_nccl_group(std::vector<Context*>{first.get(), cpu.get()}, single_process()), Error);
  }
}
