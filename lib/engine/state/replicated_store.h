// Whole copies of one slot's parameters and optimizer state, in one memory or several.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/state/parameter_store.h"
#include "nn/parameters.h"

namespace dtrain {

/// Copies of the state, each owned by a worker. Writing changes all copies; reading uses the first.
class ReplicatedStore final : public ParameterStore {
 public:
  /// `workers`: the workers that compute, by replica. `owners`: the workers that update a copy. There is one
  /// owner, whose copy all replicas use, or one per replica. Owners are computing workers, or CPU workers
  /// that update for GPUs. A worker whose copy is in another memory has a mirror of the parameters. Keeps
  /// references to all arguments.
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
  /// A copy of the state. Between steps, the owner's ops and context work on it, on the thread of the worker
  /// of the owner's rank.
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
  /// Returns the whole array in a copy; throws std::logic_error if no array has this name.
  std::span<float> array_of(const ParameterMemory& memory, std::string_view array) const;

  const ParameterLayout& layout_;
  const std::vector<SlotLayout>& slots_;
  std::vector<Copy> copies_;
  // Mirrors of GPUs whose copy is on the host, indexed by rank.
  std::vector<std::unique_ptr<ParameterMemory>> mirrors_;
};

}  // namespace dtrain
