// Tests the import of losses, metrics and optimizers from Keras files in the formats of different Keras
// versions.
#include <numeric>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "interop/keras/import/graph.h"
#include "interop/keras/import/training.h"
#include "interop/training_formats.h"
#include "support/errors.h"

using namespace dtrain;

namespace {

/// A model with two outputs: three classes, and one number.
constexpr const char* kModel = R"({"class_name": "Functional", "config": {"name": "net", "layers": [
  {"class_name": "InputLayer", "name": "x", "config": {"name": "x", "batch_input_shape": [null, 4]}, "inbound_nodes": []},
  {"class_name": "Dense", "name": "kind", "config": {"name": "kind", "units": 3, "activation": "softmax"},
   "inbound_nodes": [[["x", 0, 0, {}]]]},
  {"class_name": "Dense", "name": "size", "config": {"name": "size", "units": 1}, "inbound_nodes": [[["x", 0, 0, {}]]]}],
  "input_layers": [["x", 0, 0]], "output_layers": [["kind", 0, 0], ["size", 0, 0]]}})";

constexpr const char* kOneOutput = R"({"class_name": "Sequential", "config": {"name": "net", "layers": [
  {"class_name": "InputLayer", "config": {"name": "x", "batch_input_shape": [null, 4]}},
  {"class_name": "Dense", "config": {"name": "kind", "units": 3, "activation": "softmax"}}]}})";

constexpr const char* kSgd = R"("optimizer_config": {"class_name": "SGD", "config": {"lr": 0.1}})";

/// Returns constant arrays: all elements of the first array are 0, all elements of the second are 1, and so
/// on.
std::vector<KerasWeight> arrays_of(const std::vector<Shape>& shapes) {
  std::vector<KerasWeight> arrays;
  for (const Shape& shape : shapes) {
    const auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(shape.elements()),
                                                             static_cast<float>(arrays.size()));
    arrays.push_back({"array", shape, {values, values->data()}, {}});
  }
  return arrays;
}

ImportedTraining read(const char* model, const std::string& config, const std::string& version = "2.15.0",
                      std::vector<KerasWeight> optimizer = {}) {
  const auto file_model = parse_keras_model(Json::parse(model));
  const int major = version[0] - '0';
  const ImportedModel imported = import_keras_model(*file_model, major);
  const Graph graph = build_imported(imported, imported.model);
  KerasWeights weights;
  weights.optimizer = std::move(optimizer);
  return import_keras_training({Json::parse("{" + config + "}"), *file_model, weights, {}, major, version},
                               imported, graph);
}

/// Returns a value as one line of text.
std::string flat(const ConfigNode& node) {
  if (node.is_scalar()) return node.text();
  std::string text;
  if (node.is_sequence())
    for (const ConfigNode& item : node.items()) text += (text.empty() ? "" : ", ") + flat(item);
  if (node.is_mapping())
    for (const auto& [key, value] : node.entries())
      text += (text.empty() ? "" : ", ") + key.text() + ": " + flat(value);
  return node.is_sequence() ? "[" + text + "]" : "{" + text + "}";
}

/// Returns one entry of the `train:` section.
std::string part(const ImportedTraining& training, const char* key) {
  const ConfigNode* found = training.train.find(key);
  return found ? flat(*found) : "none";
}

std::string mistake(const char* model, const std::string& config, const std::string& version = "2.15.0",
                    std::vector<KerasWeight> optimizer = {}) {
  return test::error_of([&] { read(model, config, version, std::move(optimizer)); });
}

std::string optimizer_of(const std::string& optimizer, const std::string& version = "2.15.0") {
  return part(read(kOneOutput,
                   R"("loss": "sparse_categorical_crossentropy", "optimizer_config": )" + optimizer, version),
              "optimizer");
}

/// Returns the metrics of the single output, and the settings that were left out.
std::pair<std::string, std::string> metrics_of(const std::string& metrics,
                                               const std::string& version = "2.15.0",
                                               const char* loss = R"("sparse_categorical_crossentropy")") {
  const ImportedTraining training = read(
      kOneOutput, std::string(R"("loss": )") + loss + R"(, "metrics": )" + metrics + ", " + kSgd, version);
  std::string left_out;
  for (const std::string& one : training.left_out)
    if (!one.starts_with("the optimizer's state")) left_out += one + "\n";
  return {part(training, "metrics"), left_out};
}

