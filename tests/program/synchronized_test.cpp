// Tests plans whose layers call collectives.
#include <vector>

#include <doctest/doctest.h>

#include "collective/team.h"
#include "plan_run.h"

namespace dtrain::test {
namespace {

void meet(const Plan& plan, Collective& member) {
  for (const Plan::Part part : {Plan::Part::forward, Plan::Part::backward})
    plan.join_collectives(0, part, member, nullptr);
}

std::string synchronized_model() {
  std::string model = kModel;
  const std::string plain = "batch_normalization: {name: normal}";
  model.replace(model.find(plain), plain.size(), "batch_normalization: {name: normal, synchronized: true}");
  return model;
}

}  // namespace

TEST_CASE("a plan has the same collective calls for every batch size, and none for one replica") {
  const auto device = test::cpu_device();
  const auto group = make_local_group(2, false), alone = make_local_group(1, false);
  const auto collectives_of = [&](Collective* replicas, Plan::Purpose purpose, int64_t batch) {
    const PlanRun run(*device, synchronized_model(), replicas);
    Ops* ops[] = {&device->ops()};
    const Plan plan(run.graph, run.model_layout, run.heads(), ops, {}, {purpose, batch},
                    {.replicas = {&replicas, 1}});
    std::string text;
    for (const Instruction& instruction : plan.program().instructions)
      if (const int64_t count = gathered_by(instruction); count > 0)
        text += instruction.name + " " + std::to_string(count) + "; ";
    return text;
  };
  const std::string expected = "normal forward 17; normal backward 16; ";
  for (const int64_t batch : {1, 4, 9}) {
    CHECK(collectives_of(group[0].get(), Plan::Purpose::training, batch) == expected);
    CHECK(collectives_of(nullptr, Plan::Purpose::training, batch) == "");
    CHECK(collectives_of(alone[0].get(), Plan::Purpose::training, batch) == "");
    CHECK(collectives_of(group[0].get(), Plan::Purpose::evaluation, batch) == "");
  }
}

TEST_CASE("replicas without rows join collective calls without changing the result") {
  Values alone, among;
  Team(1, false).run([&](Collective& member) {
    const auto device = test::cpu_device();
    PlanRun run(*device, synchronized_model(), &member);
    run.run();
    alone = run.gradients;
  });
  Team(3, false).run([&](Collective& member) {
    const auto device = test::cpu_device();
    PlanRun run(*device, synchronized_model(), &member);
    if (member.rank() != 1) return meet(run.plan, member);
    run.run();
    among = run.gradients;
  });
  CHECK(!alone.empty());
  CHECK(among == alone);
}

TEST_CASE(
    "other replicas' rows change a replica's gradients; replicas with the same rows have the same bits") {
  std::vector<Values> gradients(4);
  Team(2, false).run([&](Collective& member) {
    const auto device = test::cpu_device();
    PlanRun run(*device, synchronized_model(), &member);
    for (const uint64_t seed : {3, 5}) {
      run.run(PlanRun::kStep, 1, nullptr, member.rank() == 0 ? 3 : seed);
      gradients[static_cast<size_t>(member.rank()) + (seed == 3 ? 0 : 2)] = run.gradients;
    }
  });
  CHECK(gradients[0] == gradients[1]);
  CHECK(gradients[2] != gradients[3]);
  CHECK(gradients[2] != gradients[0]);
}

TEST_CASE("a replica that fails releases the replicas that wait for it within a plan") {
  for (const int failing : {0, 1, 2}) {
    for (const int64_t after : {0, 1, 3}) {  // number of collective calls before the failure
      CAPTURE(failing);
      CAPTURE(after);
      Team team(3, false);
      const auto work = [&](Collective& member) {
        const auto device = test::cpu_device();
        PlanRun run(*device, synchronized_model(), &member);
        if (member.rank() == failing) {
          for (int64_t call = 0; call < after; ++call) all_gather_zeros(member, call % 2 == 0 ? 17 : 16);
          throw Error("it broke");
        }
        for (;;) member.rank() == 1 ? meet(run.plan, member) : run.run();
      };
      CHECK_THROWS_WITH_AS(team.run(work), "it broke", Error);
    }
  }
}

}  // namespace dtrain::test
