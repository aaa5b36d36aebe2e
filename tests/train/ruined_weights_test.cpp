// Tests that non-finite weights are never saved, and that they end a run that is configured to end in this
// case.
#include <limits>
#include <string>
#include <vector>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Plans a run whose relu maps NaN to 0, so that the loss does not reveal NaN weights.
RunPlan ruined_plan(std::vector<std::string> sets) {
  sets.push_back(
      "model={inputs: {x: [6, 6, 1]}, layers: [{conv2d: {filters: 4, kernel_size: 3, activation: relu}}, "
      "flatten, "
      "{dense: {units: 3}}]}");
  return plan_from(kDenseRun, sets);
}

}  // namespace

TEST_CASE("non-finite weights are not saved") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  Trainer trainer(ruined_plan({"train.optimizer={sgd: {learning_rate: 1e38}}", "checkpoint.every=1 step"}),
                  run, recorder, recorder.requests);
  trainer.start();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  trainer.engine().state().write(kParameters, {0, 1}, &nan);
  trainer.engine().state().finish_writing();
  CHECK_THROWS_AS(trainer.run(), Error);
  CHECK(run.checkpoints().empty());
}

TEST_CASE("terminate_on_nan ends a run with non-finite weights even if the loss is finite") {
  // A fused relu maps NaN to 0.
  const auto run_to_the_end = [](const std::string& every, const std::string& callbacks, std::string& what) {
    const TempDir directory;
    const RunDirectory run(directory / "run");
    Recorder recorder;
    Trainer trainer(
        ruined_plan({"train.epochs=3", "checkpoint.every=" + every, "train.callbacks=" + callbacks}), run,
        recorder, recorder.requests);
    trainer.start();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const ParameterSlice& slice : trainer.engine().layout().slices())
      if (slice.layer == "conv2d" && slice.name == "kernel")
        trainer.engine().state().write(kParameters, {slice.offset, slice.offset + 1}, &nan);
    trainer.engine().state().finish_writing();
    what.clear();
    try {
      trainer.run();
    } catch (const Error& error) {
      what = error.what();
    }
    CHECK(run.checkpoints().empty());
    return trainer.state().epoch;
  };
  std::string what;
  CHECK(run_to_the_end("1 epoch", "[terminate_on_nan]", what) == 0);
  CHECK(what.find("'conv2d/kernel' has elements that are not finite") != std::string::npos);
  CHECK(run_to_the_end("1 step", "[terminate_on_nan]", what) == 0);
  CHECK(what.find("is not saved: its weights are not finite") != std::string::npos);
  CHECK(what.find("; earlier checkpoints are unchanged") != std::string::npos);
  CHECK(run_to_the_end("1 step", "[]", what) == 3);
}

TEST_CASE("a sharded state is checked, and swapped with its average, block by block") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  Trainer trainer(
      plan_from(kDenseRun,
                {"model={inputs: {x: [6]}, layers: [{dense: {units: 1100}}, {dense: {units: 1100}}, "
                 "{dense: {units: 3}}]}",
                 "strategy={sharded: {devices: [cpu:0, cpu:1, cpu:2]}}", "train.callbacks=[{ema: {}}]"}),
      run, recorder, recorder.requests);
  trainer.start();
  Engine& engine = trainer.engine();
  const Range all{0, engine.layout().trained()};
  REQUIRE(all.size() > int64_t{1} << 20);
  const auto state = [&](std::string_view array) {
    std::vector<float> values(static_cast<size_t>(all.size()));
    engine.state().read(array, all, values.data());
    return values;
  };
  const std::vector<float> first = state(kParameters);
  std::vector<float> other(first.size());
  for (size_t i = 0; i < other.size(); ++i) other[i] = static_cast<float>(i);
  engine.state().begin_average();
  CHECK(state(kAverage) == first);
  engine.state().write(kParameters, all, other.data());
  engine.state().swap_average();
  CHECK(state(kParameters) == first);
  CHECK(state(kAverage) == other);

  CHECK(engine.state().first_weight_not_finite() == "");
  const float infinity = std::numeric_limits<float>::infinity();
  const ParameterSlice& slice = engine.layout().slices()[2];
  const int64_t last = slice.offset + slice.elements() - 1;
  engine.state().write(kParameters, {last, last + 1}, &infinity);
  CHECK(engine.state().first_weight_not_finite() == "dense_1/kernel");
}
