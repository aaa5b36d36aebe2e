// Where a run's time goes.
#pragma once

#include "base/json.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// Seconds of the trainer's thread since this process began the run. Devices that compute by themselves
/// (GPUs) do so while the host goes on: then `computing` is what is waited for, and holds the update.
struct TimeSpent {
  double waiting = 0;     // for samples that are read ahead and were not ready
  double copying = 0;     // batches to their devices, with what is read and converted on the way
  double computing = 0;   // forward and backward
  double updating = 0;    // summing gradients over the replicas, and the optimizer
  double validating = 0;  // evaluating the validation split, all of it
  double saving = 0;      // what training waited for when checkpoints were written
  double total = 0;       // of all, and what is none of these
  ReadSeconds reading;    // beside these, of the threads that read ahead, together

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
