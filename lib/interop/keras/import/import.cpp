#include "interop/keras/import/import.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/keras/files/open_file.h"
#include "interop/keras/import/fold_blocks.h"
#include "interop/keras/import/graph.h"
#include "interop/keras/import/towers.h"
#include "interop/keras/import/weights.h"

namespace dtrain {

namespace {

bool has_convolution(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const GraphNode& node) { return node.kind.starts_with("conv"); });
}

/// Returns the major version of Keras that wrote a file. `version`: the version in the file; empty if the
/// file does not contain a version, like .h5 files of the first versions of Keras 1.
int major_version(const std::string& version, KerasLayout layout) {
  int major = layout == KerasLayout::layers ? 1 : 3;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

/// Replaces the name of the layer in the path "<layer>/<weight>" by its new name, if it has one. The names of
/// layers and weights may contain slashes: "block/attention/query/kernel".
std::string renamed_path(const std::string& path, const std::map<std::string, std::string>& names) {
  for (size_t end = path.size(); end > 0 && (end = path.rfind('/', end - 1)) != std::string::npos;)
    if (const auto name = names.find(path.substr(0, end)); name != names.end())
      return name->second + path.substr(end);
  return path;
}

/// Replaces the names of renamed layers in the keys "<layer>/<weight>".
template <class Value>
void rename_layers(std::map<std::string, Value>& by_path, const std::map<std::string, std::string>& names) {
  std::map<std::string, Value> renamed;
  for (auto& [path, value] : by_path) renamed.emplace(renamed_path(path, names), std::move(value));
  by_path = std::move(renamed);
}

/// Folds repeated groups of layers into blocks. Also removes the names that layers would get automatically.
void use_blocks(const ConfigNode& flat_model, KerasImport& result) {
  FoldedModel folded = fold_blocks(flat_model, result.graph);
  rename_layers(result.parameters, folded.names);
  if (result.training)
    for (auto& [slot, arrays] : result.training->state.slots) rename_layers(arrays, folded.names);
  result.graph = std::move(folded.graph);
  result.blocks = std::move(folded.uses);
  result.model = without_automatic_names(folded.model, result.graph);
}

}  // namespace

KerasImport import_keras(const std::string& path, bool with_training,
                         const std::function<ConfigNode(const ConfigNode&)>& change) {
  KerasImport result;
  KerasLayout layout = KerasLayout::none;
  Json model_config;
  KernelLayout kernels;
  {
    const OpenKerasFile file(path);
    layout = file.layout();
    model_config = file.facts().model_config;
    result.training_config = file.facts().training_config;
    result.keras_version = file.facts().keras_version;
    if (model_config.is_null())
      throw UserError(fmt::format(
          "{0}: expected a whole model, but the file contains only weights; write a configuration for the "
          "model, and load the weights into it with `model: {{weights: {{from: {0}}}}}`",
          path));
    if (!file.image().data) result.mapped = std::make_shared<MappedFile>(path);
    result.weights = read_keras_weights(file, result.mapped);
    kernels.is_flipped = file.facts().backend == "theano";
  }
  const int keras_major = major_version(result.keras_version, layout);
  kernels.is_keras_1 = keras_major == 1;
  if (kernels.is_keras_1) model_config = with_keras_2_names(model_config);
  try {
    const std::shared_ptr<const KerasModel> file_model = parse_keras_model(model_config);
    std::shared_ptr<const KerasModel> model = file_model;
    result.towers = remove_towers(model);
    result.name = model->name;
    ImportedModel imported = import_keras_model(*model, keras_major);
    result.model = change(imported.model);
    result.graph = build_imported(imported, result.model);
    const ConfigNode flat_model = result.model;
    result.parameters = match_weights(*file_model, imported, result.graph, result.weights, layout, kernels);
    if (with_training)
      result.training = import_keras_training(
          {result.training_config, *file_model, result.weights, kernels, keras_major, result.keras_version},
          imported, result.graph);
    use_blocks(flat_model, result);
    result.left_out = std::move(imported.left_out);
    if (kernels.is_keras_1 && has_convolution(result.graph))
      result.left_out.push_back(
          "the backend: Keras 1 does not store it, and dtrain assumes TensorFlow. If it was Theano, the "
          "convolution kernels are reversed along height and width");
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", path, error.what()));
  }
  return result;
}

}  // namespace dtrain
