// Options for TensorBoard files.
#pragma once

#include <cstdint>

#include "config/codec.h"

namespace dtrain {

/// Keras's update_freq: "epoch" (0 steps), "batch" (every step), or a number of steps.
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

/// The additional data to write. The metrics of each epoch are always written.
struct TensorboardOptions {
  UpdateFrequency update_freq;  // how often values per step are written
  int64_t histogram_freq = 0;   // epochs between histograms of the weights; 0: none
  bool write_grads = false;     // also write histograms of the gradients
  bool write_graph = true;
  int64_t input_images = 0;  // number of training samples that are written as images before the first step

  bool wants_histograms(int64_t epoch) const { return histogram_freq > 0 && epoch % histogram_freq == 0; }
};

}  // namespace dtrain
