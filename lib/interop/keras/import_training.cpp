#include "interop/keras/import_training.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "interop/keras/json.h"
#include "interop/keras/layer_reader.h"
#include "nn/loss.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace dtrain {

namespace {

/// The class or function, and the options, of an object that Keras serialized.
struct Serialized {
  std::string name;
  Json options = Json::object();
};

Serialized read_object(const Json& written) {
  if (written.is_string()) return {written.as_string()};
  Serialized object{text_at(written, "class_name")};
  const Json* config = value_at(written, "config");
  if (config && config->is_string()) object.name = config->as_string();
  if (config && config->is_object()) object.options = *config;
  return object;
}

ConfigNode kind_with(const std::string& name, std::vector<ConfigNode::Entry> options) {
  if (options.empty()) return ConfigNode::scalar(name);
  return ConfigNode::mapping({ConfigNode::entry(name, ConfigNode::mapping(std::move(options)))});
}

/// Keras's names of the options of schedules, and dtrain's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kScheduleOptions{
    {{"initial_learning_rate", "initial"},
     {"end_learning_rate", "end"},
     {"decay_steps", "steps"},
     {"warmup_target", "initial"}}};

class TrainingReader {
 public:
  TrainingReader(const Json& config, int keras_major) : config_(config), keras_major_(keras_major) {}

  /// The `train:` part. `outputs`: the names of the model's outputs.
  ConfigNode read(const std::vector<std::string>& outputs) {
    const Json* optimizer = value_at(config_, keras_major_ < 3 ? "optimizer_config" : "optimizer");
    if (!optimizer) optimizer = value_at(config_, "optimizer_config");
    const Json* loss = value_at(config_, "loss");
    std::vector<ConfigNode::Entry> train;
    if (loss) train.push_back(ConfigNode::entry("loss", read_losses(*loss, outputs)));
    if (!loss) problems_.emplace_back("the file has no loss");
    if (optimizer) train.push_back(ConfigNode::entry("optimizer", read_optimizer(*optimizer, train)));
    if (!optimizer) problems_.emplace_back("the file has no optimizer");
    if (const Json* weights = value_at(config_, "loss_weights"); weights && weights->dump() != "[]")
      problems_.push_back(fmt::format("has loss_weights: {}", weights->dump()));
    if (!problems_.empty())
      throw UserError(
          fmt::format("dtrain cannot express the file's training (import it without --with-optimizer):\n  {}",
                      fmt::join(problems_, "\n  ")));
    return ConfigNode::mapping(std::move(train));
  }

  const std::string& optimizer() const { return optimizer_; }
  bool has_schedule() const { return has_schedule_; }

