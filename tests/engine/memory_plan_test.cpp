// Memory plans and their sums. The tests use plans with given numbers.
#include "engine/memory_plan.h"

#include <doctest/doctest.h>

namespace dtrain {

namespace {

constexpr size_t kMega = 1000000;

DeviceId cpu(int index) {
  return {DeviceId::Kind::cpu, index};
}

DeviceId gpu(int index) {
  return {DeviceId::Kind::gpu, index};
}

MemoryPlan plan_on(DeviceId device, size_t parameters, size_t activations) {
  MemoryPlan plan{.device = device};
  plan.parameters = parameters * kMega;
  plan.activations = activations * kMega;
  return plan;
}

}  // namespace

TEST_CASE("plans are summed per memory: all CPUs share the host's memory, and each GPU has its own memory") {
  const std::vector<MemoryPlan> plans{plan_on(cpu(0), 4, 3), plan_on(cpu(1), 0, 2), plan_on(gpu(0), 4, 5),
                                      plan_on(gpu(1), 4, 1), plan_on(gpu(1), 0, 1)};
  const HostNeeds needs{.metrics = kMega, .data = 2 * kMega, .read_ahead = 3 * kMega, .copies = 4 * kMega};
  const auto demands =
      sum_demands(plans, needs, {100 * kMega, "the machine"},
                  {{0, {8 * kMega, "its free memory"}}, {1, {7 * kMega, "its free memory"}}});
  REQUIRE(demands.size() == 3);
  CHECK(demands[0].name() == "cpu");
  CHECK(demands[0].total() == 19 * kMega);
  CHECK(demands[0].largest->device == cpu(0));
  CHECK(demands[1].name() == "gpu:0");
  CHECK(demands[1].total() == 9 * kMega);
  CHECK(demands[1].excess() == doctest::Approx(1e6));
  CHECK(demands[2].total() == 6 * kMega);
  CHECK(demands[2].excess() == doctest::Approx(-1e6));
  CHECK(scarcest(demands).name() == "gpu:0");
  CHECK(shortage(demands[1], 64) ==
        "gpu:0: batches of 64 need 9.0 MB (4.0 MB of parameters, 5.0 MB of activations), but 8.0 MB is "
        "available (its "
        "free memory)");
}

TEST_CASE("values that GPUs send to other processes need host memory") {
  MemoryPlan plan = plan_on(gpu(0), 4, 5);
  plan.transfers = 3 * kMega;
  const std::vector<MemoryPlan> plans{plan, plan};
  const auto demands = sum_demands(plans, {.metrics = kMega}, {}, {{0, {}}});
  REQUIRE(demands.size() == 2);
  CHECK(demands[0].total() == 7 * kMega);
  CHECK(demands[0].parts() == "1.0 MB of metrics, 6.0 MB of values sent among processes");
  CHECK(demands[1].total() == 18 * kMega);
}

TEST_CASE("each part of a demand is named, and parts of 0 bytes are left out") {
  MemoryPlan plan = plan_on(cpu(0), 1, 2);
  plan.optimizer_slots = 3 * kMega;
  plan.gradients = 4 * kMega;
  plan.staging = 5 * kMega;
  plan.data = 6 * kMega;
  plan.metrics = 7 * kMega;
  CHECK(plan.total() == 28 * kMega);
  const HostNeeds needs{.metrics = kMega, .data = 2 * kMega, .read_ahead = 8 * kMega, .copies = 9 * kMega};
  CHECK(sum_demands({&plan, 1}, needs, {}, {})[0].parts() ==
        "1.0 MB of parameters, 3.0 MB of the optimizer's slots, 4.0 MB of gradients, 2.0 MB of activations, "
        "5.0 MB of "
        "batches in transfer, 8.0 MB of samples, 8.0 MB of metrics, 8.0 MB of batches read ahead, 9.0 MB of "
        "copies on "
        "the host");
  CHECK(sum_demands({}, {.copies = kMega}, {}, {})[0].parts() == "1.0 MB of copies on the host");
}

TEST_CASE("a plan that needs more than the free memory, but less than the limit, causes a warning") {
  const MemoryPlan plan = plan_on(cpu(0), 10, 10);
  const auto demand_with = [&](size_t left) {
    return sum_demands({&plan, 1}, {}, {left * kMega, "the machine"}, {})[0];
  };
  CHECK(host_advice(demand_with(30), 25 * kMega) == "");
  CHECK(host_advice(demand_with(30), 20 * kMega) == "");
  CHECK(
      host_advice(demand_with(30), 15 * kMega) ==
      "cpu: the run needs 20.0 MB (10.0 MB of parameters, 10.0 MB of activations), but only 15.0 MB are free "
      "now. The run may be slow, or the operating system may end it");
  // 20 MB exceed the limit of 18 MB, which is an error and not a warning.
  CHECK(host_advice(demand_with(18), 15 * kMega) == "");
}

}  // namespace dtrain
