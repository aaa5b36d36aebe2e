// Tests regularizers and constraints: their effect on a step, and that the effect is the same under every
// strategy.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "outcome.h"
#include "support/errors.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns the configuration of a run of one step. The kernel has eight elements of 0.5, and the bias has two
/// elements of 2.
std::string one_step(const std::string& options, const std::string& train = "") {
  return fmt::format(R"(
seed: 3
model:
  inputs: {{x: [4]}}
  layers: [dense: {{units: 2, kernel_initializer: {{constant: 0.5}}, bias_initializer: {{constant: 2}}{}}}]
dataset: {{train: {{synthetic: {{samples: 8, target: {{classes: 2}}, seed: 4}}}}}}
strategy: single
train:
  epochs: 1
  batch_size: 8
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{sgd: {{learning_rate: 0.1}}}}
{})",
                     options, train);
}

constexpr auto kPenalties = ", kernel_regularizer: {l1_l2: {l1: 0.1, l2: 0.2}}, bias_regularizer: {l2: 0.1}";

constexpr auto kRules = R"(
seed: 3
model:
  inputs: {x: [12]}
  layers:
    - dense: {name: first, units: 16, activation: tanh, kernel_regularizer: {l2: 0.01}, bias_regularizer: {l1: 0.001}}
    - layer_normalization: {name: normal, gamma_regularizer: {l1_l2: {l1: 0.01, l2: 0.02}}, beta_constraint: non_neg}
    - dense: {name: second, units: 16, activation: tanh, kernel_regularizer: {l2: 0.003}}
    - dense: {name: again, shared_with: second}
    - dense: {name: head, units: 5, kernel_regularizer: {l1: 0.002}}
dataset:
  train: {synthetic: {samples: 138, target: {classes: 5}, seed: 4}}
  validation: {synthetic: {samples: 35, target: {classes: 5}, seed: 5}}
strategy: single
train:
  epochs: 4
  batch_size: 17
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
)";

/// Assignments that set constraints which need whole weights.
const std::vector<std::string> kConstraints = {
    "model.layers.0.dense.kernel_constraint={max_norm: {max_value: 0.9}}",
    "model.layers.2.dense.kernel_constraint={unit_norm: {axis: 1}}",
    "model.layers.4.dense.kernel_constraint={min_max_norm: {min_value: 0.5, max_value: 0.8, rate: 0.5}}"};

std::string mirrored(int replicas) {
  return fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}", replicas);
}

std::string sharded(const std::string& level) {
  return fmt::format("strategy={{sharded: {{devices: [cpu:0, cpu:1, cpu:2], level: {}}}}}", level);
}

const std::vector<std::string> kStrategies = {
    mirrored(2),
    mirrored(3),
    mirrored(5),
    "train.accumulate=4",
    sharded("optimizer"),
    sharded("gradients"),
    "strategy={pipeline: {devices: [cpu:0, cpu:1], stages: [second], microbatches: 3}}",
    "strategy={placed: {layers: {first: cpu:0, second: cpu:1}}}"};

std::vector<std::string> with(std::vector<std::string> sets, const std::string& more) {
  sets.push_back(more);
  return sets;
}

/// Compares the run under each strategy to the run on one device.
void check_strategies(const std::vector<std::string>& sets, const std::vector<std::string>& strategies) {
  const Outcome single = outcome_of(kRules, sets);
  for (const std::string& strategy : strategies) {
    CAPTURE(strategy);
    check_close(outcome_of(kRules, with(sets, strategy)), single);
  }
}

}  // namespace

TEST_CASE("a penalty is part of the loss and of the gradient") {
  const Outcome plain = outcome_of(one_step(""));
  for (const char* strategy :
       {"strategy=single", "strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}",
        "train.accumulate=3"}) {
    CAPTURE(strategy);
    const Outcome penalized = outcome_of(one_step(kPenalties), {strategy});
    // The penalty is 8 * (0.1 * 0.5 + 0.2 * 0.25) + 2 * 0.1 * 4.
    CHECK(penalized.losses[0] - plain.losses[0] == doctest::Approx(1.6));
    CHECK(penalized.history[0].at("loss").as_double() == doctest::Approx(penalized.losses[0]));
    REQUIRE(penalized.values.size() == 10);
    for (size_t i = 0; i < 10; ++i) {
      const double gradient = i < 8 ? 0.1 + 2 * 0.2 * 0.5 : 2 * 0.1 * 2;
      CHECK(static_cast<double>(plain.values[i] - penalized.values[i]) ==
            doctest::Approx(0.1 * gradient).epsilon(1e-4));
    }
  }
}

