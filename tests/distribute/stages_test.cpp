// Cuts of graphs into stages. The chosen cut is compared with all possible cuts.
#include "distribute/stages.h"

#include <algorithm>
#include <functional>
#include <random>

#include <doctest/doctest.h>

using namespace dtrain;
using Outcome = StageCut::Outcome;

namespace {

StageProblem chain(const std::vector<double>& seconds, size_t stages) {
  StageProblem problem;
  problem.nodes.resize(seconds.size());
  problem.devices.assign(stages, {seconds, {}, 1});
  for (size_t i = 0; i + 1 < seconds.size(); ++i)
    problem.values.push_back({static_cast<int>(i), 0, {static_cast<int>(i) + 1}});
  return problem;
}

/// Calls `use` with every allowed cut: each stage has at least one layer, and nodes that must be on the stage
/// of the previous node are on this stage.
void for_cuts(const StageProblem& problem, const std::function<void(const std::vector<int>&)>& use) {
  const size_t n = problem.nodes.size();
  const int stages = static_cast<int>(problem.devices.size());
  std::vector<int> cut(n, 0);
  const std::function<void(size_t, int)> go = [&](size_t i, int stage) {
    if (i == n) {
      if (stage + 1 != stages) return;
      std::vector<int> whole = cut;
      for (const StageValue& value : problem.values)
        if (problem.nodes[static_cast<size_t>(value.node)].is_input && !value.readers.empty())
          whole[static_cast<size_t>(value.node)] = whole[static_cast<size_t>(value.readers.front())];
      return use(whole);
    }
    if (problem.nodes[i].is_input) return go(i + 1, stage);
    const bool is_first = stage < 0;
    for (int next = is_first ? 0 : stage; next <= (is_first ? 0 : stage + 1) && next < stages; ++next) {
      if (next > stage && !is_first && problem.nodes[i].stays) continue;
      cut[i] = next;
      go(i + 1, next);
    }
  };
  go(0, -1);
}

double slowest(const std::vector<StageLoad>& loads) {
  double most = 0;
  for (const StageLoad& load : loads) most = std::max(most, load.seconds);
  return most;
}

double squares(const std::vector<StageLoad>& loads) {
  double sum = 0;
  for (const StageLoad& load : loads) sum += load.seconds * load.seconds;
  return sum;
}

/// Returns how many bytes are missing on the stage that lacks the most memory.
int64_t lack(const StageProblem& problem, const std::vector<StageLoad>& loads) {
  int64_t most = 0;
  for (size_t stage = 0; stage < loads.size(); ++stage)
    if (const auto& bytes = problem.devices[stage].bytes) most = std::max(most, loads[stage].bytes - *bytes);
  return most;
}

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  int upto(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }
  bool chance(int percent) { return upto(99) < percent; }

  StageProblem problem() {
    StageProblem problem;
    const int n = 1 + upto(11), stages = 1 + upto(3), inputs = upto(std::min(2, n - 1));
    for (int i = 0; i < n; ++i) {
      StageNode node{.is_input = i < inputs};
      if (!node.is_input) {
        node.stays = i > inputs && chance(20);
        node.parameter_bytes = upto(50);
        node.activation_bytes = upto(10);
        if (i > inputs && chance(15)) {
          node.parameters_of = inputs + upto(i - inputs - 1);
          StageNode& owner = problem.nodes[static_cast<size_t>(node.parameters_of)];
          if (owner.parameters_of >= 0) node.parameters_of = owner.parameters_of;
          node.parameter_bytes = problem.nodes[static_cast<size_t>(node.parameters_of)].parameter_bytes;
        }
      }
      problem.nodes.push_back(node);
      StageValue value{i, upto(8), {}};
      for (int reader = std::max(i + 1, inputs); reader < n; ++reader)
        if (reader == i + 1 || chance(20)) value.readers.push_back(reader);
      problem.values.push_back(value);
    }
    for (int stage = 0; stage < stages; ++stage) {
      StageDevice device;
      for (int i = 0; i < n; ++i) device.seconds.push_back(upto(20));
      if (chance(70)) device.bytes = upto(n * 25);
      device.in_flight = stages - stage;
      problem.devices.push_back(device);
    }
    problem.seconds_per_byte = upto(2) * 0.25;
    return problem;
  }

