// Runs that continue from a checkpoint: their configuration and the checkpoints in their directory.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "run/record/run_directory.h"
#include "run/run_config.h"
#include "train/observer.h"
#include "train/trainer.h"

namespace dtrain {

/// Returns the configuration of a run that continues from a checkpoint. It has the facts of the checkpoint's
/// training split and, for options that `config` leaves open, the choices of the checkpoint's run
/// (keep_choices()).
RunConfig config_to_continue(RunConfig config, const Checkpoint& checkpoint);

/// Sets aside the checkpoints in the directory that are newer than `step`, from which the run continues.
void set_newer_aside(const RunDirectory& directory, int64_t step, Observer& observer);

/// Makes the directory of a run start with the checkpoint from which it resumed and with the best checkpoint
/// so far, which is in the same folder as `resumed`. If the best checkpoint cannot be read, the trainer
/// forgets the best value. `trainer`: restored from `resumed`.
void bring_checkpoints(const RunDirectory& directory, const Checkpoint& resumed, Trainer& trainer,
                       Observer& observer);

/// Returns a message that says why nothing is left to train, and how to continue; "" if there is something
/// left to train.
std::string explain_end(const TrainingState& state, const RunConfig& config);

}  // namespace dtrain