TEST_CASE("row weights do not change a penalty") {
  const std::string weights = "train.class_weight={0: 3, 1: 0.25}";
  const Outcome plain = outcome_of(one_step(""), {weights}),
                penalized = outcome_of(one_step(kPenalties), {weights});
  CHECK(penalized.losses[0] - plain.losses[0] == doctest::Approx(1.6));
  for (size_t i = 0; i < 10; ++i)
    CHECK(static_cast<double>(plain.values[i] - penalized.values[i]) ==
          doctest::Approx(i < 8 ? 0.03 : 0.04).epsilon(1e-4));
}

TEST_CASE("clip_norm limits the gradient with the penalty's part") {
  const Outcome outcome = outcome_of(one_step(kPenalties, "  clip_norm: 0.5"));
  double squares = 0;
  for (size_t i = 0; i < 10; ++i)
    squares += std::pow(static_cast<double>(outcome.values[i]) - (i < 8 ? 0.5 : 2), 2);
  CHECK(std::sqrt(squares) == doctest::Approx(0.1 * 0.5).epsilon(1e-4));
}

TEST_CASE("weights that are not trained have no penalty") {
  const Outcome plain = outcome_of(one_step("")),
                frozen =
                    outcome_of(one_step(kPenalties, "  groups: [{weights: '*/kernel', trainable: false}]"));
  CHECK(frozen.losses[0] - plain.losses[0] == doctest::Approx(0.8));  // the penalty of the bias
}

TEST_CASE("penalties are the same under every strategy") {
  std::vector<std::string> strategies = kStrategies;
  strategies.push_back(sharded("parameters"));
  check_strategies({}, strategies);
  check_strategies({"train.clip_norm=0.3", "train.class_weight={0: 0.3, 3: 4}"}, strategies);
  check_strategies({"train.optimizer={lamb: {learning_rate: 0.01}}"}, strategies);
  check_strategies({"train.optimizer={adafactor: {learning_rate: 0.01}}"}, strategies);
}

TEST_CASE("the penalty on a layer's output is part of the loss and of the gradient") {
  const Outcome plain = outcome_of(one_step(""));
  for (const char* strategy :
       {"strategy=single", "strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}",
        "train.accumulate=3"}) {
    CAPTURE(strategy);
    const Outcome penalized = outcome_of(one_step(", activity_regularizer: {l1: 0.5}"), {strategy});
    // Both outputs of a sample are 2 + 0.5 times the sum of its four inputs.
    CHECK(penalized.losses[0] > plain.losses[0]);
    CHECK(penalized.history[0].at("loss").as_double() == doctest::Approx(penalized.losses[0]));
    REQUIRE(penalized.values.size() == 10);
    // The activity penalty changes the bias of each unit. The change is 0.1 times the mean over the samples
    // of 0.5 times the sign of the unit's output.
    const double step = static_cast<double>(plain.values[8] - penalized.values[8]);
    CHECK(static_cast<double>(plain.values[9] - penalized.values[9]) == doctest::Approx(step).epsilon(1e-4));
    const double signs = step / (0.1 * 0.5) * 8;  // sum of the signs of 8 samples
    CHECK(signs == doctest::Approx(std::round(signs)).epsilon(1e-3));
    CHECK(std::abs(signs) > 0.5);
  }
}

TEST_CASE("penalties on outputs are the same under every strategy") {
  const std::vector<std::string> penalties = {
      "model.layers.0.dense.activity_regularizer={l1_l2: {l1: 0.01, l2: 0.02}}",
      "model.layers.1.layer_normalization.activity_regularizer={l2: 0.01}",
      "model.layers.2.dense.activity_regularizer={l2: 0.03}",
      "model.layers.4.dense.activity_regularizer={l1: 0.02}"};
  CHECK(outcome_of(kRules, penalties).losses[0] > outcome_of(kRules).losses[0] + 0.01);
  std::vector<std::string> strategies = kStrategies;
  strategies.push_back(sharded("parameters"));
  strategies.push_back("model.layers.2.dense.recompute=true");
  check_strategies(penalties, strategies);
  check_strategies(with(penalties, "train.clip_norm=0.3"), strategies);
  check_strategies(with(penalties, "train.class_weight={0: 0.3, 3: 4}"), strategies);
}