 private:
  ConfigNode read_losses(const Json& loss, const std::vector<std::string>& outputs) {
    const bool is_object = value_at(loss, "class_name") != nullptr;
    if (loss.is_array() && loss.items().size() == 1) return read_loss(loss.items().front());
    if (loss.is_string() || is_object) return read_loss(loss);
    std::vector<ConfigNode::Entry> losses;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Json* one =
          loss.is_array() && i < loss.items().size() ? &loss.items()[i] : value_at(loss, outputs[i].c_str());
      if (one) losses.push_back(ConfigNode::entry(outputs[i], read_loss(*one)));
      if (!one) problems_.push_back(fmt::format("the output '{}' has no loss", outputs[i]));
    }
    return ConfigNode::mapping(std::move(losses));
  }

  ConfigNode read_loss(const Json& written) {
    const Serialized object = read_object(written);
    const std::string kind = registry<Loss>().canonical(object.name);
    if (kind.empty()) {
      problems_.push_back(fmt::format("dtrain has no loss {}", object.name));
      return {};
    }
    const std::vector<std::string> fields = registry<Loss>().fields(kind);
    std::vector<ConfigNode::Entry> options;
    for (const auto& [key, value] : object.options.entries()) {
      const bool is_usual =
          key == "name" || key == "dtype" || key == "fn" ||
          (key == "axis" && value.is_int() && value.as_int() == -1) || value.is_null() ||
          (key == "reduction" && value.is_string() &&
           (value.as_string().starts_with("sum_over_batch") || value.as_string() == "auto"));
      if (is_usual) continue;
      if (std::find(fields.begin(), fields.end(), key) == fields.end())
        problems_.push_back(fmt::format("the loss {} has {}: {}", object.name, key, value.dump()));
      else if (!(value.is_bool() && !value.as_bool()) && !(value.is_number() && value.as_double() == 0))
        options.push_back(ConfigNode::entry(key, config_of_json(value)));
    }
    return kind_with(kind, std::move(options));
  }

  ConfigNode read_optimizer(const Json& written, std::vector<ConfigNode::Entry>& train) {
    const Serialized object = read_object(written);
    optimizer_ = registry<Optimizer>().canonical(object.name);
    if (optimizer_.empty()) {
      problems_.push_back(fmt::format("dtrain has no optimizer {}", object.name));
      return {};
    }
    const std::vector<std::string> fields = registry<Optimizer>().fields(optimizer_);
    std::vector<ConfigNode::Entry> options;
    for (const auto& [key, value] : object.options.entries()) {
      if (value.is_null() || (value.is_bool() && !value.as_bool()) || key == "name" ||
          key == "is_legacy_optimizer" || key == "jit_compile" || key == "ema_momentum")
        continue;
      if (key == "learning_rate" || key == "lr")
        options.push_back(ConfigNode::entry("learning_rate", read_rate(value)));
      else if (key == "global_clipnorm")
        train.push_back(ConfigNode::entry("clip_norm", config_of_json(value)));
      else if (key == "clipvalue")
        train.push_back(ConfigNode::entry("clip_value", config_of_json(value)));
      else if (std::find(fields.begin(), fields.end(), key) != fields.end())
        options.push_back(ConfigNode::entry(key, config_of_json(value)));
      else if (!(key == "decay" && value.is_number() && value.as_double() == 0))
        problems_.push_back(fmt::format("the optimizer {} has {}: {}", object.name, key, value.dump()));
    }
    return kind_with(optimizer_, std::move(options));
  }

  ConfigNode read_rate(const Json& written) {
    if (written.is_number()) return config_of_json(written);
    const Serialized object = read_object(written);
    const std::string kind = registry<Schedule>().canonical(object.name);
    has_schedule_ = true;
    const std::vector<std::string> fields =
        kind.empty() ? std::vector<std::string>() : registry<Schedule>().fields(kind);
    std::vector<ConfigNode::Entry> options;
    bool is_known = !kind.empty();
    const bool warms_up = value_at(object.options, "warmup_target") != nullptr;
    for (const auto& [key, value] : object.options.entries()) {
      if (key == "name" || value.is_null()) continue;
      const auto renamed =
          std::find_if(kScheduleOptions.begin(), kScheduleOptions.end(),
                       [&, name = std::string_view(key)](const auto& one) { return one.first == name; });
      std::string own = renamed == kScheduleOptions.end() ? key : std::string(renamed->second);
      if (key == "decay_steps" && kind == "exponential_decay") own = key;
      if (key == "initial_learning_rate" && warms_up) own = "warmup_initial";
      is_known = is_known && std::find(fields.begin(), fields.end(), own) != fields.end();
      options.push_back(ConfigNode::entry(own, config_of_json(value)));
    }
    if (!is_known) problems_.push_back(fmt::format("dtrain has no schedule {}", written.dump()));
    return kind_with(kind.empty() ? "constant" : kind, std::move(options));
  }

  const Json& config_;
  int keras_major_;
  std::string optimizer_;
  bool has_schedule_ = false;
  std::vector<std::string> problems_;
};

