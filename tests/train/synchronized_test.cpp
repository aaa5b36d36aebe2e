// Compares replicas with synchronized batch normalization with one device.
#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// An epoch has four batches, of which the last has 9 samples. The whole run has 100 steps.
constexpr auto kCnn = R"(
seed: 3
model:
  inputs: {image: [8, 8, 3]}
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {name: first, synchronized: true}
    - activation: {activation: relu, name: active}
    - conv2d: {filters: 16, kernel_size: 3, strides: 2, padding: same, use_bias: false}
    - batch_normalization: {synchronized: true, momentum: 0.8, center: false}
    - activation: tanh
    - dropout: {rate: 0.2}
    - depthwise_conv2d: {kernel_size: 3, padding: same}
    - batch_normalization: {synchronized: true, scale: false}
    - global_average_pooling2d: {}
    - dense: {units: 12}
    - batch_normalization: {synchronized: true}
    - activation: silu
    - dense: {units: 3}
dataset:
  train: {synthetic: {samples: 105, target: {classes: 3}, seed: 4}}
  validation: {synthetic: {samples: 20, target: {classes: 3}, seed: 5}}
strategy: single
train:
  epochs: 25
  batch_size: 32
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {sgd: {learning_rate: 0.02, momentum: 0.9}}
  metrics: [sparse_categorical_accuracy]
)";

const std::vector<std::string> kApart{
    "model.layers.1.batch_normalization.synchronized=false",
    "model.layers.4.batch_normalization.synchronized=false",
    "model.layers.8.batch_normalization.synchronized=false",
    "model.layers.11.batch_normalization.synchronized=false",
};

struct Outcome {
  std::vector<double> losses;
  std::vector<float> values;  // all parameters, including moving statistics
  std::string history;        // measures of every epoch
};

/// Trains to the end, but stops after each of these steps and resumes as another process would.
Outcome run_of(const std::vector<std::string>& sets, const std::vector<int64_t>& stops = {}) {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Outcome outcome;
  for (size_t i = 0;; ++i) {
    Recorder recorder(i < stops.size() ? stops[i] : -1);
    const auto newest = load_newest(run, [](const std::string&) {});
    Trainer trainer(plan_from(kCnn, sets), run, recorder, recorder.requests);
    newest ? trainer.restore(*newest) : trainer.start();
    bool ended = true;
    try {
      trainer.run();
    } catch (const Interrupted&) {
      ended = false;
    }
    outcome.losses.insert(outcome.losses.end(), recorder.losses.begin(), recorder.losses.end());
    if (!ended) continue;
    outcome.values = arrays_of(trainer);
    outcome.history = trainer.state().history.text();
    return outcome;
  }
}

std::string on_replicas(int replicas) {
  return fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}", replicas);
}

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// Returns the largest difference, relative to the larger of 1 and the expected value.
template <class Values>
double difference(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double f = static_cast<double>(found[i]), e = static_cast<double>(expected[i]);
    largest = std::max(largest, std::isfinite(f) ? std::abs(f - e) / std::max(1.0, std::abs(e)) : INFINITY);
  }
  return largest;
}

/// Returns the values of one measure, by epoch.
std::vector<double> measured(const std::string& history, const std::string& name) {
  std::vector<double> values;
  std::istringstream lines(history);
  for (std::string line; std::getline(lines, line);)
    if (const Json record = Json::parse(line); record.find(name))
      values.push_back(record.find(name)->as_double());
  return values;
}

}  // namespace

// The results of replicas and of one device differ in the last bits. With relu, such a difference can make an
// input positive, and then it grows from step to step. With a smooth activation, the difference does not grow
// on any processor.
const std::vector<std::string> kSmooth{"model.layers.2.activation.activation=silu"};

TEST_CASE(
    "synchronized replicas of a CNN give one device's losses, weights, statistics and validation in 100 "
    "steps") {
  const Outcome single = run_of(kSmooth);
  REQUIRE(single.losses.size() == 100);
  CHECK(single.losses.back() < single.losses.front());
  for (const int replicas : {2, 3, 4}) {
    CAPTURE(replicas);
    const Outcome several = run_of(with(kSmooth, {on_replicas(replicas)}));
    CHECK(difference(several.losses, single.losses) < 1e-5);
    CHECK(difference(several.values, single.values) < 1e-4);
    const auto losses = measured(single.history, "val_loss");
    CHECK(losses.size() == 25);
    CHECK(difference(measured(several.history, "val_loss"), losses) < 1e-4);
  }
  // Without synchronization, the result is different.
  const Outcome apart = run_of(with(with(kSmooth, kApart), {on_replicas(2)}));
  CHECK(difference(apart.losses, single.losses) > 1e-2);
}

TEST_CASE(
    "synchronized replicas give one device's losses for partial batches and for fewer samples than "
    "replicas") {
  // With these batch sizes, 1, 0 and 5 of the 105 samples remain for the last batch. The last batch
  // normalization is frozen. Otherwise, it would normalize batches of two or three rows to nearly the same
  // numbers, whatever their values are, and the results would consist mostly of rounding errors.
  for (const int64_t batch : {2, 3, 10}) {
    const std::vector<std::string> sets{fmt::format("train.batch_size={}", batch), "train.epochs=1",
                                        "model.layers.11.batch_normalization.trainable=false"};
    const Outcome single = run_of(sets);
    for (const int replicas : {2, 4, 8}) {
      CAPTURE(batch);
      CAPTURE(replicas);
      const Outcome several = run_of(with(sets, {on_replicas(replicas)}));
      CHECK(difference(several.losses, single.losses) < 1e-5);
    }
  }
}

