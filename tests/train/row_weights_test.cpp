// Tests class weights in the training loss.
#include <fstream>

#include <fmt/format.h>

#include "support/runs.h"
#include "train/evaluation/evaluation.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns a CSV file. There are four different rows, whose classes are 0 1 1 2. `rows` lists the rows of the
/// file by index; a row may be repeated.
std::string csv_of(const std::vector<int>& rows) {
  const std::vector<std::string> lines{"0.5,-1,2,0", "1,0.25,-0.5,1", "-2,1,0.75,1", "0.1,0.2,0.3,2"};
  std::string text;
  for (const int row : rows) text += lines[static_cast<size_t>(row)] + "\n";
  return text;
}

/// Returns the losses of ten steps with these rows as one batch.
std::vector<double> losses_on(const std::vector<int>& rows, const std::vector<std::string>& sets) {
  const TempDir directory;
  std::ofstream(directory / "a.csv") << csv_of(rows);
  const std::string yaml = fmt::format(R"(
seed: 4
model: {{inputs: {{x: [3]}}, layers: [dense: {{units: 3}}]}}
dataset: {{train: {{csv: {{file: {}, target: 3}}}}, shuffle: false}}
train:
  epochs: 10
  batch_size: {}
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{sgd: {{learning_rate: 0.3, momentum: 0.9}}}}
)",
                                       directory / "a.csv", rows.size());
  return losses_of(yaml, sets);
}

void check_same_losses(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(2e-6));
}

}  // namespace

TEST_CASE("a row of weight 2 counts like two rows, and a row of weight 0 does not count") {
  const std::string weights = "train.class_weight={0: 0, 1: 2}";
  const auto expected = losses_on({1, 1, 2, 2, 3}, {});
  CHECK(expected.back() < 0.9 * expected.front());
  for (const int replicas : {1, 2, 3, 5}) {
    CAPTURE(replicas);
    const std::string strategy =
        fmt::format("strategy={{mirrored: {{devices: [cpu:0, cpu:1], replicas: {}}}}}", replicas);
    check_same_losses(losses_on({0, 1, 2, 3}, {weights, strategy}), expected);
    check_same_losses(losses_on({0, 1, 2, 3}, {weights, strategy, "train.accumulate=2"}), expected);
    check_same_losses(losses_on({0, 1, 2, 3}, {weights, strategy, "train.clip_norm=0.1"}),
                      losses_on({1, 1, 2, 2, 3}, {"train.clip_norm=0.1"}));
  }
}

TEST_CASE("balanced weights give all classes the same total weight") {
  // Rows 1 and 2 have the same class, so the class weights are 4 / (3 * 1), 4 / (3 * 2), 4 / (3 * 1).
  check_same_losses(losses_on({0, 1, 2, 3}, {"train.class_weight=balanced"}),
                    losses_on({0, 0, 1, 2, 3, 3}, {}));
}

TEST_CASE("balanced weights are counted before samples are blended") {
  const auto losses = [](const std::string& weights) {
    const TempDir directory;
    std::ofstream(directory / "a.csv") << csv_of({0, 1, 2, 3, 3, 3, 3, 3, 3, 3});
    return losses_of(fmt::format(R"(
model: {{inputs: {{x: [1, 3, 1]}}, layers: [flatten: {{}}, dense: {{units: 3}}]}}
dataset:
  train: {{csv: {{file: {}, target: 3}}}}
  transforms: [{{reshape: [1, 3, 1]}}, {{one_hot: 3}}]
  augment: [mix_up: {{alpha: 2}}]
train:
  epochs: 10
  batch_size: 10
  class_weight: {}
  loss: {{categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{sgd: {{learning_rate: 0.3}}}}
)",
                                 directory / "a.csv", weights));
  };
  check_same_losses(losses("balanced"), losses("{0: 3.33333333, 1: 1.66666667, 2: 0.476190476}"));
}

TEST_CASE("class weights name classes, or number them if they have no names") {
  CHECK_THROWS_WITH_AS(
      losses_on({0, 1, 2, 3}, {"train.class_weight={3: 1}"}),
      doctest::Contains("class_weight: there is no class '3'; there are 3 classes, numbered from 0"),
      UserError);
  // The class names look like numbers.
  const auto losses = [](const std::string& weights) {
    const TempDir directory;
    std::ofstream(directory / "a.csv") << "x,y\n0.5,12\n-1,7\n0.25,3\n2,7\n";
    return losses_of(fmt::format(R"(
model: {{inputs: {{x: [1]}}, layers: [dense: {{units: 3}}]}}
dataset: {{train: {{csv: {{file: {}, target: y, header: true, categories: [y]}}}}}}
train: {{epochs: 2, batch_size: 4, loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}},
  class_weight: {}, optimizer: {{sgd: {{learning_rate: 0.3}}}}}}
)",
                                 directory / "a.csv", weights));
  };
  check_same_losses(losses("{7: 0.66666667, 3: 1.33333333, 12: 1.33333333}"), losses("balanced"));
  CHECK_THROWS_WITH_AS(losses("{4: 1}"),
                       doctest::Contains("there is no class '4'; there are 3 classes, '3', '7', '12'"),
                       UserError);
  CHECK_THROWS_WITH_AS(losses("{7: 1, 1: 2}"),
                       doctest::Contains("class_weight: '7' and '1' are the same class; give it once"),
                       UserError);
  CHECK_THROWS_WITH_AS(
      losses("{3: 0, 7: 0, 12: 0}"),
      doctest::Contains(
          "class_weight: at least one class must have a weight above 0, but all have the weight 0"),
      UserError);
}

TEST_CASE("a batch of rows with weight 0 has no gradient, but weight decay still applies") {
  const auto moved = [](const std::string& optimizer) {
    const TempDir directory;
    Recorder recorder;
    // No sample has the class 2.
    Trainer trainer(plan_from(kDenseRun, {"dataset.train.synthetic.target={classes: 2}",
                                          "train.class_weight={0: 0, 1: 0, 2: 1}", "train.epochs=1",
                                          "train.optimizer=" + optimizer}),
                    RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    const HostArrays arrays = trainer.engine().state().download();
    const std::vector<float> before(arrays.values.begin(), arrays.values.end());
    trainer.run();
    for (const double loss : recorder.losses) CHECK(loss == 0);
    const HostArrays after = trainer.engine().state().download();
    return !std::equal(before.begin(), before.end(), after.values.begin(), after.values.end());
  };
  CHECK(!moved("{sgd: {learning_rate: 0.5, momentum: 0.9}}"));
  CHECK(!moved("adam"));
  CHECK(moved("{sgd: {learning_rate: 0.5, weight_decay: 0.1}}"));
}

TEST_CASE("class weights do not apply to validation") {
  const auto validated = [&](const std::vector<std::string>& sets) {
    const RunConfig config = config_from(kDenseRun, sets);
    const RunPlan plan = plan_run(config, single_process());
    Engine engine(plan);
    engine.allocate(Plan::Purpose::evaluation, 8);
    engine.initialize();
    const auto loader = open_loader(config, *config.dataset.validation, false, false);
    return evaluate_split(config, engine, *loader, nullptr)->loss();
  };
  CHECK(validated({"train.class_weight={0: 5, 2: 0}"}) == doctest::Approx(validated({})).epsilon(1e-12));
}
