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
  ParameterTraining training;
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
  /// Of a node that shares another's parameters: the other's.
  const ParameterSlice& slice(int node, int index) const;
  /// How many nodes have this node's parameters, itself included.
  int users(int node) const { return users_[static_cast<size_t>(owner_[static_cast<size_t>(node)])]; }
  int64_t trained() const { return trained_; }              // floats with optimizer slots
  int64_t with_gradient() const { return with_gradient_; }  // trained and statistics
  int64_t size() const { return size_; }

 private:
  std::vector<ParameterSlice> slices_;
  // By node:
  std::vector<int> first_slice_;
  std::vector<int> owner_;  // of its parameters
  std::vector<int> users_;
  int64_t trained_ = 0, with_gradient_ = 0, size_ = 0;
};

/// Fills `values` (host memory, slice.elements() floats) by the parameter's initializer. Its random numbers
/// depend on the seed and its name only.
void initialize_parameter(const Graph& graph, const ParameterSlice& slice, uint64_t seed, float* values);
/// All parameters: layout.size() floats, zeros between the parameters.
void initialize(const Graph& graph, const ParameterLayout& layout, uint64_t seed, float* values);

/// A number for a name, for random streams: FNV-1a of 32 bits.
uint32_t stream_of(std::string_view name);

}  // namespace dtrain
