// The training that a Keras file was compiled for, as the `train:` part of a configuration.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/node.h"
#include "interop/keras/import_model.h"
#include "interop/keras/weights.h"

namespace dtrain {

struct ImportedTraining {
  ConfigNode train;       ///< loss, optimizer and clipping
  int64_t iteration = 0;  ///< steps done
  /// The optimizer's slots, each an array by "<layer>/<weight>"; none if the file has no state of a kind that
  /// is read.
  std::map<std::string, std::map<std::string, KerasWeight>> slots;
  std::vector<std::string> left_out;  ///< "the metrics", "the optimizer's state, ..."
};

/// Translates Keras 2's training_config or Keras 3's compile_config. The optimizer's state is read from files
/// of Keras 3 only. Throws UserError for an optimizer, schedule or loss that dtrain cannot express, all such
/// at once. `file_model` and `graph` are those of match_weights().
ImportedTraining import_keras_training(const Json& training_config, const KerasModel& file_model,
                                       const ImportedModel& imported, const Graph& graph,
                                       const KerasWeights& weights, int keras_major);

}  // namespace dtrain
