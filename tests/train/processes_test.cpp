// Tests training over several processes, which are threads here. N replicas must give the same bits however
// they are divided among processes. This file tests the strategies mirrored, single and placed, and
// evaluation. The files processes_*_test.cpp test the strategy sharded, pipelines, resuming and failures.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "process_runs.h"
#include "train/evaluation/evaluation.h"
#include "train/restored_state.h"

using namespace dtrain;
using namespace dtrain::test;

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

TEST_CASE("outputs with different masks give the same bits on several processes") {
  check_divisions(kTagger);
  check_divisions(kTagger, {"train.accumulate=2", "train.clip_norm=0.1"}, {{2, 2}, {1, 2, 1}});
  for (const std::string& level : kLevels) {
    CAPTURE(level);
    check_divisions(kTagger, {}, {{2, 2}, {3, 1}}, level);
  }
  const auto pipeline = [](int replicas) { return Sets{pipeline_of(replicas, 2, "mean", 2)}; };
  const Result whole = results_of(kTagger, pipeline(4), {4})[0];
  for (const Result& result : results_of(kTagger, pipeline(2), {2, 2})) CHECK(result == whole);
  check_divisions(kTagger, {divided(2, 3, "lstm, mean", 2)}, {{1, 1}, {1, 1, 1}}, "divided replicas");
}

TEST_CASE("the strategy single trains one replica on each process") {
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

TEST_CASE("the strategy placed trains one replica on each process") {
  // Layers without a device follow their inputs, so both strategies divide the model at the same layer.
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
        ":51: error: replicas: the list has numbers for 2 processes, but {} started; use `mpirun -n 2`, or "
        "give "
        "one number for all processes",
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

/// Checks the number of bytes that the processes send. If the optimizer state is sharded, half of the bytes
/// of gradients are updated parameters instead.
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
          before = processes.queues().sent_by(world.rank());  // the first two steps also send other messages
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
