#include "estimate/step_time.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "engine/engine.h"
#include "run/learning_rate.h"
#include "train/trainer.h"

namespace dtrain {

StepTime measure_steps(const RunPlan& plan, double most_seconds) {
  const RunConfig& config = plan.config;
  using Clock = std::chrono::steady_clock;
  // On a GPU, the third step is the first one that replays a captured graph. The median omits the earlier
  // steps if the epoch has more than two steps.
  constexpr size_t kWarm = 2, kLeast = 3;
  const auto loader = open_loader(config, *config.dataset.train, config.dataset.shuffle, true);
  Engine engine(plan);
  engine.memory().set_data({.most_samples = loader->samples(),
                            .read_ahead = loader->read_ahead_memory(),
                            .lengths = loader->lengths() ? loader->lengths()->cut() : std::set<int64_t>()});
  engine.allocate(Plan::Purpose::training, config.train.batch_size);
  engine.initialize();
  loader->begin(0, 0);
  const RunLength length = run_length(config, loader->steps_per_epoch());
  std::vector<double> seconds;
  const Clock::time_point start = Clock::now();
  for (Clock::time_point last = start; const auto batch = loader->next();) {
    const auto step = static_cast<int64_t>(seconds.size());
    engine.launch(*batch, step, config.train.optimizer->learning_rate().at(step, length, Json()));
    while (engine.pending() > engine.most_pending()) engine.finish();
    const auto now = Clock::now();
    seconds.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
    // The processes agree on when to stop, so that all of them run the same number of steps.
    if (seconds.size() >= kWarm + kLeast &&
        plan.world.any(now - start > std::chrono::duration<double>(most_seconds)))
      break;
  }
  while (engine.pending() > 0) engine.finish();
  const size_t warm = std::min(kWarm, seconds.size() - 1);
  const auto middle = seconds.begin() + static_cast<ptrdiff_t>(warm + (seconds.size() - warm) / 2);
  std::nth_element(seconds.begin() + static_cast<ptrdiff_t>(warm), middle, seconds.end());
  return {*middle, static_cast<int64_t>(seconds.size() - warm)};
}

}  // namespace dtrain
