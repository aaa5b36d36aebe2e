// Training time of each layer of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "nn/graph.h"
#include "ops/ops.h"

namespace dtrain {

/// Speed of a device. A layer's estimated time is the sum of its multiply-adds over `multiply_adds`, the
/// bytes that it reads and writes over `bytes`, and `call`.
struct DeviceSpeed {
  double multiply_adds = 0;  // multiply-adds per second
  double bytes = 0;          // bytes read and written per second
  double call = 0;           // seconds of the shortest call
  double link = 0;           // bytes per second of a copy to another device of this type
};
/// Returns the float32 speed of a typical GPU, or of one core of a typical CPU.
DeviceSpeed typical_speed(DeviceId::Kind kind);

/// Estimates the seconds of forward and backward of each node, for a batch of `batch` samples. The model's
/// inputs, and activations that the previous layer computes, take 0 seconds. The estimate is based on the
/// multiply-adds and bytes implied by the shapes of parameters, inputs and outputs. Computation without
/// parameters counts by its bytes only.
std::vector<double> estimate_layer_seconds(const Graph& graph, int64_t batch, const DeviceSpeed& speed);

/// Like estimate_layer_seconds(), but measures the seconds by running each layer separately: one warm-up run,
/// then the best of a few runs. Takes about `most_seconds` in total, but at least two runs per layer. Equal
/// layers are run once. Layers that only reshape their input take no time. Allocates memory for one layer at
/// a time. `ops` must belong to the calling thread, which is attached to their context. Throws Unsupported.
std::vector<double> measure_layer_seconds(const Graph& graph, int64_t batch, Ops& ops,
                                          double most_seconds = 1.5);

}  // namespace dtrain
