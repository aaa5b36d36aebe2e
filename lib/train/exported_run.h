// Converts the model of a saved run to an ExportedModel, from which all export formats are written.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"
#include "train/saved_run.h"

namespace dtrain {

struct ExportRequest {
  bool are_probabilities = false;  ///< convert outputs that the loss takes as logits to probabilities
  /// Include the transforms, so that the inputs are the stored values of the data set.
  bool with_preprocessing = false;
};

struct ExportedRun {
  ExportedModel model;                ///< has pointers to the graph and the weights of the run
  std::vector<std::string> warnings;  ///< parts of the run that the exported file lacks
};

/// Returns the model with the checkpoint's weights. Outputs are those of `dtrain predict`, with targets
/// converted back to the units of the data. Probes are computed on the CPU in float32, independently of the
/// run's device and precision. Throws UserError if a weight is missing or has a different shape, or if there
/// is too little memory.
ExportedRun exported_run(const SavedRun& run, const ExportRequest& request);

}  // namespace dtrain