 private:
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("a chain is cut so that the slowest stage is as fast as possible") {
  using Stages = std::vector<int>;
  CHECK(choose_stages(chain({1, 1, 1, 1}, 2)).stages == Stages{0, 0, 1, 1});
  CHECK(choose_stages(chain({5, 1, 1, 1}, 2)).stages == Stages{0, 1, 1, 1});
  CHECK(choose_stages(chain({1, 2, 3, 4, 5}, 3)).stages == Stages{0, 0, 0, 1, 2});
  // The first stage takes most of the time. The remaining layers are still divided evenly among the other
  // stages.
  CHECK(choose_stages(chain({100, 1, 1, 1, 1, 1, 1}, 3)).stages == Stages{0, 1, 1, 1, 2, 2, 2});
  const StageCut cut = choose_stages(chain({1, 2, 3, 4, 5}, 1));
  CHECK(cut.stages == Stages{0, 0, 0, 0, 0});
  CHECK(cut.loads.at(0).seconds == 15);
}

TEST_CASE("limited memory changes the cut, and more microbatches in flight need more memory") {
  StageProblem problem = chain({1, 1, 1, 1}, 2);
  for (StageNode& node : problem.nodes) node.activation_bytes = 10;
  for (StageDevice& device : problem.devices) device.bytes = 30;
  problem.devices[0].in_flight = 2;
  const StageCut cut = choose_stages(problem);
  CHECK(cut.stages == std::vector<int>{0, 1, 1, 1});
  CHECK(cut.loads.at(0).bytes == 20);
  CHECK(cut.loads.at(1).bytes == 30);
}

TEST_CASE("a value is copied once to each stage that reads it, and a stage stores shared parameters once") {
  StageProblem problem = chain({1, 1, 1, 1}, 2);
  problem.values[0] = {0, 5, {1, 2, 3}};
  problem.seconds_per_byte = 0.1;
  problem.nodes[0].parameter_bytes = problem.nodes[2].parameter_bytes = problem.nodes[3].parameter_bytes = 7;
  problem.nodes[2].parameters_of = problem.nodes[3].parameters_of = 0;
  problem.devices[1].in_flight = 3;
  const auto loads = stage_loads(problem, std::vector<int>{0, 0, 1, 1});
  CHECK(loads[0].bytes == 7);
  CHECK(loads[0].seconds == 2);
  CHECK(loads[1].bytes == 7 + 3 * 5);
  CHECK(loads[1].seconds == doctest::Approx(2 + 2 * 5 * 0.1));
}

TEST_CASE("if no cut is possible, the outcome says why") {
  StageProblem problem = chain({1, 1, 1}, 3);
  problem.nodes[1].stays = true;
  StageCut cut = choose_stages(problem);
  CHECK(cut.outcome == Outcome::too_few_layers);
  CHECK(cut.possible_starts == 2);
  CHECK(cut.stages.empty());

  problem = chain({1, 1, 1}, 2);
  for (StageNode& node : problem.nodes) node.parameter_bytes = 10;
  for (StageDevice& device : problem.devices) device.bytes = 12;
  cut = choose_stages(problem);
  CHECK(cut.outcome == Outcome::too_little_memory);
  CHECK(lack(problem, cut.loads) == 8);
}

TEST_CASE("no other cut of a random graph is faster") {
  int found = 0, too_few = 0, too_little = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    const StageProblem problem = Draw(seed).problem();
    const StageCut cut = choose_stages(problem);
    bool any = false;
    double least_slowest = 1e30, least_squares = 1e30;
    int64_t least_lack = int64_t{1} << 60;
    for_cuts(problem, [&](const std::vector<int>& other) {
      any = true;
      const auto loads = stage_loads(problem, other);
      least_lack = std::min(least_lack, lack(problem, loads));
      if (lack(problem, loads) > 0 || slowest(loads) > least_slowest) return;
      least_squares =
          slowest(loads) < least_slowest ? squares(loads) : std::min(least_squares, squares(loads));
      least_slowest = slowest(loads);
    });
    if (!any) {
      CHECK(cut.outcome == Outcome::too_few_layers);
      CHECK(cut.possible_starts < std::ssize(problem.devices));
      ++too_few;
      continue;
    }
    REQUIRE(cut.stages.size() == problem.nodes.size());
    const auto loads = stage_loads(problem, cut.stages);
    bool is_a_cut = false;
    for_cuts(problem, [&](const std::vector<int>& other) { is_a_cut |= other == cut.stages; });
    CHECK(is_a_cut);
    CHECK(lack(problem, loads) == least_lack);
    if (least_lack > 0) {
      CHECK(cut.outcome == Outcome::too_little_memory);
      ++too_little;
      continue;
    }
    CHECK(cut.outcome == Outcome::found);
    // These are equal, because all times are multiples of 0.25 and are added without rounding.
    CHECK(slowest(loads) == least_slowest);
    CHECK(squares(loads) == least_squares);
    ++found;
  }
  for (const int cases : {found, too_few, too_little}) CHECK(cases > 300);
}
