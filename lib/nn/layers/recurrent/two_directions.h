// The computation of the bidirectional layer: two prepared recurrent layers whose outputs are merged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nn/layer.h"

namespace dtrain {

/// How the outputs of the two directions are merged. `none`: they remain two separate outputs.
enum class MergeMode { concat, sum, mul, ave, none };

/// The prepared layer of one direction.
struct PreparedDirection {
  std::unique_ptr<PreparedLayer> layer;
  size_t inputs = 1;      // the sequences and, if there are any, the initial states
  size_t outputs = 1;     // the output and, with return_state, the last states
  size_t parameters = 0;  // number of parameters
  int64_t units = 0;      // number of columns of the output
  bool flips = false;     // whether the steps of the output are reversed before the merge
};

/// Returns the prepared bidirectional layer. Its inputs are, in this order: the sequences, the initial states
/// of the first direction, and the initial states of the second direction. In the outputs and the parameters,
/// the first direction is also before the second. If `sequences` is true, the outputs are the states after
/// all steps. Otherwise they are the last states.
std::unique_ptr<PreparedLayer> prepare_two_directions(const LayerRequest& request, MergeMode mode,
                                                      std::array<PreparedDirection, 2> directions,
                                                      bool sequences);

}  // namespace dtrain
