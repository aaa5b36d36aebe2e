// Tests outputs with different masks, and penalties on outputs of layers in combination with row weights.
// Each loss is divided by the sum of the weights of its output. Penalties are divided by the number of
// samples.
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "device/device.h"
#include "support/errors.h"
#include "train/outcome.h"
#include "train/ragged_rows.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// A model that tags each token (the output `tags`, which is masked) and classifies each sentence (the output
/// `kind`, which has no mask). Each row has the tags and the class of its tokens and, if `weighted` is true,
/// a weight. `only` is the name of the model's only output; if it is "", the model has both outputs.
std::string tagger_of(const TempDir& directory, const std::vector<Row>& rows, int steps,
                      bool weighted = false, const std::string& only = "") {
  std::ofstream file(directory / "t.csv");
  std::string columns;
  for (int t = 0; t < steps; ++t) columns += fmt::format("{}{}", t ? ", " : "", steps + t);
  for (const Row& row : rows) {
    const auto at = [&](int t) { return t - row.before; };
    for (int t = 0; t < steps; ++t)
      file << (at(t) >= 0 && at(t) < row.length ? 1 + (row.id * 7 + at(t) * 3) % 8 : 0) << ',';
    for (int t = 0; t < steps; ++t) file << (row.id + at(t) + 30) % 3 << ',';
    file << row.id % 2 << (weighted ? fmt::format(",{}", row.weight) : "") << '\n';
  }
  const std::string tags = fmt::format("[{}]", columns), kind = std::to_string(2 * steps);
  const std::string loss = "{sparse_categorical_crossentropy: {from_logits: true}}";
  std::string layers, outputs = "[" + only + "]", targets;
  if (only != "kind") layers += "    - dense: {name: tags, units: 3}\n";
  if (only != "tags")
    layers +=
        "    - global_average_pooling1d: {name: mean, inputs: lstm}\n"
        "    - dense: {name: kind, units: 2}\n";
  if (only.empty()) outputs = "[tags, kind]";
  if (only.empty()) targets = fmt::format("targets: {{tags: {}, kind: {}}}", tags, kind);
  if (only == "tags") targets = fmt::format("target: {}, drop: {}", tags, kind);
  if (only == "kind") targets = fmt::format("target: {}, drop: {}", kind, tags);
  return fmt::format(R"(
seed: 3
model:
  inputs: {{x: {{shape: [{0}], dtype: int32}}}}
  layers:
    - embedding: {{input_dim: 9, output_dim: 4, mask_zero: true}}
    - lstm: {{units: 5, return_sequences: true}}
{1}  outputs: {2}
dataset: {{train: {{csv: {{file: {3}, {4}{5}}}}}, shuffle: false}}
train:
  epochs: 4
  batch_size: {6}
  loss: {7}
  optimizer: {{adam: {{learning_rate: 0.05}}}}
)",
                     steps, layers, outputs, directory / "t.csv", targets,
                     weighted ? fmt::format(", weight: {}", 2 * steps + 1) : "", rows.size(),
                     only.empty() ? fmt::format("{{tags: {0}, kind: {0}}}", loss) : loss);
}

std::vector<double> tagger_losses(const std::vector<Row>& rows, int steps,
                                  const std::vector<std::string>& sets, bool weighted = false) {
  const TempDir directory;
  return losses_of(tagger_of(directory, rows, steps, weighted), sets);
}

const std::vector<int> kLengths = {4, 1, 0, 3, 2, 0, 5};

const std::vector<std::string> kStrategies = {
    "{sharded: {devices: [cpu:0, cpu:1], level: parameters}}",
    "{sharded: {devices: [cpu:0, cpu:1], level: gradients}}",
    "{sharded: {devices: [cpu:0, cpu:1]}}",
    "{pipeline: {devices: [cpu:0, cpu:1], stages: [lstm], microbatches: 3}}",
    "{pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [mean], microbatches: 2, replicas: 2}}",
    "{placed: {layers: {'embedding': cpu:0, 'lstm': cpu:1, 'tags': cpu:0, 'mean': cpu:1, 'kind': cpu:0}}}"};

/// An encoder and a decoder with inputs of different lengths. Both the encoder and the decoder have an
/// output. Tokens of 0 are padding.
constexpr auto kTranslator = R"(
seed: 3
model:
  inputs: {source: {shape: [6], dtype: int32}, target: {shape: [4], dtype: int32}}
  layers:
    - embedding: {name: words, inputs: source, input_dim: 9, output_dim: 4, mask_zero: true}
    - gru: {name: encoder, units: 5, return_sequences: true}
    - dense: {name: tags, units: 3}
    - embedding: {name: tokens, inputs: target, input_dim: 9, output_dim: 5, mask_zero: true}
    - multi_head_attention: {name: attention, inputs: [tokens, encoder], num_heads: 1, key_dim: 4}
    - dense: {name: next, units: 4}
  outputs: [next, tags]