float first_of(const ImportedTraining& training, const char* slot, const char* weight) {
  return training.state.slots.at(slot).at(weight).values[0];
}

}  // namespace

TEST_CASE("Keras's losses are read as one, as a list or by output, with weights") {
  const auto losses = [](const std::string& config) {
    return part(read(kModel, config + ", " + kSgd), "loss");
  };
  const std::string by_output =
      "{kind: sparse_categorical_crossentropy, size: {mean_squared_error: {weight: 0.5}}}";
  CHECK(losses(R"("loss": "mse")") == "mean_squared_error");
  CHECK(losses(R"("loss": ["sparse_categorical_crossentropy", "mse"], "loss_weights": [1.0, 0.5])") ==
        by_output);
  CHECK(losses(R"("loss": {"kind": "sparse_categorical_crossentropy", "size": {"class_name": "function",
    "config": "mean_squared_error"}}, "loss_weights": {"size": 0.5})") == by_output);
  CHECK(losses(R"("loss": "mae", "loss_weights": [2, 0.25])") ==
        "{kind: {mean_absolute_error: {weight: 2}}, size: {mean_absolute_error: {weight: 0.25}}}");
  CHECK(losses(R"("loss": [{"class_name": "SparseCategoricalCrossentropy", "config": {"reduction": "auto",
    "name": "sparse_categorical_crossentropy", "from_logits": true, "ignore_class": null}}, {"class_name": "Huber",
    "config": {"reduction": "sum_over_batch_size", "name": "huber_loss", "delta": 1.0}}])") ==
        "{kind: {sparse_categorical_crossentropy: {from_logits: true}}, size: huber}");
  // An explicit gamma of 0 differs from the default gamma.
  CHECK(
      losses(
          R"("loss": {"class_name": "BinaryFocalCrossentropy", "config": {"gamma": 0.0, "alpha": 0.25}})") ==
      "{binary_focal_crossentropy: {gamma: 0}}");
  const std::string wrong =
      mistake(kModel, std::string(R"("loss": ["my_loss", {"class_name": "Huber", "config":
    {"reduction": "sum"}}], "loss_weights": [1.0], )") +
                          kSgd);
  CHECK(wrong.find("dtrain has no loss my_loss") != std::string::npos);
  CHECK(wrong.find(R"(the loss Huber has reduction: "sum")") != std::string::npos);
  // Most losses use the last axis. Dice and Tversky have the option `axis` instead: the list of axes over
  // which they sum.
  const auto dice = [](const std::string& axis) {
    return mistake(kOneOutput, R"("loss": {"class_name": "Dice", "config": {"axis": )" + axis + "}}, " + kSgd,
                   "3.8.0");
  };
  CHECK(dice("-1").find("dice's axis: expected a list") != std::string::npos);
  CHECK(dice("null").find("the loss Dice has axis: null, which means a sum over the whole batch") !=
        std::string::npos);
  CHECK(wrong.find("has loss_weights: [1.0]; expected a number for each output") != std::string::npos);
  CHECK(mistake(kModel, std::string(R"("loss": {"kind": "mse"}, )") + kSgd)
            .find("the output 'size' has no loss") != std::string::npos);
}

