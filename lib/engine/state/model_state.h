// The parameters and the optimizer state of the whole model, independent of where they are stored.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "engine/slot_threads.h"
#include "engine/update/slot_state.h"
#include "nn/graph.h"
#include "nn/parameters.h"
#include "run/run_plan.h"

namespace dtrain {

/// Parameters and optimizer state (slots in the optimizer's order) in host memory.
struct HostArrays {
  std::span<float> values;
  std::vector<std::span<float>> slots;
};

/// Reads, writes and copies the state. The array of the parameters is named kParameters, and the other arrays
/// have the names of the optimizer's slots. A range of the parameters is a range of elements of layout(). A
/// range of an optimizer slot is a range of elements of the slot's SlotLayout, which is derived from
/// layout(). To be used between steps, by the thread that owns the engine. If the state is divided among
/// processes (is_spread()), all processes must make the same calls. A function may be called by only some of
/// the processes if it does not communicate with other processes.
class ModelState {
 public:
  /// Runs work(rank, slot) on every slot's thread.
  using RunOnSlots = std::function<void(const std::function<void(int rank, int slot)>& work)>;

  /// `updates`: indexed by slot. `slots`: indexed by slot of this process. Keeps references to all arguments.
  ModelState(const ModelLayout& layout, SlotThreads& threads, const std::deque<Update>& updates,
             std::span<const std::unique_ptr<SlotState>> slots, const RunPlan& plan, RunOnSlots run);

  /// Layout of the whole model, independent of its placement.
  const ParameterLayout& layout() const { return layout_.whole(); }
  /// Allocates the parameters.
  void allocate_parameters();
  /// Allocates the optimizer state.
  void allocate_slots();
  /// Initializes the parameters with their initializers.
  void initialize(const Graph& graph, uint64_t seed);

  /// Returns whether each process stores only a part of the state. Does not communicate with other processes.
  bool is_spread() const;
  /// Returns whether this process stores all weights. If a moving average of the weights is kept, this
  /// process must also store the whole average. Does not communicate with other processes.
  bool has_all_weights() const;
  /// Reads part of an array.
  void read(std::string_view array, Range range, float* to) const;
  /// Writes the elements that this process stores. Does not communicate with other processes. Call
  /// finish_writing() once after the last call.
  void write(std::string_view array, Range range, const float* from);
  /// Recomputes data that is derived from the parameters (ParameterStore::finish_writing()). Does not
  /// communicate with other processes.
  void finish_writing();
  /// Copies the state of process 0 to all processes. Skips arrays that are divided among the processes.
  void broadcast();
  /// Copies a part of the last step's gradient (SlotState::read_gradient()). Returns false if there is no
  /// gradient yet.
  bool read_gradient(Range range, float* to) const;
  /// Returns the name of the first weight with a non-finite element; "" if all are finite.
  std::string first_weight_not_finite() const;

  /// Returns the whole state in host memory. If the state is in host memory, returns the state itself,
  /// otherwise a copy that stays valid until the next call. If the state is divided among processes, only
  /// process 0 gets the state, and the other processes get empty arrays.
  HostArrays download();
  /// Returns a copy of the current state. Later steps do not change the copy, which is valid until the next
  /// call. Returns nullopt if there is too little memory for a copy.
  std::optional<HostArrays> snapshot();
  size_t snapshot_bytes() const;
  bool has_room_for_snapshot() const;
  /// Returns true if this process needs a copy of the state in host memory to save the state.
  bool is_copied_for_saving() const;

  /// Returns whether a moving average of the weights is kept (train.callbacks: ema).
  bool has_average() const { return update().has_average(); }
  /// Sets the average to the current weights. Does nothing if no average is kept.
  void begin_average();
  /// Swaps the weights and their average. Does nothing if no average is kept. To be called once before and
  /// once after an evaluation.
  void swap_average();

  /// The current state of float16 loss scaling.
  GradientScale gradient_scale() const;
  void set_gradient_scale(const GradientScale& scale);

 private:
  /// One array of the state.
  struct Array {
    std::string name;
    int64_t size = 0;                  // floats
    std::optional<SlotLayout> layout;  // nullopt for the parameters
    Buffer copy;                       // copy in host memory, allocated on first use
  };

  bool is_here(int slot) const { return slot >= threads_.first_slot() && slot < threads_.end_slot(); }
  SlotState& state(int slot) const { return *slots_[static_cast<size_t>(slot - threads_.first_slot())]; }
  ParameterStore& store(int slot) const { return state(slot).store(); }
  /// Returns the update of slot 0. Its options are the same for all slots.
  const Update& update() const { return updates_[0]; }
  /// Returns, for each process, the parts of `range` that the process stores, as indices into the range.
  /// Returns an empty list if each process stores the whole range.
  PartsOfProcesses parts_in(std::string_view array, Range range) const;
  /// Like parts_in(), for replicas that are split across processes: returns the parts of `range` that the
  /// slots of each process store.
  PartsOfProcesses parts_by_slot(std::string_view array, Range range) const;
  /// Reads the elements that this process stores.
  void read_own(std::string_view array, Range range, float* to) const;
  /// Completes `values`, which contains this process's parts of `range`, with the parts of other processes.
  void complete(std::string_view array, Range range, float* values) const;
  /// In process 0, returns the whole array. In other processes, sends the process's parts to process 0 and
  /// returns an empty span.
  std::span<float> collect(Array& array);
  /// Returns a whole array if it is contiguous in host memory; else an empty span.
  std::span<float> host_view(std::string_view array) const;
  /// Calls `work` for each piece of a range of an array; see ModelLayout::for_each_piece().
  void each_piece(std::string_view array, Range range,
                  const std::function<void(const ModelLayout::Piece&)>& work) const;
  bool has_finite_weights(Range range) const;
  HostArrays host_arrays(const std::function<std::span<float>(Array&)>& place);
  std::span<float> copy_of(Array& array);

  const ModelLayout& layout_;
  SlotThreads& threads_;
  const std::deque<Update>& updates_;
  const std::span<const std::unique_ptr<SlotState>> slots_;
  const RunPlan& plan_;
  World& world_;
  const RunOnSlots run_;
  std::vector<Array> arrays_;  // the parameters and, once allocated, the optimizer state
};

}  // namespace dtrain
