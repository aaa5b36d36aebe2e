#include "report/compared_model.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "checkpoint/foreign_file.h"
#include "train/exported_run.h"

namespace dtrain {

namespace {

/// Returns the weights of an imported model, with the names that the weights have in dtrain.
std::vector<ArrayRef> weights_of(const KerasImport& imported) {
  std::vector<ArrayRef> weights;
  for (const auto& [name, array] : imported.parameters)
    weights.push_back({name, array.shape, DType::float32, array.values.get()});
  return weights;
}

/// Returns how many arrays of `a` have the name of an array of `b`.
int64_t count_common(const std::vector<ArrayRef>& a, const std::vector<ArrayRef>& b) {
  std::set<std::string_view> names;
  for (const ArrayRef& array : b) names.insert(array.name);
  return std::count_if(a.begin(), a.end(), [&](const ArrayRef& array) { return names.contains(array.name); });
}

}  // namespace

std::vector<ArrayRef> ComparedModel::weights() const {
  return imported ? weights_of(*imported) : file.weights();
}

ComparedModel load_compared_model(const std::string& given,
                                  const std::function<void(const std::string&)>& warn) {
  if (file_type(given) == FileType::nothing)
    throw UserError(fmt::format(
        "{}: expected a checkpoint, a run, a model file or a step log, but there is no such file or folder",
        given));
  ComparedModel model;
  open_best_checkpoint(given, warn, [&](const std::string& file) {
    model.path = file;
    model.file = WeightFile::load(file);
  });
  return model;
}

std::unique_ptr<SavedRun> match_layout(ComparedModel& model, const ComparedModel& other) {
  if (model.file.layout() == other.file.layout() || other.file.layout() == WeightLayout::keras)
    return nullptr;
  if (!model.file.checkpoint())
    throw UserError(fmt::format(
        "{0}: the names and the order of axes of the weights in this file differ from those in {1}; "
        "compare {1} with a run, a checkpoint or a folder written by `dtrain import` instead",
        model.path, other.path));
  // Does not open the file again, because a run in progress may have removed it.
  Checkpoint checkpoint = model.file.checkpoint()->reopened();
  RunConfig config = saved_config(checkpoint, {});
  auto run = std::make_unique<SavedRun>(
      SavedRun{std::move(checkpoint), std::move(config), RunDirectory::around(model.path)});
  model.file = WeightFile::of_model(exported_run(*run, {}).model, other.file.layout());
  return run;
}

void match_names(ComparedModel& model, const ComparedModel& other) {
  const bool is_keras =
      !model.file.checkpoint() && (begins_as_hdf5(model.path) || is_keras_archive(model.path));
  if (!is_keras || !other.file.checkpoint()) return;
  const std::vector<ArrayRef>& wanted = other.file.weights();
  const int64_t common = count_common(wanted, model.file.weights());
  if (common == static_cast<int64_t>(wanted.size())) return;
  try {
    KerasImport imported = import_keras(model.path, false, [](const ConfigNode& config) { return config; });
    if (count_common(wanted, weights_of(imported)) > common) model.imported = std::move(imported);
  } catch (const UserError&) {  // the file contains only weights, or dtrain lacks one of the layers
  }
}

}  // namespace dtrain
