// Tests the conversion of losses, metrics, optimizers and schedules to Keras. tests/keras tests the result
// with Keras.
#include <string>

#include <doctest/doctest.h>

#include "interop/training_formats.h"
#include "nn/loss.h"
#include "support/kinds.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("losses and metrics are converted to Keras's classes and options") {
  const auto loss = [](const std::string& yaml) {
    return keras_loss(parse_kind<Loss>(yaml).resolved).dump();
  };
  CHECK(loss("{sparse_categorical_crossentropy: {from_logits: true}}") ==
        R"({"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": true, )"
        R"("reduction": "sum_over_batch_size", "name": "sparse_categorical_crossentropy"}})");
  CHECK(loss("categorical_crossentropy")
            .find(R"("CategoricalCrossentropy", "config": {"from_logits": false)") != std::string::npos);
  CHECK(loss("{huber: {delta: 2}}").find(R"("Huber", "config": {"delta": 2.0)") != std::string::npos);
  for (const std::string& name : registry<Loss>().names())
    CHECK(keras_loss(parse_kind<Loss>(name).resolved).at("config").at("name").as_string().starts_with(name));

  const TensorSpec classes{{}, {10}, DType::float32}, one{{}, {1}, DType::float32},
      number{{}, {}, DType::int32};
  const auto metric = [](const std::string& yaml, const TensorSpec& output, const TensorSpec& target) {
    const Json config = keras_metric(parse_kind<Metric>(yaml).resolved, nullptr, output, target);
    return config.at("class_name").as_string() + config.at("config").dump();
  };
  CHECK(metric("accuracy", classes, number) == "SparseCategoricalAccuracy{}");
  CHECK(metric("accuracy", classes, classes) == "CategoricalAccuracy{}");
  CHECK(metric("accuracy", one, one) == R"(BinaryAccuracy{"threshold": 0.5})");
  CHECK(metric("top_k", classes, number) == R"(SparseTopKCategoricalAccuracy{"k": 5})");
  CHECK(metric("{top_k_categorical_accuracy: {k: 3}}", classes, classes) ==
        R"(TopKCategoricalAccuracy{"k": 3})");
  CHECK(metric("mean_absolute_error", one, one) == "MeanAbsoluteError{}");
}

TEST_CASE("losses and metrics that Keras computes differently are omitted") {
  CHECK(keras_loss(parse_kind<Loss>("sparse_categorical_crossentropy: {label_smoothing: 0.1}").resolved)
            .is_null());
  const auto written = [](const std::string& metric, const std::string& loss, const TensorSpec& output,
                          const TensorSpec& target) {
    return keras_metric(parse_kind<Metric>(metric).resolved, parse_kind<Loss>(loss).value.get(), output,
                        target);
  };
  const TensorSpec one{"y", {1}}, four{"y", {4}}, number{"t", {}, DType::int32};
  CHECK(written("sparse_categorical_crossentropy: {label_smoothing: 0.1}", "sparse_categorical_crossentropy",
                four, number)
            .is_null());
  const auto is_written = [&](const std::string& metric, const std::string& loss, const TensorSpec& output) {
    return !written(metric, loss, output, output).is_null();
  };
  const std::string logits = "binary_crossentropy: {from_logits: true}",
                    softmax_logits = "categorical_crossentropy: {from_logits: true}";
  for (const char* metric : {"precision", "recall", "f1_score", "binary_accuracy", "accuracy"}) {
    CAPTURE(metric);
    CHECK(is_written(metric, "binary_crossentropy", one));
    CHECK(!is_written(metric, logits, one));
  }
  CHECK(is_written("auc", logits, one));
  CHECK(is_written("auc", "categorical_crossentropy", four));
  CHECK(!is_written("auc", softmax_logits, four));
  CHECK(!is_written("precision", softmax_logits, four));
  CHECK(is_written("f1_score", softmax_logits, four));
  CHECK(is_written("accuracy", softmax_logits, four));
  const std::string at_recall = "precision_at_recall: {recall: 0.75, class_id: 2, num_thresholds: 50}";
  CHECK(
      written(at_recall, "binary_crossentropy", four, four).dump() ==
      R"({"class_name": "PrecisionAtRecall", "config": {"num_thresholds": 50, "recall": 0.75, "class_id": 2}})");
  CHECK(is_written("precision_at_recall: 0.5", "categorical_crossentropy", four));
  CHECK(!is_written("precision_at_recall: 0.5", logits, one));
  CHECK(written("precision_at_recall: 0.5", "sparse_categorical_crossentropy", four, number).is_null());
  const Json f1 = written("f1_score", "binary_crossentropy", four, four);
  CHECK(f1.at("config").at("threshold").as_double() == 0.5);
}

TEST_CASE("every loss, metric, optimizer and schedule has a row for Keras") {
  for (const std::string& name : registry<Loss>().names()) CHECK(loss_formats(name).kind == name);
  for (const std::string& name : registry<Metric>().names()) CHECK(metric_formats(name).kind == name);
  for (const std::string& name : registry<Optimizer>().names()) CHECK(optimizer_formats(name).kind == name);
  for (const std::string& name : registry<Schedule>().names()) CHECK(schedule_formats(name).kind == name);
}

TEST_CASE("dtrain accepts the Keras classes of losses, optimizers and schedules") {
  for (const std::string& name : registry<Loss>().names())
    CHECK(registry<Loss>().canonical(loss_formats(name).keras_class) == name);
  for (const std::string& name : registry<Optimizer>().names())
    if (const std::string& keras = optimizer_formats(name).keras_class; !keras.empty())
      CHECK(registry<Optimizer>().canonical(keras) == name);
  for (const std::string& name : registry<Schedule>().names())
    if (const std::string& keras = schedule_formats(name).keras_class; !keras.empty())
      CHECK(registry<Schedule>().canonical(keras) == name);
}

TEST_CASE("a decay until the end of training is exported with the number of steps of the run") {
  const RunLength run{.steps_per_epoch = 10, .steps = 200};
  const auto rate = [&](const std::string& yaml) {
    return keras_learning_rate(parse_kind<Schedule>(yaml), run, Json()).dump();
  };
  CHECK(rate("{polynomial_decay: {initial: 1}}") == rate("{polynomial_decay: {initial: 1, steps: 200}}"));
  CHECK(rate("{cosine_decay: {initial: 1, warmup_steps: 1 epoch}}") ==
        rate("{cosine_decay: {initial: 1, warmup_steps: 10, steps: 190}}"));
  CHECK(rate("{linear_warmup: {steps: 2 epochs, then: {cosine_decay: {initial: 1}}}}") ==
        rate("{cosine_decay: {initial: 1, steps: 180}}"));
  CHECK(rate("{one_cycle: {max: 1, div_factor: 4, final_div_factor: 2}}") == "0.125");
}
