// Compares interrupted and resumed runs with uninterrupted runs.
#include <algorithm>
#include <cmath>
#include <span>
#include <sstream>

#include <fmt/format.h>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr auto kRun = R"(
seed: 5
model:
  inputs: {image: [6, 6, 3]}
  layers:
    - conv2d: {filters: 16, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {}
    - activation: relu
    - dropout: {rate: 0.25}
    - flatten: {}
    - dense: {units: 4}
dataset:
  train: {synthetic: {samples: 100, target: {classes: 4}, seed: 1}}
  validation: {synthetic: {samples: 30, target: {classes: 4}, seed: 2}}
strategy: {mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}
train:
  epochs: 5
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: {reduce_on_plateau: {initial: 0.01, patience: 1, factor: 0.5, min_delta: 0.5}}}}
  metrics: [sparse_categorical_accuracy]
  callbacks: [{early_stopping: {patience: 100}}, terminate_on_nan]
checkpoint: {every: 3 steps, keep: 2, best: {monitor: val_loss}}
)";

struct Outcome {
  std::vector<float> arrays;
  std::vector<Json> history;
  int64_t size_of_last = 0;
};

/// Parses the lines of metrics.jsonl.
std::vector<Json> records_of(const std::string& lines) {
  std::istringstream in(lines);
  std::vector<Json> records;
  for (std::string line; std::getline(in, line);) records.push_back(Json::parse(line));
  return records;
}

/// Returns the history without the values that depend on time.
std::string timeless(const std::vector<Json>& history) {
  std::string text;
  for (const Json& record : history)
    for (const auto& [key, value] : record.entries())
      if (key != "seconds" && key != "samples_per_second") text += key + "=" + value.dump() + "\n";
  return text;
}

/// Trains to the end, but stops after each of these steps and resumes as another process would.
Outcome run_with_stops(const std::vector<int64_t>& stops, const std::vector<std::string>& sets = {}) {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  for (size_t i = 0;; ++i) {
    Recorder recorder(i < stops.size() ? stops[i] : -1);
    try {
      std::optional<Checkpoint> checkpoint = load_newest(run, [](const std::string&) {});
      Trainer trainer(plan_from(kRun, sets), run, recorder, recorder.requests);
      checkpoint ? trainer.restore(*checkpoint) : trainer.start();
      trainer.run();
      return {arrays_of(trainer), records_of(trainer.state().history.text()),
              static_cast<int64_t>(std::filesystem::file_size(run.checkpoints().back()))};
    } catch (const Interrupted&) {
      CHECK(i < stops.size());
    }
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

}  // namespace

TEST_CASE("a run resumed at any step ends with the same bits and the same history") {
  const Outcome whole = run_with_stops({});
  CHECK(whole.history.size() == 5);
  for (const auto& stops :
       std::vector<std::vector<int64_t>>{{1}, {7}, {14}, {2, 3, 9, 20}, {6, 7, 8, 21, 28, 34}}) {
    const Outcome resumed = run_with_stops(stops);
    CHECK(same_bits(resumed.arrays, whole.arrays));
    CHECK(timeless(resumed.history) == timeless(whole.history));
  }
}

TEST_CASE("a run with means of rows and columns, in any shards, resumes with the same bits") {
  for (const char* strategy : {"{mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}",
                               "{sharded: {devices: [cpu:0, cpu:1, cpu:2], level: parameters}}"}) {
    CAPTURE(strategy);
    const std::vector<std::string> sets{std::string("strategy=") + strategy,
                                        "train.optimizer={adafactor: {learning_rate: 0.05}}"};
    const Outcome whole = run_with_stops({}, sets), resumed = run_with_stops({2, 3, 20}, sets);
    CHECK(same_bits(resumed.arrays, whole.arrays));
    CHECK(timeless(resumed.history) == timeless(whole.history));
  }
}

TEST_CASE("ten save and resume cycles end with the checkpoint of an uninterrupted run") {
  const int64_t once = run_with_stops({}).size_of_last;
  const int64_t often = run_with_stops({1, 2, 4, 5, 8, 10, 13, 17, 23, 30}).size_of_last;
  CHECK(std::abs(once - often) < 256);  // the times in the state have different numbers of digits
}

TEST_CASE("the newest and the best checkpoints are kept, and a damaged newest one is skipped") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  Trainer trainer(plan_from(kRun), run, recorder, recorder.requests);
  trainer.start();
  trainer.run();
  const auto paths = run.checkpoints();
  CHECK(paths.size() >= 2);
  CHECK(paths.size() <= 3);
  REQUIRE(trainer.state().best);
  CHECK(std::filesystem::exists(run.checkpoint_path(trainer.state().best->step)));

  std::filesystem::resize_file(paths.back(), 1000);
  std::vector<std::string> warnings;
  const auto newest = load_newest(run, [&](const std::string& message) { warnings.push_back(message); });
  REQUIRE(newest);
  CHECK(newest->path() == paths[paths.size() - 2]);
  CHECK(warnings.size() == 1);
}

