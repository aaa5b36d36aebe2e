#include "generate/decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "generate/step_model.h"

namespace dtrain {

Decoder::Decoder(const SavedRun& run, const LanguageModel& model, bool uses_cache, int64_t most_texts,
                 World& world)
    : plan_(make_plan(run.config, uses_cache, world)),
      texts_(has_steps_ ? most_texts
                        : std::min(most_texts, static_cast<int64_t>(plan_.placement.replicas.size()))) {
  plan_.independent_rows = true;
  engine_ = engine_for_inference(plan_, run.checkpoint, Plan::Purpose::prediction, texts_,
                                 DataMemory{.most_samples = texts_});
  if (why_no_cache_.empty())
    next_ = std::make_unique<StepScores>(model, *engine_, texts_);
  else
    next_ = std::make_unique<WindowScores>(model, *engine_, texts_);
}

RunPlan Decoder::make_plan(const RunConfig& config, bool uses_cache, World& world) {
  std::optional<RunConfig> step = step_config(config, why_no_cache_);
  has_steps_ = step.has_value();
  if (!uses_cache) why_no_cache_ = "--no-cache was given";
  if (step && uses_cache) {
    RunPlan steps = plan_run(std::move(*step), world);
    if (steps.placement.replicas.at(0).size() == 1) return steps;
    why_no_cache_ = "the model is spread over several devices";
  }
  return plan_run(config, world);
}

}  // namespace dtrain
