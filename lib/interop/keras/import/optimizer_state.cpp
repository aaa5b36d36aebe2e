#include "interop/keras/import/optimizer_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/training_formats.h"

namespace dtrain {

namespace {

using NodesByName = std::map<std::string, const GraphNode*>;

void add_trained(const KerasModel& model, const ImportedModel& imported, const NodesByName& nodes,
                 std::vector<TrainedWeight>& weights) {
  for (const KerasModelLayer& layer : model.layers) {
    if (layer.model) add_trained(*layer.model, imported, nodes, weights);
    const auto name = imported.names.find(&layer);
    const auto node = name == imported.names.end() ? nodes.end() : nodes.find(name->second);
    if (layer.model || node == nodes.end() || !layer.trainable) continue;
    for (const ParameterSpec& parameter : node->second->parameters) {
      std::string path = name->second + "/" + parameter.name;
      const bool is_known = std::any_of(weights.begin(), weights.end(),
                                        [&](const TrainedWeight& weight) { return weight.path == path; });
      if (!parameter.moving_average && !is_known)
        weights.push_back({std::move(path), parameter.shape, &layer});
    }
  }
}

/// Returns true if the file has the expected number of optimizer arrays for this number of slots and weights.
/// Keras 2 also stores arrays that it does not use: a momentum for SGD without momentum, and vhat for Adam
/// without amsgrad (Keras 2.0 to 2.3).
bool is_whole(size_t arrays, const OptimizerFormats& optimizer, size_t slots, size_t weights) {
  const size_t more = optimizer.slots_with_unread;
  return arrays == slots * weights || (more > slots && arrays == more * weights);
}

/// Converts an array in a Keras file to the array of an optimizer slot for one weight. `shape`: the shape
/// that the slot's array must have.
KerasWeight slot_array(const KerasWeight& array, const Optimizer::Slot& slot, const Shape& shape,
                       const TrainedWeight& weight, const KernelLayout& kernels) {
  const bool is_kernel = shape == weight.shape && weight.path.ends_with("/kernel") && array.values &&
                         array.shape.elements() == shape.elements();
  KerasWeight restored = is_kernel ? restored_kernel(*weight.layer, array, kernels) : array;
  if (!restored.values || restored.shape != shape)
    throw UserError(
        fmt::format("the optimizer's '{}' of '{}': expected {} floats, found {} {} in the array '{}'",
                    slot.name, weight.path, shape.str(), restored.shape.str(),
                    restored.values ? "floats" : "values of another type", array.name));
  return restored;
}

/// Returns the number of steps that the optimizer has made. Throws UserError if the array does not contain a
/// number of steps.
int64_t steps_in(const KerasWeight& array) {
  const auto refuse = [&](const std::string& found) {
    throw UserError(fmt::format(
        "the optimizer's number of steps (array '{}'): expected a number from 0 to 9e15, found {}",
        array.name, found));
  };
  const bool is_float = array.values && array.shape.elements() == 1;  // Keras 1 stores a float
  if (!array.integer && !is_float)
    refuse(array.shape.rank() > 0 ? fmt::format("an array of shape {}", array.shape.str())
                                  : std::string("a value that is not a number"));
  constexpr double kMost = 9e15;
  const double count =
      array.integer ? static_cast<double>(*array.integer) : static_cast<double>(array.values[0]);
  if (!(count >= 0 && count <= kMost)) refuse(fmt::format("{}", count));
  return static_cast<int64_t>(count);
}

}  // namespace

std::vector<TrainedWeight> trained_weights(const KerasModel& file_model, const ImportedModel& imported,
                                           const Graph& graph) {
  NodesByName nodes;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_activation_of_previous) nodes.emplace(node.name, &node);
  std::vector<TrainedWeight> weights;
  add_trained(file_model, imported, nodes, weights);
  return weights;
}

std::optional<OptimizerState> read_optimizer_state(const std::vector<KerasWeight>& arrays,
                                                   const Configured<Optimizer>& optimizer, bool is_since_2_11,
                                                   const std::vector<TrainedWeight>& trained,
                                                   const KernelLayout& kernels) {
  // The file begins with the number of steps. In Keras 3, the learning rate comes next. RMSprop and Adagrad
  // of Keras 1 to 2.2 store neither of the two.
  const auto first_slot = std::find_if(arrays.begin(), arrays.end(),
                                       [](const KerasWeight& array) { return array.shape.rank() > 0; });
  const OptimizerFormats& formats = optimizer_formats(optimizer.name);
  const std::vector<Optimizer::Slot> slots = keras_slots(optimizer);
  // The slots of a factored optimizer may begin with scalars. Therefore, `first` is computed from the end of
  // the list: the slots are the last `in_slots` arrays.
  const size_t in_slots = slots.size() * trained.size();
  const size_t first = !formats.is_factored ? static_cast<size_t>(first_slot - arrays.begin())
                                            : arrays.size() - std::min(in_slots, arrays.size());
  const bool has_last_number =
      formats.number_after_slots && first < arrays.size() && arrays.back().shape.rank() == 0;
  const size_t last = arrays.size() - (has_last_number ? 1 : 0);
  if (arrays.empty() || first > 2 || (formats.is_factored && first == 0) ||
      !is_whole(last - first, formats, slots.size(), trained.size()))
    return std::nullopt;
  OptimizerState state;
  if (first > 0) state.iteration = steps_in(arrays.front());
  const bool by_weight = is_since_2_11 && formats.is_by_weight;
  for (size_t s = 0; s < slots.size(); ++s)
    for (size_t w = 0; w < trained.size(); ++w) {
      const size_t at = by_weight ? w * slots.size() + s : s * trained.size() + w;
      if (const auto shape = slots[s].shape_for(trained[w].shape))
        state.slots[slots[s].name][trained[w].path] =
            slot_array(arrays[first + at], slots[s], *shape, trained[w], kernels);
    }
  return state;
}

}  // namespace dtrain