TEST_CASE("a checkpoint can be resumed with another number of replicas, but not with another model") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  {
    Recorder recorder(10);
    Trainer trainer(plan_from(kRun), run, recorder, recorder.requests);
    trainer.start();
    CHECK_THROWS_AS(trainer.run(), Interrupted);
  }
  SavedRun saved = load_saved_run(run.path(), {"strategy=single"}, [](const std::string&) {});
  Recorder recorder;
  Trainer trainer(plan_of(std::move(saved.config)), *saved.directory, recorder, recorder.requests);
  trainer.restore(saved.checkpoint);
  trainer.run();
  CHECK(trainer.state().epoch == 5);

  Recorder other;
  Trainer wider(plan_from(kRun, {"model.layers.5.dense.units=7"}), run, other, other.requests);
  CHECK_THROWS_WITH_AS(wider.restore(saved.checkpoint),
                       doctest::Contains(" must be float32 with the shape 576x7, but it is "), UserError);
}

TEST_CASE("slots of an unrelated optimizer are not used even if their names are equal") {
  const auto warnings = [](const std::string& before, const std::string& after) {
    const TempDir directory;
    const RunDirectory run(directory / "run");
    Recorder recorder(2);
    Trainer trainer(plan_from(kRun, {"train.optimizer=" + before}), run, recorder, recorder.requests);
    trainer.start();
    CHECK_THROWS_AS(trainer.run(), Interrupted);
    SavedRun saved = load_saved_run(run.path(), {"train.optimizer=" + after}, [](const std::string&) {});
    Recorder resumed;
    Trainer(plan_of(std::move(saved.config)), *saved.directory, resumed, resumed.requests)
        .restore(saved.checkpoint);
    return resumed.warnings;
  };
  const std::vector<std::string> anew{
      "the checkpoint has no state for this optimizer with these options, so the optimizer state starts "
      "with its initial values"};
  CHECK(warnings("{sgd: {momentum: 0.9}}", "lion") == anew);
  CHECK(warnings("adam", "{adamw: {learning_rate: 0.01}}").empty());
  CHECK(warnings("nadam", "adam").empty());
  CHECK(warnings("adamax", "adam") == anew);
  CHECK(warnings("{sgd: {momentum: 0.9}}", "{sgd: {momentum: 0.8, nesterov: true}}").empty());
}

// In the first step of Adam, each weight changes by the learning rate, regardless of the gradient. If the
// bias correction counted all steps of the run, the change would be up to three times as large.
TEST_CASE("bias correction of new slots counts their own steps, also after a resume") {
  constexpr double kRate = 0.001;
  const std::string adam = "train.optimizer={adam: {learning_rate: 0.001}}";
  struct Case {
    std::string begins, goes_on, weight;
  };
  for (const Case& test : {Case{"train.optimizer=sgd", adam, "dense/kernel"},
                           Case{"model.layers.0.conv2d.trainable=false",
                                "model.layers.0.conv2d.trainable=true", "conv2d/kernel"}}) {
    const TempDir directory;
    {
      Recorder recorder;
      Trainer first(plan_from(kRun, {adam, test.begins, "train.epochs=20"}), RunDirectory(directory / "run"),
                    recorder, recorder.requests);
      first.start();
      first.run();
    }
    const Checkpoint begun = *load_newest(RunDirectory(directory / "run"), [](const std::string&) {});
    const std::vector<std::string> sets{adam, test.goes_on, "train.epochs=22"};
    // Stops after each of these steps and resumes; -1 trains to the end.
    const auto go_on = [&](const std::string& to, const std::vector<int64_t>& stops) {
      const RunDirectory run(directory / to);
      std::vector<float> arrays;
      for (const int64_t stop : stops) {
        const std::optional<Checkpoint> newest = load_newest(run, [](const std::string&) {});
        Recorder recorder(stop);
        Trainer trainer(plan_of(saved_config(newest ? *newest : begun, sets)), run, recorder,
                        recorder.requests);
        trainer.restore(newest ? *newest : begun);
        try {
          trainer.run();
        } catch (const Interrupted&) {
        }
        arrays = arrays_of(trainer);
      }
      return arrays;
    };
    const int64_t step = TrainingState::from_json(begun.content().state, "").step;
    CHECK(same_bits(go_on("whole", {-1}), go_on("in parts", {step + 1, step + 3, -1})));

    go_on("one step", {step + 1});
    const Checkpoint after = Checkpoint::load(RunDirectory(directory / "one step").checkpoint_path(step + 1));
    const ArrayRef *from = begun.weight(test.weight), *to = after.weight(test.weight);
    double longest = 0;
    for (int64_t i = 0; i < from->shape.elements(); ++i)
      longest = std::max(longest, std::abs(static_cast<double>(static_cast<const float*>(to->data)[i]) -
                                           static_cast<const float*>(from->data)[i]));
    CHECK(longest / kRate == doctest::Approx(1).epsilon(0.005));
  }
}

