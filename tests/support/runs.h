// Small runs for tests: runs are configured by a text, and record the loss of every step.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "run/run_config_parser.h"
#include "run/run_plan.h"
#include "support/temp_dir.h"
#include "train/trainer.h"

namespace dtrain::test {

/// Two dense layers on two replicas, with five steps per epoch and two validation batches.
inline constexpr auto kDenseRun = R"(
seed: 5
model:
  inputs: {x: [6]}
  layers: [{dense: {units: 8, activation: relu}}, {dense: {units: 3}}]
dataset:
  train: {synthetic: {samples: 40, target: {classes: 3}, seed: 1}}
  validation: {synthetic: {samples: 10, target: {classes: 3}, seed: 2}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 40
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
)";

inline RunConfig config_from(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  Diagnostics diagnostics;
  ConfigNode node = parse_yaml(yaml, "test.yaml", diagnostics);
  node = apply_sets(node, sets, diagnostics);
  diagnostics.throw_if_errors();
  auto config = parse_run_config(node, "test", diagnostics);
  diagnostics.throw_if_errors();
  return std::move(*config);
}

/// Plans a run of this process alone for training.
inline RunPlan plan_of(RunConfig config) {
  return plan_training(std::move(config), single_process());
}
inline RunPlan plan_from(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  return plan_of(config_from(yaml, sets));
}

/// Records every step's loss; requests a stop after `stop_after` steps (never if negative).
class Recorder : public Observer {
 public:
  explicit Recorder(int64_t stop_after = -1) : stop_after_(stop_after) {}
  void on_step(const Progress& progress) override {
    losses.push_back(progress.step_loss);
    if (progress.global_step == stop_after_) requests.stop = 15;
  }
  void on_warning(const std::string& message) override { warnings.push_back(message); }
  void on_note(const std::string& message) override { notes.push_back(message); }

  std::vector<double> losses;
  std::vector<std::string> warnings, notes;
  Requests requests;

 private:
  int64_t stop_after_;
};

/// Runs a new run to its end and returns the losses.
inline std::vector<double> losses_of(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  const TempDir directory;
  Recorder recorder;
  Trainer trainer(plan_from(yaml, sets), RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  trainer.run();
  return recorder.losses;
}

/// Returns the parameters, followed by all slots: everything that training changes.
inline std::vector<float> arrays_of(Trainer& trainer) {
  const HostArrays arrays = trainer.engine().state().download();
  std::vector<float> all(arrays.values.begin(), arrays.values.end());
  for (const std::span<float> slot : arrays.slots) all.insert(all.end(), slot.begin(), slot.end());
  return all;
}

}  // namespace dtrain::test
