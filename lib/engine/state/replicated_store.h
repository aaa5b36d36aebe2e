// Whole copies of one slot's parameters and optimizer state, in one memory or several.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/state/parameter_store.h"
#include "nn/parameters.h"

namespace dtrain {

/// Copies of the state, each owned by a worker. write() changes all copies, and read() uses the first copy.
class ReplicatedStore final : public ParameterStore {
 public:
  /// `workers`: the workers that compute, by replica. `owners`: the workers that own a copy of the state and
  /// update it. There is either one owner, whose copy all replicas use, or one owner per replica. An owner is
  /// a computing worker, or a CPU worker that updates the parameters for GPUs. If the copy that a GPU worker
  /// uses is in host memory, the worker has a mirror of the parameters. Keeps references to all arguments.
  ReplicatedStore(const ParameterLayout& layout, const std::vector<SlotLayout>& slots,
                  std::span<Worker* const> workers, std::span<Worker* const> owners);

  const ParameterMemory& memory_of(const Worker& worker) const override;
  const ParameterMemory& updated_by(const Worker& worker) const override;
  Bytes bytes(const Worker& worker) const override;
  size_t host_bytes() const override;
  void allocate_parameters(Worker& worker) override;
  void allocate_slots(Worker& worker) override;
  void load(Worker& worker) override;
  bool on_gpu() const override { return copies_[0].owner->on_gpu(); }
  std::span<float> host_view(std::string_view array) override;
  void read(std::string_view array, Range range, float* to) override;
  void write(std::string_view array, Range range, const float* from) override;
  void finish_writing(Worker& worker) override;

 private:
  /// A copy of the state. Between steps, the copy is accessed with the owner's ops and context, on the thread
  /// of the worker that has the owner's rank.
  struct Copy {
    std::unique_ptr<ParameterMemory> memory;
    Worker* owner;
    Bytes bytes(std::span<const SlotLayout> slots) const {
      return {memory->bytes(), memory->slot_bytes(slots)};
    }
  };
  const Copy& copy_of(const Worker& worker) const {
    return copies_[copies_.size() == 1 ? 0 : static_cast<size_t>(worker.rank())];
  }
  const std::unique_ptr<ParameterMemory>& mirror_of(const Worker& worker) const {
    return mirrors_[static_cast<size_t>(worker.rank())];
  }
  /// Returns a whole array of a copy. Throws std::logic_error if no array has this name.
  std::span<float> array_of(const ParameterMemory& memory, std::string_view array) const;

  const ParameterLayout& layout_;
  const std::vector<SlotLayout>& slots_;
  std::vector<Copy> copies_;
  // Mirrors of the parameters on GPUs whose copy of the state is in host memory, indexed by rank.
  std::vector<std::unique_ptr<ParameterMemory>> mirrors_;
};

}  // namespace dtrain
