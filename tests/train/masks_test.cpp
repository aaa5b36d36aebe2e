// Masked positions count neither in the loss, nor in gradients, nor in metrics.
#include <fstream>

#include <fmt/format.h>

#include "support/runs.h"
#include "train/evaluation.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Writes rows of tokens, of which the first `lengths[i]` are not 0, and a class for each token.
void write_tokens(const std::string& path, const std::vector<int>& lengths, int steps) {
  std::ofstream file(path);
  for (size_t row = 0; row < lengths.size(); ++row) {
    for (int t = 0; t < steps; ++t)
      file << (t < lengths[row] ? 1 + (static_cast<int>(row) * 7 + t * 3) % 8 : 0) << ',';
    for (int t = 0; t < steps; ++t) file << (static_cast<int>(row) + t) % 3 << (t + 1 < steps ? ',' : '\n');
  }
}

/// A run over rows of these lengths, padded to `steps`.
std::string run_of(const TempDir& directory, const std::vector<int>& lengths, int steps) {
  write_tokens(directory / "t.csv", lengths, steps);
  std::string targets;
  for (int t = 0; t < steps; ++t) targets += fmt::format("{}{}", t ? ", " : "", steps + t);
  return fmt::format(R"(
seed: 3
model:
  inputs: {{x: {{shape: [{0}], dtype: int32}}}}
  layers:
    - embedding: {{input_dim: 9, output_dim: 4, mask_zero: true}}
    - lstm: {{units: 5, return_sequences: true}}
    - dense: {{units: 3}}
dataset: {{train: {{csv: {{file: {1}, target: [{2}]}}}}, shuffle: false}}
train:
  epochs: 4
  batch_size: {3}
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{adam: {{learning_rate: 0.05}}}}
)",
                     steps, directory / "t.csv", targets, lengths.size());
}

std::vector<double> masked_losses(const std::vector<int>& lengths, int steps,
                                  const std::vector<std::string>& sets) {
  const TempDir directory;
  return losses_of(run_of(directory, lengths, steps), sets);
}

void check_equal(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(3e-6));
}

}  // namespace

TEST_CASE("the loss of ragged rows does not depend on padding, replicas or accumulation") {
  const std::vector<int> lengths = {4, 1, 0, 3, 2, 0, 5};
  const auto expected = masked_losses(lengths, 5, {});
  CHECK(expected.back() < 0.95 * expected.front());
  check_equal(masked_losses(lengths, 9, {}), expected);
  for (const int replicas : {1, 2, 3, 5})
    for (const int accumulate : {1, 2, 5}) {
      CAPTURE(replicas);
      CAPTURE(accumulate);
      check_equal(
          masked_losses(
              lengths, 6,
              {fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}", replicas),
               fmt::format("train.accumulate={}", accumulate), "train.clip_norm=0.5"}),
          masked_losses(lengths, 5, {"train.clip_norm=0.5"}));
    }
}

TEST_CASE("masks are the same under every strategy") {
  const std::vector<int> lengths = {4, 1, 0, 3, 2, 0, 5};
  const auto expected = masked_losses(lengths, 6, {});
  for (const std::string strategy :
       {"{sharded: {devices: [cpu:0, cpu:1], level: parameters}}", "{sharded: {devices: [cpu:0, cpu:1]}}",
        "{pipeline: {devices: [cpu:0, cpu:1], stages: auto, microbatches: 2}}",
        "{placed: {layers: {'embedding': cpu:0, 'lstm': cpu:1, 'dense': cpu:0}}}"}) {
    CAPTURE(strategy);
    check_equal(masked_losses(lengths, 6, {"strategy=" + strategy}), expected);
  }
}

TEST_CASE("a dense layer with an embedding's weights passes the mask") {
  const std::vector<int> lengths = {4, 1, 0, 3, 2, 0, 5};
  const std::string tied =
      "model.layers=[{embedding: {input_dim: 9, output_dim: 4, mask_zero: true, name: token}}, "
      "{dense: {shared_with: token, activation: tanh}}, {dense: {units: 3}}]";
  const auto expected = masked_losses(lengths, 5, {tied});
  CHECK(expected.back() < expected.front());
  check_equal(masked_losses(lengths, 9, {tied}), expected);
}

TEST_CASE("a step without valid positions changes nothing, not even by weight decay") {
  const TempDir directory;
  Recorder recorder;
  Trainer trainer(
      plan_from(run_of(directory, {0, 0, 0}, 4), {"train.optimizer={adamw: {weight_decay: 0.5}}"}),
      RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  const std::vector<float> before = arrays_of(trainer);
  trainer.run();
  CHECK(recorder.losses == std::vector<double>(4, 0.0));
  CHECK(arrays_of(trainer) == before);
}
