// Detects launchers that start one command as several tasks: mpirun, srun, torchrun.
#pragma once

namespace dtrain {

/// Throws UserError if a launcher started this process as one of several tasks: a run is one process, so each
/// task would train the whole run.
void reject_several_tasks();

}  // namespace dtrain
