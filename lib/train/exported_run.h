// A saved run's model as the exporters of files take it.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"
#include "train/saved_run.h"

namespace dtrain {

struct ExportRequest {
  bool are_probabilities = false;   ///< outputs that the loss takes for logits become probabilities
  bool with_preprocessing = false;  ///< inputs are as the data set stores them, before its transforms
};

struct ExportedRun {
  ExportedModel model;                ///< refers to the run
  std::vector<std::string> warnings;  ///< parts of the run that the file lacks
};

/// The model with the checkpoint's weights. Outputs are those of `dtrain predict`: targets that transforms
/// changed are in the units of the data. The probes come out of the CPU in float32, whatever the run computes
/// with. Throws UserError where a weight is missing or of another shape, or the memory is not there.
ExportedRun exported_run(const SavedRun& run, const ExportRequest& request);

}  // namespace dtrain
