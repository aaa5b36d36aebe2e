// Training over several processes, which are threads here: N replicas give the same bits however they are
// divided among processes.
#include "support/processes.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "outcome.h"
#include "train/evaluation.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

// The last batch has two samples: some of four replicas have none.
constexpr auto kRun = R"(
seed: 3
model:
  inputs: {x: [24]}
  layers:
    - dense: {units: 32, activation: tanh, name: first}
    - layer_normalization: {}
    - dropout: {rate: 0.3}
    - batch_normalization: {}
    - dense: {units: 16, activation: silu, name: second}
    - dense: {units: 5}
dataset:
  train: {synthetic: {samples: 138, target: {classes: 5}, seed: 4}}
  validation: {synthetic: {samples: 35, target: {classes: 5}, seed: 5}}
train:
  epochs: 3
  batch_size: 17
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy, f1_score, confusion_matrix]
)";

constexpr auto kMasked = R"(
seed: 3
model:
  inputs: {x: {shape: [6], dtype: int32}}
  layers:
    - embedding: {input_dim: 9, output_dim: 4, mask_zero: true}
    - lstm: {units: 5, return_sequences: true}
    - dense: {units: 3}
dataset:
  train: {synthetic: {samples: 30, input: {low: 0, high: 9}, target: {classes: 3}, seed: 4}}
train:
  epochs: 3
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.05}}
)";

using Sets = std::vector<std::string>;

/// The state and the records of a process at the end of its run.
struct Result {
  std::vector<double> losses;
  std::vector<float> arrays;         // parameters and optimizer slots
  std::vector<std::string> history;  // lines of metrics.jsonl without times, and tables
  bool operator==(const Result&) const = default;
};

/// Strategies by the names that strategy_of() knows: mirrored, the levels of sharded, and pipelines of two
/// and of three stages. The second of three has no parameters.
const std::vector<std::string> kLevels{"optimizer", "gradients", "parameters"};
const std::vector<std::string> kPipelines{"two stages", "three stages"};

/// Pipelines whose stages are divided among the processes: one of four stages, and two of three stages. Their
/// number of replicas is that of the run.
const std::vector<std::string> kDivided{"divided stages", "divided replicas"};

bool is_in(const std::vector<std::string>& list, const std::string& strategy) {
  return std::find(list.begin(), list.end(), strategy) != list.end();
}

bool is_level(const std::string& strategy) {
  return is_in(kLevels, strategy);
}

/// Whether each process stores a part of the state.
bool is_spread(const std::string& strategy) {
  return is_level(strategy) || is_in(kDivided, strategy);
}

std::string devices_text(int count) {
  std::string devices = "cpu:0";
  for (int i = 1; i < count; ++i) devices += fmt::format(", cpu:{}", i);
  return devices;
}

std::string pipeline_of(int replicas, int stages, const std::string& starts, int microbatches,
                        const std::string& more = "") {
  return fmt::format(
      "strategy={{pipeline: {{devices: [{}], stages: [{}], microbatches: {}, replicas: {}{}}}}}",
      devices_text(replicas * stages), starts, microbatches, replicas, more);
}

std::string divided(int replicas, int stages, const std::string& starts, int microbatches) {
  return pipeline_of(replicas, stages, starts, microbatches, ", across: processes");
}

/// With `mirrored`, gradients are summed in two buckets: the first is divided among the processes, the second
/// is so short that it is sent whole.
std::string strategy_of(const std::string& name, int replicas) {
  if (name == "mirrored")
    return fmt::format("strategy={{mirrored: {{devices: [cpu:0], replicas: {}, bucket_megabytes: 0.005}}}}",
                       replicas);
  if (is_level(name))
    return fmt::format("strategy={{sharded: {{devices: [{}], level: {}}}}}", devices_text(replicas), name);
  if (name == "divided stages") return divided(1, 4, "layer_normalization, batch_normalization, second", 3);
  if (name == "divided replicas") return divided(2, 3, "dropout, second", 2);
  return name == "two stages" ? pipeline_of(replicas, 2, "second", 2)
                              : pipeline_of(replicas, 3, "dropout, batch_normalization", 3);
}

