// Tests metrics of runs: their names and errors, monitors, memory, tables, and checkpoints of earlier
// versions.
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "run/monitors.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("metrics ignore row weights, weighted_metrics use them, and both can be named") {
  RunConfig config = config_from(kDenseRun, {"train.metrics=[sparse_categorical_accuracy]",
                                             "train.weighted_metrics=[sparse_categorical_accuracy, recall]"});
  CHECK(config.total_names == std::vector<std::string>{"loss", "sparse_categorical_accuracy",
                                                       "weighted_sparse_categorical_accuracy", "recall"});
  CHECK(!config.heads[0].metrics[0].weighted);
  CHECK(config.heads[0].metrics[1].weighted);
}

namespace {

std::string errors_of(const std::vector<std::string>& sets) try {
  config_from(kDenseRun, sets);
  return "";
} catch (const UserError& error) {
  return error.what();
}

}  // namespace

TEST_CASE("errors in metrics and weights have source locations") {
  const auto says = [](const std::vector<std::string>& sets, const std::string& what) {
    const std::string found = errors_of(sets);
    INFO(found);
    CHECK(found.find(what) != std::string::npos);
  };
  says({"train.metrics={densee_1: [accuracy]}"}, "metrics: the model has no output 'densee_1'");
  says({"train.metrics=[f1_score]", "checkpoint.best={monitor: val_f1_score}"},
       "the value of a monitor must be a number, but 'val_f1_score' is a table; set an average "
       "in the metric's options, such as `average: macro`");
  says({"train.metrics=[{f1_score: {average: mackro}}]"}, "macro");
  says({"train.metrics=[auc, auc]"}, "the metric 'auc' is given twice");
  says({"train.metrics=acuracy"}, "unknown metric 'acuracy'; did you mean 'accuracy'?");
  CHECK(errors_of({"train.metrics=accuracy"}) == "");
  says({"train.metrics=[r2_score]"}, "r2_score: expected a target of type float32");
  says({"train.metrics=[{recall: {name: epoch}}]"},
       "name: 'epoch' is already the name of another reported value");
  says({"train.metrics=[{recall: {name: seconds}}]"}, "name: 'seconds' is already the name of another");
  says({"train.metrics=[{recall: {name: per_class}}]"}, "name: 'per_class' is already the name of another");
  says({"train.metrics=[{recall: {name: ''}}]"}, "name: the name of a metric must not be empty");
  says({"train.metrics=[{recall: {name: val_loss}}]"},
       "name: 'val_loss' is the name of 'loss' on the validation split");
  CHECK(errors_of({"train.metrics=[{recall: {name: val_loss}}]"}).find("give the output another name") ==
        std::string::npos);
  says({"train.metrics=[{precision: {thresholds: 0.9}}]"},
       "precision: 'thresholds' applies only to yes/no predictions");
  says({"model.layers=[{dense: {units: 1000}}]", "dataset.train.synthetic.target.classes=1000",
        "dataset.validation.synthetic.target.classes=1000", "train.metrics=[{auc: {num_thresholds: 65536}}]"},
       "auc: the metric needs 131072000 counts for an output of shape 1000; all metrics of a run together "
       "may have at most 16777216 counts");
  says({"train.class_weight=even"}, "expected 'balanced', or a mapping from classes to weights");
  says({"train.class_weight={0: -1}"}, "class_weight: expected a number of at least 0, found -1");
  CHECK(errors_of({"train.metrics={dense_1: [{f1_score: {average: macro}}]}", "train.class_weight=balanced",
                   "checkpoint.best={monitor: val_f1_score}"}) == "");
}