TEST_CASE("orthogonal penalties are the same under every strategy") {
  const auto penalties_with = [](double first, double second) -> std::vector<std::string> {
    return {
        fmt::format("model.layers.0.dense.kernel_regularizer={{orthogonal_regularizer: {{factor: {}, mode: "
                    "columns}}}}",
                    first),
        fmt::format("model.layers.2.dense.kernel_regularizer={{orthogonal_regularizer: {{factor: {}}}}}",
                    second)};
  };
  const std::vector<std::string> penalties = penalties_with(0.3, 0.5);
  CHECK(outcome_of(kRules, penalties).losses[0] >
        outcome_of(kRules, penalties_with(1e-6, 1e-6)).losses[0] + 0.05);
  std::vector<std::string> strategies = kStrategies;
  strategies.push_back(sharded("parameters"));
  check_strategies(penalties, strategies);
  check_strategies(with(penalties, "train.class_weight={0: 0.3, 3: 4}"), strategies);
}

TEST_CASE("row weights do not change a penalty on a layer's output") {
  const std::string penalty = ", activity_regularizer: {l1_l2: {l1: 0.5, l2: 0.2}}",
                    weights = "train.class_weight={0: 3, 1: 0.25}";
  const Outcome plain = outcome_of(one_step("")), penalized = outcome_of(one_step(penalty)),
                weighted = outcome_of(one_step(""), {weights}),
                both = outcome_of(one_step(penalty), {weights});
  CHECK(weighted.values != plain.values);
  CHECK(both.losses[0] - weighted.losses[0] == doctest::Approx(penalized.losses[0] - plain.losses[0]));
  for (size_t i = 0; i < 10; ++i) {
    CAPTURE(i);
    CHECK(static_cast<double>(weighted.values[i] - both.values[i]) ==
          doctest::Approx(static_cast<double>(plain.values[i] - penalized.values[i])).epsilon(1e-4));
  }
}

TEST_CASE("a penalty on outputs cannot be combined with weights that augmentations change") {
  const std::string images = R"(
model: {inputs: {x: [4, 4, 1]}, layers: [flatten, dense: {units: 2, activity_regularizer: {l2: 0.1}}]}
dataset:
  train: {synthetic: {samples: 8, target: {shape: [2]}}}
  augment: [mix_up]
train:
  batch_size: 8
  class_weight: {0: 3}
  loss: {categorical_crossentropy: {from_logits: true}}
  optimizer: sgd
)";
  CHECK(error_of([&] { plan_from(images); })
            .find("augment: mix_up changes the masks or weights of samples. In this model, they must be "
                  "known before a step, "
                  "because 'dense' has an activity_regularizer") != std::string::npos);
  CHECK(error_of([&] { plan_from(images, {"train.class_weight=null"}); }) == "");
}

TEST_CASE("a layer that shares another's weights has its activity_regularizer") {
  const std::string of_second = "model.layers.2.dense.activity_regularizer={l2: 0.03}";
  CHECK(error_of([&] {
          plan_from(kRules, {of_second, "model.layers.3.dense.activity_regularizer={l2: 0.03}"});
        }).find("dense 'again' shares the weights and the options of 'second' (shared_with), including") !=
        std::string::npos);
}

TEST_CASE("constraints are the same under every strategy") {
  std::vector<std::string> strategies = kStrategies;
  strategies.push_back(sharded("parameters"));
  check_strategies(kConstraints, strategies);
  check_strategies(with(kConstraints, "train.callbacks=[{ema: {decay: 0.9}}]"), strategies);
}

TEST_CASE("weights satisfy their constraints after training") {
  for (const std::string& strategy :
       {std::string("strategy=single"), mirrored(3), sharded("gradients"), sharded("parameters")}) {
    CAPTURE(strategy);
    const Outcome outcome = outcome_of(kRules, with(kConstraints, strategy));
    const float* values = outcome.values.data();  // parameters in the order of the layers
    const auto norm = [&](int64_t first, int64_t n, int64_t step) {
      double squares = 0;
      for (int64_t i = 0; i < n; ++i) squares += std::pow(static_cast<double>(values[first + i * step]), 2);
      return std::sqrt(squares);
    };
    double largest = 0;
    for (int64_t unit = 0; unit < 16; ++unit) largest = std::max(largest, norm(unit, 12, 16));
    CHECK(largest <= 0.9 + 1e-5);
    values += 12 * 16 + 16 + 16;  // skips the parameters of `first`, and gamma
    CHECK(std::all_of(values, values + 16, [](float beta) { return beta >= 0; }));
    values += 16;
    for (int64_t row = 0; row < 16; ++row) CHECK(norm(16 * row, 16, 1) == doctest::Approx(1).epsilon(1e-5));
  }
}