/// A process of a run with this number of replicas.
RunConfig config_of(const std::string& yaml, Sets sets, int replicas,
                    const std::string& strategy = "mirrored") {
  sets.insert(sets.begin(), strategy_of(strategy, replicas));
  return config_from(yaml, sets);
}

/// Plans a run whose replicas all compute on one core, because results may depend on the number of cores.
RunPlan plan_on_one_core(RunConfig config, World& world) {
  RunPlan plan = plan_training(std::move(config), world);
  plan.cores.resize(1);
  return plan;
}

Result result_of(Trainer& trainer, Recorder& recorder) {
  trainer.run();
  Result result{recorder.losses, {}, {}};
  append_arrays(trainer, result.arrays, result.arrays);
  std::istringstream lines(trainer.state().history.text());
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    std::string text;
    for (const auto& [key, value] : record.entries())
      if (key != "seconds" && key != "samples_per_second") text += key + "=" + value.dump() + " ";
    result.history.push_back(text);
  }
  if (const TableLine& tables = trainer.state().tables) result.history.push_back(*tables);
  return result;
}

std::vector<Result> results_of(const std::string& yaml, const Sets& sets, const std::vector<int>& counts,
                               const std::string& strategy = "mirrored") {
  const TempDir directory;
  std::vector<Result> results(counts.size());
  std::vector<RunConfig> configs;
  for (const int count : counts) configs.push_back(config_of(yaml, sets, count, strategy));
  Processes processes(static_cast<int>(counts.size()));
  processes.run([&](World& world) {
    const auto rank = static_cast<size_t>(world.rank());
    Recorder recorder;
    Trainer trainer(plan_on_one_core(configs[rank], world), RunDirectory(directory / "run"), recorder,
                    recorder.requests);
    trainer.start();
    results[rank] = result_of(trainer, recorder);
  });
  CHECK(processes.queues().is_empty());
  return results;
}

void check_divisions(
    const std::string& yaml, const Sets& sets = {},
    const std::vector<std::vector<int>>& divisions = {{2, 2}, {1, 1, 1, 1}, {3, 1}, {1, 2, 1}},
    const std::string& strategy = "mirrored") {
  const Result whole = results_of(yaml, sets, {4}, strategy)[0];
  CHECK(whole.losses.size() >= 12);
  for (const std::vector<int>& counts : divisions) {
    CAPTURE(counts.size());
    CAPTURE(counts[0]);
    const std::vector<Result> results = results_of(yaml, sets, counts, strategy);
    for (const Result& result : results) {
      CHECK(result.losses == whole.losses);
      const bool sends_arrays = is_spread(strategy) && &result != results.data();
      CHECK(result.arrays == (sends_arrays ? std::vector<float>{} : whole.arrays));
      CHECK(result.history == whole.history);
    }
  }
}

}  // namespace

TEST_CASE("4 replicas give the same bits on 1, 2, 3 and 4 processes, even with empty shares") {
  check_divisions(kRun);
}

