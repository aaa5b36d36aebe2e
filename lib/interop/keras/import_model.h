// A model of Keras's as the model of a configuration.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/node.h"
#include "interop/keras/model_tree.h"
#include "nn/graph.h"

namespace dtrain {

struct ImportedModel {
  ConfigNode model;  ///< the `model:` part of a configuration, defaults not written
  /// The names in `model` of the layers that are no models, by their place in the tree of Keras's. A layer
  /// that is called several times has the name of its first call, whose weights it has.
  std::map<const KerasModelLayer*, std::string> names;
  /// Layers whose options or weights go by the axes of images whose channels came first in the file. They are
  /// last here.
  std::set<const KerasModelLayer*> moved_channels;
  /// Settings that the model lost, which do not change its predictions: "dense_1: kernel_regularizer: L2".
  std::vector<std::string> left_out;
};

/// Translates a model that remove_towers() was applied to. Models within the model become layers with names
/// such as "resnet50/conv1". Images with channels first (data_format) are permuted where layers of images
/// read them, and permuted back where other layers do. Extents of inputs that the file leaves open stay null
/// in `model`. Throws UserError with everything that dtrain cannot express, each with the layer's place.
/// `keras_major`: as KerasLayerReader takes it.
ImportedModel import_keras_model(const KerasModel& model, int keras_major);

/// The model without the names that layers would get anyway: their kinds, numbered.
ConfigNode without_automatic_names(const ConfigNode& model, const Graph& graph);

/// Builds the graph of `model`, which is imported.model with changes of the user's. Throws UserError with all
/// mistakes: inputs with open extents, with the --set that gives them, layers that do not fit together, axes
/// that dtrain's layers do not work along.
Graph build_imported(const ImportedModel& imported, const ConfigNode& model);

}  // namespace dtrain
