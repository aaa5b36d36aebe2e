#include "interop/keras/import/model_calls.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/keras/files/json.h"
#include "interop/layer_formats.h"

namespace dtrain {

namespace {

constexpr size_t kMostCalls = 100'000;
constexpr const char* kCausal = "use_causal_mask";
constexpr const char* kReverse = "reverse";
constexpr const char* kTraining = "training";

/// Sorts the calls of one model topologically. Each model within the model is sorted by a separate object.
class ModelOrder {
 public:
  ModelOrder(const KerasModel& model, std::string prefix, KerasCalls& result)
      : model_(model), prefix_(std::move(prefix)), result_(result) {
    for (const KerasModelLayer& layer : model.layers) {
      const size_t calls = layer.is_input() ? 1 : layer.calls.size();
      pending_.emplace_back(calls);
      values_.emplace_back(calls);
    }
  }

  /// Adds the calls to the result. `inputs`: the values of the model's inputs. Returns the values of the
  /// model's outputs.
  std::vector<KerasValue> add(const std::vector<KerasValue>& inputs) {
    set_inputs(inputs);
    find_needed();
    while (!ready_.empty()) {
      const Place place = ready_.top();
      ready_.pop();
      compute(place);
    }
    std::vector<KerasValue> outputs;
    for (const KerasTensor& output : model_.outputs) outputs.push_back(value_of(output));
    return outputs;
  }

 private:
  using Place = std::pair<int, int>;  // indices of a layer and of one of its calls

  struct Pending {
    int waits_for = 0;  // number of calls that this call reads and that have not been added to the result yet
    std::vector<Place> readers;  // calls that read the outputs of this call
    bool is_needed = false;
    bool is_of_mask = false;  // true if this call is needed only to compute masks
  };

  const KerasModelLayer& layer(int number) const { return model_.layers[static_cast<size_t>(number)]; }
  Pending& pending(const Place& place) {
    return pending_[static_cast<size_t>(place.first)][static_cast<size_t>(place.second)];
  }

  void set_inputs(const std::vector<KerasValue>& inputs) {
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      const KerasTensor& input = model_.inputs[i];
      const std::string model = prefix_.empty()
                                    ? "the model"
                                    : fmt::format("the model '{}'", prefix_.substr(0, prefix_.size() - 1));
      if (i >= inputs.size())
        throw UserError(fmt::format("{} has {}, but a call passes {}", model,
                                    format_plural(static_cast<int64_t>(model_.inputs.size()), "input"),
                                    format_plural(static_cast<int64_t>(inputs.size()), "input")));
      if (!layer(input.layer).is_input())
        throw UserError(fmt::format("{} lists inputs that are not InputLayers", model));
      values_[static_cast<size_t>(input.layer)][0] = {inputs[i]};
    }
  }

  void need(const KerasTensor& tensor, bool of_mask, std::vector<Place>& found) {
    const Place place{tensor.layer, tensor.call};
    if (std::exchange(pending(place).is_needed, true)) return;
    pending(place).is_of_mask = of_mask;
    found.push_back(place);
  }

  /// Finds the calls on which the model's outputs and masks depend. Adds the calls that do not read any other
  /// call to ready_.
  void find_needed() {
    std::vector<Place> found;
    for (const KerasTensor& output : model_.outputs) need(output, false, found);
    size_t followed = 0;
    const auto follow = [&](bool of_mask) {
      for (; followed < found.size(); ++followed) {
        const Place place = found[followed];
        if (layer(place.first).is_input()) continue;
        for (const KerasTensor& input : call_at(place).inputs) need(input, of_mask, found);
      }
    };
    follow(false);
    for (size_t i = 0; i < found.size(); ++i) {
      if (layer(found[i].first).is_input()) continue;
      for (const KerasMaskArgument& mask : call_at(found[i]).masks) need(mask.tensor, true, found);
      follow(true);
    }
    for (const Place& place : found) {
      if (layer(place.first).is_input()) continue;
      for (const KerasTensor& input : call_at(place).inputs) wait(place, input);
      for (const KerasMaskArgument& mask : call_at(place).masks) wait(place, mask.tensor);
      if (pending(place).waits_for == 0) ready_.push(place);
    }
  }

  void wait(const Place& place, const KerasTensor& tensor) {
    if (layer(tensor.layer).is_input()) return;
    ++pending(place).waits_for;
    pending({tensor.layer, tensor.call}).readers.push_back(place);
  }

  const KerasCall& call_at(const Place& place) const {
    return layer(place.first).calls[static_cast<size_t>(place.second)];
  }

  KerasValue value_of(const KerasTensor& tensor) const {
    const auto& outputs = values_[static_cast<size_t>(tensor.layer)][static_cast<size_t>(tensor.call)];
    if (static_cast<size_t>(tensor.output) < outputs.size())
      return outputs[static_cast<size_t>(tensor.output)];
    throw UserError(fmt::format("{}{}: an output is read before it is computed, or does not exist", prefix_,
                                layer(tensor.layer).name));
  }