/// The trained weights in the order of Keras's trainable_variables.
void add_trained(const KerasModel& model, const ImportedModel& imported,
                 const std::map<std::string, const GraphNode*>& nodes, std::vector<std::string>& weights) {
  for (const KerasModelLayer& layer : model.layers) {
    if (layer.model) add_trained(*layer.model, imported, nodes, weights);
    const auto name = imported.names.find(&layer);
    const auto node = name == imported.names.end() ? nodes.end() : nodes.find(name->second);
    if (layer.model || node == nodes.end() || !layer.trainable) continue;
    for (const ParameterSpec& parameter : node->second->parameters) {
      std::string path = name->second + "/" + parameter.name;
      const bool is_known = std::find(weights.begin(), weights.end(), path) != weights.end();
      if (!parameter.moving_average && !is_known) weights.push_back(std::move(path));
    }
  }
}

/// The slots in the order in which Keras makes them (exported_training.cpp writes them so).
void take_slots(const std::string& optimizer, std::vector<std::string> slots,
                const std::vector<std::string>& trained, const std::vector<KerasWeight>& arrays, size_t first,
                ImportedTraining& result) {
  if (optimizer == "rmsprop" && slots.size() == 3) std::swap(slots[1], slots[2]);
  const bool by_weight = optimizer == "adam" || optimizer == "adamw" || optimizer == "lamb";
  size_t next = first;
  const auto take = [&](const std::string& slot, const std::string& weight) {
    result.slots[slot][weight] = arrays[next++];
  };
  if (by_weight)
    for (const std::string& weight : trained)
      for (const std::string& slot : slots) take(slot, weight);
  else
    for (const std::string& slot : slots)
      for (const std::string& weight : trained) take(slot, weight);
}

}  // namespace

ImportedTraining import_keras_training(const Json& training_config, const KerasModel& file_model,
                                       const ImportedModel& imported, const Graph& graph,
                                       const KerasWeights& weights, int keras_major) {
  if (training_config.is_null())
    throw UserError("the file was not compiled: it has no optimizer; import it without --with-optimizer");
  ImportedTraining result;
  std::vector<std::string> outputs;
  for (const ValueRef& output : graph.outputs) outputs.push_back(graph.layer_name(output.node));
  TrainingReader reader(training_config, keras_major);
  result.train = reader.read(outputs);
  result.left_out.emplace_back("the metrics");
  Diagnostics mistakes;
  const Configured<Optimizer> optimizer =
      registry<Optimizer>().parse(*result.train.find("optimizer"), mistakes);
  mistakes.throw_if_errors();

  std::map<std::string, const GraphNode*> nodes;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_activation_of_previous) nodes.emplace(node.name, &node);
  std::vector<std::string> trained, slots;
  add_trained(file_model, imported, nodes, trained);
  for (const Optimizer::Slot& slot : optimizer->slots()) slots.push_back(slot.name);
  const std::vector<KerasWeight>& arrays = weights.optimizer;
  const size_t first = reader.has_schedule() ? 1 : 2;
  const bool is_read = keras_major >= 3 && arrays.size() == first + slots.size() * trained.size() &&
                       arrays.front().integer.has_value();
  if (!is_read) {
    result.left_out.push_back(arrays.empty() || keras_major < 3
                                  ? "the optimizer's state, which is read from files of Keras 3 only"
                                  : fmt::format("the optimizer's state: expected {} arrays, found {}",
                                                first + slots.size() * trained.size(), arrays.size()));
    return result;
  }
  result.iteration = *arrays.front().integer;
  take_slots(reader.optimizer(), slots, trained, arrays, first, result);
  for (auto& [slot, by_weight] : result.slots)
    for (const KerasModelLayer* layer : imported.moved_channels)
      if (const auto alpha = by_weight.find(imported.names.at(layer) + "/alpha"); alpha != by_weight.end())
        alpha->second = with_channels_last(alpha->second);
  return result;
}

}  // namespace dtrain
