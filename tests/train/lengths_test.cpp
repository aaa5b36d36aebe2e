// Tests the option bucket_by_length of dataset.batches. With this option, each batch is truncated to the
// length of its longest sample. The losses and gradients must be the same as with whole batches, and models
// that need all positions must be rejected.
#include <algorithm>

#include "train/evaluation/evaluation.h"
#include "train/outcome.h"
#include "train/ragged_rows.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

const std::string kByLength = "dataset.batches={bucket_by_length: true}";
constexpr int kSteps = 20;

/// Returns rows of different lengths. With a batch size of 4, one batch is truncated to 8 steps, one to 16
/// steps, and one is not truncated. The last batch has 2 samples and is truncated to 8 steps.
std::vector<Row> ragged_rows() {
  return rows_of({4, 7, 0, 3, 12, 9, 5, 16, 1, 20, 8, 16, 2, 3});
}

/// Returns the outcome of a run that reads the rows in the given order. The run is made so that rounding
/// errors of the gradients do not grow.
Outcome outcome_of_rows(const std::vector<Row>& rows, std::vector<std::string> sets, bool weighted = false) {
  const TempDir directory;
  sets.insert(sets.begin(),
              {"train.batch_size=4", "train.epochs=2", "train.optimizer={sgd: {learning_rate: 0.3}}"});
  return outcome_of(run_of(directory, rows, kSteps, weighted), sets);
}

void check_equal(const Outcome& found, const Outcome& expected) {
  dtrain::test::check_equal(found.losses, expected.losses);
  CHECK(largest_difference_of(found.values, expected.values) < 2e-6);
  check_same_history(found.history, expected.history);
}

/// Returns the lengths of an epoch's batches.
std::vector<int64_t> lengths_of_batches(Loader& loader, int64_t epoch) {
  std::vector<int64_t> lengths;
  loader.begin(epoch, 0);
  while (const auto batch = loader.next()) lengths.push_back(batch->length());
  return lengths;
}

}  // namespace

TEST_CASE("batches are cut to the longest sample") {
  const TempDir directory;
  const RunConfig config =
      config_from(run_of(directory, ragged_rows(), kSteps), {kByLength, "train.batch_size=4"});
  const auto loader = open_loader(config, *config.dataset.train, false, true);
  CHECK(lengths_of_batches(*loader, 0) == std::vector<int64_t>{8, 16, 0, 8});
  CHECK(loader->lengths()->distinct == std::vector<int64_t>{8, 16, 20});
  const auto shuffled = open_loader(config, *config.dataset.train, true, true);
  for (const int epoch : {0, 1}) {
    std::vector<int64_t> lengths = lengths_of_batches(*shuffled, epoch);
    lengths.pop_back();  // the last batch is smaller, and its samples may have any length
    CHECK(std::count(lengths.begin(), lengths.end(), 0) <= 1);
  }
}

TEST_CASE("batches that are cut have the losses and gradients of whole batches") {
  const std::vector<std::string> with_metrics = {
      "train.clip_norm=0.5", "train.metrics=[accuracy, {sparse_top_k_categorical_accuracy: {k: 2}}]"};
  const Outcome expected = outcome_of_rows(ragged_rows(), with_metrics);
  CHECK(expected.losses.back() < expected.losses.front());
  for (const int replicas : {1, 2, 3})
    for (const int accumulate : {1, 2, 5}) {
      CAPTURE(replicas);
      CAPTURE(accumulate);
      std::vector<std::string> sets = with_metrics;
      sets.insert(sets.end(),
                  {kByLength,
                   fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}", replicas),
                   fmt::format("train.accumulate={}", accumulate)});
      check_equal(outcome_of_rows(ragged_rows(), sets), expected);
    }
}

TEST_CASE("batches are cut under every strategy") {
  const Outcome expected = outcome_of_rows(ragged_rows(), {});
  for (const std::string strategy :
       {"{sharded: {devices: [cpu:0, cpu:1], level: parameters}}", "{sharded: {devices: [cpu:0, cpu:1]}}",
        "{pipeline: {devices: [cpu:0, cpu:1], stages: auto, microbatches: 2}}",
        "{placed: {layers: {'embedding': cpu:0, 'lstm': cpu:1, 'dense': cpu:0}}}"}) {
    CAPTURE(strategy);
    check_equal(outcome_of_rows(ragged_rows(), {kByLength, "strategy=" + strategy}), expected);
  }
}

