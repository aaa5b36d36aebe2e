// Tests weights that are trained differently from the others, because of train.groups, model.freeze or
// clip_value.
#include <map>

#include <doctest/doctest.h>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns the weights after a few steps of plain gradient descent. The keys have the form
/// "<layer>/<weight>".
std::map<std::string, std::vector<float>> trained(const std::vector<std::string>& sets, int replicas = 2,
                                                  int steps = 3) {
  std::vector<std::string> all{
      "train.optimizer={sgd: {learning_rate: 0.5, weight_decay: 0.01}}",
      replicas == 1 ? "strategy=single" : "strategy.mirrored.devices=[cpu:0, cpu:1]"};
  all.insert(all.end(), sets.begin(), sets.end());
  const TempDir directory;
  Recorder recorder(steps);
  Trainer trainer(plan_from(kDenseRun, all), RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  CHECK_THROWS_AS(trainer.run(), Interrupted);
  const HostArrays arrays = trainer.engine().state().download();
  std::map<std::string, std::vector<float>> weights;
  for (const ParameterSlice& slice : trainer.engine().layout().slices()) {
    const float* first = arrays.values.data() + slice.offset;
    weights[slice.path()].assign(first, first + slice.elements());
  }
  return weights;
}

std::map<std::string, std::vector<float>> initial() {
  return trained({"train.optimizer={sgd: {learning_rate: 0}}"});
}

std::string mistakes(const std::vector<std::string>& sets) {
  try {
    config_from(kDenseRun, sets);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("groups without changes give the same bits as no groups") {
  const auto plain = trained({});
  CHECK(trained({"train.groups=[{weights: '*/bias', weight_decay: 0.01}]"}).at("dense/kernel") ==
        plain.at("dense/kernel"));
  CHECK(trained({"train.groups=[{weights: '*', learning_rate_factor: 1}]"}) == plain);
  CHECK(trained({"train.clip_value=1e9"}) == plain);
}

TEST_CASE("a frozen weight keeps its bits, and the others train as before") {
  const auto start = initial();
  for (const int replicas : {1, 2}) {
    CAPTURE(replicas);
    const auto found = trained({"train.groups=[{weights: dense_1/kernel, trainable: false}]"}, replicas);
    CHECK(found.at("dense_1/kernel") == start.at("dense_1/kernel"));
    CHECK(found.at("dense_1/bias") != start.at("dense_1/bias"));
    CHECK(found.at("dense/kernel") != start.at("dense/kernel"));
  }
  // Freezing a layer with model.freeze is equivalent to a group with all weights of the layer.
  const auto by_group = trained({"train.groups=[{weights: 'dense/*', trainable: false}]"});
  CHECK(by_group.at("dense/kernel") == start.at("dense/kernel"));
  CHECK(by_group.at("dense/bias") == start.at("dense/bias"));
  CHECK(by_group == trained({"model.freeze=dense"}));
  // Freezing a layer has no effect on the first step of the other weights.
  const auto first = trained({}, 2, 1), first_of_rest = trained({"model.freeze=dense"}, 2, 1);
  CHECK(first.at("dense/bias") != first_of_rest.at("dense/bias"));
  CHECK(first.at("dense_1/bias") != start.at("dense_1/bias"));
  CHECK(first.at("dense_1/bias") == first_of_rest.at("dense_1/bias"));
  CHECK(first.at("dense_1/kernel") == first_of_rest.at("dense_1/kernel"));
}

TEST_CASE("a group's learning rate factor and weight decay equal those options of the optimizer") {
  const auto close = [](const std::vector<float>& a, const std::vector<float>& b) {
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i)
      CHECK(static_cast<double>(a[i]) == doctest::Approx(static_cast<double>(b[i])).epsilon(1e-5));
  };
  const auto expected = trained({"train.optimizer={sgd: {learning_rate: 0.125, weight_decay: 0.04}}"});
  const auto found =
      trained({"train.groups=[{weights: '*', learning_rate_factor: 0.25, weight_decay: 0.04}]"});
  for (const auto& [name, values] : expected) close(found.at(name), values);
  const auto frozen = trained({"train.groups=[{weights: '*', learning_rate_factor: 0}]"});
  CHECK(frozen == initial());
}

TEST_CASE("frozen weights have no optimizer slots") {
  const auto slots = [](const std::vector<std::string>& sets) {
    const ParameterLayout layout(config_from(kDenseRun, sets).graph);
    return layout.trained();
  };
  const int64_t all = slots({});
  CHECK(all == 48 + 16 + 32 + 16);  // 6 x 8, 8, 8 x 3, 3, each rounded up to a multiple of 16
  CHECK(slots({"train.groups=[{weights: dense/kernel, trainable: false}]"}) == all - 48);
  CHECK(slots({"model.freeze='*'"}) == 0);
}

TEST_CASE("a pattern that matches no weight is an error at its source location") {
  CHECK(mistakes({"train.groups=[{weights: [dense/kernal]}]"})
            .find("groups: the pattern 'dense/kernal' matches no trained weight; did you mean "
                  "'dense/kernel'?") != std::string::npos);
  CHECK(mistakes({"model.freeze=dense", "train.groups=[{weights: 'dense/*', learning_rate_factor: 5}]"})
            .find("groups: the pattern 'dense/*' matches no trained weight") != std::string::npos);
  CHECK(mistakes({"model.freeze=[dense, zzzzzzz]"})
            .find("freeze: the pattern 'zzzzzzz' matches no layer; the existing names are ") !=
        std::string::npos);
  CHECK(mistakes({"model.freeze=[dense, head]"}).find("freeze: the pattern 'head' matches no layer") !=
        std::string::npos);
  CHECK(mistakes({"train.clip_value=1", "train.clip_norm=1"})
            .find("give either 'clip_norm' or 'clip_value', not both") != std::string::npos);
  CHECK(mistakes({"train.groups=[{weights: dense/bias, trainable: false, weight_decay: 0}]"})
            .find("weights that are not trained") != std::string::npos);
  CHECK(mistakes({"train.callbacks=[{ema: {decay: 0.9}}, {ema: {decay: 0.5}}]"})
            .find("callbacks: 'ema' is given twice") != std::string::npos);
  CHECK(mistakes({"train.groups=[{weights: []}]"}).find("groups") != std::string::npos);
}
