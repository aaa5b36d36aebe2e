// Programs that start one command as several tasks: mpirun, srun, torchrun.
#pragma once

namespace dtrain {

/// Throws UserError where a launcher started this process as one of several tasks: a run is one process, and
/// each task would train the whole run by itself.
void refuse_several_tasks();

}  // namespace dtrain