TEST_CASE("Keras's metrics are read from strings, functions, objects, wrapped functions and nested lists") {
  using Pair = std::pair<std::string, std::string>;
  const std::string accuracy = "[accuracy]";
  CHECK(metrics_of(R"(["accuracy"])", "1.2.2") == Pair{accuracy, ""});
  CHECK(metrics_of(R"({"kind": "acc"})", "2.2.4") == Pair{accuracy, ""});
  CHECK(metrics_of(R"([[{"class_name": "MeanMetricWrapper", "config": {"name": "accuracy", "dtype": "float32",
    "fn": "sparse_categorical_accuracy"}}]])") == Pair{accuracy, ""});
  CHECK(metrics_of(R"([[{"class_name": "MeanMetricWrapper", "config": {"name": "kind_acc",
    "fn": "sparse_categorical_accuracy"}}]])") == Pair{accuracy, ""});
  CHECK(metrics_of(
            R"([{"class_name": "function", "config": "sparse_categorical_accuracy", "module": "builtins"}])",
            "3.5.0") == Pair{"[sparse_categorical_accuracy]", ""});
  CHECK(metrics_of(R"(["accuracy", {"class_name": "SparseTopKCategoricalAccuracy", "config": {"name": "top2",
    "dtype": {"class_name": "DTypePolicy"}, "k": 2}}, "my_metric", {"class_name": "MeanMetricWrapper", "config":
    {"fn": "other"}}, "accuracy", "mae", {"class_name": "Precision", "config": {"top_k": 2}}])",
                   "3.5.0") ==
        Pair{"[accuracy, {sparse_top_k_categorical_accuracy: {k: 2}}]",
             "the metric my_metric: dtrain has no metric of this name\n"
             "the metric other: dtrain has no metric of this name\n"
             "the metric accuracy: it occurs twice\n"
             "the metric mae: expected a target of type float32 and shape 3, but found one of type int32 and "
             "shape scalar\n"
             "the metric Precision: for this output, dtrain computes the metric differently than Keras\n"});
  CHECK(metrics_of(R"([{"class_name": "AUC", "config": {"name": "auc", "num_thresholds": 200, "curve": "ROC",
    "summation_method": "interpolation", "multi_label": false, "num_labels": null, "from_logits": false}},
    {"class_name": "AUC", "config": {"name": "pr", "curve": "PR", "num_thresholds": 50}},
    {"class_name": "Precision", "config": {"name": "precision", "thresholds": null, "class_id": 1}},
    {"class_name": "F1Score", "config": {"average": "macro", "threshold": null}},
    {"class_name": "PrecisionAtRecall", "config": {"name": "p", "num_thresholds": 200, "class_id": null,
    "recall": 0.75}}])",
                   "2.15.0", R"("categorical_crossentropy")") ==
        Pair{"[auc, {auc: {name: pr, curve: PR, num_thresholds: 50}}, {f1_score: {average: macro}}, "
             "{precision_at_recall: {name: p, recall: 0.75}}]",
             "the metric Precision: dtrain has no equivalent of class_id: 1\n"});
}

TEST_CASE("Keras's metrics are read by output and as one list for all outputs") {
  const auto metrics = [](const std::string& written, const std::string& version) {
    const std::string config =
        R"("loss": ["categorical_crossentropy", "mse"], "metrics": )" + written + ", " + kSgd;
    return part(read(kModel, config, version), "metrics");
  };
  CHECK(metrics(R"(["mae", "mse"])", "2.2.4") ==
        "{kind: [mean_absolute_error, mean_squared_error], size: [mean_absolute_error, mean_squared_error]}");
  CHECK(metrics(R"(["accuracy", "mse"])", "3.5.0") == "{kind: [accuracy], size: [mean_squared_error]}");
  CHECK(metrics(R"([["accuracy", "mae"], null])", "2.15.0") == "{kind: [accuracy, mean_absolute_error]}");
  CHECK(metrics(R"({"size": ["mae", "mse"], "kind": "accuracy"})", "2.15.0") ==
        "{kind: [accuracy], size: [mean_absolute_error, mean_squared_error]}");
  const ImportedTraining training =
      read(kModel, std::string(R"("loss": "mse", "weighted_metrics": ["mae"], "metrics": {"size": ["mine"]},
    "sample_weight_mode": "temporal", )") +
                       kSgd);
  CHECK(part(training, "weighted_metrics") == "{kind: [mean_absolute_error], size: [mean_absolute_error]}");
  CHECK(part(training, "metrics") == "none");
  CHECK(training.left_out ==
        std::vector<std::string>{"size: the metric mine: dtrain has no metric of this name",
                                 R"(sample_weight_mode: "temporal")",
                                 "the optimizer's state, because the file does not contain it"});
}

