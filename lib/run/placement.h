// Places a run on this machine's devices and checks that they support it.
#pragma once

#include "config/diagnostics.h"
#include "distribute/strategy.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the placement by the run's strategy. Throws UserError that lists, each with its location,
/// everything that this machine does not support: missing devices, unsupported precision, and batches per
/// replica whose arrays exceed kMostArrayElements.
Placement place_replicas(const RunConfig& config);
/// The same, but reports to `diagnostics`; the result has no replicas if a device is missing. The strategy
/// must have been parsed; the model may be incomplete.
Placement place_replicas(const RunConfig& config, Diagnostics& diagnostics);

/// Returns the warnings of place_replicas(), such as about GPUs that `auto` leaves out, as lines of
/// Diagnostics::warnings().
std::vector<std::string> placement_warnings(const RunConfig& config);

/// Returns the workload that the strategy places, as far as the configuration specifies it.
Workload workload_of(const RunConfig& config);

/// Resolves the strategy's automatic options. Writes them and the layers' `device:` options into the
/// strategy's options, so that config.yaml records them and the model is independent of hardware. The run
/// must be accepted by place_replicas(). A second call changes nothing. A pipeline's `stages: auto` measures
/// the layers on the devices, which takes seconds.
void settle_strategy(RunConfig& config);
/// Reuses the resolved options of a run that is resumed, if `config` has the same strategy with the same
/// other options and leaves these open. `saved_strategy`: the strategy in that run's configuration, {kind:
/// options}.
void keep_choices(RunConfig& config, const ConfigNode& saved_strategy);

/// Reports an error if there is no training split.
void check_train_split(const RunConfig& config, Diagnostics& diagnostics);
/// Places a run for training: checks it like place_replicas() and resolves its strategy.
Placement place_for_training(RunConfig& config);

}  // namespace dtrain
