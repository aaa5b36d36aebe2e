// Loads a language model onto its devices, to predict the next tokens of texts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/world.h"
#include "engine/engine.h"
#include "generate/language_model.h"
#include "generate/next_token.h"
#include "train/saved_run.h"

namespace dtrain {

class Decoder {
 public:
  /// Puts the run's model on the devices of its strategy, for at most `most_texts` texts at the same time.
  /// With `uses_cache`, the keys and values of earlier positions are cached (StepScores) if the model and the
  /// strategy allow it. Throws UserError if a weight is missing or there is too little memory. Keeps
  /// references to `model` and `world`.
  Decoder(const SavedRun& run, const LanguageModel& model, bool uses_cache, int64_t most_texts, World& world);

  NextToken& next() { return *next_; }
  /// Returns the number of texts in each call of next().scores(). If a layer cannot compute one position at a
  /// time, the bits of its results may depend on the other texts in the batch, so each replica then computes
  /// only one text.
  int64_t texts() const { return texts_; }
  /// Returns the reason why nothing is cached, so that the whole window is computed again for each token; ""
  /// if the keys and values of earlier positions are cached.
  const std::string& why_no_cache() const { return why_no_cache_; }
  /// Returns the warnings of the plan, one line for each.
  const std::vector<std::string>& warnings() const { return plan_.warnings; }

 private:
  RunPlan make_plan(const RunConfig& config, bool uses_cache, World& world);

  std::string why_no_cache_;
  bool has_steps_ = false;  // whether all layers compute position by position
  RunPlan plan_;
  int64_t texts_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<NextToken> next_;
};

}  // namespace dtrain
