// Image samples for the report: predictions, and the samples with the largest losses.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the content of samples.json except the epoch: {split, of, samples, worst}. `samples` has samples
/// that are evenly spaced over the split. `worst` has the samples with the largest losses among `of` evenly
/// spaced samples. Each sample is {id, loss, outputs: [{output, target, prediction}], pictures: [PNG as a
/// data URL]}; it contains class names instead of class indices. The predictions are made with the running
/// average of the weights if there is one. Returns null if no input of the model is an image. `should_stop`
/// is called before each batch; if it returns true, the result is null. Throws if reading samples fails.
Json show_samples(const RunConfig& config, Engine& engine, const Dataset& data, const std::string& split,
                  const std::function<bool()>& should_stop);

}  // namespace dtrain