TEST_CASE("a NaN loss ends the run, names the step and overwrites no good checkpoint") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  Trainer trainer(
      plan_from(kRun, {"train.optimizer={sgd: {learning_rate: 1e30}}", "checkpoint.every=1 step"}), run,
      recorder, recorder.requests);
  trainer.start();
  CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains("at step"), Error);
  // The previous checkpoint contains finite numbers.
  const auto newest = load_newest(run, [](const std::string&) {});
  REQUIRE(newest);
  for (const LayerWeights& layer : newest->content().layers)
    for (const ArrayRef& weight : layer.weights) {
      const auto* values = static_cast<const float*>(weight.data);
      CHECK(std::all_of(values, values + weight.shape.elements(),
                        [](float value) { return std::isfinite(value); }));
    }
}

TEST_CASE("a target outside the range of its loss is an error") {
  const auto error = [](const std::vector<std::string>& sets) -> std::string {
    const TempDir directory;
    Recorder recorder;
    try {
      Trainer trainer(plan_from(kRun, sets), RunDirectory(directory / "run"), recorder, recorder.requests);
      trainer.start();
      trainer.run();
    } catch (const UserError& refusal) {
      return refusal.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  };
  CHECK(has(error({"dataset.train.synthetic.target.classes=9"}), "training data has"));
  CHECK(has(error({"dataset.validation.synthetic.target.classes=9"}), "evaluated split has"));
  // A negative loss shows that a target is outside the range.
  const std::vector<std::string> binary{"model.layers.5.dense.units=1",
                                        "train.loss={binary_crossentropy: {from_logits: true}}",
                                        "train.metrics=[]"};
  auto outside = binary;
  outside.push_back("dataset.train.synthetic.target.classes=50");
  CHECK(has(error(outside), "which takes values from 0 to 1"));
}

TEST_CASE("a run that early stopping ended continues if a later end is requested") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  const std::vector<std::string> sets{"train.callbacks=[{early_stopping: {patience: 1, min_delta: 100}}]"};
  {
    Recorder recorder;
    Trainer trainer(plan_from(kRun, sets), run, recorder, recorder.requests);
    trainer.start();
    trainer.run();
    CHECK(trainer.state().stopped);
    CHECK(trainer.state().epoch == 2);
  }
  for (const int64_t epochs : {5, 7}) {  // the same number of epochs, then a larger number
    Recorder recorder;
    Trainer trainer(plan_from(kRun, {sets[0], fmt::format("train.epochs={}", epochs)}), run, recorder,
                    recorder.requests);
    trainer.restore(*load_newest(run, [](const std::string&) {}));
    trainer.run();
    CHECK(trainer.state().epoch == (epochs == 5 ? 2 : 3));
  }
}

TEST_CASE("a run that early stopping ended waits for further `patience` epochs if it continues") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  for (const int64_t epochs : {5, 20}) {
    Recorder recorder;
    Trainer trainer(plan_from(kRun, {"train.callbacks=[{early_stopping: {patience: 3, min_delta: 100}}]",
                                     fmt::format("train.epochs={}", epochs)}),
                    run, recorder, recorder.requests);
    if (epochs == 5) trainer.start();
    if (epochs == 20) trainer.restore(*load_newest(run, [](const std::string&) {}));
    trainer.run();
    CHECK(trainer.state().epoch == (epochs == 5 ? 4 : 7));
  }
}

TEST_CASE("the best value is reset if another metric is monitored") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  Trainer trainer(plan_from(kRun), run, recorder, recorder.requests);
  trainer.start();
  trainer.run();
  const Checkpoint checkpoint = *load_newest(run, [](const std::string&) {});
  for (const std::string best :
       {"null", "{monitor: val_sparse_categorical_accuracy}", "{monitor: val_loss, mode: max}"}) {
    Recorder other;
    Trainer changed(plan_from(kRun, {"checkpoint.best=" + best}), run, other, other.requests);
    changed.restore(checkpoint);
    CHECK(!changed.state().best);
  }
}