TEST_CASE("training options give the same bits on several processes") {
  const std::vector<Sets> options{
      {"train.accumulate=3"},
      {"train.clip_norm=0.05"},
      {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
      {"train.optimizer={adafactor: {learning_rate: 0.05, weight_decay: 0.1}}"},
      {"train.class_weight={0: 0.3, 3: 4}"},
      {"train.class_weight={0: 0.3, 3: 4}", "train.accumulate=2", "train.clip_norm=0.1"},
      {"model.layers.0.dense.kernel_regularizer={l2: 0.01}", "train.clip_norm=0.05"},
      {"model.layers.0.dense.kernel_constraint={max_norm: {max_value: 0.5}}"},
      {"train.callbacks=[{ema: {decay: 0.9}}]"},
      {"model.layers.3.batch_normalization.synchronized=true"},
      {"model.layers.3.batch_normalization.synchronized=true", "train.accumulate=3"},
  };
  for (const Sets& sets : options) {
    CAPTURE(sets[0]);
    check_divisions(kRun, sets, {{2, 2}, {3, 1}, {1, 1, 1, 1}});
  }
}

TEST_CASE("masked rows give the same bits on several processes") {
  check_divisions(kMasked);
}

TEST_CASE("shards give the same bits on several processes") {
  for (const std::string& level : kLevels) {
    CAPTURE(level);
    check_divisions(kRun, {}, {{2, 2}, {1, 1, 1, 1}, {3, 1}, {1, 2, 1}}, level);
    check_divisions(kMasked, {}, {{2, 2}, {3, 1}}, level);
  }
}

TEST_CASE("training options give the same bits with the shards of several processes") {
  const std::vector<Sets> options{
      {"train.accumulate=3"},
      {"train.optimizer={sgd: {learning_rate: 0.1}}"},
      {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
      {"train.class_weight={0: 0.3, 3: 4}", "train.accumulate=2", "train.clip_norm=0.1"},
      {"model.layers.0.dense.kernel_regularizer={l2: 0.01}", "train.clip_norm=0.05"},
      {"model.layers.0.dense.trainable=false"},
      {"train.callbacks=[{ema: {decay: 0.9}}]"},
      {"checkpoint.best={monitor: val_loss}"},
      {"model.layers.3.batch_normalization.synchronized=true", "train.accumulate=3"},
  };
  for (const std::string& level : kLevels)
    for (const Sets& sets : options) {
      CAPTURE(level);
      CAPTURE(sets[0]);
      check_divisions(kRun, sets, {{2, 2}, {1, 1, 1, 1}}, level);
    }
  for (const std::string& level : kLevels)
    check_divisions(kRun, {"model.layers.0.dense.kernel_constraint={max_norm: {max_value: 0.5}}"},
                    {{2, 2}, {3, 1}}, level);
}

TEST_CASE("pipelines give the same bits on several processes") {
  for (const std::string& pipeline : kPipelines) {
    CAPTURE(pipeline);
    check_divisions(kRun, {}, {{2, 2}, {1, 1, 1, 1}, {3, 1}, {1, 2, 1}}, pipeline);
  }
  const auto masked = [](int replicas) { return Sets{pipeline_of(replicas, 2, "dense", 2)}; };
  const Result whole = results_of(kMasked, masked(4), {4})[0];
  for (const Result& result : results_of(kMasked, masked(2), {2, 2})) CHECK(result == whole);
}

TEST_CASE("training options give the same bits with pipelines of several processes") {
  const std::vector<Sets> options{
      {"train.accumulate=3"},
      {"train.clip_norm=0.05"},
      {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
      {"train.optimizer={adafactor: {learning_rate: 0.05, weight_decay: 0.1}}"},
      {"train.class_weight={0: 0.3, 3: 4}", "train.accumulate=2", "train.clip_norm=0.1"},
      {"model.layers.0.dense.kernel_regularizer={l2: 0.01}",
       "model.layers.4.dense.kernel_regularizer={l2: 0.03}", "train.clip_norm=0.05"},
      {"model.layers.0.dense.kernel_constraint={max_norm: {max_value: 0.5}}"},
      {"model.layers.0.dense.trainable=false"},
      {"train.callbacks=[{ema: {decay: 0.9}}]", "checkpoint.best={monitor: val_loss}"},
      {"model.layers.3.batch_normalization.synchronized=true", "train.accumulate=3"},
  };
  for (const std::string& pipeline : kPipelines)
    for (const Sets& sets : options) {
      CAPTURE(pipeline);
      CAPTURE(sets[0]);
      check_divisions(kRun, sets, {{2, 2}, {3, 1}}, pipeline);
    }
}

TEST_CASE("stages give the same bits however they are divided among processes") {
  // The numbers only count the processes here.
  check_divisions(kRun, {}, {{1, 1}, {1, 1, 1}, {1, 1, 1, 1}}, "divided stages");
  check_divisions(kRun, {}, {{1, 1}, {1, 1, 1}}, "divided replicas");
}

TEST_CASE("training options give the same bits with stages in several processes") {
  const std::vector<Sets> options{
      {"train.accumulate=3"},
      {"train.clip_norm=0.05"},
      {"strategy.pipeline.schedule=gpipe"},
      {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
      {"train.optimizer={adafactor: {learning_rate: 0.05, weight_decay: 0.1}}"},
      {"train.class_weight={0: 0.3, 3: 4}", "train.accumulate=2", "train.clip_norm=0.1"},
      {"model.layers.0.dense.kernel_regularizer={l2: 0.01}",
       "model.layers.4.dense.kernel_regularizer={l2: 0.03}", "train.clip_norm=0.05"},
      {"model.layers.0.dense.kernel_constraint={max_norm: {max_value: 0.5}}"},
      {"model.layers.0.dense.trainable=false"},
      {"train.callbacks=[{ema: {decay: 0.9}}]", "checkpoint.best={monitor: val_loss}"},
      {"model.layers.3.batch_normalization.synchronized=true", "train.accumulate=3"},
  };
  for (const std::string& strategy : kDivided)
    for (const Sets& sets : options) {
      CAPTURE(strategy);
      CAPTURE(sets[0]);
      check_divisions(kRun, sets, {{1, 1}, {1, 1, 1}}, strategy);
    }
}

TEST_CASE("values pass over processes between the stages that exchange them") {
  // A skip connection, outputs of two stages, weights of rows, shared parameters; and masks.
  const TempDir directory;
  {
    std::ofstream file(directory / "rows.csv");
    for (int i = 0; i < 50; ++i)
      file << fmt::format("{:.4f},{:.4f},{:.4f},{},{:.4f},{}\n", std::sin(i), std::cos(3 * i),
                          std::sin(5 * i), i % 3, std::cos(i), i % 4 * 0.5);
  }
  const std::string connected = fmt::format(R"(
seed: 3
model:
  inputs: {{x: [3]}}
  layers:
    - dense: {{name: first, units: 8, activation: tanh}}
    - dense: {{name: second, units: 8, activation: tanh}}
    - dense: {{name: early, units: 3}}
    - dense: {{name: third, shared_with: second, inputs: second}}
    - add: {{name: sum, inputs: [third, first]}}
    - dense: {{name: late, units: 1}}
  outputs: [early, late]
dataset:
  train: {{csv: {{file: {0}, targets: {{early: 3, late: 4}}, weight: 5}}}}
  validation: {{csv: {{file: {0}, targets: {{early: 3, late: 4}}, weight: 5}}}}
train:
  epochs: 4
  batch_size: 16
  loss: {{early: {{sparse_categorical_crossentropy: {{from_logits: true}}}}, late: mean_squared_error}}
  metrics: {{early: [sparse_categorical_accuracy], late: [mean_absolute_error]}}
  optimizer: {{adam: {{learning_rate: 0.01}}}}
)",
                                            directory / "rows.csv");
  check_divisions(connected, {divided(1, 4, "second, third, late", 4)}, {{1, 1}, {1, 1, 1}, {1, 1, 1, 1}},
                  "divided stages");
  check_divisions(kMasked, {divided(2, 3, "lstm, dense", 2)}, {{1, 1}, {1, 1, 1}}, "divided replicas");
}

TEST_CASE("the state of stages in several processes is read whole, and written in parts") {
  const TempDir directory;
  Processes processes(3);
  processes.run([&](World& world) {
    Recorder recorder;
    Trainer trainer(plan_on_one_core(config_of(kRun, {}, 1, "divided stages"), world),
                    RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    ModelState& state = trainer.engine().state();
    if (!state.is_spread() || state.has_all_weights()) throw Error("the state is not spread");
    const ParameterLayout& layout = trainer.engine().layout();
    for (const std::string_view array : {kParameters, std::string_view("momentum")}) {
      const Range all{0, array == kParameters ? layout.size() : layout.trained()};
      std::vector<float> values(static_cast<size_t>(all.size()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
      state.write(array, all, values.data());
      state.finish_writing();
      std::vector<float> found(values.size());
      state.read(array, all, found.data());
      for (const ParameterSlice& slice : layout.slices())
        if (slice.offset < all.end &&
            !std::equal(found.begin() + slice.offset, found.begin() + slice.offset + slice.elements(),
                        values.begin() + slice.offset))
          throw Error("wrong values of " + slice.path());
    }
    if (trainer.engine().memory_use().size() != (world.rank() == 0 ? 2u : 1u)) throw Error("wrong slots");
  });
  CHECK(processes.queues().is_empty());
}

TEST_CASE("stages that cannot be divided among the processes are an error with a location") {
  const RunConfig config = config_of(kRun, {}, 1, "divided replicas");
  Processes processes(4);
  CHECK_THROWS_WITH_AS(processes.run([&](World& world) { plan_training(config, world); }),
                       doctest::Contains("across: processes: 3 stages cannot be divided among 4 processes"),
                       UserError);
}

TEST_CASE("a state in shards of several processes is read whole, and written in parts") {
  for (const std::string& level : kLevels) {
    CAPTURE(level);
    const TempDir directory;
    Processes processes(2);
    processes.run([&](World& world) {
      Recorder recorder;
      Trainer trainer(plan_on_one_core(config_of(kRun, {}, 2, level), world), RunDirectory(directory / "run"),
                      recorder, recorder.requests);
      trainer.start();
      ModelState& state = trainer.engine().state();
      if (!state.is_spread()) throw Error("the state is not spread");
      if (state.has_all_weights() != (level != "parameters")) throw Error("wrong parts of the weights");
      for (const std::string_view array : {kParameters, std::string_view("momentum")}) {
        const ParameterLayout& layout = trainer.engine().layout();
        const Range all{0, array == kParameters ? layout.size() : layout.trained()};
        std::vector<float> values(static_cast<size_t>(all.size()));
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
        state.write(array, all, values.data());
        state.finish_writing();
        const Range part{37, all.end - 5};
        std::vector<float> found(static_cast<size_t>(part.size()), -1.0f);
        state.read(array, part, found.data());
        if (!std::equal(found.begin(), found.end(), values.begin() + part.begin)) throw Error("wrong values");
      }
    });
    CHECK(processes.queues().is_empty());
  }
}

TEST_CASE("the last gradient is read from the shards of several processes") {
  const auto gradient_of = [](const std::vector<int>& counts, const std::string& level) {
    const TempDir directory;
    std::vector<float> gradient;
    Processes processes(static_cast<int>(counts.size()));
    processes.run([&](World& world) {
      Recorder recorder;
      const int count = counts[static_cast<size_t>(world.rank())];
      Trainer trainer(plan_on_one_core(config_of(kRun, {"train.epochs=1"}, count, level), world),
                      RunDirectory(directory / "run"), recorder, recorder.requests);
      trainer.start();
      trainer.run();
      std::vector<float> values(static_cast<size_t>(trainer.engine().layout().trained()));
      if (!trainer.engine().state().read_gradient({0, trainer.engine().layout().trained()}, values.data()))
        throw Error("there is no gradient");
      if (world.rank() == 0) gradient = values;
    });
    return gradient;
  };
  for (const std::string& level : kLevels) {
    CAPTURE(level);
    CHECK(gradient_of({1, 2, 1}, level) == gradient_of({4}, level));
  }
}

TEST_CASE("single trains one replica on each process") {
  const Result whole = results_of(kRun, {}, {2})[0];
  std::vector<Result> results(2);
  const TempDir directory;
  const RunConfig config = config_from(kRun, {"strategy={single: {device: cpu:0}}"});
  Processes processes(2);
  processes.run([&](World& world) {
    Recorder recorder;
    Trainer trainer(plan_on_one_core(config, world), RunDirectory(directory / "run"), recorder,
                    recorder.requests);
    trainer.start();
    results[static_cast<size_t>(world.rank())] = result_of(trainer, recorder);
  });
  CHECK(results[0] == whole);
  CHECK(results[1] == whole);
}

TEST_CASE("placed trains one replica on each process") {
  // The layers between the two follow their inputs, so both strategies divide the model at the same layer.
  const Result whole = results_of(kRun, {pipeline_of(2, 2, "second", 1)}, {2})[0];
  for (const Result& result :
       results_of(kRun, {"strategy={placed: {layers: {first: cpu:0, second: cpu:1}}}"}, {1, 1}))
    CHECK(result == whole);
}

TEST_CASE("one configuration gives the processes different numbers of replicas") {
  for (const std::string strategy :
       {"mirrored: {devices: [cpu:0], replicas: [3, 1], bucket_megabytes: 0.005}",
        "sharded: {devices: [cpu:0, cpu:1], replicas: [3, 1], level: optimizer}"}) {
    CAPTURE(strategy);
    const RunConfig config = config_from(kRun, {"strategy={" + strategy + "}"});
    const bool is_mirrored = strategy.starts_with("mirrored");
    const Result whole = results_of(kRun, {}, {4}, is_mirrored ? "mirrored" : "optimizer")[0];
    const TempDir directory;
    std::vector<Result> results(2);
    Processes processes(2);
    processes.run([&](World& world) {
      Recorder recorder;
      Trainer trainer(plan_on_one_core(config, world), RunDirectory(directory / "run"), recorder,
                      recorder.requests);
      if (trainer.engine().size() != (world.rank() == 0 ? 3 : 1)) throw Error("wrong number of replicas");
      trainer.start();
      results[static_cast<size_t>(world.rank())] = result_of(trainer, recorder);
    });
    CHECK(results[0] == whole);
    CHECK(results[1].losses == whole.losses);
  }
}

TEST_CASE("a list of replicas that does not suit the number of processes is an error with a location") {
  const RunConfig config =
      config_from(std::string(kRun) + "strategy: {mirrored: {devices: [cpu:0], replicas: [3, 1]}}\n");
  const auto message = [](const char* started) {
    return fmt::format(
        ":51: error: replicas: the list is for 2 processes, but {} started; start as many (mpirun -n 2), or "
        "give one number for all processes",
        started);
  };
  const std::string three = message("3 were"), one = message("1 was");
  for (const bool trains : {true, false}) {
    Processes processes(3);
    CHECK_THROWS_WITH_AS(processes.run([&](World& world) {
      if (trains)
        plan_training(config, world);
      else
        plan_run(config, world);
    }),
                         doctest::Contains(three.c_str()), UserError);
  }
  CHECK_THROWS_WITH_AS(plan_training(config, single_process()), doctest::Contains(one.c_str()), UserError);
  // A trained model can be used by fewer processes.
  CHECK(plan_run(config, single_process()).placement.replicas.size() == 3);
}

TEST_CASE("evaluation gives the same bits however its replicas are divided among processes") {
  const TempDir directory;
  Recorder recorder;
  Trainer trainer(plan_on_one_core(config_of(kRun, {"train.epochs=1"}, 1), single_process()),
                  RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  trainer.run();
  const Checkpoint checkpoint = Checkpoint::load(RunDirectory(directory / "run").checkpoints().back());
  const auto results_of = [&](const std::vector<int>& counts, const std::string& strategy) {
    std::vector<std::string> results(counts.size());
    Processes processes(static_cast<int>(counts.size()));
    processes.run([&](World& world) {
      const auto rank = static_cast<size_t>(world.rank());
      RunPlan plan = plan_run(config_of(kRun, {}, counts[rank], strategy), world);
      plan.cores.resize(1);
      const auto loader = open_loader(plan.config, *plan.config.dataset.train, false, false,
                                      own_rows(plan, Plan::Purpose::evaluation));
      const auto engine = engine_for_inference(plan, checkpoint, Plan::Purpose::evaluation,
                                               plan.config.train.batch_size, *loader);
      Json record = Json::object();
      evaluate_split(plan.config, *engine, *loader, nullptr)->add_to(record);
      results[rank] = record.dump();
    });
    CHECK(processes.queues().is_empty());
    for (const std::string& result : results) CHECK(result == results[0]);
    return results[0];
  };
  for (const std::string& strategy : {std::string("mirrored"), std::string("parameters")}) {
    CAPTURE(strategy);
    const std::string whole = results_of({4}, strategy);
    for (const std::vector<int>& counts : {std::vector{2, 2}, {3, 1}, {1, 1, 1, 1}}) {
      CAPTURE(counts.size());
      CHECK(results_of(counts, strategy) == whole);
    }
  }
}

namespace {

void check_resuming(const std::string& strategy) {
  const TempDir directory;
  const Result whole = results_of(kRun, {}, {4}, strategy)[0];
  const std::vector<std::vector<int>> parts{{2, 2}, {1, 1, 1, 1}, {4}};
  Result last;
  for (size_t part = 0; part < parts.size(); ++part) {
    Processes processes(static_cast<int>(parts[part].size()));
    const RunDirectory run(directory / "run");
    processes.run([&](World& world) {
      const RunConfig config = config_of(kRun, {}, parts[part][static_cast<size_t>(world.rank())], strategy);
      Recorder recorder(part == 0 && world.rank() == 1 ? 5 : -1);  // a request to process 1 stops all
      Trainer trainer(plan_on_one_core(config, world), run, recorder, recorder.requests);
      if (part == 0)
        trainer.start();
      else
        trainer.restore(Checkpoint::load(run.checkpoints().back()));
      if (part == 0) {
        CHECK_THROWS_AS(trainer.run(), Interrupted);
        CHECK(trainer.state().step == 5);
        return;
      }
      const Result result = result_of(trainer, recorder);
      if (world.rank() == 0) last = result;
    });
    if (part == 1) {
      CHECK(last.arrays == whole.arrays);
      CHECK(last.history == whole.history);
      CHECK(std::equal(last.losses.begin(), last.losses.end(), whole.losses.begin() + 5, whole.losses.end()));
    }
  }
  CHECK(last.arrays == whole.arrays);  // the finished run, loaded by one process
}

}  // namespace

TEST_CASE("a run resumes on another number of processes with the same bits") {
  check_resuming("mirrored");
}

TEST_CASE("a pipeline resumes on another number of processes with the same bits") {
  check_resuming("three stages");
}

TEST_CASE("stages in several processes resume on another number of processes with the same bits") {
  check_resuming("divided stages");
}

TEST_CASE("a run with shards resumes on another number of processes with the same bits") {
  for (const std::string& level : kLevels) {
    CAPTURE(level);
    check_resuming(level);
  }
}

namespace {

/// With shards of the optimizer state, the second half is the updated parameters.
void check_sent_bytes(const std::string& strategy) {
  for (const int size : {2, 4}) {
    CAPTURE(size);
    const RunConfig config = config_from(kRun, {strategy, "train.metrics=[]", "train.batch_size=16"});
    Processes processes(size);
    std::vector<int64_t> sent(static_cast<size_t>(size));
    int64_t gradients = 0, totals = 0;
    processes.run([&](World& world) {
      const RunPlan plan = plan_on_one_core(config, world);
      Engine engine(plan);
      engine.allocate(Plan::Purpose::training, 16);
      engine.initialize();
      const auto loader = open_loader(config, *config.dataset.train, false, true);
      loader->begin(0, 0);
      int64_t before = 0;
      for (int step = 0; step < 5; ++step) {
        if (step == 2)
          before = processes.queues().sent_by(world.rank());  // the first two steps agree on more
        engine.launch(*loader->next(), step, 0.01);
        engine.finish();
      }
      sent[static_cast<size_t>(world.rank())] = processes.queues().sent_by(world.rank()) - before;
      if (world.rank() > 0) return;
      gradients = engine.layout().with_gradient();
      totals = static_cast<int64_t>(count_totals(config.graph, config.heads));
    });
    const int64_t all = sent[0] + (size > 2 ? sent[1] + sent[2] + sent[3] : sent[1]);
    const int64_t of_gradients = 2 * (size - 1) * gradients * static_cast<int64_t>(sizeof(float));
    const int64_t of_totals = size * (size - 1) * totals * static_cast<int64_t>(sizeof(double));
    CHECK(all == 3 * (of_gradients + of_totals));
  }
}

}  // namespace

TEST_CASE("each process sends 2 (p - 1) / p times the gradients per step, and its totals") {
  check_sent_bytes("strategy={mirrored: {devices: [cpu:0]}}");
  check_sent_bytes("strategy={sharded: {devices: [cpu:0], level: optimizer}}");
}

TEST_CASE("only process 0 writes, and the data of all processes must be the same") {
  const TempDir directory;
  std::vector<RunConfig> configs;
  for (const int samples : {138, 138, 130})
    configs.push_back(config_of(kRun, {fmt::format("dataset.train.synthetic.samples={}", samples)}, 1));
  for (const bool same : {true, false}) {
    Processes processes(2);
    const auto work = [&](World& world) {
      const auto rank = static_cast<size_t>(world.rank());
      const RunDirectory run(directory / fmt::format("{}-{}", same, rank));
      Recorder recorder;
      Trainer trainer(plan_on_one_core(configs[same ? rank : 2 * rank], world), run, recorder,
                      recorder.requests);
      trainer.start();
      trainer.run();
      CHECK(run.checkpoints().empty() == (rank == 1));
    };
    if (same) {
      processes.run(work);
      CHECK(std::filesystem::exists(directory / "true-0/metrics.jsonl"));
      CHECK_FALSE(std::filesystem::exists(directory / "true-1"));
    } else {
      CHECK_THROWS_WITH_AS(processes.run(work), doctest::Contains("process 1: 'train': "), UserError);
    }
  }
}

namespace {

/// Process 1 fails at step 4. Returns the warnings of process 0.
std::vector<std::string> check_failure(const std::string& strategy) {
  const TempDir directory;
  std::vector<std::string> warnings;
  const RunConfig config = config_of(kRun, {"checkpoint.every=1000 steps"}, 1, strategy);
  const RunDirectory run(directory / "run");
  int64_t step = 0;
  Processes processes(2);
  const auto work = [&](World& world) {
    struct Failing final : Recorder {
      explicit Failing(bool fails) : fails_(fails) {}
      void on_step(const Progress& progress) override {
        if (fails_ && progress.global_step == 4) throw Error("the disk failed");
      }
      bool fails_;
    };
    Failing recorder(world.rank() == 1);
    Trainer trainer(plan_on_one_core(config, world), run, recorder, recorder.requests);
    trainer.start();
    if (world.rank() == 1) return trainer.run();
    CHECK_THROWS_WITH_AS(trainer.run(), "another process: the disk failed", ProcessFailed);
    step = trainer.state().step;
    warnings = recorder.warnings;
    if (is_spread(strategy))
      CHECK(run.checkpoints().empty());
    else
      CHECK(run.checkpoints() == std::vector<std::string>{run.checkpoint_path(step)});
  };
  CHECK_THROWS_WITH_AS(processes.run(work), "the disk failed", Error);
  CHECK((step == 3 || step == 4));  // process 0 may still wait for sums of step 4
  return warnings;
}

}  // namespace

TEST_CASE("if a process fails, the others end, and process 0 saves the last step") {
  check_failure("mirrored");
  check_failure("two stages");
}

TEST_CASE("if a process with parts of the state fails, the last step is not saved, and a warning says so") {
  for (const std::string strategy : {"optimizer", "gradients", "parameters", "divided stages"}) {
    CAPTURE(strategy);
    const std::vector<std::string> warnings = check_failure(strategy);
    CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("other processes have parts of the optimizer state") != std::string::npos;
    }));
  }
}

TEST_CASE("all processes use the stages that process 0 chose") {
  for (const bool deterministic : {false, true}) {
    CAPTURE(deterministic);
    const RunConfig config =
        config_from(kRun, {"strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: auto}}",
                           fmt::format("train.deterministic={}", deterministic)});
    std::vector<std::vector<int>> slots(2);
    Processes processes(2);
    processes.run([&](World& world) {
      slots[static_cast<size_t>(world.rank())] = plan_training(config, world).placement.slots;
    });
    CHECK(slots[0].size() == config.graph.nodes.size());
    CHECK(slots[0] == slots[1]);
    CHECK(processes.queues().is_empty());
  }
}

TEST_CASE("all processes use the stages that process 0 chose for them") {
  const RunConfig config = config_from(
      kRun, {"strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: auto, across: processes}}"});
  std::vector<std::vector<int>> slots(2);
  Processes processes(2);
  processes.run([&](World& world) {
    slots[static_cast<size_t>(world.rank())] = plan_training(config, world).placement.slots;
  });
  CHECK(slots[0].size() == config.graph.nodes.size());
  CHECK(slots[0] == slots[1]);
}

TEST_CASE("different numbers of stages are an error with a location") {
  const std::vector<RunConfig> configs{config_of(kRun, {}, 1, "two stages"),
                                       config_of(kRun, {}, 1, "three stages")};
  Processes processes(2);
  CHECK_THROWS_WITH_AS(
      processes.run([&](World& world) { plan_training(configs[static_cast<size_t>(world.rank())], world); }),
      doctest::Contains("a replica is on 2 CPUs in process 0, but on 3 CPUs in process 1"), UserError);
}
