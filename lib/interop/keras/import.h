// `dtrain import`: from a model file of Keras's to a configuration's model and its weights.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "data/files/mapped_file.h"
#include "interop/keras/import_training.h"
#include "interop/keras/weights.h"
#include "nn/graph.h"

namespace dtrain {

/// A model file, translated.
struct KerasImport {
  std::string name;           ///< of the model; "" if the file has none
  std::string keras_version;  ///< "" if the file does not say
  ConfigNode model;           ///< the `model:` part of a configuration, with the user's changes
  Graph graph;
  std::map<std::string, KerasWeight> parameters;  ///< by "<layer>/<weight>", in Keras 3's layout
  KerasWeights weights;
  std::vector<std::string> blocks;  ///< see FoldedModel::uses
  /// An .h5 file whose arrays are in the mapped memory: to be checked once they were read; null for others.
  std::shared_ptr<const MappedFile> mapped;
  std::vector<int> towers;                   ///< of wrappers that were removed (towers.h)
  std::vector<std::string> left_out;         ///< see ImportedModel
  Json training_config;                      ///< as KerasFileFacts
  std::optional<ImportedTraining> training;  ///< if it was asked for
};

/// Reads and translates a file, its training too if `with_training`. `change` gets the model as imported, and
/// returns it with the user's changes. Throws UserError, with the path, for files of other programs or of
/// weights alone, and with everything that dtrain cannot express.
KerasImport import_keras(const std::string& path, bool with_training,
                         const std::function<ConfigNode(const ConfigNode&)>& change);

}  // namespace dtrain
