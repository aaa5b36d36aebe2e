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

/// Returns the memory that plans need if they run one after the other: the largest frame memory, the largest
/// shared memory, and the sums of all link buffers and transfers, because each plan has separate ones.
/// `plans`: the memory of each plan.
ArenaBytes largest_of(const std::vector<ArenaBytes>& plans);
/// Returns the total bytes on a device for `places` microbatches in flight, without transfers to and from
/// other processes.
size_t total_bytes(const ArenaBytes& bytes, size_t places);

/// Creates frames for microbatches and assigns each a place: a part of the slot's memory, or all of it if
/// only one microbatch is in flight. To be used by the slot's thread.
class FramePool {
 public:
  FramePool(ReplicaPlans& plans, int slot, Context& context);

  /// Returns the maximum number of microbatches that need memory at the same time.
  size_t places(Plan::Purpose purpose, int microbatches) const;
  /// Returns the memory needed for plans of microbatches of each of these sizes and lengths
  /// (PlanKey::length).
  ArenaBytes needs(Plan::Purpose purpose, const std::set<int64_t>& sizes, const std::set<int64_t>& lengths);

  /// Allocates memory for the plans of these microbatches, for the schedule's maximum number in flight. Until
  /// the next call, all frames have this length.
  void make_room(Plan::Purpose purpose, const Microbatches& microbatches, int64_t length);
  /// Returns true if memory was reallocated since the last call.
  bool take_moved() { return std::exchange(moved_, false); }

  /// Returns the frame of microbatch `index`, bound to `arrays` and to the memory of its place. Waits until
  /// other slots have received the data that was sent from this place.
  Frame& bind(Plan::Purpose purpose, Range samples, int index, SlotArrays arrays);
  /// Returns a frame to which bind() has assigned memory.
  Frame& frame(Plan::Purpose purpose, Range samples, int index) {
    return frames_.at(key_of(purpose, samples, index));
  }
  /// Records that `frame`, which uses the memory of microbatch `index`, may have sent data from that memory.
  void note_sent(int index, const Frame* frame) { sent_[static_cast<size_t>(index) % sent_.size()] = frame; }
  /// Waits until the other slots have received everything that was sent.
  void release_all();

 private:
  /// Identifies a frame: its plan, whether it adds its gradients to those of earlier microbatches, and its
  /// place among the microbatches in flight.
  using FrameKey = std::tuple<PlanKey, bool, int>;
  FrameKey key_of(Plan::Purpose purpose, Range samples, int index) const;
  void release(int place);
  void grow(Buffer& memory, size_t bytes);

  ReplicaPlans& plans_;
  const int slot_;
  Context& context_;
  Buffer arena_, shared_;
  int64_t length_ = 0;      // positions of the current step's frames
  size_t frame_bytes_ = 0;  // bytes from one place for a microbatch in flight to the next
  std::map<FrameKey, Frame> frames_;
  std::vector<const Frame*> sent_;  // indexed by place: the frame that may have sent data
  bool moved_ = false;
};

}  // namespace dtrain
