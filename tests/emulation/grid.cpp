#include "emulation/grid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "emulation/device_language.h"
#include "emulation/fiber.h"
#include "emulation/shared_memory.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace dtrain::emulation {
namespace {

struct Thread {
  Fiber* fiber;
  // The thread waits while (*word & mask) == value.
  const uint32_t* word;
  uint32_t mask, value;
  bool may_go_on() const { return (*word & mask) != value; }
};

/// Special values of Lane::from. With kAllValues, the lane reads a word with one bit from the value of each
/// lane. With kNothing, the lane reads nothing.
constexpr int kAllValues = -1, kNothing = -2;
/// A lane in a warp operation. It contributes `value`, and reads the value of lane `from`.
struct Lane {
  uint32_t mask;
  int from;
  uint64_t value;
};

struct Warp {
  uint32_t living = 0;
  uint32_t arrived = 0;
  std::array<Lane, 32> lanes;  // state of each lane at its arrival
  // The result of each participating lane. It is computed when the last lane arrives. It must be stored,
  // because a lane that continues may enter the next operation before another lane has read its result.
  std::array<uint64_t, 32> taken;
};

template <class Use>
void for_each_lane(uint32_t lanes, Use&& use) {
  for (; lanes != 0; lanes &= lanes - 1) use(static_cast<size_t>(std::countr_zero(lanes)));
}

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ull;
  return x ^ (x >> 29);
}

class Block {
 public:
  void begin(const Grid& grid, uint64_t number, uint64_t seed);
  /// Runs the block until all its threads wait or have ended.
  void step();
  void give_up();
  bool done() const { return waiting_.empty() && started_ == threads_; }
  const std::string& failure() const { return failure_; }

  void sync_threads();
  int count(bool predicate);
  uint64_t meet(const Lane& lane);
  int lane() const { return static_cast<int>(current_ % 32); }
  uint32_t active() const { return warps_[current_ / 32].living; }

 private:
  static void fiber_main(void* self);
  void run_some_threads();
  void start_threads();
  void run_waiting(bool backwards);
  void become(unsigned index);
  void end_thread();
  void wait(const uint32_t* word, uint32_t mask, uint32_t value);
  void release_warp(Warp& warp, uint32_t mask);
  void fail(const char* what);
  Warp& warp() { return warps_[current_ / 32]; }
  uint32_t lane_bit() const { return 1u << (current_ % 32); }

  Grid grid_{};
  uint3 index_{};
  uint64_t seed_ = 0;
  std::vector<std::byte> shared_;  // the shared memory of the block while another block runs
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Thread> waiting_;
  std::vector<Warp> warps_;
  std::string failure_;
  Fiber* fiber_ = nullptr;  // running fiber
  unsigned current_ = 0;    // running thread
  unsigned started_ = 0, threads_ = 0, living_ = 0;
  bool backwards_ = false, paused_ = false;
  uint32_t arrived_ = 0, barriers_ = 0;
  int holding_ = 0, counted_ = 0;
};

/// Maximum number of concurrent blocks, and the running block.
constexpr size_t kMostBlocks = 3;
std::array<Block, kMostBlocks> blocks_under_way;
Block* block = nullptr;

/// Fills shared memory with NaNs, because shared memory is uninitialized on a device.
void poison_shared_memory() {
  for (const std::span<std::byte> piece : shared_memory()) std::memset(piece.data(), 0xff, piece.size());
}
/// Copies shared memory to `all`. The vector is reused, because switches between blocks are frequent.
void save_shared_memory(std::vector<std::byte>& all) {
  size_t at = 0;
  for (const std::span<std::byte> piece : shared_memory()) {
    if (all.size() < at + piece.size()) all.resize(at + piece.size());
    std::memcpy(all.data() + at, piece.data(), piece.size());
    at += piece.size();
  }
}
void restore_shared_memory(const std::vector<std::byte>& all) {
  size_t at = 0;
  for (const std::span<std::byte> piece : shared_memory()) {
    std::memcpy(piece.data(), all.data() + at, piece.size());
    at += piece.size();
  }
}

