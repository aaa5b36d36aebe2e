// Converts the state of an optimizer in a Keras file to dtrain's optimizer state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interop/keras/files/weights.h"
#include "interop/keras/import/keras_1.h"
#include "interop/keras/import/model.h"
#include "nn/graph.h"
#include "optim/optimizer.h"

namespace dtrain {

/// A weight that the optimizer updates.
struct TrainedWeight {
  std::string path;  ///< "<layer>/<weight>"
  Shape shape;
  const KerasModelLayer* layer = nullptr;
};

/// Returns the trained weights in the order of Keras's trainable_variables.
std::vector<TrainedWeight> trained_weights(const KerasModel& file_model, const ImportedModel& imported,
                                           const Graph& graph);

struct OptimizerState {
  std::optional<int64_t> iteration;  ///< number of steps so far; nullopt if the file does not contain it
  /// Maps the name of an optimizer slot and the path of a weight ("<layer>/<weight>") to an array. Kernels
  /// have Keras 3's layout.
  std::map<std::string, std::map<std::string, KerasWeight>> slots;
};

/// Reads the optimizer's state. `is_since_2_11`: whether Keras 2.11 or later wrote the file; earlier versions
/// store the arrays in a different order. Returns nullopt if the file has no arrays or an unexpected number
/// of arrays. Throws UserError if an array has the wrong shape.
std::optional<OptimizerState> read_optimizer_state(const std::vector<KerasWeight>& arrays,
                                                   const Configured<Optimizer>& optimizer, bool is_since_2_11,
                                                   const std::vector<TrainedWeight>& trained,
                                                   const KernelLayout& kernels);

}  // namespace dtrain
