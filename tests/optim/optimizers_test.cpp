// Optimizers: options, slots and per-step numbers.
#include <cmath>
#include <variant>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "optim/optimizer.h"

using namespace dtrain;

namespace {

Configured<Optimizer> parse(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(yaml, "o.yaml", diagnostics);
  Configured<Optimizer> optimizer = registry<Optimizer>().parse(node, diagnostics);
  CHECK_NOTHROW(diagnostics.throw_if_errors());
  REQUIRE(optimizer);
  return optimizer;
}

std::string errors(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(yaml, "o.yaml", diagnostics);
  registry<Optimizer>().parse(node, diagnostics);
  REQUIRE(diagnostics.has_errors());
  return diagnostics.items().front().mark.str() + " " + diagnostics.items().front().message;
}

std::vector<std::string> slot_names(const std::string& yaml) {
  std::vector<std::string> names;
  for (const auto& slot : parse(yaml)->slots()) names.push_back(slot.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("defaults are Keras's") {
  const auto rate = [](const std::string& yaml) {
    return parse(yaml)->learning_rate().at(0, RunLength{}, Json());
  };
  CHECK(rate("sgd") == 0.01);
  for (const char* name : {"rmsprop", "adagrad", "adam", "adamw", "lion", "lamb"}) CHECK(rate(name) == 0.001);

  const auto sgd = std::get<SgdRule>(parse("sgd")->rule());
  CHECK(sgd.momentum == 0);
  CHECK_FALSE(sgd.nesterov);
  const auto rmsprop = std::get<RmspropRule>(parse("rmsprop")->rule());
  CHECK(rmsprop.rho == 0.9f);
  CHECK(rmsprop.momentum == 0);
  CHECK(rmsprop.epsilon == 1e-7f);
  CHECK_FALSE(rmsprop.centered);
  CHECK(std::get<AdagradRule>(parse("adagrad")->rule()).epsilon == 1e-7f);
  for (const char* name : {"adam", "adamw"}) {
    const auto adam = std::get<AdamRule>(parse(name)->rule());
    CHECK(adam.beta_1 == 0.9f);
    CHECK(adam.beta_2 == 0.999f);
    CHECK(adam.epsilon == 1e-7f);
  }
}

TEST_CASE("lion's and lamb's defaults are Keras's, too") {
  const auto lion = std::get<LionRule>(parse("lion")->rule());
  CHECK(lion.beta_1 == 0.9f);
  CHECK(lion.beta_2 == 0.99f);
  const auto lamb = std::get<LambRule>(parse("lamb")->rule());
  CHECK(lamb.beta_1 == 0.9f);
  CHECK(lamb.beta_2 == 0.999f);
  CHECK(lamb.epsilon == 1e-7f);
}

TEST_CASE("slots have Keras's names, and exist where the rule needs them") {
  CHECK(slot_names("sgd") == Names{});
  CHECK(slot_names("{sgd: {momentum: 0.9}}") == Names{"momentum"});
  CHECK(slot_names("rmsprop") == Names{"velocity"});
  CHECK(slot_names("{rmsprop: {momentum: 0.9}}") == Names{"velocity", "momentum"});
  CHECK(slot_names("{rmsprop: {momentum: 0.9, centered: true}}") ==
        Names{"velocity", "average_gradient", "momentum"});
  CHECK(slot_names("adagrad") == Names{"accumulator"});
  CHECK(parse("adagrad")->slots()[0].initial == 0.1f);
  CHECK(slot_names("adam") == Names{"momentum", "velocity"});
  CHECK(slot_names("adamw") == Names{"momentum", "velocity"});
  CHECK(slot_names("lion") == Names{"momentum"});
  CHECK(slot_names("lamb") == Names{"momentum", "velocity"});
}

TEST_CASE("adam's rate is corrected for the bias of step t, which counts from 1") {
  const auto adam = parse("{adam: {beta_1: 0.8, beta_2: 0.99}}");
  for (const int64_t t : {1, 2, 10, 100'000}) {
    const double expected = 0.002 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.8, t));
    CHECK(static_cast<double>(adam->numbers(t - 1, 0.002).rate) == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("lamb's two corrections are those of step t, and its rate is the learning rate") {
  const auto lamb = parse("{lamb: {beta_1: 0.75, beta_2: 0.96875}}");
  for (const int64_t t : {1, 2, 10, 100'000}) {
    const StepNumbers numbers = lamb->numbers(t - 1, 0.5);
    CHECK(numbers.rate == 0.5f);
    CHECK(static_cast<double>(numbers.mean_scale) ==
          doctest::Approx(1 / (1 - std::pow(0.75, t))).epsilon(1e-6));
    CHECK(static_cast<double>(numbers.square_scale) ==
          doctest::Approx(1 / (1 - std::pow(0.96875, t))).epsilon(1e-6));
  }
}

TEST_CASE("rate and decay reach every step") {
  for (const char* name : {"sgd", "rmsprop", "adagrad", "adam", "adamw", "lion", "lamb"}) {
    CAPTURE(name);
    const StepNumbers numbers = parse(std::string("{") + name + ": {weight_decay: 0.5}}")->numbers(3, 0.25);
    CHECK(numbers.step == 3);
    CHECK(numbers.decay == 0.125f);
    CHECK(numbers.learning_rate == 0.25f);
    if (!std::string(name).starts_with("adam")) CHECK(numbers.rate == 0.25f);
    const float by_default = std::string(name) == "adamw" ? 0.25f * 0.004f : 0.0f;
    CHECK(static_cast<double>(parse(name)->numbers(0, 0.25).decay) ==
          doctest::Approx(static_cast<double>(by_default)));
  }
}

TEST_CASE("an optimizer written in full reads back the same") {
  for (const char* text : {"sgd", "{rmsprop: {centered: true}}", "adagrad", "{adam: {learning_rate: 0.01}}",
                           "{adamw: {learning_rate: {cosine_decay: {initial: 0.001, steps: 1000}}}}"}) {
    const std::string full = parse(text).resolved.to_yaml();
    CHECK(parse(full).resolved.to_yaml() == full);
  }
}

TEST_CASE("mistakes in optimizers are named with their place") {
  CHECK(errors("adm") == "o.yaml:1:1 unknown optimizer 'adm'; did you mean 'adam'?");
  CHECK(errors("{adam: {beta1: 0.9}}") == "o.yaml:1:9 unknown key 'beta1' in adam; did you mean 'beta_1'?");
  CHECK(errors("{sgd: {momentum: 2}}") ==
        "o.yaml:1:18 sgd's momentum: expected a number from 0 to 1, found '2'");
  CHECK(errors("{sgd: {learning_rate: {linear: {}}}}").find("unknown learning rate schedule 'linear'") !=
        std::string::npos);
}