void Block::fiber_main(void* self) {
  Block& b = *static_cast<Block*>(self);
  // A fiber runs one thread after the other. Only if a thread has to wait, the remaining threads need another
  // fiber.
  for (;;) {
    while (b.started_ < b.threads_) {
      const unsigned next = b.started_++;
      b.become(b.backwards_ ? b.threads_ - 1 - next : next);
      b.grid_.thread(b.grid_.arguments);
      b.end_thread();
    }
    b.paused_ = false;
    b.fiber_->pause();
  }
}

void Block::become(unsigned index) {
  current_ = index;
  threadIdx.x = index % blockDim.x;
  threadIdx.y = index / blockDim.x % blockDim.y;
  threadIdx.z = index / blockDim.x / blockDim.y;
}

void Block::end_thread() {
  --living_;
  Warp& w = warp();
  w.living &= ~lane_bit();
  if (arrived_ > 0 && arrived_ == living_) {
    arrived_ = 0;
    ++barriers_;
  }
  if (w.arrived != 0) release_warp(w, w.lanes[static_cast<size_t>(std::countr_zero(w.arrived))].mask);
}

void Block::wait(const uint32_t* word, uint32_t mask, uint32_t value) {
  if ((*word & mask) != value) return;
  const unsigned self = current_;
  const uint3 own_index = threadIdx;
  waiting_.push_back({fiber_, word, mask, value});
  paused_ = true;
  fiber_->pause();
  current_ = self;
  threadIdx = own_index;
}

void Block::sync_threads() {
  const uint32_t barrier = barriers_;
  if (++arrived_ == living_) {
    arrived_ = 0;
    ++barriers_;
  }
  wait(&barriers_, ~0u, barrier);
}

int Block::count(bool predicate) {
  holding_ += predicate;
  sync_threads();
  counted_ = holding_;
  sync_threads();
  holding_ = 0;
  const int counted = counted_;
  sync_threads();
  return counted;
}

void Block::release_warp(Warp& w, uint32_t mask) {
  const uint32_t expected = mask & w.living;
  if (expected == 0 || (w.arrived & expected) != expected) return;
  w.arrived &= ~expected;
  uint64_t bits = 0;
  for_each_lane(expected, [&](size_t i) { bits |= (w.lanes[i].value & 1) << i; });
  const int purpose = std::min(w.lanes[static_cast<size_t>(std::countr_zero(expected))].from, 0);
  for_each_lane(expected, [&](size_t i) {
    const auto& [own_mask, from, value] = w.lanes[i];
    if (own_mask != mask) fail("lanes of a warp call an operation with different masks");
    if (std::min(from, 0) != purpose) fail("lanes of a warp call different operations");
    const bool given = from >= 0 && (expected >> from & 1) != 0;
    w.taken[i] = from == kAllValues ? bits : given ? w.lanes[static_cast<size_t>(from)].value : ~0ull;
  });
}

uint64_t Block::meet(const Lane& lane) {
  Warp& w = warp();
  const size_t self = current_ % 32;
  const uint32_t bit = lane_bit();
  if ((lane.mask & bit) == 0) fail("a lane is not in the mask that it names");
  w.lanes[self] = lane;
  w.arrived |= bit;
  release_warp(w, lane.mask);
  wait(&w.arrived, bit, bit);
  return w.taken[self];
}

void Block::fail(const char* what) {
  if (failure_.empty()) failure_ = what;
}

