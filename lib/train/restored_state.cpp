#include "train/restored_state.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/name_list.h"
#include "config/load/load.h"
#include "train/checkpoint_content.h"

namespace dtrain {

namespace {

/// Returns true if the checkpoint has no optimizer state of a weight at all. (Returns false if only a part of
/// the state is missing. dtrain does not write such checkpoints.)
bool was_not_trained(const Checkpoint& checkpoint, const ParameterSlice& slice) {
  const auto& slots = checkpoint.content().slots;
  return std::none_of(slots.begin(), slots.end(), [&](const OptimizerSlot& slot) {
    return checkpoint.slot(slot.name, slice.path()) != nullptr;
  });
}

/// Copies an array of a checkpoint to the engine's state: to the elements `range` of the state array with the
/// name `state` (the parameters or an optimizer slot). Throws UserError if `array` is null, does not have the
/// shape `shape`, or is not float32.
void restore_array(const Checkpoint& checkpoint, const ArrayRef* array, const ParameterSlice& slice,
                   const Shape& shape, std::string_view state, Range range, Engine& engine) {
  const std::string name = state == kParameters
                               ? fmt::format("the weight '{}'", slice.path())
                               : fmt::format("the optimizer's '{}' of '{}'", state, slice.path());
  if (!array) throw UserError(fmt::format("{}: the checkpoint does not contain {}", checkpoint.path(), name));
  if (array->shape != shape || array->dtype != DType::float32)
    throw UserError(fmt::format("{}: {} must be float32 with the shape {}, but it is {} with the shape {}",
                                checkpoint.path(), name, shape.str(), name_of(array->dtype),
                                array->shape.str()));
  if (range.size() == 0) return;
  engine.state().write(state, range, static_cast<const float*>(array->data));
}

/// Copies an array of a checkpoint to the values of a parameter.
void restore_parameter(const Checkpoint& checkpoint, const ArrayRef* array, const ParameterSlice& slice,
                       Engine& engine) {
  restore_array(checkpoint, array, slice, slice.shape, kParameters,
                {slice.offset, slice.offset + slice.elements()}, engine);
}

/// Prepares the moving average of the weights (callback `ema`). If the checkpoint's main weights are
/// averages, loads the weights from which training continues. Initializes the average if the run has one.
/// Returns a message for the user, usually "".
std::string restore_average(const Checkpoint& checkpoint, Engine& engine) {
  const auto& slots = checkpoint.content().slots;
  const bool averaged = std::any_of(slots.begin(), slots.end(),
                                    [](const OptimizerSlot& slot) { return slot.name == kUnaveraged; });
  engine.state().begin_average();
  if (!averaged)
    return engine.state().has_average() ? "the checkpoint has no average of the weights, so the average "
                                          "starts as a copy of the weights"
                                        : "";
  for (const ParameterSlice& slice : engine.layout().slices())
    if (const ArrayRef* array = checkpoint.slot(kUnaveraged, slice.path()))
      restore_parameter(checkpoint, array, slice, engine);
  return "";
}

/// Returns the type of the optimizer in the checkpoint's configuration; "" if there is none.
std::string optimizer_of(const Checkpoint& checkpoint) {
  Diagnostics diagnostics;
  const ConfigNode config = parse_yaml(checkpoint.content().config_yaml, checkpoint.path(), diagnostics);
  const ConfigNode* train = config.is_mapping() ? config.find("train") : nullptr;
  const ConfigNode* optimizer = train && train->is_mapping() ? train->find("optimizer") : nullptr;
  if (!optimizer) return "";
  if (optimizer->is_scalar()) return optimizer->text();
  return optimizer->is_mapping() && !optimizer->entries().empty() ? optimizer->entries()[0].first.text() : "";
}

/// Returns whether optimizer `a` can continue with the state of optimizer `b`, because their slots with the
/// same name have the same meaning.
bool same_slots(std::string a, std::string b) {
  for (std::string* name : {&a, &b})
    if (*name == "adamw" || *name == "lamb" || *name == "nadam") *name = "adam";
  return a == b;
}

/// Loads the optimizer state. Records in slots_since the weights whose state is missing, with the
/// checkpoint's step. Returns a message for the user, usually "".
std::string restore_slots(const Checkpoint& checkpoint, const RunConfig& config, Engine& engine,
                          TrainingState& state) {
  const std::map<std::string, int64_t> before = std::exchange(state.slots_since, {});
  const auto wanted = config.slots();
  std::vector<OptimizerSlot> found = checkpoint.content().slots;
  std::erase_if(found, [](const OptimizerSlot& slot) { return slot.name == kUnaveraged; });
  const auto same = [](const Optimizer::Slot& a, const OptimizerSlot& b) { return a.name == b.name; };
  if (!std::equal(wanted.begin(), wanted.end(), found.begin(), found.end(), same) ||
      !(wanted.empty() || same_slots(config.train.optimizer.name, optimizer_of(checkpoint)))) {
    for (const ParameterSlice& slice : engine.layout().slices())
      if (is_trained(engine.layout(), slice)) state.slots_since[slice.path()] = state.step;
    if (wanted.empty())
      return "the optimizer state in the checkpoint is not used, because the optimizer of this run has no "
             "state";
    return "the checkpoint has no state for this optimizer with these options, so the optimizer state starts "
           "with its initial values";
  }
  std::vector<std::string> reset;
  const std::vector<SlotLayout> layouts = slot_layouts(engine.layout(), wanted);
  for (const ParameterSlice& slice : engine.layout().slices()) {
    if (wanted.empty() || !is_trained(engine.layout(), slice)) continue;
    if (was_not_trained(checkpoint, slice)) {
      reset.push_back(slice.path());
      state.slots_since[slice.path()] = state.step;
      continue;
    }
    if (const auto since = before.find(slice.path()); since != before.end()) state.slots_since.insert(*since);
    for (const SlotLayout& layout : layouts)
      if (const auto shape = layout.slot().shape_for(slice.shape))
        restore_array(checkpoint, checkpoint.slot(layout.name(), slice.path()), slice, *shape, layout.name(),
                      layout.of(slice), engine);
  }
  if (reset.empty()) return "";
  return fmt::format(
      "the checkpoint has no optimizer state for {}, which {} not trained before; {} optimizer state starts "
      "with its initial values",
      list_some(reset), reset.size() == 1 ? "was" : "were", reset.size() == 1 ? "its" : "their");
}

}  // namespace

void restore_weights(const Checkpoint& checkpoint, Engine& engine) {
  for (const ParameterSlice& slice : engine.layout().slices())
    restore_parameter(checkpoint, checkpoint.weight(slice.path()), slice, engine);
}

std::string restore_for_training(const Checkpoint& checkpoint, const RunConfig& config, Engine& engine,
                                 TrainingState& state) {
  engine.allocate(Plan::Purpose::training, config.train.batch_size);
  restore_weights(checkpoint, engine);
  std::string reset = restore_slots(checkpoint, config, engine, state);
  engine.set_slots_since(state.slots_since);
  const std::string average = restore_average(checkpoint, engine);
  if (!average.empty()) reset += (reset.empty() ? "" : "; ") + average;
  engine.state().finish_writing();
  return reset;
}

std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size,
                                             const DataMemory& data) {
  auto engine = std::make_unique<Engine>(plan, false);
  engine->memory().set_data(data);
  engine->allocate(purpose, batch_size);
  restore_weights(checkpoint, *engine);
  engine->state().finish_writing();
  return engine;
}

std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size,
                                             const Loader& loader) {
  return engine_for_inference(
      plan, checkpoint, purpose, batch_size,
      DataMemory{.most_samples = loader.samples(), .read_ahead = loader.read_ahead_memory()});
}

}  // namespace dtrain
