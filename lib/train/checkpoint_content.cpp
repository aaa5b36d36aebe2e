#include "train/checkpoint_content.h"

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "interop/keras/export/mask_copies.h"
#include "interop/keras/export/model_config.h"
#include "train/keras_training.h"

namespace dtrain {

namespace {

OptimizerSlot slot_content(const ParameterLayout& layout, const Optimizer::Slot& slot, const ArrayOf& array) {
  OptimizerSlot content{slot.name, {}};
  for (const ParameterSlice& slice : layout.slices())
    if (const auto shape = slot.shape_for(slice.shape); shape && is_trained(layout, slice))
      content.arrays.push_back({slice.path(), *shape, DType::float32, array(slice)});
  return content;
}

/// Returns a function that finds the array of a parameter in `all`, which has the layout of all parameters.
ArrayOf in_one(std::span<const float> all) {
  return [all](const ParameterSlice& slice) { return all.data() + slice.offset; };
}

/// Returns a function that finds a slot's array for a parameter in `all`.
ArrayOf in_slot(std::span<const float> all, const SlotLayout& layout) {
  return [all, layout](const ParameterSlice& slice) { return all.data() + layout.of(slice).begin; };
}

}  // namespace

CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const HostArrays& arrays, const TrainingState& state,
                                     int64_t steps_per_epoch) {
  std::vector<ArrayOf> slots;
  const std::vector<SlotLayout> layouts = slot_layouts(layout, config.slots());
  for (size_t s = 0; s < arrays.slots.size(); ++s)
    slots.push_back(s < layouts.size() ? in_slot(arrays.slots[s], layouts[s]) : in_one(arrays.slots[s]));
  const ArrayOf values = in_one(arrays.values);
  if (slots.size() == layouts.size())
    return checkpoint_content(config, layout, values, slots, state, steps_per_epoch);
  // The checkpoint's main weights are the average; the weights for training are an additional slot.
  const ArrayOf model = [&, average = std::move(slots.back())](const ParameterSlice& slice) {
    return is_trained(layout, slice) ? average(slice) : values(slice);
  };
  slots.pop_back();
  CheckpointContent content = checkpoint_content(config, layout, model, slots, state, steps_per_epoch);
  content.slots.push_back(slot_content(layout, {std::string(kUnaveraged)}, values));
  return content;
}

CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const ArrayOf& values, const std::vector<ArrayOf>& slots,
                                     const TrainingState& state, int64_t steps_per_epoch) {
  CheckpointContent content;
  const Graph graph = with_mask_copies(config.graph);
  const std::vector<KerasLayer> layers = keras_layers(graph);
  for (const KerasLayer& keras : layers) {
    const GraphNode& node = graph.nodes[static_cast<size_t>(keras.node)];
    LayerWeights layer{node.name, {}, keras.name};
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      const ParameterSlice& slice = layout.slice(keras.node, static_cast<int>(k));
      layer.weights.push_back({slice.name, slice.shape, DType::float32, values(slice)});
    }
    content.layers.push_back(std::move(layer));
  }
  const auto of_optimizer = config.slots();
  for (size_t s = 0; s < of_optimizer.size(); ++s)
    content.slots.push_back(slot_content(layout, of_optimizer[s], slots[s]));
  content.model_config = keras_model_config(graph, config.name, layers);
  if (config.has_training())
    content.training_config = keras_training_config(config, steps_per_epoch, state.schedule);
  content.state = state.to_json().set("seed", config.seed);
  if (!config.dataset.facts.empty()) content.state.set("facts", config.dataset.facts.to_json());
  content.history = state.history.text();
  content.tables = state.table_lines();
  content.config_yaml = config.resolved.to_yaml();
  return content;
}

}  // namespace dtrain