void Block::begin(const Grid& grid, uint64_t number, uint64_t seed) {
  grid_ = grid;
  index_.x = static_cast<unsigned>(number % grid.blocks.x);
  index_.y = static_cast<unsigned>(number / grid.blocks.x % grid.blocks.y);
  index_.z = static_cast<unsigned>(number / grid.blocks.x / grid.blocks.y);
  seed_ = seed;
  backwards_ = (seed & 1) != 0;
  failure_.clear();
  threads_ = living_ = grid.threads.x * grid.threads.y * grid.threads.z;
  started_ = 0;
  arrived_ = 0;
  holding_ = 0;
  warps_.assign((threads_ + 31) / 32, Warp{});
  for (unsigned i = 0; i < threads_; ++i) warps_[i / 32].living |= 1u << (i % 32);
}

void Block::start_threads() {
  while (started_ < threads_) {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>(&Block::fiber_main, this));
      idle_.push_back(fibers_.back().get());
    }
    fiber_ = idle_.back();
    idle_.pop_back();
    fiber_->resume();
    if (!paused_) idle_.push_back(fiber_);
  }
}

void Block::run_waiting(bool backwards) {
  std::vector<Thread> turn;
  turn.swap(waiting_);
  bool moved = false;
  for (size_t i = 0; i < turn.size(); ++i) {
    const Thread& thread = turn[backwards ? turn.size() - 1 - i : i];
    if (!thread.may_go_on()) {
      waiting_.push_back(thread);
      continue;
    }
    moved = true;
    fiber_ = thread.fiber;
    fiber_->resume();
    if (!paused_) idle_.push_back(fiber_);
  }
  if (!moved) fail("threads of a block wait for each other forever");
}

void Block::run_some_threads() {
  if (started_ < threads_) return start_threads();
  seed_ = mix(seed_ + 1);
  run_waiting((seed_ & 1) != 0);
}

void Block::step() {
  blockIdx = index_;
  if (block != this) {
    if (block && !block->done()) save_shared_memory(block->shared_);
    if (started_ > 0) restore_shared_memory(shared_);
    block = this;
  }
  if (started_ == 0) poison_shared_memory();
  run_some_threads();
}

/// Frees the stacks of threads that still wait. This is allowed, because kernels own no resources.
void Block::give_up() {
  waiting_.clear();
  idle_.clear();
  fibers_.clear();
}

}  // namespace

std::string run_grid(const Grid& grid, uint64_t seed) {
  gridDim = grid.blocks;
  blockDim = grid.threads;
  const uint64_t count = uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
  const bool backwards = (mix(seed) & 2) != 0;
  const size_t at_once = 1 + mix(seed + 1) % kMostBlocks;
  uint64_t begun = 0;
  std::vector<Block*> free, running;
  for (size_t i = 0; i < at_once; ++i) free.push_back(&blocks_under_way[i]);
  block = nullptr;
  for (uint64_t turn = 0; begun < count || !running.empty(); ++turn) {
    for (; begun < count && !free.empty(); free.pop_back(), ++begun) {
      running.push_back(free.back());
      running.back()->begin(grid, backwards ? count - 1 - begun : begun, mix(seed + begun));
    }
    const size_t at = mix(seed + turn) % running.size();
    Block& one = *running[at];
    one.step();
    if (!one.failure().empty()) {
      for (Block* each : running) each->give_up();
      return one.failure();
    }
    if (!one.done()) continue;
    free.push_back(&one);
    running.erase(running.begin() + static_cast<ptrdiff_t>(at));
  }
  return "";
}

void sync_threads() {
  block->sync_threads();
}
int sync_threads_count(bool predicate) {
  return block->count(predicate);
}
void sync_warp(uint32_t mask) {
  block->meet({mask, kNothing, 0});
}
uint64_t exchange(uint32_t mask, uint64_t value, int from) {
  return block->meet({mask, from, value});
}
uint32_t ballot(uint32_t mask, bool predicate) {
  return static_cast<uint32_t>(block->meet({mask, kAllValues, predicate}));
}
int lane() {
  return block->lane();
}
uint32_t active_lanes() {
  return block->active();
}

}  // namespace dtrain::emulation
