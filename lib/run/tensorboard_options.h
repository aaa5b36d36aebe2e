// What of a run is written for TensorBoard.
#pragma once

#include <cstdint>

#include "config/codec.h"

namespace dtrain {

/// Keras's update_freq: "epoch" (0 steps), "batch" (every step), or every so many steps.
struct UpdateFrequency {
  int64_t steps = 0;
};

template <>
struct Codec<UpdateFrequency> {
  static bool parse(const ConfigNode& node, const std::string& where, UpdateFrequency& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const UpdateFrequency& value);
  static Json schema();
};

/// Each epoch's numbers are written always.
struct TensorboardOptions {
  UpdateFrequency update_freq;  // of what is written by step
  int64_t histogram_freq = 0;   // epochs between two histograms of the weights; 0: none
  bool write_grads = false;     // histograms of the gradients as well
  bool write_graph = true;
  int64_t input_images = 0;  // samples that are shown before the first step
};

}  // namespace dtrain
