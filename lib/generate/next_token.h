// Scores of the tokens that may follow texts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "generate/language_model.h"

namespace dtrain {

/// Computes scores for a batch of texts. The scores of a text depend on its own tokens only.
class NextToken {
 public:
  virtual ~NextToken() = default;
  /// `texts`: the tokens of each text, at least one. The number of texts is the same in each call; a text may
  /// have more tokens than in the previous call. The model sees the tokens from window_begin() on. Returns
  /// logits, [texts, LanguageModel::columns], valid until the next call.
  virtual std::span<const float> scores(std::span<const std::vector<int32_t>> texts) = 0;
};

/// Runs the whole window through the model for each token. Positions after a text contain token 0.
class WindowScores final : public NextToken {
 public:
  /// `engine`: allocated for predictions of `texts` texts. Keeps references to `model` and `engine`.
  WindowScores(const LanguageModel& model, Engine& engine, int64_t texts);

  std::span<const float> scores(std::span<const std::vector<int32_t>> texts) override;

 private:
  const LanguageModel& model_;
  Engine& engine_;
  std::vector<int32_t> windows_;       // [texts, positions]
  std::vector<float> outputs_, last_;  // [texts, positions, columns], [texts, columns]
};

}  // namespace dtrain
