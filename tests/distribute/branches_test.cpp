// Placement of the branches of a model on different devices. The time of each layer is given.
#include "distribute/branches.h"

#include <doctest/doctest.h>

using namespace dtrain;

namespace {

/// Returns a problem in which node 0 is the input of the model. Each other node reads the nodes in its
/// element of `inputs`, and takes 3 seconds. The output of each node has one byte.
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

/// A model with two branches of two layers each. The last layer joins the branches.
const std::vector<std::vector<int>> kTwoBranches{{}, {0}, {1}, {0}, {3}, {2, 4}};

}  // namespace

TEST_CASE(
    "a chain stays on one device, and branches are on different devices if this is faster despite the "
    "copies") {
  CHECK(place_branches(problem_of({{}, {0}, {1}, {2}}, 4, 0.1)) == std::vector<int>{0, 0, 0, 0});
  // The second branch is on the second device, to which the input is copied. Because of this copy, the second
  // branch ends later. Therefore the last layer is on its device: the result of the first branch can be
  // copied in the meantime.
  CHECK(place_branches(problem_of(kTwoBranches, 2, 0.1)) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(place_branches(problem_of(kTwoBranches, 4, 0.1)) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(place_branches(problem_of(kTwoBranches, 1, 0.1)) == std::vector<int>(6, 0));

  // A shared layer, followed by two branches. If copies take long (the second case), computing both branches
  // on one device is faster than copying to another device.
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
  // On the second device, node 3 starts after 1 second, because its parameters are copied. On the first
  // device, it would start after 2 seconds.
  CHECK(place_branches(problem)[3] == 1);
  problem.nodes[3].parameter_bytes = 100;
  CHECK(place_branches(problem)[3] == 0);
}

TEST_CASE("the time of a step includes layers and copies, both forward and backward") {
  const StageProblem problem = problem_of(kTwoBranches, 2, 0.5);
  CHECK(branches_seconds(problem, std::vector<int>(6, 0)) == doctest::Approx(15));
  // Forward: 0.5 seconds for a copy of the input, 2 for two layers (both branches run in parallel), 0.5 for a
  // copy, and 1 for the last layer. Backward: 2 seconds for the last layer, 0.5 for a copy, and 4 for two
  // layers.
  CHECK(branches_seconds(problem, std::vector<int>{0, 0, 0, 1, 1, 0}) ==
        doctest::Approx(0.5 + 2 + 0.5 + 1 + 2 + 0.5 + 4));
  // In a chain, the layers run one after the other even if they are on different devices. Two edges connect
  // different devices, and each of them takes a copy forward and a copy backward.
  CHECK(branches_seconds(problem_of({{}, {0}, {1}, {2}}, 2, 0.5), std::vector<int>{0, 0, 1, 0}) ==
        doctest::Approx(9 + 2));
}
