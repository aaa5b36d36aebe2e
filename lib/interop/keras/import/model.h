// Converts a Keras model to the model section of a configuration.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/node.h"
#include "interop/keras/files/model_tree.h"

namespace dtrain {

struct ImportedModel {
  ConfigNode model;  ///< the `model:` section of a configuration, without default values
  /// Names in `model` of all Keras layers except models within the model. A layer that is called several
  /// times has the name of its first call, because this call owns the weights.
  std::map<const KerasModelLayer*, std::string> names;
  /// Layers whose options or weights depend on the order of an image's axes, if this order was changed: they
  /// have channels first in the file, but channels last in `model`.
  std::set<const KerasModelLayer*> moved_channels;
  /// Settings that were left out because they do not change predictions: "dense_1: kernel_regularizer: L2".
  std::vector<std::string> left_out;
};

/// Converts a model from which remove_towers() has removed the wrappers. Layers of nested models get names
/// such as "resnet50/conv1". Images with channels first (data_format) are permuted before image layers, and
/// permuted back before other layers. Input dimensions that the file does not specify are null in `model`.
/// Throws UserError with a list of everything that dtrain cannot express, and the names of the layers
/// concerned. `keras_major`: see KerasLayerReader.
ImportedModel import_keras_model(const KerasModel& model, int keras_major);

}  // namespace dtrain
