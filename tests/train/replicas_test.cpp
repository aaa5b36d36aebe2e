// Compares N replicas with one replica.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

// The activations are smooth. With relu, a difference in the last bit could grow from step to step, as in any
// program that computes in float32.
constexpr auto kDense = R"(
seed: 3
model:
  inputs: {x: [24]}
  layers:
    - dense: {units: 32, activation: tanh}
    - layer_normalization: {}
    - dropout: {rate: 0.3}
    - dense: {units: 16, activation: silu}
    - dense: {units: 5}
dataset:
  train: {synthetic: {samples: 1010, target: {classes: 5}, seed: 4}}
strategy: single
train:
  epochs: 20
  batch_size: 100
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy]
)";

constexpr auto kImages = R"(
seed: 3
model:
  inputs: {image: [8, 8, 2]}
  layers:
    - conv2d: {filters: 16, kernel_size: 3, padding: same, activation: tanh, name: first}
    - conv2d: {filters: 16, kernel_size: 3, padding: same, activation: sigmoid}
    - add: {inputs: [conv2d, first]}
    - average_pooling2d: {pool_size: 2}
    - dropout: {rate: 0.2}
    - flatten: {}
    - dense: {units: 3, activation: softmax}
dataset:
  train: {synthetic: {samples: 70, target: {classes: 3}, seed: 4}}
strategy: single
train:
  epochs: 6
  batch_size: 32
  loss: sparse_categorical_crossentropy
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9, nesterov: true}}
)";

constexpr auto kNoise = R"(
seed: 3
model:
  inputs: {image: [6, 5, 2]}
  layers:
    - gaussian_noise: {stddev: 0.2}
    - conv2d: {filters: 8, kernel_size: 3, padding: same}
    - group_normalization: {groups: 4}
    - activation: tanh
    - spatial_dropout2d: {rate: 0.3}
    - reshape: [30, 8]
    - spatial_dropout1d: {rate: 0.2}
    - flatten: {}
    - rms_normalization: {}
    - gaussian_dropout: {rate: 0.2}
    - dense: {units: 3}
    - softmax: {}
dataset:
  train: {synthetic: {samples: 70, target: {classes: 3}, seed: 4}}
strategy: single
train:
  epochs: 4
  batch_size: 32
  loss: sparse_categorical_crossentropy
  optimizer: {sgd: {learning_rate: 0.05}}
)";

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return largest;
}

std::vector<std::string> with_replicas(int replicas, int64_t batch) {
  return {fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}", replicas),
          fmt::format("train.batch_size={}", batch)};
}

}  // namespace

TEST_CASE("noise depends neither on the replicas nor on microbatches") {
  const auto single = losses_of(kNoise, {});
  CHECK(single.size() == 12);
  CHECK(largest_difference(losses_of(kNoise, with_replicas(2, 32)), single) < 1e-4);
  CHECK(largest_difference(losses_of(kNoise, with_replicas(5, 32)), single) < 1e-4);
  CHECK(largest_difference(losses_of(kNoise, {"train.accumulate=3"}), single) < 1e-4);
  // With another seed, the noise is different.
  CHECK(largest_difference(losses_of(kNoise, {"seed=4"}), single) > 1e-3);
}

TEST_CASE(
    "any number of replicas gives one device's loss curve, even with partial batches and empty shares") {
  for (const int64_t batch : {64, 100}) {
    const auto single = losses_of(kDense, {fmt::format("train.batch_size={}", batch)});
    CHECK(single.size() == static_cast<size_t>(20 * ((1010 + batch - 1) / batch)));
    CHECK(single.back() < single.front());
    for (const int replicas : {2, 3, 5, 8}) {
      CAPTURE(batch);
      CAPTURE(replicas);
      CHECK(largest_difference(losses_of(kDense, with_replicas(replicas, batch)), single) < 1e-4);
    }
  }
}

TEST_CASE(
    "replicas of a CNN give one device's loss curve, even with fewer samples than replicas in the last "
    "batch") {
  const auto single = losses_of(kImages);
  for (const int replicas : {2, 3, 7, 12}) {
    CAPTURE(replicas);
    CHECK(largest_difference(losses_of(kImages, with_replicas(replicas, 32)), single) < 1e-4);
  }
}

