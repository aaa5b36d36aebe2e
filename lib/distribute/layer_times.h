// How long each layer of a graph takes in training.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "nn/graph.h"
#include "ops/ops.h"

namespace dtrain {

/// How fast a device is. A layer is estimated as the sum of its multiply-adds over `multiply_adds`, of the
/// bytes that it reads and writes over `bytes`, and of `call`.
struct DeviceSpeed {
  double multiply_adds = 0;  // a second
  double bytes = 0;          // a second, read and written
  double call = 0;           // seconds that the shortest call takes
  double link = 0;           // bytes a second, copied to another such device
};
/// Of a typical GPU; of one core of a typical CPU. In float32.
DeviceSpeed typical_speed(DeviceId::Kind kind);

/// Seconds of forward and backward of each node for a batch of samples; 0 for the model's inputs, and for
/// activations that the layer before computes. By arithmetic: the multiply-adds and bytes that the shapes of
/// the layer's parameters, inputs and outputs tell of. What a layer computes without parameters counts by its
/// bytes only.
std::vector<double> estimate_layer_seconds(const Graph& graph, int64_t batch, const DeviceSpeed& speed);

/// The same, of a dry run of each layer by itself: once to warm up, then the best of a few runs, all in about
/// `most_seconds` (no less than two runs of each). Layers that are alike are run once. What only gives its
/// input another shape takes no time. The memory that it takes at a time is that of one layer. `ops` are of
/// the calling thread, which is attached to their context. Throws Unsupported.
std::vector<double> measure_layer_seconds(const Graph& graph, int64_t batch, Ops& ops,
                                          double most_seconds = 1.5);

}  // namespace dtrain
