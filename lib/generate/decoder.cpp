#include "generate/decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "device/device.h"
#include "generate/step_model.h"
#include "train/restored_state.h"

namespace dtrain {

namespace {

/// Throws UserError if the host has too little memory for the keys and values of the texts. The engine's plan
/// does not count this memory, because the layers allocate it earlier. GPUs need no check here: CUDA reports
/// an error if the memory of a GPU is too small.
void check_cache(const Placement& placement, int64_t bytes_per_text, int64_t texts) {
  if (placement.replicas.at(0).at(0).kind == DeviceId::Kind::gpu) return;
  const HostMemory host = host_memory();
  const auto needed = static_cast<uint64_t>(bytes_per_text * texts);
  if (needed <= host.left()) return;
  throw UserError(
      fmt::format("the cached keys and values of {} need {} of memory, but only {} is available ({}); use a "
                  "smaller --batch-size, or --no-cache",
                  format_plural(texts, "text"), format_bytes(needed), format_bytes(host.left()), host.whose));
}

}  // namespace

Decoder::Decoder(const SavedRun& run, const LanguageModel& model, bool uses_cache, int64_t most_texts,
                 World& world)
    : plan_(make_plan(run.config, uses_cache, world)),
      texts_(has_steps_ ? most_texts
                        : std::min(most_texts, static_cast<int64_t>(plan_.placement.replicas.size()))) {
  plan_.independent_rows = true;
  if (why_no_cache_.empty()) check_cache(plan_.placement, kept_bytes(run.config), texts_);
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
    if (steps.placement.replicas.at(0).size() == 1) {
      steps.placement.microbatches = 1;  // the layers cache the keys and values of only one microbatch
      return steps;
    }
    why_no_cache_ = "the layers of the model are on several devices";
  }
  return plan_run(config, world);
}

}  // namespace dtrain