TEST_CASE("accumulation and clipping give the same losses for every number of replicas") {
  const std::vector<std::string> clipped{"train.clip_norm=0.05"};
  const auto single = losses_of(kDense, clipped);
  CHECK(largest_difference(single, losses_of(kDense)) > 1e-3);  // clipping is active
  auto sets = with_replicas(3, 100);
  sets.push_back("train.clip_norm=0.05");
  sets.push_back("train.accumulate=4");
  CHECK(largest_difference(losses_of(kDense, sets), single) < 1e-4);
}

TEST_CASE("steps that need whole parameters are the same for any number of shards") {
  std::string optimizer;
  SUBCASE("lamb") {
    optimizer = "train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}";
  }
  SUBCASE("adafactor") {
    optimizer = "train.optimizer={adafactor: {learning_rate: 0.01, weight_decay: 0.1}}";
  }
  CAPTURE(optimizer);
  const std::string groups =
      "train.groups=[{weights: dense_1/*, learning_rate_factor: 0.5, weight_decay: 0}]";
  const auto single = losses_of(kDense, {optimizer, groups});
  CHECK(single.back() < single.front());
  for (const int replicas : {2, 3, 5, 8}) {
    CAPTURE(replicas);
    auto sets = with_replicas(replicas, 100);
    sets.insert(sets.end(), {optimizer, groups});
    CHECK(largest_difference(losses_of(kDense, sets), single) < 1e-4);
  }
}

TEST_CASE("the same run twice gives the same bits") {
  CHECK(losses_of(kDense, with_replicas(3, 64)) == losses_of(kDense, with_replicas(3, 64)));
}

TEST_CASE("batch normalization's moving statistics are the average over the replicas, weighted by share") {
  constexpr auto yaml = R"(
model:
  inputs: {x: [4]}
  layers:
    - batch_normalization: {momentum: 0.0}
    - dense: {units: 1}
dataset:
  train: {synthetic: {samples: 10, target: {shape: [1]}, seed: 4}}
  shuffle: false
strategy: {mirrored: {devices: [cpu:0], replicas: 3}}
train: {epochs: 1, batch_size: 10, loss: mean_squared_error, optimizer: {sgd: {learning_rate: 0.0}}}
)";
  const TempDir directory;
  Recorder recorder;
  Trainer trainer(plan_from(yaml), RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  trainer.run();
  const RunConfig& config = trainer.config();
  const auto data =
      open_split(config.dataset, *config.dataset.train, config.graph.input_specs(), config.targets());
  std::vector<float> x(40), y(10);
  std::vector<int64_t> rows(10);
  for (size_t i = 0; i < 10; ++i) rows[i] = static_cast<int64_t>(i);
  data->read({.rows = rows}, std::vector<View>{{x.data(), Shape{10, 4}}, {y.data(), Shape{10, 1}}});
  std::vector<double> mean(4, 0.0), variance(4, 0.0);
  for (const Range share : {Range{0, 4}, Range{4, 7}, Range{7, 10}})
    for (size_t c = 0; c < 4; ++c) {
      double m = 0, v = 0;
      for (int64_t s = share.begin; s < share.end; ++s) m += x[static_cast<size_t>(s) * 4 + c];
      m /= static_cast<double>(share.size());
      for (int64_t s = share.begin; s < share.end; ++s)
        v += std::pow(x[static_cast<size_t>(s) * 4 + c] - m, 2);
      mean[c] += 0.1 * static_cast<double>(share.size()) * m;
      variance[c] += 0.1 * v;
    }
  for (const ParameterSlice& slice : trainer.engine().layout().slices()) {
    if (!slice.moving_average) continue;
    const auto& expected = slice.name == "moving_mean" ? mean : variance;
    for (size_t c = 0; c < 4; ++c)
      CHECK(trainer.engine().state().download().values[static_cast<size_t>(slice.offset) + c] ==
            doctest::Approx(expected[c]).epsilon(1e-5));
  }
}
