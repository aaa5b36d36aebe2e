// Tests that masked positions have no effect on the loss, gradients and metrics.
#include <cmath>

#include <fmt/format.h>

#include "train/evaluation/evaluation.h"
#include "train/ragged_rows.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

std::vector<double> masked_losses(const std::vector<Row>& rows, int steps,
                                  const std::vector<std::string>& sets, bool weighted = false) {
  const TempDir directory;
  return losses_of(run_of(directory, rows, steps, weighted), sets);
}
std::vector<double> masked_losses(const std::vector<int>& lengths, int steps,
                                  const std::vector<std::string>& sets) {
  return masked_losses(rows_of(lengths), steps, sets);
}

/// Records the epochs' lines of metrics.jsonl.
class EpochRecorder : public Recorder {
 public:
  void on_epoch(const Json& record, int64_t /*epochs*/) override { records.push_back(record); }

  std::vector<Json> records;
};

std::vector<Json> masked_records(const std::vector<Row>& rows, int steps,
                                 const std::vector<std::string>& sets, bool weighted = false) {
  const TempDir directory;
  EpochRecorder recorder;
  Trainer trainer(plan_from(run_of(directory, rows, steps, weighted), sets), RunDirectory(directory / "run"),
                  recorder, recorder.requests);
  trainer.start();
  trainer.run();
  return recorder.records;
}

}  // namespace

TEST_CASE("the loss of ragged rows does not depend on padding, replicas or accumulation") {
  const std::vector<int> lengths = {4, 1, 0, 3, 2, 0, 5};
  const auto expected = masked_losses(lengths, 5, {});
  CHECK(expected.back() < expected.front());
  check_equal(masked_losses(lengths, 9, {}), expected);
  check_equal(masked_losses(rows_of(lengths, 3), 9, {}), expected);  // each row begins with padding
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

TEST_CASE("balanced class weights do not count masked positions") {
  // Without padding, the classes have 3, 3 and 2 positions.
  const std::vector<int> lengths = {4, 1, 0, 3};
  const auto expected =
      masked_losses(lengths, 5, {"train.class_weight={0: 0.88888889, 1: 0.88888889, 2: 1.33333333}"});
  check_equal(masked_losses(lengths, 5, {"train.class_weight=balanced"}), expected);
  check_equal(masked_losses(lengths, 9, {"train.class_weight=balanced"}), expected);
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

TEST_CASE("synchronized batch normalization counts the positions of all replicas that are not masked") {
  const std::vector<int> lengths = {4, 1, 0, 3, 2, 0, 5};
  const std::string normalized =
      "model.layers=[{embedding: {input_dim: 9, output_dim: 4, mask_zero: true}}, {batch_normalization: "
      "{synchronized: true}}, {lstm: {units: 5, return_sequences: true}}, {dense: {units: 3}}]";
  const std::string sgd = "train.optimizer={sgd: {learning_rate: 0.1}}";
  const auto expected = masked_losses(lengths, 5, {normalized, sgd});
  CHECK(expected.back() < expected.front());
  check_equal(masked_losses(lengths, 9, {normalized, sgd}), expected);  // padding has no effect on the loss
  for (const int replicas : {2, 3, 5}) {
    CAPTURE(replicas);
    check_equal(masked_losses(lengths, 6,
                              {normalized, sgd,
                               fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], "
                                           "replicas: {}}}}}",
                                           replicas)}),
                expected);
  }
}

TEST_CASE("masks are recomputed with the layers that create them") {
  const TempDir directory;
  const std::string plain = run_of(directory, rows_of({4, 1, 0, 3, 2, 0, 5}), 6);
  std::string recomputed = plain;
  for (const std::string option : {"mask_zero: true", "return_sequences: true"})
    recomputed.replace(recomputed.find(option), option.size(), option + ", recompute: {segment: all}");
  CHECK(losses_of(recomputed) == losses_of(plain));
  check_equal(losses_of(recomputed,
                        {"strategy={placed: {layers: {'embedding': cpu:0, 'lstm': cpu:1, 'dense': cpu:0}}}"}),
              losses_of(plain));
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
      plan_from(run_of(directory, rows_of({0, 0, 0}), 4), {"train.optimizer={adamw: {weight_decay: 0.5}}"}),
      RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  const std::vector<float> before = arrays_of(trainer);
  trainer.run();
  CHECK(recorder.losses == std::vector<double>(4, 0.0));
  CHECK(arrays_of(trainer) == before);
}