TEST_CASE("synchronized replicas give one device's losses with accumulation and clipping") {
  for (const int accumulate : {3, 20, 32}) {
    const std::vector<std::string> sets{fmt::format("train.accumulate={}", accumulate), "train.clip_norm=0.2",
                                        "train.epochs=6"};
    const Outcome single = run_of(sets);
    for (const int replicas : {2, 3, 4}) {
      CAPTURE(accumulate);
      CAPTURE(replicas);
      const Outcome several = run_of(with(sets, {on_replicas(replicas)}));
      CHECK(difference(several.losses, single.losses) < 1e-5);
    }
  }
}

TEST_CASE("frozen layers, and layers that need no gradient, do not disturb the collective calls") {
  const std::vector<std::string> sets{"model.layers.0.conv2d.trainable=false",
                                      "model.layers.4.batch_normalization.trainable=false", "train.epochs=5"};
  const Outcome single = run_of(sets), several = run_of(with(sets, {on_replicas(3)}));
  CHECK(difference(several.losses, single.losses) < 1e-5);
  CHECK(difference(several.values, single.values) < 1e-4);
}

TEST_CASE("recomputed synchronized layers repeat their collective calls in backward and give the same bits") {
  const std::vector<std::string> recomputed{"model.layers.0.conv2d.recompute={segment: first}",
                                            "model.layers.1.batch_normalization.recompute={segment: first}",
                                            "model.layers.2.activation.recompute={segment: first}",
                                            "model.layers.3.conv2d.recompute={segment: first}",
                                            "model.layers.4.batch_normalization.recompute={segment: first}",
                                            "model.layers.7.depthwise_conv2d.recompute={segment: second}",
                                            "model.layers.8.batch_normalization.recompute={segment: second}",
                                            "model.layers.11.batch_normalization.recompute=true"};
  const std::string pipelines =
      "strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [dropout], microbatches: 3, "
      "replicas: 2}}";
  const std::string sharded = "strategy={sharded: {devices: [cpu:0, cpu:1, cpu:2], level: parameters}}";
  for (const std::string& strategy : {on_replicas(1), on_replicas(2), on_replicas(4), pipelines, sharded}) {
    CAPTURE(strategy);
    // With nine samples in the last batch, some replicas have empty microbatches.
    const std::vector<std::string> sets{strategy, "train.epochs=3", "train.accumulate=4"};
    const Outcome kept = run_of(sets), again = run_of(with(sets, recomputed));
    CHECK(again.losses == kept.losses);
    CHECK(std::ranges::equal(std::as_bytes(std::span(again.values)), std::as_bytes(std::span(kept.values))));
  }
}

TEST_CASE("with one replica, synchronized batch normalization equals plain batch normalization") {
  const Outcome synchronized = run_of({"train.epochs=3"}), apart = run_of(with({"train.epochs=3"}, kApart));
  CHECK(difference(synchronized.losses, apart.losses) < 1e-5);
  CHECK(difference(synchronized.values, apart.values) < 1e-4);
}

TEST_CASE("synchronized replicas that are stopped and resumed end with the same bits") {
  const std::vector<std::string> sets{on_replicas(3), "train.epochs=3", "train.accumulate=2",
                                      "train.batch_size=20"};
  const Outcome whole = run_of(sets);
  for (const auto& stops : std::vector<std::vector<int64_t>>{{1}, {5, 6}, {4, 9, 17}}) {
    const Outcome resumed = run_of(sets, stops);
    CHECK(resumed.losses == whole.losses);
    CHECK(
        std::ranges::equal(std::as_bytes(std::span(resumed.values)), std::as_bytes(std::span(whole.values))));
  }
}

TEST_CASE(
    "microbatches cover the batch, and with synchronized layers equal those of one device over all "
    "replicas") {
  for (const int64_t batch : {1, 2, 7, 32, 100})
    for (const int64_t most : {1, 3, 8, 200})
      for (const int replicas : {1, 2, 3, 8}) {
        CAPTURE(batch);
        CAPTURE(most);
        CAPTURE(replicas);
        const Microbatches alone(batch, most, 0, 1, false);
        std::vector<int> seen(static_cast<size_t>(batch)), seen_together = seen;
        for (int rank = 0; rank < replicas; ++rank) {
          const Microbatches apart(batch, most, rank, replicas, false),
              together(batch, most, rank, replicas, true);
          CHECK(together.count() == alone.count());
          for (int number = 0; number < apart.count(); ++number) {
            CHECK(apart[number].size() <= apart[0].size());
            for (int64_t i = apart[number].begin; i < apart[number].end; ++i) ++seen[static_cast<size_t>(i)];
          }
          for (int number = 0; number < together.count(); ++number) {
            CHECK(together[number].size() <= together[0].size());
            CHECK(together[number].begin >= alone[number].begin);
            CHECK(together[number].end <= alone[number].end);
            for (int64_t i = together[number].begin; i < together[number].end; ++i)
              ++seen_together[static_cast<size_t>(i)];
          }
        }
        CHECK(seen == std::vector<int>(static_cast<size_t>(batch), 1));
        CHECK(seen_together == seen);
      }
}
