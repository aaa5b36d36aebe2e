// Placement of a model's branches on separate devices, for given times.
#include "distribute/branches.h"

#include <doctest/doctest.h>

using namespace dtrain;

namespace {

/// Returns a problem in which node 0 is the model's input, and each other node reads the nodes in `inputs`
/// and takes 3 seconds. Each value has one byte.
StageProblem problem_of(const std::vector<std::vector<int>>& inputs, int devices, double seconds_per_byte) {
  StageProblem problem;
  problem.seconds_per_byte = seconds_per_byte;
  for (size_t i = 0; i < inputs.size(); ++i) {
    problem.nodes.push_back({.is_input = i == 0});
    problem.values.push_back({static_cast<int>(i), 1, {}});
    for (const int input : inputs[i])
      problem.values[static_cast<size_t>(input)].readers.push_back(static_cast<int>(i));
  }
  std::vector<double> seconds(inputs.size(), 3);
  seconds[0] = 0;
  problem.devices.assign(static_cast<size_t>(devices), {.seconds = seconds, .bytes = {}});
  return problem;
}

/// Two branches with two layers each, joined by the last layer.
const std::vector<std::vector<int>> kTwoBranches{{}, {0}, {1}, {0}, {3}, {2, 4}};

}  // namespace

TEST_CASE("a chain stays on one device, branches are separated if copies pay off") {
  CHECK(place_branches(problem_of({{}, {0}, {1}, {2}}, 4, 0.1)) == std::vector<int>{0, 0, 0, 0});
  // The input is copied to the second device, whose branch ends later, so the last layer goes there.
  CHECK(place_branches(problem_of(kTwoBranches, 2, 0.1)) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(place_branches(problem_of(kTwoBranches, 4, 0.1)) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(place_branches(problem_of(kTwoBranches, 1, 0.1)) == std::vector<int>(6, 0));

  // A shared trunk with two branches. In the second case, the copy to another device takes longer than
  // computing both branches on one device.
  const std::vector<std::vector<int>> fork{{}, {0}, {1}, {1}, {2, 3}};
  CHECK(place_branches(problem_of(fork, 2, 0.1)) == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(place_branches(problem_of(fork, 2, 5)) == std::vector<int>(5, 0));
}

TEST_CASE("fixed layers stay in place, and shared parameters cost a copy") {
  StageProblem problem = problem_of(kTwoBranches, 2, 0.1);
  problem.nodes[3].stays = true;
  CHECK(place_branches(problem)[3] == 0);
  problem = problem_of(kTwoBranches, 2, 0.1);
  problem.nodes[3].parameters_of = 1;
  problem.nodes[3].parameter_bytes = 10;
  CHECK(place_branches(problem)[3] == 1);  // starts after 1 second instead of 2
  problem.nodes[3].parameter_bytes = 100;
  CHECK(place_branches(problem)[3] == 0);
}

TEST_CASE("a step's time counts layers forward and backward, and copies in both directions") {
  const StageProblem problem = problem_of(kTwoBranches, 2, 0.5);
  CHECK(branches_seconds(problem, std::vector<int>(6, 0)) == doctest::Approx(15));
  // Forward: a copy of the input, two parallel layers, a copy, the last layer; backward: the last layer, a
  // copy, two layers.
  CHECK(branches_seconds(problem, std::vector<int>{0, 0, 0, 1, 1, 0}) ==
        doctest::Approx(0.5 + 2 + 0.5 + 1 + 2 + 0.5 + 4));
  // Every edge of a chain is copied, and only one device computes at a time.
  CHECK(branches_seconds(problem_of({{}, {0}, {1}, {2}}, 2, 0.5), std::vector<int>{0, 0, 1, 0}) ==
        doctest::Approx(9 + 2));
}