TEST_CASE("a row's weight counts for each of its positions that are not masked") {
  // A row with a weight of 2 counts like two equal rows.
  const std::vector<Row> twice = {{0, 4}, {1, 2}, {1, 2}, {2, 0}, {3, 3}};
  const std::vector<Row> weights = {{0, 4}, {1, 2, 1, 2}, {2, 0, 0, 5}, {3, 3}, {4, 5, 0, 0}};
  const auto expected = masked_losses(twice, 6, {"train.clip_norm=0.5"});
  for (const int replicas : {1, 2, 3})
    check_equal(masked_losses(weights, 6,
                              {fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}",
                                           replicas),
                               "train.clip_norm=0.5", "train.accumulate=2"},
                              true),
                expected);
}

TEST_CASE("metrics count positions that are not masked") {
  const std::string metrics =
      "[accuracy, {sparse_top_k_categorical_accuracy: {k: 2}}, {f1_score: {average: macro}}, "
      "sparse_categorical_crossentropy]";
  const std::vector<int> lengths = {4, 1, 0, 3, 2, 0, 5};
  const auto expected = masked_records(rows_of(lengths), 5, {"train.metrics=" + metrics});
  const auto found = masked_records(
      rows_of(lengths, 2), 8,
      {"train.metrics=" + metrics, "strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}"});
  REQUIRE(expected.size() == 4);
  REQUIRE(found.size() == 4);
  for (size_t epoch = 0; epoch < 4; ++epoch)
    for (const char* name : {"loss", "accuracy", "sparse_top_k_categorical_accuracy", "f1_score",
                             "sparse_categorical_crossentropy"}) {
      CAPTURE(name);
      CHECK(found[epoch].at(name).as_double() ==
            doctest::Approx(expected[epoch].at(name).as_double()).epsilon(1e-5));
    }
  const Json& last = expected.back();
  CHECK(last.at("sparse_categorical_crossentropy").as_double() ==
        doctest::Approx(last.at("loss").as_double()));
  const double right = 15 * last.at("accuracy").as_double();  // 15 positions are not masked
  CHECK(right == doctest::Approx(std::round(right)));
}

TEST_CASE("row weights apply only to weighted metrics, masks apply to all metrics") {
  const std::vector<Row> rows = {{0, 4}, {1, 2, 1, 2}, {2, 0, 0, 5}, {3, 3}, {4, 5, 0, 0.5}};
  const std::vector<std::string> sets = {"train.epochs=1",
                                         "train.metrics=[sparse_categorical_crossentropy, accuracy]",
                                         "train.weighted_metrics=[sparse_categorical_crossentropy]"};
  const Json with = masked_records(rows, 6, sets, true).back();
  const Json without = masked_records(rows, 6, {sets[0], sets[1]}).back();
  for (const char* name : {"sparse_categorical_crossentropy", "accuracy"})
    CHECK(with.at(name).as_double() == doctest::Approx(without.at(name).as_double()));
  CHECK(with.at("weighted_sparse_categorical_crossentropy").as_double() ==
        doctest::Approx(with.at("loss").as_double()));
  CHECK(with.at("loss").as_double() != doctest::Approx(without.at("loss").as_double()).epsilon(1e-6));
}

TEST_CASE("a loss of whole samples cannot ignore masked positions") {
  CHECK_THROWS_WITH_AS(config_from(R"(
model: {inputs: {x: [4, 3]}, layers: [masking, dense: {units: 2, activation: sigmoid}]}
dataset: {train: {synthetic: {samples: 4, target: {shape: [4, 2]}}}}
train: {batch_size: 2, loss: {dice: {axis: [1]}}, optimizer: sgd}
)"),
                       doctest::Contains("is computed over whole samples and cannot skip masked positions"),
                       UserError);
}
