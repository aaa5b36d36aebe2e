// Exports a trained model as a safetensors file and a script that loads it as a PyTorch module.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"

namespace dtrain {

enum class TensorLayout { pytorch, keras };

/// Writes the weights to `path`, in PyTorch's layout ("conv2d.weight", filters first) or in Keras's layout
/// ("conv2d/kernel"). For PyTorch's layout, also writes two more files. NAME_load.py is a script that builds
/// the module; NAME is changed to a valid Python module name if necessary. NAME_probes.safetensors
/// contains the probes with which the script checks the module. Weights that several layers share are stored
/// once. Each file is written atomically, and the weights are written last. Returns the names of the files.
/// Throws UserError if PyTorch cannot express a layer, or if a NAME_load.py exists that dtrain did not write.
/// Throws Error if a file cannot be written.
std::vector<std::string> export_safetensors(const ExportedModel& model, TensorLayout layout,
                                            const std::string& path);

}  // namespace dtrain