TEST_CASE("options that an epoch depends on can change at its end, not within it") {
  const TempDir directory;
  const std::vector<std::pair<std::string, std::string>> changes{
      {"seed=6", "cannot change 'seed: 5' to 'seed: 6'"},
      {"dataset.shuffle=false", "cannot change 'shuffle: true' to 'shuffle: false'"},
      {"train.metrics=[{sparse_top_k_categorical_accuracy: {k: 2}}]", "to 'metrics:"},
      {"train.metrics=[]", "to 'metrics: []'"},
      {"train.loss={sparse_categorical_crossentropy: {from_logits: false}}", "from_logits: false"},
  };
  for (const bool within : {false, true}) {
    const RunDirectory run(directory / (within ? "within" : "at-the-end"));
    {
      Recorder recorder(within ? 10 : -1);
      Trainer trainer(plan_from(kRun, {fmt::format("train.epochs={}", within ? 5 : 1)}), run, recorder,
                      recorder.requests);
      trainer.start();
      if (within) {
        CHECK_THROWS_AS(trainer.run(), Interrupted);
      } else {
        trainer.run();
      }
    }
    const Checkpoint checkpoint = *load_newest(run, [](const std::string&) {});
    CHECK((TrainingState::from_json(checkpoint.content().state, "").step_in_epoch > 0) == within);
    for (const auto& [written, message] : changes) {
      const std::string& change = written;
      CAPTURE(change);
      Recorder recorder;
      Trainer trainer(plan_from(kRun, {change}), run, recorder, recorder.requests);
      if (within) {
        CHECK_THROWS_WITH_AS(trainer.restore(checkpoint), doctest::Contains(message.c_str()), UserError);
      } else {
        CHECK_NOTHROW(trainer.restore(checkpoint));
      }
    }
  }
}

TEST_CASE("checkpoints that are set aside twice are all kept") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  for (int round = 0; round < 2; ++round) {
    Recorder recorder;
    Trainer trainer(plan_from(kRun), run, recorder, recorder.requests);
    trainer.start();
    trainer.run();
    CHECK(run.set_aside_after(1).size() >= 2);
    CHECK(run.checkpoints().empty());
  }
  size_t aside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run.checkpoint_directory()))
    if (entry.path().string().find(".set-aside") != std::string::npos) ++aside;
  CHECK(aside >= 4);
}

TEST_CASE("an invalid number of replicas is an error") {
  for (const int64_t replicas : {-1, 0, 100000})
    CHECK_THROWS_WITH_AS(
        config_from(kRun, {fmt::format("strategy={{mirrored: {{replicas: {}}}}}", replicas)}),
        doctest::Contains("replicas"), UserError);
}

TEST_CASE("an unfrozen layer starts with new slots, with a warning") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  {
    Recorder recorder;
    Trainer trainer(plan_from(kRun, {"train.epochs=1", "model.layers.0.conv2d.trainable=false"}), run,
                    recorder, recorder.requests);
    trainer.start();
    trainer.run();
  }
  const Checkpoint checkpoint = *load_newest(run, [](const std::string&) {});
  CHECK(checkpoint.slot("momentum", "conv2d/kernel") == nullptr);
  const auto kernel_of = [](Trainer& trainer) {
    const ParameterSlice& slice = trainer.engine().layout().slices().front();
    REQUIRE(slice.layer == "conv2d");
    std::vector<float> values(static_cast<size_t>(slice.elements()));
    trainer.engine().state().read(kParameters, {slice.offset, slice.offset + slice.elements()},
                                  values.data());
    return values;
  };
  Recorder recorder;
  SavedRun saved = load_saved_run(run.path(), {"train.epochs=2", "model.layers.0.conv2d.trainable=true"},
                                  [](const std::string&) {});
  Trainer trainer(plan_of(std::move(saved.config)), run, recorder, recorder.requests);
  trainer.restore(checkpoint);
  REQUIRE(recorder.warnings.size() == 1);
  CHECK(recorder.warnings[0] ==
        "the checkpoint has no optimizer state for 'conv2d/kernel', which was not trained before; its "
        "optimizer state starts with its initial values");
  // All other slots must be unchanged.
  const HostArrays arrays = trainer.engine().state().download();
  for (const ParameterSlice& slice : trainer.engine().layout().slices()) {
    if (slice.moving_average) continue;
    const float* slot = arrays.slots[0].data() + slice.offset;
    CHECK(std::all_of(slot, slot + slice.elements(), [](float value) { return value == 0; }) ==
          (slice.layer == "conv2d"));
  }
  const std::vector<float> before = kernel_of(trainer);
  trainer.run();
  CHECK(trainer.state().epoch == 2);
  CHECK(kernel_of(trainer) != before);

  // If a weight is now frozen, its slots are dropped without a message.
  Recorder other;
  Trainer frozen(plan_from(kRun, {"train.epochs=3", "model.layers.5.dense.trainable=false"}), run, other,
                 other.requests);
  frozen.restore(*load_newest(run, [](const std::string&) {}));
  frozen.run();
  CHECK(other.warnings.empty());
}
