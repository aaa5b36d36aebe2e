// The layout of a model's parameters in flat buffers. There is one buffer for each slot (each device of a
// replica).
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

/// The position of one parameter in a flat buffer. Offsets and sizes are counted in floats.
struct ParameterSlice {
  int node = 0;   // index of the node in the graph
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

/// The order of the parameters in one flat buffer: first the trained parameters in reverse order of
/// execution, then the statistics, then the frozen parameters. Backward computes the gradients of the last
/// layers first. Because these gradients are first in the buffer, a prefix of the buffer can be all-reduced
/// while backward still runs. The optimizer updates all trained parameters in one call over [0, trained).
/// Every slice is aligned to 16 floats, and the padding is zero.
class ParameterLayout {
 public:
  static constexpr int64_t kAlignment = 16;  // floats

  explicit ParameterLayout(const Graph& graph) : ParameterLayout(graph, {}, 0) {}
  /// Computes the layout of the parameters of one slot. `slots` gives the slot of each graph node. If it is
  /// empty, all nodes are on slot 0.
  ParameterLayout(const Graph& graph, std::span<const int> slots, int slot);

  /// Returns the slices in graph order: the nodes in the order of the graph, and the parameters of a node in
  /// the order of its layer.
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  /// Returns the slices that begin in `range`, sorted by offset.
  std::vector<const ParameterSlice*> by_offset(Range range) const;
  /// Divides the elements that have a gradient into contiguous ranges, one per replica. The ranges are as
  /// equal as possible, and their boundaries are multiples of kAlignment. If `whole` is true, boundaries are
  /// only between parameters, so that no parameter is divided. In this case the sizes of two ranges can
  /// differ by up to the size of the largest parameter.
  std::vector<Range> shares(int replicas, bool whole) const;
  /// Returns the slice of a node's parameter. If the parameters are shared, this is the slice of the owner.
  const ParameterSlice& slice(int node, int index) const;
  /// Returns the number of nodes that use the parameters of this node, including this node itself.
  int users(int node) const { return users_[static_cast<size_t>(owner_[static_cast<size_t>(node)])]; }
  int64_t trained() const { return trained_; }  // number of floats with optimizer state
  /// Number of floats in trained parameters and statistics.
  int64_t with_gradient() const { return with_gradient_; }
  int64_t size() const { return size_; }

 private:
  std::vector<ParameterSlice> slices_;
  // Indexed by node:
  std::vector<int> first_slice_;
  std::vector<int> owner_;  // node that owns the parameters
  std::vector<int> users_;
  int64_t trained_ = 0, with_gradient_ = 0, size_ = 0;
};

/// A model's parameters, grouped by slot. The parameters of a node are on the node's slot. Shared parameters
/// are on the slot of the first node that uses them.
class ModelLayout {
 public:
  /// `slots` gives the slot of each graph node. If it is empty, all nodes are on slot 0. `count` is the
  /// number of slots.
  ModelLayout(const Graph& graph, std::span<const int> slots, int count);

  /// Returns the layout that the parameters would have if all of them were on one slot. Functions that take a
  /// range of parameters, such as for_each_piece(), expect offsets in this layout.
  const ParameterLayout& whole() const { return whole_; }
  int slots() const { return by_slot_.empty() ? 1 : static_cast<int>(by_slot_.size()); }
  const ParameterLayout& on(int slot) const {
    return by_slot_.empty() ? whole_ : by_slot_[static_cast<size_t>(slot)];
  }
  /// Returns the slot that holds the parameters of the node.
  int owner_slot(int node) const { return owner_slots_[static_cast<size_t>(node)]; }

  /// A contiguous part of the whole layout, with its position in the layout of one slot.
  struct Piece {
    int slot = 0;
    Range on_slot;   // range in the slot's layout
    int64_t at = 0;  // offset of the first element in the whole layout
  };
  /// Calls `work` for each piece of `range`, which is a range of the whole layout. If there is one slot, the
  /// range is one piece. If there are several slots, no piece contains the padding between parameters.
  void for_each_piece(Range range, const std::function<void(const Piece&)>& work) const;

 private:
  ParameterLayout whole_;
  std::vector<int> owner_slots_;  // indexed by node
  // Both are empty if there is one slot, because its layout is the whole layout.
  std::vector<ParameterLayout> by_slot_;
  std::vector<Piece> pieces_;  // sorted by offset in the whole layout
};

/// Fills `values` using the parameter's initializer. `values` is in host memory and has slice.elements()
/// floats. The random numbers depend only on the seed and the path of the parameter.
void initialize_parameter(const Graph& graph, const ParameterSlice& slice, uint64_t seed, float* values);
/// Fills `values` with the initial values of all parameters. `values` has layout.size() floats. The padding
/// is set to zero.
void initialize(const Graph& graph, const ParameterLayout& layout, uint64_t seed, float* values);

/// Returns the identifier of a name's random stream: the 32-bit FNV-1a hash of the name.
uint32_t stream_of(std::string_view name);

}  // namespace dtrain