TEST_CASE("a misspelled output of `loss` is one error") {
  const auto error = [](const std::string& loss) -> std::string {
    try {
      config_from(R"(
model:
  inputs: {x: [4]}
  layers:
    - dense: {units: 1, name: price}
    - dense: {units: 1, name: weight, inputs: x}
    - dense: {units: 1, name: height, inputs: x}
  outputs: [price, weight, height]
dataset:
  train: {synthetic: {samples: 8, targets: {price: {shape: [1]}, weight: {shape: [1]}, height: {shape: [1]}}}}
train: {optimizer: sgd, loss: )" +
                  loss + "}\n");
    } catch (const UserError& found) {
      return found.what();
    }
    return "";
  };
  CHECK(error("{price: huber, weight: huber, height: huber}") == "");
  CHECK(error("{prise: huber, weight: huber, height: huber}") ==
        "test.yaml:11:32: error: loss: the model has no output 'prise'; did you mean 'price'?");
  CHECK(error("{x: huber, weight: huber, height: huber}") ==
        "test.yaml:11:32: error: loss: the model has no output 'x'; expected one of price");
  CHECK(error("{price: huber, weight: huber}") ==
        "test.yaml:11:31: error: loss: the output 'height' has no loss; add one");
  // One output is misspelled, and another is missing.
  CHECK(error("{prise: huber, weight: huber}") ==
        "test.yaml:11:31: error: loss: the output 'height' has no loss; add one\n"
        "test.yaml:11:32: error: loss: the model has no output 'prise'; did you mean 'price'?");
  CHECK(error("{price: huber, weight: huber, height: huber, x: huber}") ==
        "test.yaml:11:76: error: loss: the model has no output 'x'; expected one of price, weight, height");
}

TEST_CASE("a metric name that equals another metric's name with val_ is an error") {
  const std::string yaml = R"(
model:
  inputs: {x: [4]}
  layers: [{dense: {units: 1, name: val}}, {dense: {units: 1, name: ink, inputs: x}}]
  outputs: [val, ink]
dataset: {train: {synthetic: {samples: 8, targets: {val: {shape: [1]}, ink: {shape: [1]}}}}}
train: {loss: mean_squared_error, optimizer: sgd}
)";
  CHECK_THROWS_WITH_AS(config_from(yaml),
                       doctest::Contains("but also the name of 'loss' on the validation split"), UserError);
}

