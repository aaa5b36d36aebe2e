// Training time of each layer of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "nn/graph.h"
#include "ops/ops.h"

namespace dtrain {

/// Speed of a device. The estimated time of a layer is the sum of three terms: its multiply-adds divided by
/// `multiply_adds`, the bytes that it reads and writes divided by `bytes`, and `call`.
struct DeviceSpeed {
  double multiply_adds = 0;  // multiply-adds per second
  double bytes = 0;          // bytes read and written per second
  double call = 0;           // duration of the shortest call, in seconds
  double link = 0;           // bytes per second when copying to another device of this type
};
/// Returns the float32 speed of a typical GPU, or of one core of a typical CPU.
DeviceSpeed typical_speed(DeviceId::Kind kind);

/// Estimates the time of forward and backward of each node, in seconds, for a batch of `batch` samples. The
/// time of model inputs, and of activations that the previous layer computes, is 0. The estimate is based on
/// multiply-adds and bytes, which follow from the shapes of parameters, inputs and outputs. For computation
/// without parameters, only the bytes count.
std::vector<double> estimate_layer_seconds(const Graph& graph, int64_t batch, const DeviceSpeed& speed);

/// Like estimate_layer_seconds(), but measures the times by running each layer alone: after one warm-up run,
/// takes the fastest of a few runs. The measurement takes about `most_seconds` in total, but each layer is
/// run at least twice. Of several equal layers, only one is measured. Layers that only reshape their input
/// take no time. Allocates memory for one layer at a time. `ops` must belong to the calling thread, and this
/// thread must be attached to the context of `ops`. Throws Unsupported if the device cannot compute a layer.
std::vector<double> measure_layer_seconds(const Graph& graph, int64_t batch, Ops& ops,
                                          double most_seconds = 1.5);

}  // namespace dtrain
