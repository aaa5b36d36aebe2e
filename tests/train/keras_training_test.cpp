// Tests the training_config that a checkpoint stores for Keras.
#include "train/keras_training.h"

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr auto kRun = R"(
model:
  inputs: {x: [4]}
  layers:
    - dense: {units: 8, name: trunk}
    - dense: {units: 3, name: digit}
    - dense: {units: 1, name: ink, inputs: trunk}
  outputs: [digit, ink]
dataset: {train: {synthetic: {samples: 8, targets: {digit: {classes: 3}, ink: {shape: [1]}}}}}
train:
  loss: {digit: {sparse_categorical_crossentropy: {from_logits: true}}, ink: mean_squared_error}
  optimizer: {sgd: {learning_rate: 0.5, momentum: 0}}
)";

constexpr auto kSingle = R"(
model: {inputs: {x: [4]}, layers: [dense: {units: 3}]}
dataset: {train: {synthetic: {samples: 8, target: {classes: 3}}}}
train:
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: adam
  metrics: [accuracy, {sparse_top_k_categorical_accuracy: {k: 2}}]
)";

/// Returns Keras's form of this optimizer in a run with one output; "null" if Keras has none.
std::string optimizer(const std::string& optimizer, const Json& schedule = {}) {
  const Json config =
      keras_training_config(config_from(kSingle, {"train.optimizer=" + optimizer}), 1, schedule);
  return config.is_null() ? "null" : config.at("optimizer_config").dump();
}

}  // namespace

TEST_CASE("the training_config of one output has a loss, a list of metrics and the optimizer") {
  const Json config = keras_training_config(config_from(kSingle, {"train.clip_norm=2"}), 1, {});
  CHECK(config.at("loss").at("class_name").as_string() == "SparseCategoricalCrossentropy");
  CHECK(config.at("metrics").dump() ==
        R"([{"class_name": "SparseCategoricalAccuracy", "config": {"name": "accuracy"}}, )"
        R"({"class_name": "SparseTopKCategoricalAccuracy", "config": {"k": 2, )"
        R"("name": "sparse_top_k_categorical_accuracy"}}])");
  CHECK(config.at("weighted_metrics").is_null());
  CHECK(config.at("loss_weights").is_null());
  CHECK(config.at("optimizer_config").dump() ==
        R"({"class_name": "Adam", "config": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07, )"
        R"("learning_rate": 0.001, "global_clipnorm": 2.0}})");
}

TEST_CASE("a learning rate decay to the end of the training is written with the steps of all epochs") {
  const Json config = keras_training_config(
      config_from(kSingle, {"train.epochs=5", "train.optimizer.adam.learning_rate={cosine_decay: 0.1}"}), 7,
      {});
  CHECK(config.at("optimizer_config")
            .at("config")
            .at("learning_rate")
            .at("config")
            .at("decay_steps")
            .as_int() == 35);
}

TEST_CASE("there is no training_config if Keras would minimize a different loss") {
  const auto told = [](const std::vector<std::string>& sets) {
    return !keras_training_config(config_from(kSingle, sets), 1, {}).is_null();
  };
  CHECK(told({}));
  // Keras divides the loss of a batch by the number of rows. dtrain divides it by the sum of the row weights,
  // so it writes no training_config.
  CHECK(!told({"train.class_weight=balanced"}));
  CHECK(!told({"train.loss={sparse_categorical_crossentropy: {from_logits: true, label_smoothing: 0.1}}"}));
}

TEST_CASE("the training_config of several outputs has lists in their order") {
  const Json config = keras_training_config(config_from(kRun), 1, {});
  REQUIRE(config.at("loss").items().size() == 2);
  CHECK(config.at("loss").items()[1].at("class_name").as_string() == "MeanSquaredError");
  CHECK(config.at("metrics").dump() == "[[], []]");
  CHECK(config.at("optimizer_config").at("config").dump() ==
        R"({"momentum": 0.0, "nesterov": false, "learning_rate": 0.5})");
}

