// The layout of a model's parameters in flat buffers, one buffer for each slot.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/collective.h"
#include "device/device.h"
#include "nn/graph.h"

namespace dtrain {

/// One parameter's position in a flat buffer. Offsets and sizes count floats.
struct ParameterSlice {
  int node = 0;   // index of the graph's node
  int index = 0;  // index among the node's parameters
  std::string layer, name;
  Shape shape;
  int64_t offset = 0;
  std::optional<float> moving_average;
  ParameterTraining training;
  PenaltySpec penalty;
  std::shared_ptr<const Constraint> constraint;  // null: none
  OrthogonalPenalty orthogonal;
  int64_t elements() const { return shape.elements(); }
  /// Returns the full name, such as "dense_1/kernel".
  std::string path() const { return layer + "/" + name; }
};

/// The order of parameters in one flat buffer: [trained, in reverse order of execution | statistics |
/// frozen]. Every slice is aligned to 16 floats; the padding is zero. The gradients that backward finishes
/// first come first, so that a prefix can be reduced early, and the optimizer is one call over [0, trained).
class ParameterLayout {
 public:
  static constexpr int64_t kAlignment = 16;  // floats

  explicit ParameterLayout(const Graph& graph) : ParameterLayout(graph, {}, 0) {}
  /// Lays out the parameters of one slot. `slots` is the slot of each graph node; if it is empty, all nodes
  /// are on slot 0.
  ParameterLayout(const Graph& graph, std::span<const int> slots, int slot);

  /// Returns the slices in graph order: by node, then in the order of the layer's declaration.
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  /// Returns the slices that begin in `range`, sorted by offset.
  std::vector<const ParameterSlice*> by_offset(Range range) const;
  /// Divides the elements with a gradient into one contiguous range for each of `replicas`, as equally as
  /// possible; boundaries are multiples of kAlignment. If `whole`, boundaries are only between parameters, so
  /// that no parameter is divided. Sizes then differ by up to the size of the largest parameter.
  std::vector<Range> shares(int replicas, bool whole) const;
  /// Returns the slice of a node's parameter. For a node with shared parameters, that is the owner's slice.
  const ParameterSlice& slice(int node, int index) const;
  /// Returns how many nodes use this node's parameters, including itself.
  int users(int node) const { return users_[static_cast<size_t>(owner_[static_cast<size_t>(node)])]; }
  int64_t trained() const { return trained_; }              // floats with optimizer state
  int64_t with_gradient() const { return with_gradient_; }  // floats of trained parameters and statistics
  int64_t size() const { return size_; }

 private:
  std::vector<ParameterSlice> slices_;
  // Indexed by node:
  std::vector<int> first_slice_;
  std::vector<int> owner_;  // node that owns the parameters
  std::vector<int> users_;
  int64_t trained_ = 0, with_gradient_ = 0, size_ = 0;
};

/// A model's parameters by slot. Parameters are on their node's slot; shared parameters are on the slot of
/// the first node that uses them.
class ModelLayout {
 public:
  /// `slots` is the slot of each graph node; if it is empty, all nodes are on slot 0. `count` is the number
  /// of slots.
  ModelLayout(const Graph& graph, std::span<const int> slots, int count);

  /// Returns the layout as if all parameters were on one slot. Names and ranges of parameters refer to it.
  const ParameterLayout& whole() const { return whole_; }
  int slots() const { return static_cast<int>(by_slot_.size()); }
  const ParameterLayout& on(int slot) const { return by_slot_[static_cast<size_t>(slot)]; }
  /// Returns the slot that holds the parameters of the node.
  int owner_slot(int node) const { return owner_slots_[static_cast<size_t>(node)]; }

  /// A contiguous part of the whole layout and its position in the layout of one slot.
  struct Piece {
    int slot = 0;
    Range on_slot;   // range in the slot's layout
    int64_t at = 0;  // offset of the first element in the whole layout
  };
  /// Calls `work` for each piece of `range` (a range of the whole layout). With one slot there is a single
  /// piece; with several, the padding between parameters is in no piece.
  void for_each_piece(Range range, const std::function<void(const Piece&)>& work) const;

 private:
  ParameterLayout whole_;
  std::vector<ParameterLayout> by_slot_;
  std::vector<int> owner_slots_;  // indexed by node
  std::vector<Piece> pieces_;     // sorted by offset in the whole layout; empty if there is one slot
};

/// Fills `values` (host memory, slice.elements() floats) with the parameter's initializer. The random numbers
/// depend only on the seed and the parameter's path.
void initialize_parameter(const Graph& graph, const ParameterSlice& slice, uint64_t seed, float* values);
/// Fills `values` (layout.size() floats) with all initial parameters; the padding is set to zero.
void initialize(const Graph& graph, const ParameterLayout& layout, uint64_t seed, float* values);

/// Returns the random stream number of a name: its 32-bit FNV-1a hash.
uint32_t stream_of(std::string_view name);

}  // namespace dtrain