TEST_CASE("Keras's optimizers are read, and default options are omitted") {
  CHECK(optimizer_of(R"({"class_name": "Custom>Adam", "config": {"name": "Adam", "weight_decay": null,
    "clipnorm": null, "use_ema": false, "ema_momentum": 0.99, "ema_overwrite_frequency": 100, "jit_compile": false,
    "is_legacy_optimizer": false, "learning_rate": 0.009999999776482582, "beta_1": 0.8999999761581421,
    "beta_2": 0.99, "epsilon": 1e-07, "amsgrad": false}})") == "{adam: {learning_rate: 0.01, beta_2: 0.99}}");
  CHECK(optimizer_of(R"({"class_name": "AdamW", "config": {"learning_rate": 0.5, "weight_decay": null}})") ==
        "{adamw: {learning_rate: 0.5, weight_decay: 0}}");
  CHECK(optimizer_of(
            R"({"class_name": "SGD", "config": {"learning_rate": {"class_name": "CosineDecay", "config":
    {"initial_learning_rate": 0.25, "decay_steps": 100, "alpha": 0.0, "name": null, "warmup_target": 0.5,
    "warmup_steps": 10}}, "momentum": 0.0, "nesterov": false}})") ==
        "{sgd: {learning_rate: {cosine_decay: {warmup_initial: 0.25, steps: 100, alpha: 0, initial: 0.5, "
        "warmup_steps: 10}}}}");
  CHECK(optimizer_of(R"({"class_name": "SGD", "config": {"learning_rate": {"class_name": "InverseTimeDecay",
    "config": {"initial_learning_rate": 0.25, "decay_steps": 4, "decay_rate": 0.5, "staircase": false}}}})") ==
        "{sgd: {learning_rate: {inverse_time_decay: {initial: 0.25, decay_steps: 4, decay_rate: 0.5, "
        "staircase: false}}}}");
}

TEST_CASE("optimizers of Keras 1 to 2.10 are read with their options") {
  CHECK(optimizer_of(R"({"class_name": "SGD", "config": {"lr": 0.5, "decay": 0.25, "momentum": 0.9}})",
                     "2.2.4") ==
        "{sgd: {learning_rate: {inverse_time_decay: {initial: 0.5, decay_steps: 1, decay_rate: 0.25}}, "
        "momentum: 0.9}}");
  // This version of Keras adds epsilon to the square root, but dtrain adds epsilon to the number under the
  // root. Therefore, the import squares epsilon.
  CHECK(optimizer_of(R"({"class_name": "RMSprop", "config": {"lr": 0.5, "epsilon": 0.125, "rho": 0.9}})",
                     "1.2.2") == "{rmsprop: {learning_rate: 0.5, epsilon: 0.015625}}");
  CHECK(optimizer_of(
            R"({"class_name": "RMSprop", "config": {"lr": 0.5, "epsilon": 0.125, "momentum": 0.5}})") ==
        "{rmsprop: {learning_rate: 0.5, epsilon: 0.125, momentum: 0.5}}");
  CHECK(optimizer_of(R"({"class_name": "RMSprop", "config": {"lr": 0.5, "epsilon": 0.125}})", "3.5.0") ==
        "{rmsprop: {learning_rate: 0.5, epsilon: 0.125}}");
  CHECK(optimizer_of(R"({"class_name": "Adagrad", "config": {"lr": 0.5}})", "2.2.4") ==
        "{adagrad: {learning_rate: 0.5, initial_accumulator_value: 0}}");
  CHECK(optimizer_of(R"({"class_name": "Adadelta", "config": {"lr": 1.0, "rho": 0.95, "epsilon": 1e-08}})",
                     "2.0.9") == "{adadelta: {learning_rate: 1, epsilon: 1.0e-08}}");
  CHECK(optimizer_of(R"({"class_name": "Adamax", "config": {"lr": 0.5, "decay": 0.25}})", "2.2.4") ==
        "{adamax: {learning_rate: {inverse_time_decay: {initial: 0.5, decay_steps: 1, decay_rate: 0.25}}}}");
  const auto clipped = [](const std::string& version) {
    const std::string config =
        R"("loss": "mse", "optimizer_config": {"class_name": "SGD", "config": {"lr": 0.5,
      "clipnorm": 2.0}})";
    const std::string wrong = mistake(kOneOutput, config, version);
    return wrong.empty() ? part(read(kOneOutput, config, version), "clip_norm") : wrong;
  };
  // Standalone Keras clipped by the norm of all gradients. tf.keras clips by the norm of each gradient.
  CHECK(clipped("1.2.2") == "2");
  CHECK(clipped("2.3.1") == "2");
  for (const char* version : {"2.2.4-tf", "2.4.0", "2.15.0"})
    CHECK(
        clipped(version).find("the optimizer SGD has clipnorm: 2.0, which clips the gradient of each weight "
                              "separately") != std::string::npos);
  const std::string wrong = mistake(kOneOutput, R"("loss": "mse", "optimizer_config": {"class_name": "Adam",
    "config": {"decay": 0.5, "learning_rate": {"class_name": "Mine"}, "amsgrad": true}})");
  CHECK(wrong.find("the optimizer has both a learning rate schedule and decay: 0.5") != std::string::npos);
  CHECK(wrong.find(R"(dtrain has no schedule {"class_name": "Mine"})") != std::string::npos);
  CHECK(wrong.find("the optimizer Adam has amsgrad: true") != std::string::npos);
}

