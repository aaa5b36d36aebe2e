// Where the parameters and the optimizer state of one slot are stored.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "collective/collective.h"
#include "collective/world.h"
#include "engine/state/parameter_memory.h"
#include "engine/worker.h"

namespace dtrain {

/// Name of the array of parameters in the state. The other arrays are the optimizer's slots ("momentum",
/// "velocity").
inline constexpr std::string_view kParameters = "parameters";

/// Name of the last step's gradient, for parts_of().
inline constexpr std::string_view kGradient = "gradient";

/// Stores the state of one slot, for every replica: as whole copies (ReplicatedStore) or as shards
/// (ShardedStore). Between steps, the state is read and written by array name and range. The range refers to
/// the layout for parameters, and to the SlotLayout for an optimizer slot.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  /// The parameters that a worker computes with.
  virtual const ParameterMemory& memory_of(const Worker& worker) const = 0;
  /// The parameters and optimizer state that a worker updates.
  virtual const ParameterMemory& updated_by(const Worker& worker) const = 0;

  /// Bytes of state in a worker's memory; state shared by several workers counts for the first of them.
  struct Bytes {
    size_t parameters = 0, slots = 0;
  };
  virtual Bytes bytes(const Worker& worker) const = 0;
  /// Returns the bytes of state in host memory in addition to the memory of CPU workers.
  virtual size_t host_bytes() const = 0;
  /// Allocates a worker's part of the parameters, filled with zeros. May be called on any thread.
  virtual void allocate_parameters(Worker& worker) = 0;
  /// Allocates a worker's part of the optimizer state, with initial values. To be called on the worker's
  /// thread.
  virtual void allocate_slots(Worker& worker) = 0;

  /// Makes memory_of(worker) contain the current parameters. To be called on the worker's thread before each
  /// step.
  virtual void load(Worker& worker) = 0;
  /// Returns true if the host cannot read the state without copying it.
  virtual bool on_gpu() const = 0;
  /// Returns, by process, the ranges of an array that each process stores; empty if each stores the whole
  /// array. read() and write() skip elements that only other processes store.
  virtual PartsOfProcesses parts_of(std::string_view /*array*/) const { return {}; }
  /// Returns a whole array if it is in host memory; else an empty span.
  virtual std::span<float> host_view(std::string_view array) = 0;
  virtual void read(std::string_view array, Range range, float* to) = 0;
  virtual void write(std::string_view array, Range range, const float* from) = 0;
  /// Recomputes data derived from the parameters. To be called on each worker's thread after the last
  /// write().
  virtual void finish_writing(Worker& worker) = 0;
};

}  // namespace dtrain
