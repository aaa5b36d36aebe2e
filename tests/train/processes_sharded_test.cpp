// Tests the strategy `sharded` over several processes.
#include <algorithm>
#include <string>
#include <vector>

#include "process_runs.h"

using namespace dtrain;
using namespace dtrain::test;

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