TEST_CASE("weights of samples and of classes count in batches that are cut") {
  std::vector<Row> rows = ragged_rows();
  for (size_t i = 0; i < rows.size(); ++i) rows[i].weight = static_cast<double>(i % 3);
  check_equal(outcome_of_rows(rows, {kByLength}, true), outcome_of_rows(rows, {}, true));
  const std::string classes = "train.class_weight={0: 2, 1: 0.5, 2: 1}";
  check_equal(outcome_of_rows(rows, {kByLength, classes}), outcome_of_rows(rows, {classes}));
}

TEST_CASE("attention, positions and pooling do not change in batches that are cut") {
  const TempDir directory;
  const std::string path = directory / "t.csv";
  {
    std::ofstream file(path);
    for (const Row& row : ragged_rows()) {
      for (int t = 0; t < kSteps; ++t) file << (t < row.length ? 1 + (row.id * 7 + t * 3) % 8 : 0) << ',';
      file << row.id % 3 << '\n';
    }
  }
  const std::string yaml = fmt::format(R"(
seed: 3
model:
  inputs: {{x: {{shape: [20], dtype: int32}}}}
  layers:
    - embedding: {{input_dim: 9, output_dim: 4, mask_zero: true}}
    - position_embedding: {{sequence_length: 24}}
    - multi_head_attention: {{num_heads: 2, rotary: {{base: 100}}}}
    - layer_normalization
    - bidirectional: {{layer: {{lstm: {{units: 3, return_sequences: true}}}}}}
    - global_average_pooling1d
    - dense: {{units: 3}}
dataset:
  train: {{csv: {{file: {0}, target: 20}}}}
  validation: {{csv: {{file: {0}, target: 20}}}}
  shuffle: false
train:
  epochs: 2
  batch_size: 4
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{sgd: {{learning_rate: 0.1}}}}
)",
                                       path);
  check_equal(outcome_of(yaml, {kByLength}), outcome_of(yaml));
  check_equal(outcome_of(yaml, {kByLength, "dataset.cache=none", "strategy={mirrored: {replicas: 2}}"}),
              outcome_of(yaml));
}

TEST_CASE("shuffled batches of similar lengths are the same for all replicas, and after a resume") {
  const TempDir directory;
  std::vector<int> lengths;
  for (int i = 0; i < 45; ++i) lengths.push_back((i * 13) % 21);
  const std::string yaml = run_of(directory, rows_of(lengths), kSteps);
  const std::vector<std::string> sets = {kByLength, "dataset.shuffle=true", "train.batch_size=4",
                                         "train.optimizer={sgd: {learning_rate: 0.3}}",
                                         "checkpoint.every=3 steps"};
  const auto run_with_stops = [&](const std::vector<int64_t>& stops, const std::string& strategy) {
    const TempDir runs;
    const RunDirectory run(runs / "run");
    std::vector<std::string> all = sets;
    all.push_back("strategy=" + strategy);
    for (size_t i = 0;; ++i) {
      Recorder recorder(i < stops.size() ? stops[i] : -1);
      try {
        const std::optional<Checkpoint> checkpoint = load_newest(run, [](const std::string&) {});
        Trainer trainer(plan_from(yaml, all), run, recorder, recorder.requests);
        checkpoint ? trainer.restore(*checkpoint) : trainer.start();
        trainer.run();
        return arrays_of(trainer);
      } catch (const Interrupted&) {
        CHECK(i < stops.size());
      }
    }
  };
  const std::string two = "{mirrored: {devices: [cpu:0, cpu:1], replicas: 2}}";
  const std::vector<float> whole = run_with_stops({}, two);
  CHECK(run_with_stops({5, 17, 18, 40}, two) == whole);
  CHECK(largest_difference_of(run_with_stops({}, "single"), whole) < 1e-3);
}

TEST_CASE("padding at the beginning is not cut, and a warning says so") {
  const auto warns = [](const std::vector<Row>& rows) {
    const TempDir directory;
    Recorder recorder;
    const Trainer trainer(plan_from(run_of(directory, rows, 10), {kByLength}),
                          RunDirectory(directory / "run"), recorder, recorder.requests);
    return std::any_of(recorder.warnings.begin(), recorder.warnings.end(), [](const std::string& warning) {
      return warning.find("bucket_by_length has no effect") != warning.npos;
    });
  };
  CHECK(warns(rows_of({7, 7}, 3)));
  CHECK(!warns(rows_of({3, 5}, 3)));  // the padding at the end of all rows is removed
}

