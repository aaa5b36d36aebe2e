// Losses and metrics of a split do not depend on how it is divided, with and without weights, and equal
// scikit-learn's. The numbers were computed with scikit-learn 1.9.1 from the same samples;
// tests/measures/against_peers.py recomputes them.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "run/monitors.h"
#include "run/row_weights.h"
#include "support/runs.h"
#include "train/evaluation.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr int64_t kRows = 211, kClasses = 4;

/// Scores, and each row's class, binary label, number and weight, rounded like text with six decimals.
struct Sample {
  float scores[kClasses];
  int32_t number;
  float yes, amount, weight;
};

std::vector<Sample> make_samples() {
  uint64_t state = 12345;
  const auto draw = [&] {
    state = (state * 1103515245 + 12345) % 2147483648;
    return static_cast<double>(state) / 2147483648;
  };
  const auto rounded = [](double value) { return std::stod(fmt::format("{:.6f}", value)); };
  std::vector<Sample> samples;
  for (int64_t i = 0; i < kRows; ++i) {
    Sample sample{};
    double scores[kClasses];
    for (double& score : scores) score = rounded(6 * draw() - 3);
    std::transform(scores, scores + kClasses, sample.scores, [](double s) { return static_cast<float>(s); });
    const auto best = std::max_element(scores, scores + kClasses) - scores;
    const double pick = draw();
    const auto other = static_cast<int32_t>(draw() * kClasses);
    sample.number = pick < 0.55 ? static_cast<int32_t>(best) : other;
    sample.weight = static_cast<float>(rounded(2 * draw()));
    sample.yes = scores[0] + 4 * draw() - 2 > 0.5 ? 1 : 0;
    sample.amount = static_cast<float>(rounded(scores[1] + 2 * draw() - 1));
    samples.push_back(sample);
  }
  return samples;
}

/// The samples: scores, the three targets and, if `weighted`, the weights.
class Table final : public Dataset {
 public:
  explicit Table(bool weighted) {
    columns_ = {{"x", {kClasses}}, {"classes", {}, DType::int32}, {"yes", {1}}, {"amount", {1}}};
    if (weighted) columns_.push_back({"weight", {}});
  }
  int64_t size() const override { return kRows; }
  const std::vector<TensorSpec>& columns() const override { return columns_; }
  void read(const Samples& wanted, std::span<const View> dst) const override {
    REQUIRE(dst.size() == columns_.size());
    for (size_t i = 0; i < dst.size(); ++i) read_column(i, wanted, dst[i].data);
  }
  void read_column(size_t index, const Samples& wanted, void* dst) const override {
    auto* floats = static_cast<float*>(dst);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Sample& sample = samples_[static_cast<size_t>(wanted.rows[i])];
      if (index == 0) std::copy_n(sample.scores, kClasses, floats + kClasses * static_cast<int64_t>(i));
      if (index == 1) static_cast<int32_t*>(dst)[i] = sample.number;
      if (index == 2) floats[i] = sample.yes;
      if (index == 3) floats[i] = sample.amount;
      if (index == 4) floats[i] = sample.weight;
    }
  }
  bool in_memory() const override { return true; }

 private:
  std::vector<TensorSpec> columns_;
  std::vector<Sample> samples_ = make_samples();
};

/// A model whose outputs are the scores, the first score and the second score.
constexpr auto kModel = R"(
model:
  inputs: {{x: [4]}}
  layers:
    - dense: {{name: classes, units: 4, use_bias: false, inputs: x}}
    - dense: {{name: yes, units: 1, use_bias: false, inputs: x}}
    - dense: {{name: amount, units: 1, use_bias: false, inputs: x}}
  outputs: [classes, yes, amount]
