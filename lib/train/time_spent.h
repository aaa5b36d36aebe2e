// Time spent by a run, by category.
#pragma once

#include "base/json.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// Seconds of the trainer's thread since this process began the run. GPUs compute asynchronously; `computing`
/// is then the time spent waiting for them, and includes the update.
struct TimeSpent {
  double waiting = 0;     // for samples that are read ahead but not ready
  double copying = 0;     // copying batches to devices, including reading and converting them
  double computing = 0;   // forward and backward
  double updating = 0;    // summing gradients over the replicas, and running the optimizer
  double validating = 0;  // evaluating the validation split, including its reading
  double saving = 0;      // waiting for checkpoints to be written
  double total = 0;       // wall time, including time outside every category
  ReadSeconds reading;    // separate: total time of all threads that read ahead

  Json to_json() const {
    return Json::object()
        .set("waiting", waiting)
        .set("copying", copying)
        .set("computing", computing)
        .set("updating", updating)
        .set("validating", validating)
        .set("saving", saving)
        .set("total", total)
        .set("reading", Json::object()
                            .set("files", reading.files)
                            .set("decoding", reading.decoding)
                            .set("rest", reading.rest));
  }
};

}  // namespace dtrain
