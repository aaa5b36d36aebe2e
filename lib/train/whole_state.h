// Parameters and slots that stand as a whole in one memory or in several.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/gradient_sync.h"
#include "train/parameter_memory.h"

namespace dtrain {

/// What the gradient syncs have in common that keep whole copies of the state, each with a worker as its
/// owner: all copies are written, and the first is read.
class WholeState : public GradientSync {
 public:
  WholeState(const ParameterLayout& layout, const Update& update, size_t workers)
      : layout_(layout), update_(update), gradients_(workers) {}

  const ParameterMemory& memory_of(const Worker& worker) const override;
  StateBytes state_bytes(const Worker& worker) const override;
  void allocate_parameters(Worker& worker) override;
  void allocate_slots(Worker& worker) override;
  bool on_gpu() const override { return copies_[0].owner->on_gpu(); }
  std::span<float> host_view(std::string_view array) override;
  void read_state(std::string_view array, Range range, float* to) override;
  void write_state(std::string_view array, Range range, const float* from) override;
  bool read_gradient(Range range, float* to) override;
  void finish_writing(Worker& worker) override;

 protected:
  /// The owner's ops and context work on its copy between steps, on the thread of the worker of its rank.
  struct Copy {
    std::unique_ptr<ParameterMemory> memory;
    Worker* owner;
  };
  void add_copy(Worker& owner);
  ParameterMemory& copy(size_t index = 0) const { return *copies_[index].memory; }
  /// `worker` has the step's gradient in `range` of this array, until the next step begins. Each rank says so
  /// of a range of its own.
  void set_gradient(int rank, Worker& worker, const float* gradient, Range range);

  const ParameterLayout& layout_;
  const Update& update_;

 private:
  /// An array of a copy; throws std::logic_error where there is none of that name.
  float* array_of(const ParameterMemory& memory, std::string_view array) const;
  int64_t size_of(std::string_view array) const;

  struct Gradient {
    Worker* worker = nullptr;  // null: nothing yet
    const float* values = nullptr;
    Range range;
  };

  std::vector<Copy> copies_;
  std::vector<Gradient> gradients_;  // by rank
};

}  // namespace dtrain
