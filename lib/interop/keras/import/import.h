// `dtrain import`: converts a Keras model file to a model configuration and weights.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "data/files/mapped_file.h"
#include "interop/keras/files/weights.h"
#include "interop/keras/import/training.h"
#include "nn/graph.h"

namespace dtrain {

/// The result of importing a model file.
struct KerasImport {
  std::string name;           ///< the model's name; "" if the file has none
  std::string keras_version;  ///< "" if the file has none
  ConfigNode model;           ///< the `model:` part of a configuration, with the user's changes
  Graph graph;
  std::map<std::string, KerasWeight> parameters;  ///< indexed by "<layer>/<weight>", in Keras 3's layout
  KerasWeights weights;
  std::vector<std::string> blocks;  ///< see FoldedModel::uses
  /// The mapped .h5 file that arrays refer to; call check() after reading them. Null for other files.
  std::shared_ptr<const MappedFile> mapped;
  std::vector<int> towers;                   ///< numbers of towers of the removed wrappers (towers.h)
  std::vector<std::string> left_out;         ///< see ImportedModel
  Json training_config;                      ///< see KerasFileFacts
  std::optional<ImportedTraining> training;  ///< nullopt unless `with_training`
};

/// Reads and converts a file; also its training if `with_training`. `change` receives the imported model and
/// returns it with the user's changes. Throws UserError with the path for files of other programs, for files
/// that have only weights, and for models that dtrain cannot express; it lists everything that cannot be
/// expressed.
KerasImport import_keras(const std::string& path, bool with_training,
                         const std::function<ConfigNode(const ConfigNode&)>& change);

}  // namespace dtrain
