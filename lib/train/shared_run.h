// Sends a run from process 0 to the other processes, so that they need neither the configuration file nor a
// shared folder.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "collective/world.h"
#include "run/run_config.h"

namespace dtrain {

struct SharedRun {
  RunConfig config;                      // configuration for plan_training()
  std::string directory;                 // path of the run directory of process 0, for messages
  std::optional<Checkpoint> checkpoint;  // the checkpoint from which the run continues
};

/// Sends a checkpoint from process 0 to all other processes. Process 0 passes the checkpoint or null; the
/// other processes pass null. Returns the checkpoint of process 0 in all processes; nullopt if process 0
/// passed null.
std::optional<Checkpoint> share_checkpoint(World& world, const Checkpoint* mine);

/// Sends a run to the other processes. To be called by process 0; the others call receive_run().
void send_run(World& world, const RunConfig& config, const std::string& directory,
              const Checkpoint* checkpoint);

/// Receives the run. Throws UserError, with locations in the configuration of process 0, if this machine does
/// not support it.
SharedRun receive_run(World& world);

}  // namespace dtrain