dataset: {{train: {{synthetic: {{samples: 8, targets: {{classes: {{classes: 4}}, yes: {{shape: [1]}}, amount: {{shape: [1]}}}}}}}}}}
strategy: {{mirrored: {{devices: [cpu:0, cpu:1], replicas: {replicas}}}}}
train:
  batch_size: {batch}
  loss:
    classes: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
    yes: {{binary_crossentropy: {{from_logits: true, weight: 0.5}}}}
    amount: {{mean_squared_error: {{weight: 0}}}}
  optimizer: sgd
  {metrics}:
    classes:
      - sparse_categorical_accuracy
      - {{f1_score: {{average: macro}}}}
      - {{f1_score: {{average: micro, name: f1_micro}}}}
      - {{f1_score: {{average: weighted, name: f1_weighted}}}}
      - {{f1_score: {{name: f1_each}}}}
      - dice
      - {{dice: {{name: dice_each, average: none, include_background: false}}}}
      - {{precision: {{average: macro}}}}
      - {{recall: {{average: macro}}}}
      - {{precision: {{average: none, name: precision_each}}}}
      - confusion_matrix
      - mean_iou
      - cohen_kappa
      - {{cohen_kappa: {{weightage: linear, name: linear_kappa}}}}
      - {{cohen_kappa: {{weightage: quadratic, name: quadratic_kappa}}}}
      - matthews_correlation
      - perplexity
      - {{precision_at_recall: {{recall: 0.9, class_id: 2}}}}
      - auc
      - {{auc: {{curve: PR, name: auc_pr}}}}
    yes: [f1_score, precision, recall, auc, {{auc: {{curve: PR, name: auc_pr}}}}, precision_at_recall: 0.5]
    amount: [r2_score, root_mean_squared_error, mean_absolute_error, mean_absolute_percentage_error]
)";

RunConfig config_of(int replicas, int64_t batch, bool weighted) {
  RunConfig config = config_from(fmt::format(kModel, fmt::arg("replicas", replicas), fmt::arg("batch", batch),
                                             fmt::arg("metrics", weighted ? "weighted_metrics" : "metrics")));
  // Like a reader with weights.
  if (weighted)
    for (Head& head : config.heads) head.weights = TensorSpec{"weights", {}, DType::float32};
  return config;
}

/// Returns the run's evaluation of the table.
Json measure(const RunConfig& config, bool weighted) {
  const RunPlan plan = plan_run(config, single_process());
  Engine engine(plan);
  engine.allocate(Plan::Purpose::evaluation, config.train.batch_size);
  for (const ParameterSlice& slice : engine.layout().slices()) {
    std::vector<float> kernel(static_cast<size_t>(slice.elements()), 0.0f);
    if (slice.layer == "classes")
      for (size_t c = 0; c < kClasses; ++c) kernel[c * kClasses + c] = 1;
    else
      kernel[slice.layer == "yes" ? 0 : 1] = 1;
    engine.state().write(kParameters, {slice.offset, slice.offset + slice.elements()}, kernel.data());
  }
  engine.state().finish_writing();
  Loader loader(with_weights(std::make_shared<Table>(weighted), config, nullptr),
                {.batch_size = config.train.batch_size});
  const auto measures = evaluate_split(config, engine, loader, nullptr);
  REQUIRE(measures);
  Json record = Json::object();
  measures->add_to(record);
  return record;
}

/// Compares numbers, also in arrays, within `tolerance`: absolute for numbers below 1, relative for others.
void check_close(const Json& found, const Json& expected, double tolerance) {
  if (!expected.is_array()) {
    CHECK(std::abs(found.as_double() - expected.as_double()) <=
          tolerance * std::max(1.0, std::abs(expected.as_double())));
    return;
  }
  REQUIRE(found.items().size() == expected.items().size());
  for (size_t i = 0; i < found.items().size(); ++i)
    check_close(found.items()[i], expected.items()[i], tolerance);
}

