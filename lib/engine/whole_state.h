// Replicated state: whole copies of parameters and optimizer state in one or several memories.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/gradient_sync.h"
#include "engine/last_gradient.h"
#include "engine/parameter_memory.h"

namespace dtrain {

/// Base of gradient syncs that keep whole copies of the state, each owned by a worker. Writing changes all
/// copies; reading uses the first.
class WholeState : public GradientSync {
 public:
  /// `gradient_parts`: number of ranks that call set_gradient(): all ranks, or only rank 0 with the whole
  /// gradient.
  WholeState(const ParameterLayout& layout, const Update& update, size_t gradient_parts)
      : layout_(layout), update_(update), gradient_(gradient_parts) {}

  const ParameterMemory& memory_of(const Worker& worker) const override;
  StateBytes state_bytes(const Worker& worker) const override;
  void allocate_parameters(Worker& worker) override;
  void allocate_slots(Worker& worker) override;
  bool on_gpu() const override { return copies_[0].owner->on_gpu(); }
  std::span<float> host_view(std::string_view array) override;
  void read_state(std::string_view array, Range range, float* to) override;
  void write_state(std::string_view array, Range range, const float* from) override;
  bool read_gradient(Range range, float* to) override { return gradient_.read(update_, range, to); }
  void finish_writing(Worker& worker) override;

 protected:
  /// A copy of the state. Between steps, the owner's ops and context work on it, on the thread of the worker
  /// of the owner's rank.
  struct Copy {
    std::unique_ptr<ParameterMemory> memory;
    Worker* owner;
  };
  void add_copy(Worker& owner);
  ParameterMemory& copy(size_t index = 0) const { return *copies_[index].memory; }
  /// Calls LastGradient::set() with a part of a whole array.
  void set_gradient(int rank, Worker& worker, const float* gradient, Range range) {
    gradient_.set(rank, worker, gradient + range.begin, range);
  }

  const ParameterLayout& layout_;
  const Update& update_;

 private:
  /// Returns an array of a copy; throws std::logic_error if there is none with that name.
  float* array_of(const ParameterMemory& memory, std::string_view array) const;
  int64_t size_of(std::string_view array) const;

  std::vector<Copy> copies_;
  LastGradient gradient_;
};

}  // namespace dtrain
