// Samples with pictures for the report: what the model says of them, and of which it is most wrong.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "data/dataset.h"
#include "engine/replicas.h"
#include "run/run_config.h"

namespace dtrain {

/// The content of samples.json but for its epoch: {split, of, samples, worst}. `samples` are spread evenly
/// over the split, `worst` are those with the largest losses among `of` samples that are. Each is {id, loss,
/// outputs:
/// [{output, target, prediction}], pictures: [PNG as a data URL]}, classes by their names. Null where no
/// input is a picture, and where `is_to_end`, which is asked before each batch, says so. The running average
/// of the weights is taken where there is one. Throws as reading samples does.
Json show_samples(const RunConfig& config, Replicas& replicas, const Dataset& data, const std::string& split,
                  const std::function<bool()>& is_to_end);

}  // namespace dtrain