const std::map<std::string, std::string> kPlain = {
    {"classes_loss", "1.3257685285508236"},
    {"classes_sparse_categorical_accuracy", "0.6872037914691943"},
    {"classes_f1_score", "0.6859687063754385"},
    {"classes_f1_micro", "0.6872037914691943"},
    {"classes_f1_weighted", "0.6835723035652577"},
    {"classes_f1_each", "[0.6782608695652174, 0.6727272727272727, 0.6236559139784946, 0.7692307692307693]"},
    {"classes_dice", "0.6859687063754385"},
    {"classes_dice_each", "[0.6727272727272727, 0.6236559139784946, 0.7692307692307693]"},
    {"classes_precision", "0.6892961666707035"},
    {"classes_recall", "0.6917424633969987"},
    {"classes_precision_each", "[0.65, 0.6981132075471698, 0.7073170731707317, 0.7017543859649122]"},
    {"classes_confusion_matrix", "[[39, 8, 5, 3], [8, 37, 4, 8], [11, 6, 29, 6], [2, 2, 3, 40]]"},
    {"classes_mean_iou", "0.5245330524513339"},
    {"classes_cohen_kappa", "0.5829165293959089"},
    {"classes_linear_kappa", "0.6184989541603148"},
    {"classes_quadratic_kappa", "0.6605522234074177"},
    {"classes_matthews_correlation", "0.5852141084209791"},
    {"classes_perplexity", "3.765077796641475"},
    {"classes_precision_at_recall", "0.2524271844660194"},
    {"classes_auc", "0.7652556916507459"},
    {"classes_auc_pr", "0.5708942729383111"},
    {"yes_loss", "0.4099662414264195"},
    {"yes_f1_score", "0.7960199004975125"},
    {"yes_precision", "0.7079646017699115"},
    {"yes_recall", "0.9090909090909091"},
    {"yes_auc", "0.9229490022172949"},
    {"yes_auc_pr", "0.902845774859263"},
    {"yes_precision_at_recall", "0.9387755102040817"},
    {"amount_r2_score", "0.8985102804058228"},
    {"amount_root_mean_squared_error", "0.5813553471771385"},
    {"amount_mean_absolute_error", "0.5140771823228995"},
    {"amount_mean_absolute_percentage_error", "164.72250171361807"}};

const std::map<std::string, std::string> kWeighted = {
    {"classes_loss", "1.346351903404051"},
    {"classes_sparse_categorical_accuracy", "0.6739171910206566"},
    {"classes_f1_score", "0.6717685530790455"},
    {"classes_f1_micro", "0.6739171910206566"},
    {"classes_f1_weighted", "0.6695045024050168"},
    {"classes_f1_each", "[0.6546887714457641, 0.6733196371697058, 0.5969406307425942, 0.7621251729581177]"},
    {"classes_dice", "0.6717685530790455"},
    {"classes_dice_each", "[0.6733196371697058, 0.5969406307425942, 0.7621251729581177]"},
    {"classes_precision", "0.6793294654214045"},
    {"classes_recall", "0.6787086491434364"},
    {"classes_precision_each",
     "[0.6065690549242897, 0.6961103451230289, 0.717730679889088, 0.6969077817492112]"},
    {"classes_confusion_matrix",
     "[[37.94696189370006, 9.670825108885765, 4.055636966601014, 1.6902410387992859], "
     "[8.022819995880127, 38.215803008526564, 4.221343040466309, 8.155569955706596], "
     "[14.521646082401276, 3.8987710499204695, 27.275890972465277, 7.6863380873110145], "
     "[2.0685750246047974, 3.113659977912903, 2.450089931488037, 40.312124133110046]]"},
    {"classes_mean_iou", "0.5088239106697392"},
    {"classes_cohen_kappa", "0.5654332314630246"},
    {"classes_linear_kappa", "0.604764001146799"},
    {"classes_quadratic_kappa", "0.655130881867123"},
    {"classes_matthews_correlation", "0.5690461383975647"},
    {"classes_perplexity", "3.843378890709388"},
    {"classes_precision_at_recall", "0.2582386270975872"},
    {"classes_auc", "0.7603823365554488"},
    {"classes_auc_pr", "0.5763799931713649"},
    {"yes_loss", "0.41267715860434345"},
    {"yes_f1_score", "0.7998050077301262"},
    {"yes_precision", "0.7123780451506356"},
    {"yes_recall", "0.9116930009375793"},
    {"yes_auc", "0.9246848243006902"},
    {"yes_auc_pr", "0.908765602031051"},
    {"yes_precision_at_recall", "0.9562939135893116"},
    {"amount_r2_score", "0.8904856920963811"},
    {"amount_root_mean_squared_error", "0.5797033728116642"},
    {"amount_mean_absolute_error", "0.5113239510879041"},
    {"amount_mean_absolute_percentage_error", "207.20593209967842"}};

}  // namespace

