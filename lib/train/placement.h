// Whether a run can be laid on this machine: its devices, and what they can take.
#pragma once

#include <vector>

#include "config/diagnostics.h"
#include "train/run_config.h"

namespace dtrain {

/// The device of each of the run's replicas. Throws UserError with everything that this machine cannot do,
/// each at its place: devices that are not there, a precision that they do not have, shares of the batch
/// whose arrays are larger than any may be (kMostArrayElements).
std::vector<DeviceId> place_replicas(const RunConfig& config);
/// The same; reports, and returns an empty list where a device is missing. Takes a configuration of which the
/// strategy, and of the model as much as is known, could be read.
std::vector<DeviceId> place_replicas(const RunConfig& config, Diagnostics& diagnostics);

/// What training takes beside devices: a split to train on.
void check_train_split(const RunConfig& config, Diagnostics& diagnostics);
/// place_replicas for a run that is to be trained.
std::vector<DeviceId> place_for_training(const RunConfig& config);

}  // namespace dtrain