dataset:
  train: {synthetic: {samples: 30, input: {low: 0, high: 4}, targets: {next: {classes: 4}, tags: {classes: 3}}, seed: 4}}
  validation: {synthetic: {samples: 11, input: {low: 0, high: 4}, targets: {next: {classes: 4}, tags: {classes: 3}}, seed: 5}}
train:
  epochs: 3
  batch_size: 8
  loss:
    next: {sparse_categorical_crossentropy: {from_logits: true}}
    tags: {sparse_categorical_crossentropy: {from_logits: true, weight: 0.5}}
  metrics: [accuracy]
  optimizer: {sgd: {learning_rate: 0.3}}
)";

/// A model that tags each token. It has no recurrent layers, so that it is fast on an emulated GPU.
constexpr auto kTagger = R"(
seed: 3
model:
  inputs: {x: {shape: [6], dtype: int32}}
  layers:
    - embedding: {input_dim: 9, output_dim: 8, mask_zero: true}
    - dense: {name: states, units: 8, activation: tanh, activity_regularizer: {l2: 0.01}}
    - dense: {name: tags, units: 3}
    - global_average_pooling1d: {name: mean, inputs: states}
    - dense: {name: kind, units: 2}
  outputs: [tags, kind]
dataset:
  train: {synthetic: {samples: 30, input: {low: 0, high: 3}, targets: {tags: {classes: 3}, kind: {classes: 2}}, seed: 4}}
train:
  epochs: 3
  batch_size: 8
  loss:
    tags: {sparse_categorical_crossentropy: {from_logits: true}}
    kind: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {sgd: {learning_rate: 0.3}}
)";

}  // namespace

TEST_CASE("a masked and an unmasked output do not depend on padding, replicas or accumulation") {
  const std::vector<Row> rows = rows_of(kLengths);
  const auto expected = tagger_losses(rows, 5, {});
  CHECK(expected.back() < expected.front());
  check_equal(tagger_losses(rows, 9, {}), expected);
  check_equal(tagger_losses(rows_of(kLengths, 3), 9, {}), expected);  // each row begins with padding
  const std::string clip = "train.clip_norm=0.5";
  const auto clipped = tagger_losses(rows, 5, {clip});
  for (const int replicas : {1, 2, 3, 5})
    for (const int accumulate : {1, 2, 5}) {
      CAPTURE(replicas);
      CAPTURE(accumulate);
      check_equal(
          tagger_losses(
              rows, 6,
              {fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}", replicas),
               fmt::format("train.accumulate={}", accumulate), clip}),
          clipped);
    }
}

TEST_CASE("outputs with different masks are the same under every strategy") {
  const auto expected = tagger_losses(rows_of(kLengths), 6, {});
  for (const std::string& strategy : kStrategies) {
    CAPTURE(strategy);
    check_equal(tagger_losses(rows_of(kLengths), 6, {"strategy=" + strategy}), expected);
  }
}

TEST_CASE("the gradient of outputs with different masks is the sum of those of models with one output") {
  const auto trained = [](const std::string& only, double rate) {
    const TempDir directory;
    return outcome_of(
        tagger_of(directory, rows_of(kLengths), 6, false, only),
        {"train.epochs=1", fmt::format("train.optimizer={{sgd: {{learning_rate: {}}}}}", rate)});
  };
  // With sgd, the change of a weight in one step is proportional to the gradient of the weight.
  const Outcome both = trained("", 0.1), tags = trained("tags", 0.1), kind = trained("kind", 0.1),
                before = trained("", 1e-9);
  CHECK(both.losses[0] == doctest::Approx(tags.losses[0] + kind.losses[0]));
  const size_t shared = 9 * 4 + (4 + 5 + 1) * 4 * 5;  // number of weights of the embedding and the LSTM
  double largest = 0;
  for (size_t i = 0; i < shared; ++i) {
    const auto change = [&](const Outcome& outcome) {
      return static_cast<double>(outcome.values[i] - before.values[i]);
    };
    largest = std::max(largest, std::abs(change(tags)));
    CHECK(std::abs(change(both) - change(tags) - change(kind)) < 1e-6);
  }
  CHECK(largest > 1e-4);
}

TEST_CASE("a sample's weight counts in outputs with different masks") {
  // A row with a weight of 2 counts like two equal rows.
  const std::vector<Row> twice = {{0, 4}, {1, 2}, {1, 2}, {2, 0}, {3, 3}};
  const std::vector<Row> weights = {{0, 4}, {1, 2, 0, 2}, {2, 0}, {3, 3}, {4, 5, 0, 0}};
  const auto expected = tagger_losses(twice, 6, {"train.clip_norm=0.5"});
  for (const int replicas : {1, 2, 3})
    check_equal(tagger_losses(weights, 6,
                              {fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}",
                                           replicas),
                               "train.clip_norm=0.5", "train.accumulate=2"},
                              true),
                expected);
}