TEST_CASE("losses and metrics equal scikit-learn's for any number of replicas and any batch size") {
  for (const bool weighted : {false, true}) {
    CAPTURE(weighted);
    std::string first;
    for (const int replicas : {1, 2, 3, 5}) {
      for (const int64_t batch : {7, 64, 100}) {
        CAPTURE(replicas);
        CAPTURE(batch);
        const Json found = measure(config_of(replicas, batch, weighted), weighted);
        for (const auto& [key, expected] : weighted ? kWeighted : kPlain) {
          const std::string& name = key;
          CAPTURE(name);
          REQUIRE(found.find(name));
          const bool in_buckets =
              name.find("auc") != std::string::npos || name.find("at_recall") != std::string::npos;
          check_close(found.at(name), Json::parse(expected), in_buckets ? Measures::kStatedAccuracy : 1e-6);
        }
        CHECK(found.at("loss").as_double() ==
              doctest::Approx(found.at("classes_loss").as_double() + 0.5 * found.at("yes_loss").as_double()));
        if (weighted) continue;
        // Sums of integers are bitwise equal in any order.
        std::string counted;
        for (const char* name : {"classes_f1_each", "classes_auc", "classes_confusion_matrix", "yes_auc_pr",
                                 "classes_cohen_kappa", "yes_precision_at_recall"})
          counted += found.at(name).dump();
        if (first.empty()) first = counted;
        CHECK(counted == first);
      }
    }
  }
}

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
       "monitor 'val_f1_score' is a table, expected a number");
  says({"train.metrics=[{f1_score: {average: mackro}}]"}, "macro");
  says({"train.metrics=[auc, auc]"}, "the metric 'auc' is given twice");
  says({"train.metrics=acuracy"}, "unknown metric 'acuracy'; did you mean 'accuracy'?");
  CHECK(errors_of({"train.metrics=accuracy"}) == "");
  says({"train.metrics=[r2_score]"}, "r2_score: expected a target of float32");
  says({"train.metrics=[{recall: {name: epoch}}]"},
       "name: 'epoch' is already the name of another reported value");
  says({"train.metrics=[{recall: {name: seconds}}]"}, "name: 'seconds' is already the name of another");
  says({"train.metrics=[{recall: {name: per_class}}]"}, "name: 'per_class' is already the name of another");
  says({"train.metrics=[{recall: {name: ''}}]"}, "name: expected a name, found ''");
  says({"train.metrics=[{recall: {name: val_loss}}]"},
       "name: 'val_loss' is the name of 'loss' over the validation split");
  says({"train.metrics=[{precision: {thresholds: 0.9}}]"},
       "precision: 'thresholds' requires columns that are yes/no predictions");
  says({"model.layers=[{dense: {units: 1000}}]", "dataset.train.synthetic.target.classes=1000",
        "dataset.validation.synthetic.target.classes=1000", "train.metrics=[{auc: {num_thresholds: 65536}}]"},
       "auc: keeps 131072000 counts for an output of shape 1000; all metrics of a run may keep at most "
       "16777216");
  says({"train.class_weight=even"}, "expected 'balanced', or a mapping from classes to weights");
  says({"train.class_weight={0: -1}"}, "class_weight: -1 is below 0");
  CHECK(errors_of({"train.metrics={dense_1: [{f1_score: {average: macro}}]}", "train.class_weight=balanced",
                   "checkpoint.best={monitor: val_f1_score}"}) == "");
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
  CHECK_THROWS_WITH_AS(
      config_from(yaml),
      doctest::Contains("'val_loss' of an output is also the name of 'loss' over the validation split"),
      UserError);
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
  // On the CPU: one for the step, two on their way to the host, and their sum; three curves of 2 * 65536
  // counts.
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
  CHECK(before.warnings[0].find(
            "'auc' of the current epoch differently: in this epoch, it covers only the steps from 3 on") !=
        std::string::npos);
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
  // Two epochs at most; in a short run the newest may also be the best.
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
