// The parameters and the optimizer state of the whole model, independent of where they are stored.
#pragma once

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

namespace dtrain {

/// Parameters and optimizer state (slots in the optimizer's order) in host memory.
struct HostArrays {
  std::span<float> values;
  std::vector<std::span<float>> slots;
};

/// Reads, writes and copies the state. Arrays are named kParameters, or like the optimizer's slots. Ranges
/// refer to layout(), those of a slot to its SlotLayout of layout(). To be used between steps, by the thread
/// that owns the engine.
class ModelState {
 public:
  /// Runs work(rank, slot) on every slot's thread.
  using RunOnSlots = std::function<void(const std::function<void(int rank, int slot)>& work)>;

  /// `slots`: by slot. Keeps references to all arguments.
  ModelState(const ModelLayout& layout, SlotThreads& threads,
             std::span<const std::unique_ptr<SlotState>> slots, RunOnSlots run);

  /// Layout of the whole model, independent of its placement.
  const ParameterLayout& layout() const { return layout_.whole(); }
  /// Allocates the parameters.
  void allocate_parameters();
  /// Allocates the optimizer state.
  void allocate_slots();
  /// Initializes the parameters by their initializers.
  void initialize(const Graph& graph, uint64_t seed);

  /// Reads part of an array.
  void read(std::string_view array, Range range, float* to) const;
  /// Call finish_writing() once after the last call.
  void write(std::string_view array, Range range, const float* from);
  void finish_writing();
  /// Copies the whole state of process 0 to all processes.
  void broadcast(World& world);
  /// See SlotState::read_gradient().
  bool read_gradient(Range range, float* to) const;
  /// Returns the name of the first weight with a non-finite element; "" if all are finite.
  std::string first_weight_not_finite() const;

  /// Returns the whole state in host memory: the state itself if it is there, else a copy that stays valid
  /// until the next call.
  HostArrays download();
  /// Returns a copy of the current state, which is unaffected by later steps and valid until the next call.
  /// Returns nullopt if there is too little memory for it.
  std::optional<HostArrays> snapshot();
  size_t snapshot_bytes() const;
  bool has_room_for_snapshot() const;
  /// Returns true if a save needs a copy of the state in host memory.
  bool is_copied_for_saving() const;

  /// Whether a moving average of the weights is kept (train.callbacks: ema).
  bool has_average() const { return update().has_average(); }
  /// Sets the average, if any, to the current weights.
  void begin_average();
  /// Swaps the weights and their average, if any. To be called once before and once after an evaluation.
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
    Buffer copy;                       // in host memory, allocated on first use
  };

  ParameterStore& store(int slot) const { return slots_[static_cast<size_t>(slot)]->store(); }
  /// The update options that are the same for all slots.
  const Update& update() const { return slots_[0]->update(); }
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
  const std::span<const std::unique_ptr<SlotState>> slots_;
  const RunOnSlots run_;
  std::vector<Array> arrays_;  // the parameters and, once allocated, the optimizer state
};

}  // namespace dtrain
