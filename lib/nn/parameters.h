// The parameters of a model in flat buffers, one for each slot, and where each lies in them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/collective.h"
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
  /// "dense_1/kernel".
  std::string path() const { return layer + "/" + name; }
};

/// The layout: [trained, in reverse order of execution | statistics | frozen], every slice aligned to 16
/// floats, the gaps zero. In this order the gradients that backward finishes first come first, so that a
/// prefix can be reduced early, and the optimizer is one call over [0, trained).
class ParameterLayout {
 public:
  explicit ParameterLayout(const Graph& graph) : ParameterLayout(graph, {}, 0) {}
  /// Of the parameters of one slot. `slots`: of each node of the graph; empty where all are on slot 0.
  ParameterLayout(const Graph& graph, std::span<const int> slots, int slot);

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

/// A model's parameters by the slots that they are on: those of a node are on the node's, those that several
/// nodes share on the first one's.
class ModelLayout {
 public:
  /// `slots`: of each node of the graph; empty where all are on slot 0. `count`: of slots.
  ModelLayout(const Graph& graph, std::span<const int> slots, int count);

  /// As if all were on one slot. What has the parameters by name and range goes by this one.
  const ParameterLayout& whole() const { return whole_; }
  int slots() const { return static_cast<int>(by_slot_.size()); }
  const ParameterLayout& on(int slot) const { return by_slot_[static_cast<size_t>(slot)]; }
  /// The slot whose parameters the node uses.
  int owner_slot(int node) const { return owner_slots_[static_cast<size_t>(node)]; }

  /// Where a part of an array of the whole layout lies: on a slot, in a part of the slot's own layout.
  struct Piece {
    int slot = 0;
    Range on_slot;
    int64_t at = 0;  // of its first element, in the whole layout
  };
  /// Calls `work` for the pieces of `range` (of the whole layout). On one slot that is one piece; on several
  /// the gaps between parameters are in none.
  void for_each_piece(Range range, const std::function<void(const Piece&)>& work) const;

 private:
  ParameterLayout whole_;
  std::vector<ParameterLayout> by_slot_;
  std::vector<int> owner_slots_;  // by node
  std::vector<Piece> pieces_;     // by their place in the whole layout; none where there is one slot
};

/// Fills `values` (host memory, slice.elements() floats) by the parameter's initializer. Its random numbers
/// depend on the seed and its name only.
void initialize_parameter(const Graph& graph, const ParameterSlice& slice, uint64_t seed, float* values);
/// All parameters: layout.size() floats, zeros between the parameters.
void initialize(const Graph& graph, const ParameterLayout& layout, uint64_t seed, float* values);

/// A number for a name, for random streams: FNV-1a of 32 bits.
uint32_t stream_of(std::string_view name);

}  // namespace dtrain
