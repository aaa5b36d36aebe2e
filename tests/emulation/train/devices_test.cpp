// Devices that are chosen by `auto` if some GPUs cannot be used.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emulation/only_gpus.h"
#include "emulation/other_machine.h"
#include "run/placement.h"
#include "run/run_config_parser.h"
#include "support/processes.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Sets CUDA_VISIBLE_DEVICES for the lifetime of the object.
class Visible {
 public:
  explicit Visible(const char* devices) { setenv("CUDA_VISIBLE_DEVICES", devices, 1); }
  ~Visible() { unsetenv("CUDA_VISIBLE_DEVICES"); }
  Visible(const Visible&) = delete;
  Visible& operator=(const Visible&) = delete;
};

RunConfig run_on(const std::string& strategy) {
  return config_from(kDenseRun, {"strategy=" + strategy});
}

std::vector<std::string> names(const RunConfig& config) {
  std::vector<std::string> all;
  const RunPlan plan = plan_run(config, single_process());
  for (const DeviceId& device : plan.placement.devices()) all.push_back(device.str());
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("device: auto leaves out GPUs that cannot run the program, with a warning") {
    const emulation::OtherMachine machine({.devices = 3, .oddities = {{1, {.capability = 75}}}});
    const RunConfig config = run_on("{mirrored: {devices: auto}}");
    CHECK(names(config) == Names{"gpu:0", "gpu:2"});
    const Names warnings = placement_warnings(config);
    CHECK(plan_run(config, single_process()).warnings == warnings);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].starts_with(
        "warning: gpu:1 is not used, because it cannot run this program: its compute capability is 7.5"));
    CHECK(emulation::contexts().empty());
  }

  TEST_CASE("mixing CPUs and GPUs, or stages that share a GPU, is an error over several processes") {
    const emulation::OtherMachine machine({.devices = 2});
    const std::vector<std::pair<std::string, std::string>> strategies{
        {"{pipeline: {devices: [gpu:0, cpu:0], stages: [dense_1]}}",
         "CPUs and GPUs cannot be mixed in a run of several processes (2 were started)"},
        {"{pipeline: {devices: [gpu:1, gpu:1], stages: [dense_1]}}",
         "several replicas or stages cannot share gpu:1 in a run of several processes (2 were started)"}};
    for (const auto& [strategy, expected] : strategies) {
      CAPTURE(strategy);
      const RunConfig config = run_on(strategy);
      Processes processes(2);
      CHECK_THROWS_WITH_AS(processes.run([&](World& world) { plan_run(config, world); }),
                           doctest::Contains(expected.c_str()), UserError);
    }
  }

  TEST_CASE("a GPU that two processes use is an error, unless the processes divide the stages") {
    const emulation::OtherMachine machine({.devices = 2});
    const auto plan_in_two = [](const std::string& strategy) {
      Processes processes(2);
      processes.run([&](World& world) { plan_training(run_on(strategy), world); });
    };
    for (const char* strategy : {"{single: {device: gpu:1}}", "{mirrored: {devices: [gpu:0, gpu:1]}}"})
      CHECK_THROWS_WITH_AS(plan_in_two(strategy),
                           doctest::Contains("processes 0 and 1 both use the GPU 0000:4"), UserError);
    plan_in_two("{pipeline: {devices: [gpu:0, gpu:0], stages: [dense_1], across: processes}}");
    plan_in_two("{single: {device: cpu:0}}");
  }

  TEST_CASE("a run of a process that has only a part of the GPUs uses no other GPU") {
    const std::vector<std::string> sets{"strategy={mirrored: {devices: auto}}", "train.epochs=3"};
    std::vector<double> expected;
    {
      const emulation::OtherMachine machine({.devices = 2});
      expected = losses_of(kDenseRun, sets);
    }
    const emulation::OtherMachine machine({.devices = 5});
    const emulation::OnlyGpus part(2, 2);
    const std::vector<double> losses = losses_of(kDenseRun, sets);
    REQUIRE(losses.size() == expected.size());
    for (size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    CHECK(fmt::format("{}", fmt::join(emulation::contexts(), ", ")) == "2, 3");
  }

  TEST_CASE(
      "stages are on the devices of all processes, and each process must have the devices of its stages") {
    const auto plan_in = [](int count, const std::string& strategy) {
      const RunConfig config =
          config_from(kDenseRun, {fmt::format("strategy={{pipeline: {{{}, across: processes}}}}", strategy),
                                  "model.layers=[{dense: 8}, {dense: 8}, {dense: 8}, {dense: 3}]",
                                  "train.deterministic=true"});
      std::vector<std::vector<Names>> replicas(static_cast<size_t>(count));
      std::vector<std::string> resolved(replicas.size());
      Processes processes(count);
      processes.run([&](World& world) {
        const auto rank = static_cast<size_t>(world.rank());
        const RunPlan plan = plan_training(config, world);
        for (const std::vector<DeviceId>& replica : plan.placement.replicas) {
          Names& its = replicas[rank].emplace_back();
          for (const DeviceId& device : replica) its.push_back(device.str());
        }
        resolved[rank] = plan.config.strategy.resolved.to_yaml();
        // The plan's configuration contains the devices that were chosen. If the run is planned again with
        // this configuration, the placement is the same.
        CHECK(plan_run(plan.config, world).placement.replicas == plan.placement.replicas);
      });
      for (size_t rank = 1; rank < replicas.size(); ++rank) {
        CHECK(replicas[rank] == replicas[0]);
        CHECK(resolved[rank] == resolved[0]);
      }
      return replicas[0];
    };
    using Replicas = std::vector<Names>;
    {
      const emulation::OtherMachine machine({.devices = 2});
      CHECK(plan_in(2, "devices: auto") == Replicas{{"gpu:0", "gpu:1", "gpu:0", "gpu:1"}});
      CHECK(plan_in(2, "devices: auto, replicas: 2") == Replicas{{"gpu:0", "gpu:0"}, {"gpu:1", "gpu:1"}});
      CHECK(plan_in(2, "devices: [gpu:1, gpu:0, cpu:0]") == Replicas{{"gpu:1", "gpu:0", "cpu:0"}});
      CHECK_THROWS_WITH_AS(
          plan_in(2, "devices: [gpu:0, gpu:1, gpu:2, gpu:0]"),
          doctest::Contains("gpu:2: this GPU does not exist; this machine has gpu:0 to gpu:1"), UserError);
      CHECK_THROWS_WITH_AS(plan_in(2, "devices: auto, replicas: 3"),
                           doctest::Contains("2 devices cannot be divided evenly among 3 replicas"),
                           UserError);
    }
    const emulation::OtherMachine machine({.devices = 0});
    CHECK(plan_in(3, "devices: auto") == Replicas{{"cpu:0", "cpu:0", "cpu:0"}});
  }

  TEST_CASE("a process need not have the GPUs of other processes") {
    const auto plan_on = [](int gpus, int process) {
      const emulation::OtherMachine machine({.devices = gpus});
      const RunConfig config =
          run_on("{pipeline: {devices: [gpu:1, gpu:0], stages: [dense_1], across: processes}}");
      Workload work = workload_of(config);
      work.process = process;
      work.processes = 2;
      Diagnostics diagnostics;
      return config.strategy->place(work, diagnostics).replicas.size();
    };
    CHECK(plan_on(2, 0) == 1);
    CHECK(plan_on(1, 0) == 0);
    CHECK(plan_on(1, 1) == 1);
  }

  TEST_CASE("naming a GPU that cannot run the program is an error at its source location") {
    const emulation::OtherMachine machine({.oddities = {{1, {.capability = 75}}}});
    std::string refusal;
    try {
      plan_run(run_on("{mirrored: {devices: [gpu:0, gpu:1]}}"), single_process());
    } catch (const UserError& error) {
      refusal = error.what();
    }
    CHECK(refusal.find("error: gpu:1 cannot run this program: its compute capability is 7.5") !=
          refusal.npos);
  }

  TEST_CASE("device: auto warns if it uses the CPU because no GPU can be used") {
    {
      const emulation::OtherMachine machine({.devices = 1, .oddities = {{0, {.capability = 61}}}});
      const RunConfig config = run_on("{single: {device: auto}}");
      CHECK(names(config) == Names{"cpu:0"});
      CHECK(placement_warnings(config).size() == 1);
    }
    const emulation::OtherMachine machine({.count_status = cudaErrorSystemNotReady});
    const RunConfig config = run_on("{single: {device: auto}}");
    {
      const Visible visible("0");
      CHECK(names(config) == Names{"cpu:0"});
      const Names warnings = placement_warnings(config);
      REQUIRE(warnings.size() == 1);
      CHECK(warnings[0].starts_with("warning: no GPU can be used ("));
      CHECK(warnings[0].find("CUDA error 802,") != std::string::npos);
    }
    const Visible none("");  // hides all GPUs
    CHECK(placement_warnings(config).empty());
    CHECK(placement_warnings(run_on("{single: {device: 'cpu:0'}}")).empty());
  }
}
