#include "engine/frame_pool.h"

#include <algorithm>

namespace dtrain {

ArenaBytes largest_of(const std::vector<ArenaBytes>& plans) {
  ArenaBytes most;
  for (const ArenaBytes& bytes : plans) {
    most.frame = std::max(most.frame, bytes.frame);
    most.links += bytes.links;
    most.transfers += bytes.transfers;
    most.shared = std::max(most.shared, bytes.shared);
  }
  return most;
}

size_t total_bytes(const ArenaBytes& bytes, size_t places) {
  return (bytes.frame + bytes.links) * places + bytes.shared;
}

FramePool::FramePool(ReplicaPlans& plans, int slot, Context& context)
    : plans_(plans),
      slot_(slot),
      context_(context),
      sent_(static_cast<size_t>(plans.in_flight(slot)), nullptr) {}

size_t FramePool::places(Plan::Purpose purpose, int microbatches) const {
  return purpose == Plan::Purpose::training ? std::min(sent_.size(), static_cast<size_t>(microbatches)) : 1;
}

ArenaBytes FramePool::needs(Plan::Purpose purpose, const std::set<int64_t>& sizes,
                            const std::set<int64_t>& lengths) {
  std::vector<ArenaBytes> plans;
  for (const int64_t size : sizes)
    for (const int64_t length : lengths)
      plans.push_back(plans_.plan({purpose, size, length}).arena_bytes(slot_));
  return largest_of(plans);
}

void FramePool::grow(Buffer& memory, size_t bytes) {
  if (bytes <= memory.bytes()) return;
  context_.synchronize();
  memory = Buffer();  // frees the old memory before allocating the larger one
  memory = context_.allocate(bytes);
  moved_ = true;
}

void FramePool::make_room(Plan::Purpose purpose, const Microbatches& microbatches, int64_t length) {
  const ArenaBytes most = needs(purpose, microbatches.sizes(), {length});
  length_ = length;
  frame_bytes_ = most.frame;
  grow(arena_, most.frame * places(purpose, microbatches.count()));
  grow(shared_, most.shared);
}

FramePool::FrameKey FramePool::key_of(Plan::Purpose purpose, Range samples, int index) const {
  const bool training = purpose == Plan::Purpose::training;
  const int places = training ? static_cast<int>(sent_.size()) : 1;
  return {{purpose, samples.size(), length_}, training && index > 0, index % places};
}

Frame& FramePool::bind(Plan::Purpose purpose, Range samples, int index, SlotArrays arrays) {
  const FrameKey key = key_of(purpose, samples, index);
  const auto& [plan_key, accumulates, place] = key;
  release(place);
  Frame& frame = frames_.try_emplace(key, plans_.plan(plan_key)).first->second;
  arrays.arena = static_cast<std::byte*>(arena_.data()) + frame_bytes_ * static_cast<size_t>(place);
  arrays.shared = static_cast<std::byte*>(shared_.data());
  arrays.accumulates = accumulates;
  frame.bind(slot_, arrays);
  return frame;
}

void FramePool::release(int place) {
  const Frame*& frame = sent_[static_cast<size_t>(place)];
  if (frame) wait_received(*frame, slot_);
  frame = nullptr;
}

void FramePool::release_all() {
  for (int place = 0; place < static_cast<int>(sent_.size()); ++place) release(place);
}

}  // namespace dtrain