  void compute(const Place& place) {
    std::vector<KerasValue> inputs;
    for (const KerasTensor& input : call_at(place).inputs) inputs.push_back(value_of(input));
    const KerasModelLayer& called = layer(place.first);
    const std::string path = prefix_ + called.name;
    const bool is_causal =
        called.class_name.ends_with("Attention") && is_true_at(call_at(place).arguments, kCausal);
    const bool is_reverse =
        called.class_name == kKerasReversibleEmbedding && is_true_at(call_at(place).arguments, kReverse);
    // Keras 3 writes the default argument `training: true` for calls of Resizing. This argument has no effect
    // on the layer.
    const bool is_resizing = called.class_name == "Resizing";
    if (!pending(place).is_of_mask)
      check_arguments(call_at(place), path,
                      is_causal     ? kCausal
                      : is_reverse  ? kReverse
                      : is_resizing ? kTraining
                                    : "");
    for (const KerasMaskArgument& mask : call_at(place).masks)
      if (!inputs.empty())
        result_.given_masks.push_back({path, inputs[std::min(mask.input, inputs.size() - 1)],
                                       value_of(mask.tensor), result_.calls.size(), called.model != nullptr});
    auto& outputs = values_[static_cast<size_t>(place.first)][static_cast<size_t>(place.second)];
    if (called.model) {
      outputs = ModelOrder(*called.model, path + "/", result_).add(inputs);
    } else {
      if (result_.calls.size() >= kMostCalls)
        throw UserError(fmt::format("{}: the model has more than {} layer calls", path, kMostCalls));
      for (int output = 0; output < count_outputs(called); ++output)
        outputs.push_back({static_cast<int>(result_.calls.size()), -1, output});
      result_.calls.push_back(
          {&called, path, std::move(inputs), is_causal, is_reverse, constant_of(call_at(place))});
    }
    for (const Place& reader : pending(place).readers)
      if (--pending(reader).waits_for == 0) ready_.push(reader);
  }

  /// Returns the number of outputs of a call. Recurrent layers with return_state also return their states.
  static int count_outputs(const KerasModelLayer& layer) {
    const auto states_of = [](const std::string& class_name, const Json& config) {
      if (!is_true_at(config, "return_state")) return 0;
      return class_name == "LSTM" ? 2 : 1;
    };
    const Json* const inner = value_at(layer.config, "layer");
    const Json* const inner_config = inner ? value_at(*inner, "config") : nullptr;
    if (layer.class_name != "Bidirectional" || !inner_config)
      return 1 + states_of(layer.class_name, layer.config);
    const int sequences = value_at(layer.config, "merge_mode") ? 1 : 2;
    return sequences + 2 * states_of(text_at(*inner, "class_name"), *inner_config);
  }

  /// Returns the constant second operand of an operation. Keras 2 writes it as the argument `y`.
  static std::optional<double> constant_of(const KerasCall& call) {
    const Json* const value = call.constants.size() == 1 ? &call.constants[0] : call.arguments.find("y");
    if (!value || !value->is_number()) return std::nullopt;
    return value->as_double();
  }

  /// Returns an argument as text for a message.
  static std::string shown(const Json& value) {
    const Json* const config = value_at(value, "config");
    const Json* const history = config ? value_at(*config, "keras_history") : nullptr;
    if (history && history->is_array() && !history->items().empty() && history->items()[0].is_string())
      return fmt::format("the output of '{}'", history->items()[0].as_string());
    return value.is_object() ? "an array" : value.dump();
  }

  /// Reports the arguments of a call as problems, except the argument `known`. Arguments with the value
  /// false, such as `training: false`, are not reported, because they have no effect on predictions.
  void check_arguments(const KerasCall& call, const std::string& path, std::string_view known) {
    for (const auto& [key, value] : call.arguments.entries()) {
      if (value.is_bool() && !value.as_bool()) continue;
      if (key == known) continue;
      result_.problems.push_back(fmt::format("{}: is called with {}={}", path, key, shown(value)));
    }
    for (const Json& value : call.constants)
      result_.problems.push_back(fmt::format("{}: is called with the constant {}", path, shown(value)));
  }

  const KerasModel& model_;
  std::string prefix_;
  KerasCalls& result_;
  std::vector<std::vector<Pending>> pending_;                 // indexed by layer and call
  std::vector<std::vector<std::vector<KerasValue>>> values_;  // indexed by layer, call and output
  std::priority_queue<Place, std::vector<Place>, std::greater<>> ready_;
};

}  // namespace

KerasCalls list_calls(const KerasModel& model) {
  KerasCalls result;
  std::vector<KerasValue> inputs;
  for (size_t i = 0; i < model.inputs.size(); ++i) inputs.push_back({-1, static_cast<int>(i)});
  result.outputs = ModelOrder(model, "", result).add(inputs);
  return result;
}

}  // namespace dtrain
