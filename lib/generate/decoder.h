// A language model on its devices, ready to predict next tokens.
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
  /// With `uses_cache`, keeps earlier positions (StepScores) if the model and the strategy allow it. Throws
  /// UserError if a weight is missing or there is too little memory. Keeps references to `model` and `world`.
  Decoder(const SavedRun& run, const LanguageModel& model, bool uses_cache, int64_t most_texts, World& world);

  NextToken& next() { return *next_; }
  /// Returns the number of texts that next() takes. If a layer does not compute position by position, the
  /// bits of its results may depend on the batch, so each replica computes one text at a time.
  int64_t texts() const { return texts_; }
  /// Returns why the whole window is computed for each token; "" if earlier positions are kept.
  const std::string& why_no_cache() const { return why_no_cache_; }
  /// Returns the warnings of the plan, as lines.
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
