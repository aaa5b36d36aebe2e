// Storage of the parameters and the optimizer state of one slot.
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

/// Name of the gradient of the last step. It is an argument of parts_of().
inline constexpr std::string_view kGradient = "gradient";

/// Stores the state of one slot for all replicas: as whole copies (ReplicatedStore) or as shards
/// (ShardedStore). Between steps, arrays of the state are accessed by name and range. A range of the
/// parameters is a range of elements of the slot's ParameterLayout. A range of an optimizer slot is a range
/// of elements of the optimizer slot's SlotLayout, which is derived from the ParameterLayout.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  /// Returns the memory with the parameters that a worker computes with.
  virtual const ParameterMemory& memory_of(const Worker& worker) const = 0;
  /// Returns the memory with the parameters and the optimizer state that a worker updates.
  virtual const ParameterMemory& updated_by(const Worker& worker) const = 0;

  /// Bytes of state in a worker's memory. If several workers share the state, its bytes are counted for the
  /// first of these workers only.
  struct Bytes {
    size_t parameters = 0, slots = 0;
  };
  virtual Bytes bytes(const Worker& worker) const = 0;
  /// Returns the bytes of host memory that the state takes in addition to the memory of CPU workers.
  virtual size_t host_bytes() const = 0;
  /// Allocates a worker's part of the parameters, filled with zeros. May be called on any thread.
  virtual void allocate_parameters(Worker& worker) = 0;
  /// Allocates a worker's part of the optimizer state, with initial values. To be called on the worker's
  /// thread.
  virtual void allocate_slots(Worker& worker) = 0;

  /// Ensures that memory_of(worker) contains the current parameters. To be called on the worker's thread
  /// before each step.
  virtual void load(Worker& worker) = 0;
  /// Returns true if the state is in GPU memory, so that the host must copy it before reading it.
  virtual bool on_gpu() const = 0;
  /// Returns, for each process, the ranges of an array that the process stores. Returns an empty list if each
  /// process stores the whole array. read() and write() skip elements that only other processes store.
  virtual PartsOfProcesses parts_of(std::string_view /*array*/) const { return {}; }
  /// Returns a whole array if the array is in host memory. Otherwise returns an empty span.
  virtual std::span<float> host_view(std::string_view array) = 0;
  virtual void read(std::string_view array, Range range, float* to) = 0;
  virtual void write(std::string_view array, Range range, const float* from) = 0;
  /// Recomputes data that is derived from the parameters, such as their copy in the compute type. To be
  /// called on each worker's thread after the last write().
  virtual void finish_writing(Worker& worker) = 0;
};

}  // namespace dtrain