TEST_CASE("a run cannot change how its batches are made within an epoch") {
  const TempDir directory;
  const std::string yaml = run_of(directory, ragged_rows(), kSteps);
  const RunDirectory run(directory / "run");
  Recorder recorder(2);
  Trainer trainer(plan_from(yaml, {kByLength, "train.batch_size=4"}), run, recorder, recorder.requests);
  trainer.start();
  CHECK_THROWS_AS(trainer.run(), Interrupted);
  const std::optional<Checkpoint> checkpoint = load_newest(run, [](const std::string&) {});
  REQUIRE(checkpoint);
  Recorder other;
  Trainer changed(plan_from(yaml, {"train.batch_size=4"}), RunDirectory(directory / "other"), other,
                  other.requests);
  CHECK_THROWS_WITH_AS(changed.restore(*checkpoint),
                       doctest::Contains("cannot change 'bucket_by_length: true' to"), UserError);
}

namespace {

/// Returns the error message for a model with these layers, whose input has 12 tokens.
std::string mistake_in(const std::string& layers) {
  try {
    config_from(fmt::format(R"(
model:
  inputs: {{x: {{shape: [12], dtype: int32}}}}
  layers: {}
dataset:
  batches: {{bucket_by_length: true}}
  train: {{synthetic: {{samples: 8, target: {{classes: 2}}}}}}
train: {{batch_size: 2, loss: sparse_categorical_crossentropy, optimizer: sgd}}
)",
                            layers));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("models whose batches cannot be cut are errors with a location") {
  const std::string masked = "embedding: {input_dim: 9, output_dim: 4, mask_zero: true}";
  const std::string end = "global_average_pooling1d, dense: {units: 2, activation: softmax}]";
  const auto fails = [](const std::string& message, const std::string& place, const std::string& part) {
    CAPTURE(message);
    CHECK(message.find("test.yaml:" + place) != message.npos);
    CHECK(message.find(part) != message.npos);
  };
  fails(mistake_in("[embedding: {input_dim: 9, output_dim: 4}, " + end),
        "6:", "needs a mask of the padding, which gives the lengths of the sequences");
  fails(mistake_in("[" + masked + ", flatten: {ignore_mask: true}, dense: {units: 2, activation: softmax}]"),
        "4:", "flatten 'flatten' treats padding as data because of ignore_mask");
  fails(mistake_in("[" + masked + ", group_normalization: {groups: 2}, " + end),
        "4:", "group_normalization 'group_normalization' computes each position from all positions");
  fails(mistake_in("[" + masked + ", prelu, " + end),
        "4:", "prelu 'prelu' has separate parameters for each position");
  fails(mistake_in("[" + masked +
                   ", {embedding: {name: plain, inputs: x, input_dim: 9, output_dim: 4}}, {add: "
                   "{inputs: [embedding, plain]}}, " +
                   end),
        "4:", "embedding 'plain' reads 'x', which has no mask of its padding");
  const std::string counts = "has an activity_regularizer, which also counts padding";
  fails(mistake_in("[" + masked + ", lstm: {units: 2, return_sequences: true, activity_regularizer: l2}, " +
                   end),
        "4:", "lstm 'lstm' " + counts);
  fails(mistake_in(
            "[" + masked +
            ", time_distributed: {layer: {dense: {units: 4, activation: tanh}}, activity_regularizer: l2}, " +
            end),
        "4:", "time_distributed 'time_distributed' " + counts);
  fails(mistake_in("[" + masked +
                   ", dense: {name: d, units: 2, activation: tanh, activity_regularizer: l2}, " + end),
        "4:", "dense 'd' " + counts);
  CHECK(mistake_in("[" + masked +
                   ", lstm: {units: 2, activity_regularizer: l2}, dense: {units: 2, activation: "
                   "softmax}]") == "");
  CHECK(mistake_in("[" + masked + ", prelu: {shared_axes: [1]}, " + end) == "");
  CHECK(mistake_in("[" + masked +
                   ", global_average_pooling1d: {activity_regularizer: l2}, dense: {units: 2, activation: "
                   "softmax}]") == "");
}
