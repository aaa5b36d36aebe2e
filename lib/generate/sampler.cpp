#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace dtrain {

namespace {

// Number of the random stream for sampling; no other code uses it.
constexpr uint32_t kSamplingStream = 0x746f6b65;

float largest_score(std::span<const float> scores) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float largest = -kInfinity;
  for (const float score : scores) {
    if (!(score < kInfinity))
      throw Error("the model's output is not finite (NaN or infinity), so no token can be drawn from it");
    largest = std::max(largest, score);
  }
  if (largest == -kInfinity) throw Error("the model gives no token a probability above 0");
  return largest;
}

/// Returns a double in [0, 1) with 53 random bits.
double uniform_double(const Philox::Block& words) {
  const uint64_t bits = static_cast<uint64_t>(words.v[0]) << 32 | words.v[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options)
    : options_(options), random_(Philox::of(options.seed, kSamplingStream)) {}

int32_t Sampler::draw(std::span<const float> scores, const TokenPlace& place) {
  const float largest = largest_score(scores);
  if (options_.temperature == 0)
    return static_cast<int32_t>(std::find(scores.begin(), scores.end(), largest) - scores.begin());
  candidates_.clear();
  for (size_t id = 0; id < scores.size(); ++id) {
    const double distance = static_cast<double>(scores[id]) - static_cast<double>(largest);
    candidates_.push_back({static_cast<int32_t>(id), scores[id], std::exp(distance / options_.temperature)});
  }
  if (options_.top_k || options_.top_p < 1) keep_most_probable();
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const Philox::Block words =
      random_(static_cast<uint64_t>(place.prompt) << 32 | place.sample, place.position);
  const double target = uniform_double(words) * total;
  double sum = 0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (target < sum) return candidate.id;
  }
  return candidates_.back().id;
}

/// Keeps only the candidates that top_k and then top_p select, sorted by descending probability.
void Sampler::keep_most_probable() {
  const auto most = static_cast<int64_t>(candidates_.size());
  const int64_t kept = std::min(options_.top_k.value_or(most), most);
  std::partial_sort(candidates_.begin(), candidates_.begin() + kept, candidates_.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return a.score != b.score ? a.score > b.score : a.id < b.id;
                    });
  candidates_.erase(candidates_.begin() + kept, candidates_.end());
  if (options_.top_p >= 1) return;
  double total = 0, sum = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  auto end = candidates_.begin();
  do sum += (end++)->weight;
  while (end != candidates_.end() && sum < options_.top_p * total);
  candidates_.erase(end, candidates_.end());
}

}  // namespace dtrain
