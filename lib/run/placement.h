// Whether a run can be laid on this machine: its devices, and what they can take.
#pragma once

#include "config/diagnostics.h"
#include "distribute/strategy.h"
#include "run/run_config.h"

namespace dtrain {

/// What the run's strategy says for this machine. Throws UserError with everything that this machine cannot
/// do, each at its place: devices that are not there, a precision that they do not have, shares of the batch
/// whose arrays are larger than any may be (kMostArrayElements).
Placement place_replicas(const RunConfig& config);
/// The same; reports, and places no replica where a device is missing. Takes a configuration of which the
/// strategy, and of the model as much as is known, could be read.
Placement place_replicas(const RunConfig& config, Diagnostics& diagnostics);

/// What place_replicas() warns of: GPUs that `auto` leaves out, for instance. Lines of
/// Diagnostics::warnings().
std::vector<std::string> placement_warnings(const RunConfig& config);

/// What the strategy lays over devices, as far as the configuration tells.
Workload workload_of(const RunConfig& config);

/// Makes the choices that the strategy leaves to the place where it runs, and writes them and the places that
/// layers name for themselves into the strategy's options, so that config.yaml says them and the model is
/// free of hardware. Of a run that place_replicas() takes. Changes nothing a second time. A pipeline's
/// `stages: auto` measures the layers on the devices, which takes seconds.
void settle_strategy(RunConfig& config);
/// Takes over the choices of the run that goes on, which are in its strategy (of its configuration,
/// {kind: options}), where `config` asks for the same and leaves them open.
void keep_choices(RunConfig& config, const ConfigNode& saved_strategy);

/// What training takes beside devices: a split to train on.
void check_train_split(const RunConfig& config, Diagnostics& diagnostics);
/// place_replicas for a run that is to be trained, whose strategy is settled by that.
Placement place_for_training(RunConfig& config);

}  // namespace dtrain
