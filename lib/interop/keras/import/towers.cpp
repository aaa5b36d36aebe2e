#include "interop/keras/import/towers.h"

#include <algorithm>
#include <optional>

#include "interop/keras/files/json.h"

namespace dtrain {

namespace {

/// Returns the index of the only layer that is a model; -1 if there is none or more than one.
int only_model(const KerasModel& model) {
  int found = -1;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (!model.layers[i].model) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

/// The slice of a batch that a Lambda layer of a wrapper takes: slice `number` of `parts` equal slices.
/// Models wrapped by multi_gpu_model store it as the arguments {i, parts}, models wrapped by make_parallel as
/// {idx, parts}.
struct Part {
  int64_t number = 0, parts = 0;
};

std::optional<Part> part_of(const KerasModelLayer& layer) {
  const Json* arguments = layer.class_name == "Lambda" ? value_at(layer.config, "arguments") : nullptr;
  if (!arguments) return std::nullopt;
  const Json* number = value_at(*arguments, "i");
  if (!number) number = value_at(*arguments, "idx");
  const Json* parts = value_at(*arguments, "parts");
  if (!number || !parts || !number->is_int() || !parts->is_int()) return std::nullopt;
  return Part{number->as_int(), parts->as_int()};
}

/// Returns whether a layer concatenates along the batch axis.
bool joins_batches(const KerasModelLayer& layer) {
  const auto is_zero = [&](const char* key) {
    const Json* axis = value_at(layer.config, key);
    return axis && axis->is_int() && axis->as_int() == 0;
  };
  return layer.class_name == "Concatenate" && is_zero("axis");
}

/// Recognizes a model that is a multi-GPU wrapper, and finds its towers.
class Wrapper {
 public:
  explicit Wrapper(const KerasModel& model) : model_(model), inner_(only_model(model)) {}

  /// Returns the number of towers; 0 if the model is not a wrapper.
  int towers() const {
    if (inner_ < 0) return 0;
    const std::vector<KerasCall>& calls = layer(inner_).calls;
    const auto towers = static_cast<int>(calls.size());
    if (towers < 2) return 0;
    for (const KerasModelLayer& one : model_.layers)
      if (!one.model && !one.is_input() && !part_of(one) && !joins_batches(one)) return 0;
    for (int tower = 0; tower < towers; ++tower)
      if (!reads_its_part(calls[static_cast<size_t>(tower)], tower, towers)) return 0;
    const std::vector<KerasTensor>& outputs = layer(inner_).model->outputs;
    if (outputs.size() != model_.outputs.size()) return 0;
    for (size_t output = 0; output < outputs.size(); ++output)
      if (!joins_output(model_.outputs[output], static_cast<int>(output), towers)) return 0;
    return towers;
  }

  std::shared_ptr<const KerasModel> inner() const { return layer(inner_).model; }

 private:
  const KerasModelLayer& layer(int number) const { return model_.layers[static_cast<size_t>(number)]; }

  /// Returns true if the inputs of a tower's call are this tower's slices of the wrapper's inputs, in the
  /// same order.
  bool reads_its_part(const KerasCall& call, int tower, int towers) const {
    if (call.inputs.size() != model_.inputs.size()) return false;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const KerasTensor& tensor = call.inputs[i];
      const auto part = part_of(layer(tensor.layer));
      if (!part || part->number != tower || part->parts != towers) return false;
      const std::vector<KerasCall>& cuts = layer(tensor.layer).calls;
      if (static_cast<size_t>(tensor.call) >= cuts.size()) return false;
      const KerasCall& cut = cuts[static_cast<size_t>(tensor.call)];
      if (cut.inputs != std::vector{model_.inputs[i]}) return false;
    }
    return true;
  }

  /// Returns true if a tensor is the concatenation of all towers' outputs with this index, in the order of
  /// the towers.
  bool joins_output(const KerasTensor& tensor, int output, int towers) const {
    const KerasModelLayer& join = layer(tensor.layer);
    if (!joins_batches(join) || static_cast<size_t>(tensor.call) >= join.calls.size()) return false;
    const std::vector<KerasTensor>& parts = join.calls[static_cast<size_t>(tensor.call)].inputs;
    if (parts.size() != static_cast<size_t>(towers)) return false;
    for (int tower = 0; tower < towers; ++tower)
      if (parts[static_cast<size_t>(tower)] != KerasTensor{inner_, tower, output}) return false;
    return true;
  }

  const KerasModel& model_;
  int inner_;
};

}  // namespace

std::vector<int> remove_towers(std::shared_ptr<const KerasModel>& model) {
  std::vector<int> towers;
  while (true) {
    const Wrapper wrapper(*model);
    const int count = wrapper.towers();
    if (count == 0) return towers;
    towers.push_back(count);
    model = wrapper.inner();
  }
}

}  // namespace dtrain
