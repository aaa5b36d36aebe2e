#include "saved_model.h"

#include <fmt/format.h>

#include "console.h"
#include "text.h"

namespace dtrain {

namespace {

/// Of a run that went on behind its best, as one that early stopping ends does.
void note_that_another_is_best(const SavedRun& run) {
  const TrainingState state = saved_state(run.checkpoint);
  if (!run.directory || !state.best || state.best->step == state.step ||
      !run.directory->has_checkpoint(state.best->step))
    return;
  print_note(fmt::format(
      "this is the newest checkpoint, of step {}; the best one, of step {} ({} {}), is --best", state.step,
      state.best->step, run.config.checkpoint.best->monitor, format_value(state.best->value)));
}

}  // namespace

SavedRun load_saved_model(const std::string& path, const std::vector<std::string>& sets, bool best) {
  SavedRun run = load_saved_run(path, sets, print_warning, best ? Which::best : Which::newest);
  if (!best && run.config.checkpoint.best) note_that_another_is_best(run);
  return run;
}

}  // namespace dtrain
