#include "train/exported_training.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "config/schema.h"
#include "interop/keras/export/graph_layers.h"
#include "interop/keras/export/mask_copies.h"
#include "interop/training_formats.h"
#include "run/learning_rate.h"
#include "train/keras_training.h"

namespace dtrain {

namespace {

/// Adds the module name to an object, or to each object of a list, as Keras 3 does for class names.
Json in_module(Json object, const char* module) {
  if (object.is_array()) {
    Json all = Json::array();
    for (const Json& one : object.items()) all.push(in_module(one, module));
    return all;
  }
  if (object.is_object()) object.set("module", module).set("registered_name", Json());
  return object;
}

struct KerasOptimizer {
  Json config;
  std::optional<float> learning_rate;  // nullopt for a schedule
};

/// Converts the run's optimizer to an optimizer of Keras 3, whose options have the same names as dtrain's.
/// `rate` is the learning rate of the next step.
KerasOptimizer keras_3_optimizer(const RunConfig& config, const RunLength& length, const Json& schedule,
                                 double rate, std::string& warning) {
  const Configured<Optimizer>& optimizer = config.train.optimizer;
  KerasOptimizer result;
  Json options = Json::object().set("name", optimizer.name);
  const Json written = to_json(optimizer.resolved.entries().front().second);
  for (const auto& [key, value] : written.entries()) {
    if (key == "learning_rate") continue;
    const bool is_off = key == "weight_decay" && value.is_number() && value.as_double() == 0;
    options.set(key, is_off ? Json() : value.is_number() ? Json(value.as_double()) : value);
  }
  const Configured<Schedule> rates = schedule_of(optimizer);
  if (!schedule_formats(rates.name).keras_class.empty()) {
    options.set("learning_rate",
                in_module(keras_learning_rate(rates, length, schedule), "keras.optimizers.schedules"));
  } else {
    if (rates.name != "constant")
      warning = fmt::format("Keras has no schedule '{}', so the learning rate stays {}", rates.name, rate);
    result.learning_rate = static_cast<float>(rate);
    options.set("learning_rate", rate);
  }
  if (config.train.clip_norm) options.set("global_clipnorm", *config.train.clip_norm);
  if (config.train.clip_value) options.set("clipvalue", *config.train.clip_value);
  result.config = in_module(Json::object()
                                .set("class_name", optimizer_formats(optimizer.name).keras_class)
                                .set("config", std::move(options)),
                            "keras.optimizers");
  return result;
}

/// Returns the steps per epoch over the split that the checkpoint's run was trained on; 1 if the state does
/// not record it.
int64_t steps_per_epoch_of(const RunConfig& config, const TrainingState& state) {
  const auto train = state.data.find("train");
  if (train == state.data.end()) return 1;
  const DataIdentity& data = train->second;
  const int64_t samples = data.drawn.empty() ? data.to - data.from : data.samples;
  return std::max<int64_t>(1, (samples + config.train.batch_size - 1) / config.train.batch_size);
}

struct TrainedParameter {
  std::string path;
  Shape shape;
};

/// Returns the array of a slot that the checkpoint has for a weight.
const ArrayRef& stored_slot(const SavedRun& run, const std::string& slot, const std::string& weight) {
  const ArrayRef* array = run.checkpoint.slot(slot, weight);
  if (!array)
    throw UserError(fmt::format("{}: the checkpoint has no optimizer state '{}' for the weight '{}'",
                                run.checkpoint.path(), slot, weight));
  return *array;
}

/// Adds the array of a slot that Keras stores for a weight. dtrain stores only the means of its rows and
/// columns, so the array is computed from these means (OptimizerFormats::is_factored).
void add_computed_slot(const SavedRun& run, const std::vector<Optimizer::Slot>& slots,
                       const TrainedParameter& weight, KerasTraining& training) {
  const auto means = [&](SlotShape shape) {
    const auto slot = std::find_if(slots.begin(), slots.end(),
                                   [&](const Optimizer::Slot& one) { return one.shape == shape; });
    return static_cast<const float*>(stored_slot(run, slot->name, weight.path).data);
  };
  const bool is_vector = weight.shape.rank() < 2;
  training.computed.push_back(std::make_shared<const std::vector<float>>(
      is_vector
          ? std::vector<float>(1)
          : factored_squares(weight.shape, means(SlotShape::row_means), means(SlotShape::column_means))));
  training.slots.push_back(
      {"", is_vector ? Shape() : weight.shape, DType::float32, training.computed.back()->data()});
}

/// Adds the optimizer slots in the order in which Keras creates optimizer variables: parameter by parameter
/// for Adam-like optimizers, else slot by slot.
void add_slots(const SavedRun& run, KerasTraining& training) {
  const Graph graph = with_mask_copies(run.config.graph);
  std::vector<TrainedParameter> weights;  // in Keras's order
  for (const KerasLayer& layer : keras_layers(graph)) {
    const GraphNode& node = graph.nodes[static_cast<size_t>(layer.node)];
    for (const ParameterSpec& parameter : node.parameters)
      if (node.trains(parameter)) weights.push_back({node.name + "/" + parameter.name, parameter.shape});
  }
  const Configured<Optimizer>& optimizer = run.config.train.optimizer;
  const std::vector<Optimizer::Slot> slots = keras_slots(optimizer);
  const auto add = [&](const Optimizer::Slot& slot, const TrainedParameter& weight) {
    if (slot.shape_for(weight.shape))
      training.slots.push_back(stored_slot(run, slot.name, weight.path));
    else
      add_computed_slot(run, slots, weight, training);
  };
  if (optimizer_formats(optimizer.name).is_by_weight)
    for (const TrainedParameter& weight : weights)
      for (const Optimizer::Slot& slot : slots) add(slot, weight);
  else
    for (const Optimizer::Slot& slot : slots)
      for (const TrainedParameter& weight : weights) add(slot, weight);
}

/// Returns why Keras cannot continue a run's training; "" if it can.
std::string why_not_in_keras(const SavedRun& run, const TrainingState& state) {
  const RunConfig& config = run.config;
  if (!config.has_training()) return "the model was not trained by dtrain";
  if (!config.train.groups.empty()) return "train.groups sets different options for some weights";
  if (!state.slots_since.empty())
    return "the optimizer state of some weights did not begin at the start of the run";
  if (const std::string& kind = config.train.optimizer.name; optimizer_formats(kind).keras_class.empty())
    return fmt::format("Keras has no optimizer '{}'", kind);
  for (const OptimizerSlot& slot : run.checkpoint.content().slots)
    if (slot.name == "unaveraged") return "the weights in the file are moving averages";
  return !keras_outputs(config).is_null() ? "" : "Keras does not have this loss, or averages it differently";
}

}  // namespace

std::optional<KerasTraining> keras_training(const SavedRun& run, std::string& why_not, std::string& warning) {
  const TrainingState state = saved_state(run.checkpoint);
  why_not = why_not_in_keras(run, state);
  if (!why_not.empty()) return std::nullopt;
  const RunConfig& config = run.config;
  const int64_t steps_per_epoch = steps_per_epoch_of(config, state);
  const RunLength length = run_length(config, steps_per_epoch, state.schedule_shift(steps_per_epoch));
  const double rate = config.train.optimizer->learning_rate().at(state.step, length, state.schedule);
  KerasOptimizer optimizer = keras_3_optimizer(config, length, state.schedule, rate, warning);
  const Json outputs = keras_outputs(config);
  KerasTraining training;
  training.compile_config =
      Json::object()
          .set("optimizer", std::move(optimizer.config))
          .set("loss", in_module(outputs.at("loss"), "keras.losses"))
          .set("loss_weights", outputs.at("loss_weights"))
          .set("metrics", in_module(outputs.at("metrics"), "keras.metrics"))
          .set("weighted_metrics", in_module(outputs.at("weighted_metrics"), "keras.metrics"))
          .set("run_eagerly", false)
          .set("steps_per_execution", 1)
          .set("jit_compile", false);
  training.iteration = state.step;
  training.learning_rate = optimizer.learning_rate;
  add_slots(run, training);
  if (const auto& number = optimizer_formats(config.train.optimizer.name).number_after_slots)
    training.last_number =
        static_cast<float>(number(KindSettings(config.train.optimizer.resolved), state.step));
  return training;
}

}  // namespace dtrain