TEST_CASE("Nadam of Keras 1 to 2.10 is read only with Keras 3's schedule of the momentum") {
  const auto problem = [](const std::string& optimizer, const std::string& version) {
    return mistake(kOneOutput, R"("loss": "mse", "optimizer_config": )" + optimizer, version);
  };
  const std::string usual = "the optimizer Nadam has schedule_decay: 0.004";
  CHECK(problem(R"({"class_name": "Nadam", "config": {"lr": 0.5, "schedule_decay": 0.004}})", "2.2.4")
            .find(usual) != std::string::npos);
  CHECK(problem(R"({"class_name": "Nadam", "config": {"learning_rate": 0.5, "decay": 0.004}})", "2.10.0")
            .find(usual) != std::string::npos);
  CHECK(problem(R"({"class_name": "Nadam", "config": {"lr": 0.5}})", "2.2.4").find(usual) !=
        std::string::npos);
  for (const char* one : {"decay", "schedule_decay"})
    CHECK(
        optimizer_of(R"({"class_name": "Nadam", "config": {"lr": 0.5, ")" + std::string(one) + R"(": 1.0}})",
                     "2.10.0") == "{nadam: {learning_rate: 0.5}}");
  CHECK(optimizer_of(R"({"class_name": "Nadam", "config": {"learning_rate": 0.5, "use_ema": false}})",
                     "2.15.0") == "{nadam: {learning_rate: 0.5}}");
  CHECK(optimizer_of(R"({"class_name": "Nadam", "config": {"learning_rate": 0.5}})", "3.5.0") ==
        "{nadam: {learning_rate: 0.5}}");
}

