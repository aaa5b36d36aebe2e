// Tests model.weights, which selects the weights of a file that initialize a model.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "checkpoint/safetensors.h"
#include "support/graphs.h"
#include "support/runs.h"
#include "train/pretrained_loading.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// A run of three steps, whose checkpoint initializes models.
struct Before {
  TempDir directory;
  Recorder recorder{3};
  std::string path;
  std::vector<float> kernel;

  Before() {
    Trainer trainer(plan_from(kDenseRun), RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    CHECK_THROWS_AS(trainer.run(), Interrupted);
    path = directory / "run/checkpoints/ckpt-00000003.h5";
    kernel = weights_of(trainer, "dense/kernel");
  }

  static std::vector<float> weights_of(Trainer& trainer, const std::string& name) {
    const HostArrays arrays = trainer.engine().state().download();
    for (const ParameterSlice& slice : trainer.engine().layout().slices())
      if (slice.path() == name)
        return {arrays.values.data() + slice.offset, arrays.values.data() + slice.offset + slice.elements()};
    return {};
  }

  std::string error(const std::vector<std::string>& sets) const {
    try {
      load_pretrained(config_from(kDenseRun, sets).graph);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  std::string from(const std::string& more = "") const { return "model.weights={from: " + path + more + "}"; }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a model starts with the weights of a checkpoint") {
  const Before before;
  Recorder recorder;
  const TempDir directory;
  Trainer trainer(plan_from(kDenseRun, {before.from(), "seed=9"}), RunDirectory(directory / "run"), recorder,
                  recorder.requests);
  trainer.start();
  CHECK(Before::weights_of(trainer, "dense/kernel") == before.kernel);
  REQUIRE(recorder.notes.size() == 1);
  CHECK(recorder.notes[0] == "4 of 4 weights from " + before.path);
}

TEST_CASE("pretrained weights can be renamed, skipped or unused") {
  const Before before;
  const std::vector<std::string> sets{
      "model.layers=[{dense: {name: trunk/hidden, units: 8}}, {dense: {name: head, units: 5}}]",
      "train.optimizer=sgd",
      before.from(", rename: {'dense/*': 'trunk/hidden/*'}, skip: 'head/*', unused: 'dense_1/*'")};
  const Pretrained loaded = load_pretrained(config_from(kDenseRun, sets).graph);
  REQUIRE(loaded.weights.size() == 2);
  const auto* values = static_cast<const float*>(loaded.weights.at("trunk/hidden/kernel")->data);
  CHECK(std::equal(before.kernel.begin(), before.kernel.end(), values));
  CHECK(has(loaded.description, "2 of 4 weights"));
  CHECK(has(loaded.description, "with initial values: 'head/kernel', 'head/bias'"));
}

TEST_CASE("all weights that do not fit are reported at once, with names and both shapes") {
  const Before before;
  const std::string wider =
      before.error({before.from(), "model.layers=[{dense: {units: 9}}, {dense: {units: 3}}]"});
  CHECK(has(
      wider,
      "expected the shape 6x9 for the weight 'dense/kernel', but found 6x8 in the file's 'dense/kernel'"));
  CHECK(has(wider, "expected the shape 9x3 for the weight 'dense_1/kernel', but found 8x3"));
  const std::string deeper =
      before.error({before.from(), "model.layers=[{dense: {units: 8}}, {dense: {units: 3, name: top}}]"});
  CHECK(has(deeper, "does not contain the model's 'top/kernel', 'top/bias'"));
  CHECK(has(deeper, "this model has no weight for the file's 'dense_1/kernel', 'dense_1/bias'"));
  const std::string patterns =
      before.error({before.from(", rename: {'base/*': 'dense/*'}, skip: 'tail/*', unused: 'predictions/*'")});
  CHECK(has(patterns, "weights.rename: the pattern 'base/*' matches no weight of the file"));
  CHECK(has(patterns, "weights.skip: the pattern 'tail/*' matches no weight of the model"));
  CHECK(has(patterns, "weights.unused: the pattern 'predictions/*' matches no weight of the file"));
  CHECK(has(before.error({before.from(", rename: {'dense_1/*': 'dense/*'}, skip: 'dense_1/*'")}),
            "'dense/kernel' and 'dense_1/kernel' both match the model's weight 'dense/kernel'"));
  CHECK(has(before.error({"model.weights={from: nowhere.h5}"}), "nowhere.h5"));
  CHECK(config_from(kDenseRun, {"model.weights={from: ./nowhere/.}"})
            .graph.pretrained->from.ends_with("/nowhere"));
  CHECK_THROWS_AS(config_from(kDenseRun, {before.from(", rename: {'a/*': b}")}), UserError);
}

TEST_CASE("the two biases of PyTorch's recurrent modules are added") {
  const TempDir directory;
  const std::string path = directory / "rnn.safetensors";
  const std::vector<float> weights(8, 0.5f), of_input = {1, -0.0f, 3, 4}, of_state = {0.5f, 0, -3, 8};
  NewFile file(path);
  write_safetensors(file,
                    {{"rnn.weight_ih_l0", {4, 2}, DType::float32, weights.data()},
                     {"rnn.weight_hh_l0", {4, 1}, DType::float32, weights.data()},
                     {"rnn.bias_ih_l0", {4}, DType::float32, of_input.data()},
                     {"rnn.bias_hh_l0", {4}, DType::float32, of_state.data()}},
                    {});
  file.finish();
  const std::string model =
      "inputs: {x: [5, 2]}\nlayers: [lstm: {name: rnn, units: 1}]\nweights: {from: " + path;
  const Pretrained loaded = load_pretrained(graph_from(model + "}\n"));
  REQUIRE(loaded.weights.size() == 3);
  const auto* bias = static_cast<const float*>(loaded.weights.at("rnn/bias")->data);
  CHECK(std::vector<float>(bias, bias + 4) == std::vector<float>{1.5f, 0, 0, 12});
  CHECK(std::signbit(bias[1]));  // -0 remains -0
  const Pretrained one = load_pretrained(graph_from(model + ", unused: rnn/bias_hh_l0}\n"));
  bias = static_cast<const float*>(one.weights.at("rnn/bias")->data);
  CHECK(std::vector<float>(bias, bias + 4) == of_input);
}