TEST_CASE("the direction of a monitor depends on the metric's type, not on its name") {
  const auto best_of = [](const std::string& metric, const std::string& monitor) {
    const TempDir directory;
    Recorder recorder;
    Trainer trainer(plan_from(kDenseRun, {"train.epochs=2", "train.metrics=[" + metric + "]",
                                          "checkpoint.best={monitor: " + monitor + "}"}),
                    RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    trainer.run();
    REQUIRE(trainer.state().best);
    return trainer.state().best->watched;
  };
  CHECK(best_of("accuracy", "val_accuracy") == "max val_accuracy");
  CHECK(best_of("{auc: {name: roc}}", "val_roc") == "max val_roc");
  CHECK(best_of("{sparse_categorical_crossentropy: {}}", "val_sparse_categorical_crossentropy") ==
        "min val_sparse_categorical_crossentropy");
  CHECK(best_of("{recall: {name: my_loss}}", "my_loss") == "max my_loss");

  const RunConfig config = config_from(R"(
model:
  inputs: {x: [4]}
  layers: [{dense: {units: 1, name: vaccine}}, {dense: {units: 1, name: ink, inputs: x}}]
  outputs: [vaccine, ink]
dataset:
  train: {synthetic: {samples: 8, targets: {vaccine: {shape: [1]}, ink: {shape: [1]}}}}
train: {loss: mean_squared_error, optimizer: sgd, metrics: {vaccine: [mean_absolute_error, r2_score]}}
)");
  for (const char* smaller : {"loss", "vaccine_loss", "val_vaccine_loss", "val_vaccine_mean_absolute_error"})
    CHECK(!larger_is_better(config, smaller));
  for (const char* larger : {"vaccine_r2_score", "val_vaccine_r2_score"})
    CHECK(larger_is_better(config, larger));
}

TEST_CASE("the memory plan includes the accumulators of metrics") {
  const auto planned = [](const std::string& metrics) {
    const RunConfig config = config_from(kDenseRun, {"train.metrics=" + metrics});
    const RunPlan plan = plan_run(config, single_process());
    Engine engine(plan);
    return engine.memory().plan(Plan::Purpose::training, 8).at(0).metrics;
  };
  const RunConfig with_table = config_from(kDenseRun, {"train.metrics=[confusion_matrix, accuracy]"});
  CHECK(table_bytes(with_table).memory >= 2 * size_t{9} * sizeof(Json));
  CHECK(table_bytes(config_from(kDenseRun, {"train.metrics=[accuracy]"})).memory == 0);
  const size_t plain = planned("[]"), with_auc = planned("[{auc: {num_thresholds: 65536}}]");
  CHECK(plain < 1000);
  // On a CPU, there are four copies of the sums: one for the step, two that are being copied to the host, and
  // one for the totals. Each copy has three curves, and each curve has 2 * 65536 counts.
  CHECK(with_auc - plain == 4 * size_t{3} * 2 * 65536 * sizeof(double));
}

TEST_CASE("an auc in a checkpoint of an earlier version restarts within the epoch, with a warning") {
  const TempDir directory;
  const std::vector<std::string> sets{"train.metrics=[auc, accuracy]", "train.epochs=1"};
  const RunDirectory run(directory / "run");
  {
    Recorder recorder(2);
    Trainer trainer(plan_from(kDenseRun, sets), run, recorder, recorder.requests);
    trainer.start();
    CHECK_THROWS_AS(trainer.run(), Interrupted);
  }
  const Checkpoint saved = *load_newest(run, nullptr);
  const auto restored = [&](const CheckpointContent& content, Recorder& recorder) {
    save_checkpoint(directory / "ckpt-00000002.h5", content);
    Trainer trainer(plan_from(kDenseRun, sets), RunDirectory(directory / "again"), recorder,
                    recorder.requests);
    trainer.restore(Checkpoint::load(directory / "ckpt-00000002.h5"));
    return trainer.state().sums;
  };
  Recorder now, before;
  const std::vector<double> sums = restored(saved.content(), now);
  CHECK(now.warnings.empty());
  CheckpointContent old = saved.content();
  Json counts = Json::object();
  for (const auto& [key, value] : old.state.at("sums").entries())
    if (key != "version") counts.set(key, value);
  old.state.set("sums", counts);
  const std::vector<double> cleared = restored(old, before);
  REQUIRE(before.warnings.size() == 1);
  CHECK(before.warnings[0].find("computed 'auc' differently; in the current epoch, this metric covers only "
                                "the steps from step 3 on") != std::string::npos);
  REQUIRE(cleared.size() == sums.size());
  CHECK(std::accumulate(sums.begin() + 1, sums.end() - 1, 0.0) == 3 * 16);  // 3 curves of 16 samples
  CHECK(std::accumulate(cleared.begin() + 1, cleared.end() - 1, 0.0) == 0);
  CHECK(cleared.front() == sums.front());
  CHECK(cleared.back() == sums.back());
}

TEST_CASE("only the tables of the newest and the best epoch are kept") {
  const TempDir directory;
  const std::vector<std::string> sets{"train.metrics=[confusion_matrix]",
                                      "checkpoint={every: 1 epoch, keep: 1, best: {monitor: val_loss}}",
                                      "train.optimizer={adam: {learning_rate: 0.3}}"};
  const auto size_after = [&](int64_t epochs) {
    auto all = sets;
    all.push_back(fmt::format("train.epochs={}", epochs));
    const RunDirectory run(directory / fmt::format("run-{}", epochs));
    Recorder recorder;
    Trainer trainer(plan_from(kDenseRun, all), run, recorder, recorder.requests);
    trainer.start();
    trainer.run();
    const TrainingState& state = trainer.state();
    REQUIRE(state.tables);
    REQUIRE(state.best);
    const Json newest = Json::parse(*state.tables), best = Json::parse(*state.best->tables);
    CHECK(newest.at("step").as_int() == state.step);
    CHECK(best.at("step").as_int() == state.best->step);
    CHECK(newest.at("val_confusion_matrix").items().size() == 3);
    CHECK(state.history.text().find("confusion") == std::string::npos);
    CHECK(saved_state(*load_newest(run, nullptr)).table_lines() == state.table_lines());
    std::ifstream file(run.path() + "/tables.jsonl");
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == state.table_lines());
    return state.table_lines().size();
  };
  // The file has tables of at most two epochs: the newest epoch and the best epoch. In a short run, these may
  // be the same epoch.
  CHECK(size_after(40) < 2.5 * static_cast<double>(size_after(4)));
}

TEST_CASE("progress computes numbers on request, and omits tables") {
  class Shown : public Recorder {
   public:
    void on_step(const Progress& progress) override {
      Recorder::on_step(progress);
      for (const auto& [name, value] : progress.means()) names.push_back(name);
    }
    std::vector<std::string> names;
  };
  const TempDir directory;
  Shown shown;
  Trainer trainer(plan_from(kDenseRun, {"train.epochs=1", "train.batch_size=40",
                                        "train.metrics=[confusion_matrix, accuracy, f1_score]"}),
                  RunDirectory(directory / "run"), shown, shown.requests);
  trainer.start();
  trainer.run();
  CHECK(shown.names == std::vector<std::string>{"loss", "accuracy"});
}
