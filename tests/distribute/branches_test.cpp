// Branches of a model on devices of their own, by given times.
#include "distribute/branches.h"

#include <doctest/doctest.h>

using namespace dtrain;

namespace {

/// Node 0 is the model's input; the others read what `inputs` says, and take 3 seconds each. A value is one
/// byte.
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

/// Two layers each, which meet in the last.
const std::vector<std::vector<int>> kTwoBranches{{}, {0}, {1}, {0}, {3}, {2, 4}};

}  // namespace

TEST_CASE("a chain stays together, branches part where copies are worth it") {
  CHECK(place_branches(problem_of({{}, {0}, {1}, {2}}, 4, 0.1)) == std::vector<int>{0, 0, 0, 0});
  // The input is copied to the second slot, whose branch ends later: the last layer goes there.
  CHECK(place_branches(problem_of(kTwoBranches, 2, 0.1)) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(place_branches(problem_of(kTwoBranches, 4, 0.1)) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(place_branches(problem_of(kTwoBranches, 1, 0.1)) == std::vector<int>(6, 0));

  // A layer behind a shared trunk, where a copy takes longer than to compute the other branch first.
  const std::vector<std::vector<int>> fork{{}, {0}, {1}, {1}, {2, 3}};
  CHECK(place_branches(problem_of(fork, 2, 0.1)) == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(place_branches(problem_of(fork, 2, 5)) == std::vector<int>(5, 0));
}

TEST_CASE("what must stay stays, and shared parameters cost a copy") {
  StageProblem problem = problem_of(kTwoBranches, 2, 0.1);
  problem.nodes[3].stays = true;
  CHECK(place_branches(problem)[3] == 0);
  problem = problem_of(kTwoBranches, 2, 0.1);
  problem.nodes[3].parameters_of = 1;
  problem.nodes[3].parameter_bytes = 10;
  CHECK(place_branches(problem)[3] == 1);  // begins after 1 second, and not after 2
  problem.nodes[3].parameter_bytes = 100;
  CHECK(place_branches(problem)[3] == 0);
}

TEST_CASE("seconds of a step: layers in order, backward the other way around, copies both ways") {
  const StageProblem problem = problem_of(kTwoBranches, 2, 0.5);
  CHECK(branches_seconds(problem, std::vector<int>(6, 0)) == doctest::Approx(15));
  // Forward: a copy of the input, two layers at once, a copy, the last; backward the last, a copy, two
  // layers.
  CHECK(branches_seconds(problem, std::vector<int>{0, 0, 0, 1, 1, 0}) ==
        doctest::Approx(0.5 + 2 + 0.5 + 1 + 2 + 0.5 + 4));
  // Every edge of a chain is copied, and only one of the slots computes.
  CHECK(branches_seconds(problem_of({{}, {0}, {1}, {2}}, 2, 0.5), std::vector<int>{0, 0, 1, 0}) ==
        doctest::Approx(9 + 2));
}