TEST_CASE("the training_config has loss weights and weighted metrics, and omits what Keras cannot express") {
  const Json config = keras_training_config(
      config_from(kRun, {"train.loss.ink={mean_squared_error: {weight: 0.5}}",
                         "train.metrics={ink: [r2_score], digit: [confusion_matrix, mean_iou, f1_score]}",
                         "train.weighted_metrics={ink: [mean_absolute_error]}"}),
      1, {});
  CHECK(config.at("loss_weights").dump() == "[1.0, 0.5]");
  CHECK(
      config.at("metrics").dump() ==
      R"([[{"class_name": "MeanIoU", "config": {"num_classes": 3, "sparse_y_true": true, )"
      R"("sparse_y_pred": false, "name": "mean_iou"}}], )"
      R"([{"class_name": "R2Score", "config": {"class_aggregation": "uniform_average", "name": "r2_score"}}]])");
  CHECK(config.at("weighted_metrics").dump() ==
        R"([[], [{"class_name": "MeanAbsoluteError", "config": {"name": "mean_absolute_error"}}]])");
}

TEST_CASE(
    "optimizers and schedules are written in the common form of Keras 2 and 3, or omitted if there is none") {
  CHECK(
      optimizer("rmsprop") ==
      R"({"class_name": "RMSprop", "config": {"rho": 0.9, "momentum": 0.0, "epsilon": 1e-07, "centered": false, )"
      R"("learning_rate": 0.001}})");
  CHECK(optimizer("adagrad") ==
        R"({"class_name": "Adagrad", "config": {"initial_accumulator_value": 0.1, "epsilon": 1e-07, )"
        R"("learning_rate": 0.001}})");
  CHECK(optimizer("adamax") ==
        R"({"class_name": "Adamax", "config": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07, )"
        R"("learning_rate": 0.001}})");
  CHECK(optimizer("adadelta") ==
        R"({"class_name": "Adadelta", "config": {"rho": 0.95, "epsilon": 1e-07, "learning_rate": 0.001}})");
  CHECK(optimizer("nadam") == "null");
  CHECK(optimizer("adamw") == "null");
  CHECK(optimizer("{adamw: {weight_decay: 0}}") == optimizer("adam"));
  CHECK(optimizer("{sgd: {weight_decay: 0.1}}") == "null");
  CHECK(
      optimizer(
          "{adagrad: {learning_rate: {exponential_decay: {initial: 1, decay_steps: 5, decay_rate: 0.5}}}}") ==
      "null");
  const auto rate = [](const std::string& schedule, const Json& state = {}) {
    return Json::parse(optimizer("{sgd: {learning_rate: {" + schedule + "}}}", state))
        .at("config")
        .at("learning_rate")
        .dump();
  };
  const std::string module = R"({"module": "keras.optimizers.schedules", "class_name": ")";
  const std::string end = R"(}, "registered_name": null})";
  CHECK(rate("exponential_decay: {initial: 1, decay_steps: 5, decay_rate: 0.5, staircase: true}") ==
        module + R"(ExponentialDecay", "config": {"initial_learning_rate": 1.0, "decay_steps": 5, )" +
            R"("decay_rate": 0.5, "staircase": true)" + end);
  CHECK(rate("piecewise_constant: {boundaries: [3, 7], values: [1, 0.5, 0]}") ==
        module + R"(PiecewiseConstantDecay", "config": {"boundaries": [3, 7], "values": [1.0, 0.5, 0.0])" +
            end);
  CHECK(rate("cosine_decay: {initial: 1, steps: 5}") ==
        module + R"(CosineDecay", "config": {"decay_steps": 5, "alpha": 0.0, "initial_learning_rate": 1.0)" +
            end);
  CHECK(rate("cosine_decay: {initial: 1, steps: 5, alpha: 0.1, warmup_steps: 2, warmup_initial: 0.25}") ==
        module +
            R"(CosineDecay", "config": {"decay_steps": 5, "alpha": 0.1, "initial_learning_rate": 0.25, )" +
            R"("warmup_target": 1.0, "warmup_steps": 2)" + end);
  const std::string plateau = "reduce_on_plateau: {initial: 1, monitor: loss, factor: 0.5, patience: 0}";
  CHECK(rate(plateau) == "1.0");
  const Json reduced = Json::object()
                           .set("scale", 0.25)
                           .set("best", Json())
                           .set("wait", 0)
                           .set("cooldown", 0)
                           .set("watched", "min loss");
  CHECK(rate(plateau, reduced) == "0.25");
}
