// The models that `dtrain diff` compares.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "interop/keras/import/import.h"
#include "interop/weight_file.h"
#include "train/saved_run.h"

namespace dtrain {

/// One of the two compared models.
struct ComparedModel {
  std::string path;  ///< path of the model's file
  WeightFile file;
  std::optional<KerasImport> imported;  ///< set by match_names()

  std::vector<ArrayRef> weights() const;
};

/// Opens a model: the file that the user gave, or the checkpoint of a run. Calls `warn` for damaged
/// checkpoints. Throws UserError if the model cannot be opened.
ComparedModel load_compared_model(const std::string& given,
                                  const std::function<void(const std::string&)>& warn);

/// Converts the weights of `model` to the layout of `other` if `other` has the weight names and the axis
/// order of a tool other than dtrain. `model` must then be a checkpoint: it is replaced by the exported
/// model, and the run that owns the weights is returned. Returns null if nothing was converted.
std::unique_ptr<SavedRun> match_layout(ComparedModel& model, const ComparedModel& other);

/// If `model` is a Keras model and `other` is a checkpoint whose weights have different names, imports the
/// model and gives its weights the names that `dtrain import` would give them. However, the weights keep
/// their names from the file if those names match the checkpoint at least as well, or if dtrain cannot import
/// the model.
void match_names(ComparedModel& model, const ComparedModel& other);

}  // namespace dtrain
