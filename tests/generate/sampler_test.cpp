// Tests drawing tokens from scores: the order of the options, equal scores, frequencies, and the values that
// determine the random numbers.
#include "generate/sampler.h"

#include <cmath>
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"

namespace dtrain::test {

namespace {

using Scores = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Draws `draws` tokens and returns the count of each id.
std::vector<int> counts_of(const SamplingOptions& options, const Scores& scores, int draws) {
  Sampler sampler(options);
  std::vector<int> counts(scores.size());
  for (int i = 0; i < draws; ++i)
    ++counts[static_cast<size_t>(sampler.draw(scores, {.position = static_cast<uint64_t>(i)}))];
  return counts;
}

std::set<size_t> ids_of(const SamplingOptions& options, const Scores& scores) {
  const std::vector<int> counts = counts_of(options, scores, 2000);
  std::set<size_t> ids;
  for (size_t id = 0; id < counts.size(); ++id)
    if (counts[id] > 0) ids.insert(id);
  return ids;
}

/// Returns log(p) of probabilities.
Scores logs(const std::vector<double>& probabilities) {
  Scores scores;
  for (const double p : probabilities) scores.push_back(static_cast<float>(std::log(p)));
  return scores;
}

}  // namespace

TEST_CASE("temperature 0 takes the largest score; if scores are equal, the smallest id") {
  Sampler sampler({.temperature = 0});
  CHECK(sampler.draw(Scores{1, 3, -2, 3}, {}) == 1);
  CHECK(sampler.draw(Scores{-kInfinity, -5}, {}) == 1);
  CHECK(sampler.draw(Scores{0, 0, 0}, {.prompt = 3, .sample = 1, .position = 9}) == 0);
}

TEST_CASE("tokens are drawn as often as they are probable") {
  constexpr int kDraws = 20000;
  const std::vector<int> counts = counts_of({}, logs({0.5, 0.3, 0.15, 0.05}), kDraws);
  const double expected[] = {0.5, 0.3, 0.15, 0.05};
  for (size_t id = 0; id < 4; ++id) CHECK(std::abs(counts[id] / double{kDraws} - expected[id]) < 0.015);
  // At temperature 0.5, each probability is squared and then divided by the sum of the squares, 0.365. For
  // example, 0.5 becomes 0.25 / 0.365.
  const std::vector<int> cold = counts_of({.temperature = 0.5}, logs({0.5, 0.3, 0.15, 0.05}), kDraws);
  CHECK(std::abs(cold[0] / double{kDraws} - 0.25 / 0.365) < 0.015);
  CHECK(std::abs(cold[1] / double{kDraws} - 0.09 / 0.365) < 0.015);
}

TEST_CASE("top_k and top_p leave the most probable tokens") {
  const Scores scores = logs({0.05, 0.5, 0.15, 0.3});
  CHECK(ids_of({.top_k = 2}, scores) == std::set<size_t>{1, 3});
  CHECK(ids_of({.top_k = 9}, scores) == std::set<size_t>{0, 1, 2, 3});
  CHECK(ids_of({.top_p = 0.75}, scores) == std::set<size_t>{1, 3});
  CHECK(ids_of({.top_p = 0.85}, scores) == std::set<size_t>{1, 2, 3});
  CHECK(ids_of({.top_p = 1e-300}, scores) == std::set<size_t>{1});
  // If scores are equal, smaller ids come first.
  CHECK(ids_of({.top_k = 2}, Scores{0, 0, 0, 0}) == std::set<size_t>{0, 1});
  CHECK(ids_of({.top_p = 0.6}, Scores{0, 0, 0, 0}) == std::set<size_t>{0, 1, 2});
}

TEST_CASE("the order is temperature, top_k, top_p") {
  const Scores scores = logs({0.4, 0.3, 0.2, 0.1});
  // top_k leaves three tokens, of which the first two have 0.7 / 0.9 of the probability. Without top_k, these
  // two have only 0.7 of the probability.
  CHECK(ids_of({.top_k = 3, .top_p = 0.75}, scores) == std::set<size_t>{0, 1});
  CHECK(ids_of({.top_p = 0.75}, scores) == std::set<size_t>{0, 1, 2});
  // At temperature 0.25, the first token has 0.72 of the probability.
  CHECK(ids_of({.temperature = 0.25, .top_p = 0.7}, scores) == std::set<size_t>{0});
  CHECK(ids_of({.top_p = 0.7}, scores).size() > 1);
}

TEST_CASE("a drawn token depends only on the seed and its place") {
  const Scores scores(50, 0.0f);
  const auto draw = [&](uint64_t seed, const TokenPlace& place) {
    Sampler sampler({.seed = seed});
    return sampler.draw(scores, place);
  };
  Sampler all({.seed = 4});
  std::vector<int32_t> first, second, other_seed, other_prompt, other_sample;
  for (uint64_t i = 0; i < 40; ++i) {
    first.push_back(all.draw(scores, {1, 2, i}));
    all.draw(scores, {7, 7, i});  // draws for another text in between
    second.push_back(draw(4, {1, 2, i}));
    other_seed.push_back(draw(5, {1, 2, i}));
    other_prompt.push_back(draw(4, {2, 2, i}));
    other_sample.push_back(draw(4, {1, 3, i}));
  }
  CHECK(first == second);
  CHECK(first != other_seed);
  CHECK(first != other_prompt);
  CHECK(first != other_sample);
  CHECK(other_prompt != other_sample);
}

TEST_CASE("scores that are not finite") {
  Sampler sampler({});
  CHECK(ids_of({}, Scores{-kInfinity, 1, -kInfinity, 1}) == std::set<size_t>{1, 3});
  CHECK_THROWS_WITH_AS(sampler.draw(Scores{0, NAN}, {}),
                       "the model's output is not finite (NaN or infinity), so no token can be drawn from it",
                       Error);
  CHECK_THROWS_AS(sampler.draw(Scores{0, kInfinity}, {}), Error);
  CHECK_THROWS_AS(sampler.draw(Scores{-kInfinity, -kInfinity}, {}), Error);
}

}  // namespace dtrain::test
