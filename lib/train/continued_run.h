// Runs that continue from a checkpoint: their configuration and the checkpoints in their directory.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "run/record/run_directory.h"
#include "run/run_config.h"
#include "train/observer.h"
#include "train/trainer.h"

namespace dtrain {

/// Returns the configuration of a run that continues from a checkpoint. The facts of the training split are
/// those in the checkpoint. Automatic options of the strategy get the values that were chosen in the
/// checkpoint's run (keep_choices()).
RunConfig config_to_continue(RunConfig config, const Checkpoint& checkpoint);

/// Sets aside the checkpoints in the directory that are newer than `step`, from which the run continues.
void set_newer_aside(const RunDirectory& directory, int64_t step, Observer& observer);

/// Copies the checkpoint from which a run resumes to the directory of the run, and also the best checkpoint
/// so far, which is in the same folder as `resumed`. Does not copy checkpoints that the directory already
/// has. If the best checkpoint cannot be read, the trainer forgets the best epoch. `trainer`: must have been
/// restored from `resumed`.
void bring_checkpoints(const RunDirectory& directory, const Checkpoint& resumed, Trainer& trainer,
                       Observer& observer);

/// If nothing is left to train, returns a message with the reason and with advice on how to continue;
/// otherwise "".
std::string explain_end(const TrainingState& state, const RunConfig& config);

}  // namespace dtrain