TEST_CASE("the state of Keras's optimizers is read in the order of each version") {
  const Shape scalar{}, kernel{4, 3}, bias{3}, one{1};
  const auto state = [&](const std::string& optimizer, const std::vector<Shape>& shapes,
                         const std::string& version = "2.15.0") {
    std::vector<KerasWeight> arrays = arrays_of(shapes);
    if (!arrays.empty() && shapes[0] == scalar && version[0] != '1') {
      arrays[0].values = nullptr;
      arrays[0].integer = 7;
    }
    return read(kOneOutput, R"("loss": "mse", "optimizer_config": )" + optimizer, version, std::move(arrays));
  };
  const std::string adam = R"({"class_name": "Adam", "config": {"learning_rate": 0.5)";
  const auto check_adam = [&](const ImportedTraining& training, const std::vector<float>& expected) {
    CHECK(training.state.iteration.value_or(-1) == 7);
    CHECK(std::vector<float>{first_of(training, "momentum", "kind/kernel"),
                             first_of(training, "momentum", "kind/bias"),
                             first_of(training, "velocity", "kind/kernel"),
                             first_of(training, "velocity", "kind/bias")} == expected);
  };
  check_adam(state(adam + "}}", {scalar, kernel, bias, kernel, bias}), {1, 2, 3, 4});
  check_adam(state(adam + "}}", {scalar, kernel, bias, kernel, bias, one, one}, "2.2.4"), {1, 2, 3, 4});
  check_adam(state(adam + R"(, "use_ema": false}})", {scalar, kernel, kernel, bias, bias}), {1, 3, 2, 4});
  check_adam(state(adam + R"(, "use_ema": false}})", {scalar, scalar, kernel, kernel, bias, bias}, "3.5.0"),
             {2, 4, 3, 5});
  check_adam(state(adam + "}}", {scalar, scalar, kernel, kernel, bias, bias}, "3.5.0"), {2, 4, 3, 5});

  const ImportedTraining rms =
      state(R"({"class_name": "RMSprop", "config": {"lr": 0.5, "momentum": 0.5, "centered": true}})",
            {scalar, kernel, bias, kernel, bias, kernel, bias});
  CHECK(first_of(rms, "velocity", "kind/kernel") == 1);
  CHECK(first_of(rms, "momentum", "kind/kernel") == 3);
  CHECK(first_of(rms, "average_gradient", "kind/bias") == 6);

  // Keras 2.10 also stores Nadam's product of momenta, which follows from the number of steps.
  const ImportedTraining nadam = state(R"({"class_name": "Nadam", "config": {"lr": 0.5, "decay": 1.0}})",
                                       {scalar, scalar, kernel, bias, kernel, bias}, "2.10.0");
  CHECK(nadam.state.iteration == 7);
  CHECK(first_of(nadam, "momentum", "kind/kernel") == 2);
  CHECK(first_of(nadam, "velocity", "kind/bias") == 5);
  // The last scalar is the product of the momenta. Keras 3 stores it after the slots.
  const ImportedTraining nadam_3 = state(R"({"class_name": "Nadam", "config": {"learning_rate": 0.5}})",
                                         {scalar, scalar, kernel, kernel, bias, bias, scalar}, "3.5.0");
  CHECK(nadam_3.left_out.empty());
  CHECK(first_of(nadam_3, "velocity", "kind/bias") == 5);
  const ImportedTraining adamax = state(R"({"class_name": "Adamax", "config": {"learning_rate": 0.5}})",
                                        {scalar, scalar, kernel, kernel, bias, bias}, "3.5.0");
  CHECK(first_of(adamax, "norm", "kind/kernel") == 3);
  CHECK(first_of(adamax, "momentum", "kind/bias") == 4);
  const ImportedTraining adadelta =
      state(R"({"class_name": "Adadelta", "config": {"lr": 1.0}})", {kernel, bias, kernel, bias}, "2.2.4");
  CHECK(first_of(adadelta, "accumulated_grad", "kind/bias") == 1);
  CHECK(first_of(adadelta, "accumulated_delta_var", "kind/bias") == 3);

  const ImportedTraining old =
      state(R"({"class_name": "RMSprop", "config": {"lr": 0.5}})", {kernel, bias}, "2.2.4");
  CHECK(first_of(old, "velocity", "kind/bias") == 1);
  CHECK_FALSE(old.state.iteration);
  CHECK(old.left_out.back() ==
        "the number of steps, because this version of Keras does not save it with rmsprop");
  // Keras 1 stores the number of steps as float32. Its SGD stores momentum arrays even if the momentum is 0.
  const ImportedTraining plain = state(R"({"class_name": "SGD", "config": {"lr": 0.5, "momentum": 0.0}})",
                                       {scalar, kernel, bias}, "1.2.2");
  CHECK(plain.state.iteration == 0);
  CHECK(plain.state.slots.empty());
  CHECK(plain.left_out.empty());
}

