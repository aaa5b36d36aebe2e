// A trained model as a safetensors file, with the script that makes a PyTorch module of it.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"

namespace dtrain {

enum class TensorLayout { pytorch, keras };

/// Writes the weights to `path`, in PyTorch's layout ("conv2d.weight", filters first) or as they are
/// ("conv2d/kernel"). PyTorch's gets two files beside it: NAME_load.py, which builds the module (with _ for
/// characters of NAME that Python does not import), and
/// NAME_probes.safetensors, by which the script checks it. Shared weights are there once. Each file appears
/// whole or not at all, the weights last. Gives their names. Throws UserError for a layer that PyTorch does
/// not have, and for a NAME_load.py that dtrain has not written; Error where a file cannot be written.
std::vector<std::string> export_safetensors(const ExportedModel& model, TensorLayout layout,
                                            const std::string& path);

}  // namespace dtrain
