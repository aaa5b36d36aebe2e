// The memory and the frames of one slot's microbatches.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "collective/collective.h"
#include "device/device.h"
#include "distribute/microbatches.h"
#include "engine/replica_plans.h"
#include "program/execute.h"

namespace dtrain {

/// Returns the memory that is needed to run several plans one after the other. `plans`: the memory of each
/// plan. The plans share the frame memory and the shared memory, so the largest size counts. Each plan has
/// separate link buffers and transfers, so these sizes are added.
ArenaBytes largest_of(const std::vector<ArenaBytes>& plans);
/// Returns the bytes on a device for `places` microbatches in flight. Memory for transfers to and from other
/// processes is not included.
size_t total_bytes(const ArenaBytes& bytes, size_t places);

/// Creates frames for microbatches. Each microbatch in flight has a place, which is a part of the slot's
/// memory. If only one microbatch is in flight, its place is the whole memory. To be used by the slot's
/// thread.
class FramePool {
 public:
  FramePool(ReplicaPlans& plans, int slot, Context& context);

  /// Returns the number of places: the maximum number of microbatches that need memory at the same time.
  size_t places(Plan::Purpose purpose, int microbatches) const;
  /// Returns the memory needed for the plans of all these microbatch sizes and sequence lengths
  /// (PlanKey::length).
  ArenaBytes needs(Plan::Purpose purpose, const std::set<int64_t>& sizes, const std::set<int64_t>& lengths);

  /// Allocates memory for the plans of these microbatches, enough for the schedule's maximum number of
  /// microbatches in flight. Until the next call, all frames have the length `length` (PlanKey::length).
  void make_room(Plan::Purpose purpose, const Microbatches& microbatches, int64_t length);
  /// Returns true if memory was reallocated since the last call of take_moved().
  bool take_moved() { return std::exchange(moved_, false); }

  /// Returns the frame of microbatch `index`, bound to `arrays` and to the memory of its place. Waits until
  /// other slots have received the data that was sent from this place.
  Frame& bind(Plan::Purpose purpose, Range samples, int index, SlotArrays arrays);
  /// Returns the frame of microbatch `index`, which must have been bound by bind().
  Frame& frame(Plan::Purpose purpose, Range samples, int index) {
    return frames_.at(key_of(purpose, samples, index));
  }
  /// Records that `frame`, which uses the memory of microbatch `index`, may have sent data from that memory.
  void note_sent(int index, const Frame* frame) { sent_[static_cast<size_t>(index) % sent_.size()] = frame; }
  /// Waits until the other slots have received all data that frames have sent.
  void release_all();

 private:
  /// Identifies a frame by its plan, by whether it adds its gradients to those of earlier microbatches, and
  /// by the index of its place.
  using FrameKey = std::tuple<PlanKey, bool, int>;
  FrameKey key_of(Plan::Purpose purpose, Range samples, int index) const;
  void release(int place);
  void grow(Buffer& memory, size_t bytes);

  ReplicaPlans& plans_;
  const int slot_;
  Context& context_;
  Buffer arena_, shared_;
  int64_t length_ = 0;      // length of the current step's frames (PlanKey::length)
  size_t frame_bytes_ = 0;  // bytes of one place in arena_
  std::map<FrameKey, Frame> frames_;
  std::vector<const Frame*> sent_;  // indexed by place: the frame that may have sent data
  bool moved_ = false;
};

}  // namespace dtrain