TEST_CASE("Adafactor's state is read without the arrays that follow from its means") {
  const std::string adafactor =
      R"("loss": "mse", "optimizer_config": {"class_name": "Adafactor", "config": {"learning_rate": 0.5,
         "relative_step": true, "use_ema": false}})";
  const Shape scalar{}, rows{4}, columns{3}, kernel{4, 3}, bias{3};
  std::vector<KerasWeight> arrays = arrays_of({scalar, scalar, rows, columns, kernel, scalar, scalar, bias});
  arrays[0].values = nullptr;
  arrays[0].integer = 7;
  const ImportedTraining training = read(kOneOutput, adafactor, "3.5.0", arrays);
  CHECK(training.left_out.empty());
  CHECK(training.state.iteration == 7);
  CHECK(first_of(training, "row_mean", "kind/kernel") == 2);
  CHECK(first_of(training, "column_mean", "kind/kernel") == 3);
  CHECK(first_of(training, "velocity", "kind/bias") == 7);
  CHECK(training.state.slots.at("velocity").size() == 1);
  CHECK(training.state.slots.at("row_mean").size() == 1);
  // Keras 2 does not store the two arrays of means for the bias.
  arrays.erase(arrays.begin() + 5, arrays.begin() + 7);
  CHECK(read(kOneOutput, adafactor, "2.15.0", arrays).left_out.back() ==
        "the optimizer's state: the file has 6 arrays, but adafactor needs a different number of arrays for "
        "2 weights");
}

TEST_CASE("the squares that Keras stores for Adafactor are products of the means of rows and columns") {
  const float rows[] = {1, 3, 0, 0}, columns[] = {2, 4, 6, 8, 1, 1};
  CHECK(factored_squares({2, 3}, rows, columns) == std::vector<float>{1, 2, 3, 3, 6, 9});
  // If a mean is 0, as before the first step, the squares are 0.
  CHECK(factored_squares({2, 2, 3}, rows, columns) == std::vector<float>{1, 2, 3, 3, 6, 9, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("an optimizer state that does not fit is omitted or an error") {
  const std::string adam =
      R"("loss": "mse", "optimizer_config": {"class_name": "Adam", "config": {"lr": 0.5}})";
  const ImportedTraining short_of =
      read(kOneOutput, adam, "2.2.4", arrays_of({Shape{}, Shape{4, 3}, Shape{3}, Shape{4, 3}}));
  CHECK(short_of.left_out.back() ==
        "the optimizer's state: the file has 4 arrays, but adam needs a different number of arrays for 2 "
        "weights");
  CHECK(short_of.state.slots.empty());
  CHECK(
      mistake(kOneOutput, adam, "2.2.4",
              arrays_of({Shape{}, Shape{4, 3}, Shape{4, 3}, Shape{3}, Shape{3}})) ==
      "the optimizer's 'momentum' of 'kind/bias': expected 3 floats, found 4x3 floats in the array 'array'");
  std::vector<KerasWeight> arrays = arrays_of({Shape{}, Shape{4, 3}, Shape{3}, Shape{4, 3}, Shape{3}});
  arrays[0].values = nullptr;
  arrays[0].integer = -3;
  CHECK(mistake(kOneOutput, adam, "2.2.4", arrays) ==
        "the optimizer's number of steps (array 'array'): expected a number from 0 to 9e15, found -3");
  arrays[0].integer.reset();
  CHECK(mistake(kOneOutput, adam, "2.2.4", arrays) ==
        "the optimizer's number of steps (array 'array'): expected a number from 0 to 9e15, found a value "
        "that is not a number");
  arrays = arrays_of({Shape{}, Shape{4, 3}, Shape{3}, Shape{4, 3}, Shape{3}});
  arrays[2].values = nullptr;
  CHECK(mistake(kOneOutput, adam, "2.2.4", arrays) ==
        "the optimizer's 'momentum' of 'kind/bias': expected 3 floats, found 3 values of another type in the "
        "array 'array'");
}

TEST_CASE("arrays in place of Adafactor's number of steps are an error") {
  const std::string adafactor =
      R"("loss": "mse", "optimizer_config": {"class_name": "Adafactor", "config": {"learning_rate": 0.5,
         "relative_step": true, "use_ema": false}})";
  const Shape scalar{}, rows{4}, columns{3}, kernel{4, 3}, bias{3};
  for (const int64_t extent : {0, 2}) {
    const std::vector<KerasWeight> arrays =
        arrays_of({Shape{extent}, scalar, rows, columns, kernel, scalar, scalar, bias});
    CHECK(mistake(kOneOutput, adafactor, "3.5.0", arrays) ==
          fmt::format(
              "the optimizer's number of steps (array 'array'): expected a number from 0 to 9e15, found an "
              "array of shape {}",
              extent));
  }
}
