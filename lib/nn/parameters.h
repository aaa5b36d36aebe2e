// All parameters of a model in one flat buffer, and where each lies in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "nn/graph.h"

namespace dtrain {

/// One parameter's place. Offsets and sizes count floats.
struct ParameterSlice {
  int node = 0;   // of the graph
  int index = 0;  // among the node's parameters
  std::string layer, name;
  Shape shape;
  int64_t offset = 0;
  std::optional<float> moving_average;
  int64_t elements() const { return shape.elements(); }
};

/// The layout: [trained, in reverse order of execution | statistics | frozen], every slice aligned to 16
/// floats, the gaps zero. In this order the gradients that backward finishes first come first, so that a
/// prefix can be reduced early, and the optimizer is one call over [0, trained).
class ParameterLayout {
 public:
  explicit ParameterLayout(const Graph& graph);

  /// In the order of the graph: by node, then as the layer declares them.
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  const ParameterSlice& slice(int node, int index) const;
  int64_t trained() const { return trained_; }              // floats with optimizer slots
  int64_t with_gradient() const { return with_gradient_; }  // trained and statistics
  int64_t size() const { return size_; }

 private:
  std::vector<ParameterSlice> slices_;
  std::vector<int> first_slice_;  // by node
  int64_t trained_ = 0, with_gradient_ = 0, size_ = 0;
};

/// Fills `values` (host memory, layout.size() floats) by the graph's initializers: each parameter's random
/// numbers depend on the seed and its name only.
void initialize(const Graph& graph, const ParameterLayout& layout, uint64_t seed, float* values);

/// A number for a name, for random streams: FNV-1a of 32 bits.
uint32_t stream_of(std::string_view name);

}  // namespace dtrain
