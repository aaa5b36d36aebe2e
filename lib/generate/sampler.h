// Draws tokens from the scores of a language model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"

namespace dtrain {

/// Options in the order in which they are applied.
struct SamplingOptions {
  /// The scores are divided by the temperature: a low temperature favors probable tokens. At 0, the token
  /// with the largest score is always chosen.
  double temperature = 1;
  // Tokens are drawn only from the top_k tokens with the largest scores (top_k >= 1); nullopt: from all
  // tokens.
  std::optional<int64_t> top_k = {};
  /// A token is drawn only from the smallest set of the most probable tokens whose probabilities sum to at
  /// least this number; in (0, 1].
  double top_p = 1;
  uint64_t seed = 0;
};

/// Identifies a token of a generated text. The random number for the token depends only on the seed and on
/// these numbers, but not on the other texts.
struct TokenPlace {
  uint32_t prompt = 0, sample = 0;
  uint64_t position = 0;  // position in the generated text, from 0
};

/// Draws tokens one after the other. Not thread-safe.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  /// Returns the id of the next token. `scores`: logits, indexed by token id; -inf for a token that is never
  /// drawn. With `top_k` and `top_p`, and at temperature 0, tokens with smaller ids are preferred among
  /// tokens with equal scores. Throws Error if a score is NaN or +inf, or if all are -inf.
  int32_t draw(std::span<const float> scores, const TokenPlace& place);

 private:
  struct Candidate {
    int32_t id;
    float score;
    double weight;  // exp((score - largest score) / temperature)
  };

  void keep_most_probable();

  SamplingOptions options_;
  Philox random_;
  std::vector<Candidate> candidates_;  // candidates for the current token
};

}  // namespace dtrain
