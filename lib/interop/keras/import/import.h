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
  std::string name;           ///< the model's name; "" if the file does not contain it
  std::string keras_version;  ///< "" if the file does not contain it
  ConfigNode model;           ///< the `model:` section of a configuration, including the user's changes
  Graph graph;
  std::map<std::string, KerasWeight> parameters;  ///< indexed by "<layer>/<weight>", in Keras 3's layout
  KerasWeights weights;
  std::vector<std::string> blocks;  ///< see FoldedModel::uses
  /// The mapped .h5 file whose memory the arrays refer to. Call check() after reading the arrays. Null for
  /// other files.
  std::shared_ptr<const MappedFile> mapped;
  std::vector<int> towers;            ///< number of towers in each removed multi-GPU wrapper (towers.h)
  std::vector<std::string> left_out;  ///< see ImportedModel
  Json training_config;               ///< see KerasFileFacts
  std::optional<ImportedTraining> training;  ///< nullopt unless `with_training`
};

/// Reads a model file and converts it. Also converts the training settings and the optimizer's state if
/// `with_training` is true. `change` is called with the imported model and returns the model with the user's
/// changes. Throws UserError with the path if the file is from another program, if it contains only weights,
/// or if dtrain cannot express the model. In the last case, the message lists everything that dtrain cannot
/// express.
KerasImport import_keras(const std::string& path, bool with_training,
                         const std::function<ConfigNode(const ConfigNode&)>& change);

}  // namespace dtrain
