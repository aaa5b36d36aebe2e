// Computes the scores of the tokens that may follow a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "generate/language_model.h"

namespace dtrain {

/// Computes scores for a batch of texts. The scores of a text depend only on its own tokens; on CPUs this
/// holds bit for bit if the rows of matrix products do not depend on each other (RunPlan::independent_rows).
class NextToken {
 public:
  virtual ~NextToken() = default;
  /// Forgets the texts of earlier calls. Must be called before scores() gets other texts.
  virtual void begin() {}
  /// Returns the logits of each text's next token, [texts, LanguageModel::columns], valid until the next
  /// call. `texts`: the tokens of each text, at least one. Each call has the same number of texts; a text may
  /// have more tokens than in the previous call. The model sees the tokens from window_begin() on.
  virtual std::span<const float> scores(std::span<const std::vector<int32_t>> texts) = 0;
};

/// Runs the whole window through the model for each new token. Positions after the end of a text contain
/// token 0.
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

/// Runs only the new tokens of each text through the model, one position at a time. The model (step_config())
/// caches the keys and values of earlier positions. When the window moves, all tokens of the window are
/// computed again. The scores have the same bits as those of WindowScores if the rows of matrix products do
/// not depend on each other.
class StepScores final : public NextToken {
 public:
  /// `model`: the model of the run before step_config(). `engine`: the engine of the changed run, allocated
  /// for predictions of `texts` texts; its replicas have one device each. Keeps references to `model` and
  /// `engine`.
  StepScores(const LanguageModel& model, Engine& engine, int64_t texts);

  void begin() override;
  std::span<const float> scores(std::span<const std::vector<int32_t>> texts) override;

 private:
  /// The part of a text that the model has seen.
  struct Seen {
    int64_t begin = 0, end = 0;  // index of the window's first token, and index after its last token
  };

  const LanguageModel& model_;
  Engine& engine_;
  std::vector<Seen> seen_;                   // tokens seen in each text
  std::vector<int32_t> tokens_, positions_;  // token and position of each text in a step
  std::vector<float> outputs_;               // [texts, columns]
};

}  // namespace dtrain
