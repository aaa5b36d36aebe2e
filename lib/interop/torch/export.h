// Exports a trained model as a safetensors file and a script that loads it as a PyTorch module.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"

namespace dtrain {

enum class TensorLayout { pytorch, keras };

/// Writes the weights to `path`, in PyTorch's layout ("conv2d.weight", filters first) or in Keras's
/// ("conv2d/kernel"). For PyTorch's layout, also writes NAME_load.py, which builds the module (characters of
/// NAME that Python cannot import become _), and NAME_probes.safetensors, with which the script checks the
/// module. Shared weights are stored once. Each file appears complete or not at all, the weights last.
/// Returns the names of the files. Throws UserError for a layer that PyTorch lacks, and if a NAME_load.py
/// exists that dtrain did not write; Error if a file cannot be written.
std::vector<std::string> export_safetensors(const ExportedModel& model, TensorLayout layout,
                                            const std::string& path);

}  // namespace dtrain