TEST_CASE("batches of outputs with different masks may be cut to their longest sample") {
  const std::vector<int> lengths = {4, 7, 0, 3, 12, 9, 5, 16, 1, 20, 8, 16, 2, 3};
  const std::vector<std::string> sets = {"train.batch_size=4", "train.epochs=2",
                                         "train.optimizer={sgd: {learning_rate: 0.3}}"};
  std::vector<std::string> cut = sets;
  cut.emplace_back("dataset.batches={bucket_by_length: true}");
  const auto expected = tagger_losses(rows_of(lengths), 20, sets);
  check_equal(tagger_losses(rows_of(lengths), 20, cut), expected);
  cut.emplace_back("strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}");
  check_equal(tagger_losses(rows_of(lengths), 20, cut), expected);
}

TEST_CASE("an encoder and a decoder may both have an output") {
  const Outcome single = outcome_of(kTranslator, {"strategy=single"});
  for (const std::string strategy :
       {"{mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}",
        "{sharded: {devices: [cpu:0, cpu:1], level: parameters}}",
        "{pipeline: {devices: [cpu:0, cpu:1], stages: [tokens], microbatches: 3}}",
        "{placed: {layers: {'words': cpu:0, 'encoder': cpu:1, 'tags': cpu:0, 'tokens': cpu:1, 'attention': "
        "cpu:0, 'next': cpu:1}}}"})
    for (const char* accumulate : {"train.accumulate=1", "train.accumulate=3"}) {
      CAPTURE(strategy);
      CAPTURE(accumulate);
      check_close(outcome_of(kTranslator, {"strategy=" + strategy, accumulate}), single);
    }
}

TEST_CASE("a step without valid positions in any output changes nothing") {
  const TempDir directory;
  {
    std::ofstream file(directory / "zeros.csv");
    for (int row = 0; row < 30; ++row) file << "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\n";
  }
  const std::string data = fmt::format(
      "dataset={{train: {{csv: {{file: {}, inputs: {{source: [0, 1, 2, 3, 4, 5], target: [6, 7, 8, 9]}}, "
      "targets: {{next: [10, 11, 12, 13], tags: [14, 15, 16, 17, 18, 19]}}}}}}}}",
      directory / "zeros.csv");
  Recorder recorder;
  Trainer trainer(
      plan_from(kTranslator, {data, "train.optimizer={adamw: {weight_decay: 0.5}}", "train.metrics=[]"}),
      RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  const std::vector<float> before = arrays_of(trainer);
  trainer.run();
  CHECK(recorder.losses == std::vector<double>(12, 0.0));
  CHECK(arrays_of(trainer) == before);
}

TEST_CASE("masks of several outputs must follow from the inputs") {
  const TempDir directory;
  const std::string yaml = tagger_of(directory, rows_of(kLengths), 5);
  const auto error_with = [&](const std::string& set) { return error_of([&] { plan_from(yaml, {set}); }); };
  const std::string message = error_with(
      "model.layers=[{embedding: {input_dim: 9, output_dim: 4}}, {masking: {name: hidden}}, {lstm: {units: "
      "5, return_sequences: true}}, {dense: {name: tags, units: 3}}, {global_average_pooling1d: {inputs: "
      "lstm}}, {dense: {name: kind, units: 2}}]");
  CHECK(message.find("masking 'hidden' computes the mask of the output 'tags' from the output of another "
                     "layer. In this model, masks must be known before a step, because the outputs 'tags' "
                     "and 'kind' have different masks, so they must be computed directly from an input") !=
        message.npos);
}

TEST_SUITE("gpu") {
  TEST_CASE("outputs with different masks have the same losses on a GPU as on a CPU") {
    const std::vector<double> expected = losses_of(kTagger, {"strategy={single: {device: 'cpu:0'}}"});
    std::vector<std::string> strategies = {"{single: {device: 'gpu:0'}}",
                                           "{mirrored: {devices: ['gpu:0', 'cpu:0']}}"};
    if (gpu_presence().count >= 2)
      strategies.insert(strategies.end(),
                        {"{mirrored: {devices: ['gpu:0', 'gpu:1']}}",
                         "{sharded: {devices: ['gpu:0', 'gpu:1'], level: parameters}}",
                         "{pipeline: {devices: ['gpu:0', 'gpu:1'], stages: [mean], microbatches: 2}}"});
    for (const std::string& strategy : strategies)
      for (const char* more : {"dataset.cache=none", "dataset.cache=device", "train.accumulate=3"}) {
        CAPTURE(strategy);
        CAPTURE(more);
        const std::vector<double> found = losses_of(kTagger, {"strategy=" + strategy, more});
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); ++i)
          CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
      }
  }

  TEST_CASE("the loss scale of float16 multiplies the factors of the losses") {
    const std::vector<double> expected = losses_of(kTagger, {"strategy={single: {device: 'cpu:0'}}"});
    for (const std::string strategy :
         {"{single: {device: 'gpu:0'}}", "{mirrored: {devices: ['gpu:0'], replicas: 2}}"}) {
      CAPTURE(strategy);
      const std::vector<double> found =
          losses_of(kTagger, {"strategy=" + strategy, "train.precision=mixed_float16"});
      REQUIRE(found.size() == expected.size());
      for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(0.01));
    }
  }
}
