// The computation of bidirectional: two prepared recurrent layers, whose outputs are merged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nn/layer.h"

namespace dtrain {

/// The value `none` gives the outputs of both directions, unmerged.
enum class MergeMode { concat, sum, mul, ave, none };

/// The prepared layer of one direction.
struct PreparedDirection {
  std::unique_ptr<PreparedLayer> layer;
  size_t inputs = 1;      // number of inputs: the sequences, and initial states if there are any
  size_t outputs = 1;     // number of outputs: the output, and last states if the layer returns them
  size_t parameters = 0;  // number of parameters
  int64_t units = 0;      // columns of the output
  bool flips = false;     // whether the steps of its output are reversed before it is merged
};

/// Returns the prepared layer. Its inputs are the sequences, the initial states of the first direction and
/// the initial states of the second; its outputs and parameters are in the same order. `sequences`: the
/// outputs are the states after all steps, instead of the last state.
std::unique_ptr<PreparedLayer> prepare_two_directions(const LayerRequest& request, MergeMode mode,
                                                      std::array<PreparedDirection, 2> directions,
                                                      bool sequences);

}  // namespace dtrain
