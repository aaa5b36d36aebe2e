// Tests the options, slots and per-step numbers of optimizers.
#include <cmath>
#include <variant>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/load/load.h"
#include "optim/optimizer.h"
#include "support/kinds.h"

using namespace dtrain;
using test::parse_kind;

namespace {

std::string errors(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(yaml, "o.yaml", diagnostics);
  registry<Optimizer>().parse(node, diagnostics);
  REQUIRE(diagnostics.has_errors());
  return diagnostics.items().front().mark.str() + " " + diagnostics.items().front().message;
}

std::vector<std::string> slot_names(const std::string& yaml) {
  std::vector<std::string> names;
  for (const auto& slot : parse_kind<Optimizer>(yaml)->slots()) names.push_back(slot.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("defaults are Keras's") {
  const auto rate = [](const std::string& yaml) {
    return parse_kind<Optimizer>(yaml)->learning_rate().at(0, RunLength{}, Json());
  };
  CHECK(rate("sgd") == 0.01);
  for (const char* name :
       {"rmsprop", "adagrad", "adam", "adamw", "adamax", "nadam", "adadelta", "lion", "lamb", "adafactor"})
    CHECK(rate(name) == 0.001);

  CHECK(std::holds_alternative<math::Sgd>(parse_kind<Optimizer>("sgd")->rule()));
  const auto rmsprop = std::get<math::Rmsprop<false, false>>(parse_kind<Optimizer>("rmsprop")->rule());
  CHECK(rmsprop.rho == 0.9f);
  CHECK(rmsprop.momentum == 0);
  CHECK(rmsprop.epsilon == 1e-7f);
  CHECK(std::get<math::Adagrad>(parse_kind<Optimizer>("adagrad")->rule()).epsilon == 1e-7f);
  for (const char* name : {"adam", "adamw"}) {
    const auto adam = std::get<math::Adam>(parse_kind<Optimizer>(name)->rule());
    CHECK(adam.beta_1 == 0.9);
    CHECK(adam.beta_2 == 0.999);
    CHECK(adam.epsilon == 1e-7f);
  }
}

TEST_CASE("adamax's, nadam's and adadelta's defaults are Keras's") {
  const auto adamax = std::get<math::Adamax>(parse_kind<Optimizer>("adamax")->rule());
  CHECK(adamax.beta_1 == 0.9);
  CHECK(adamax.beta_2 == 0.999f);
  CHECK(adamax.epsilon == 1e-7f);
  const auto nadam = std::get<math::Nadam>(parse_kind<Optimizer>("nadam")->rule());
  CHECK(nadam.beta_1 == 0.9);
  CHECK(nadam.beta_2 == 0.999);
  CHECK(nadam.epsilon == 1e-7f);
  const auto adadelta = std::get<math::Adadelta>(parse_kind<Optimizer>("adadelta")->rule());
  CHECK(adadelta.rho == 0.95f);
  CHECK(adadelta.epsilon == 1e-7f);
}

TEST_CASE("lion's and lamb's defaults are Keras's") {
  const auto lion = std::get<math::Lion>(parse_kind<Optimizer>("lion")->rule());
  CHECK(lion.beta_1 == 0.9f);
  CHECK(lion.beta_2 == 0.99f);
  const auto lamb = std::get<math::Lamb>(parse_kind<Optimizer>("lamb")->rule());
  CHECK(lamb.beta_1 == 0.9f);
  CHECK(lamb.beta_2 == 0.999f);
  CHECK(lamb.epsilon == 1e-7f);
}

TEST_CASE("adafactor's defaults are Keras's") {
  const auto adafactor = std::get<math::Adafactor>(parse_kind<Optimizer>("adafactor")->rule());
  CHECK(adafactor.beta_2_decay == -0.8);
  CHECK(adafactor.epsilon_1 == 1e-30f);
  CHECK(adafactor.epsilon_2 == 1e-3f);
  CHECK(adafactor.clip_threshold == 1);
}

TEST_CASE("adafactor's slots are means of rows and columns, or the squares of weights with one axis") {
  const auto slots = parse_kind<Optimizer>("adafactor")->slots();
  const auto shapes = [&](const Shape& weight) {
    std::vector<std::optional<Shape>> all;
    for (const auto& slot : slots) all.push_back(slot.shape_for(weight));
    return all;
  };
  using Shapes = std::vector<std::optional<Shape>>;
  CHECK(shapes({}) == Shapes{std::nullopt, std::nullopt, Shape{}});
  CHECK(shapes({5}) == Shapes{std::nullopt, std::nullopt, Shape{5}});
  CHECK(shapes({5, 7}) == Shapes{Shape{5}, Shape{7}, std::nullopt});
  CHECK(shapes({3, 2, 5, 7}) == Shapes{Shape{3, 2, 5}, Shape{3, 2, 7}, std::nullopt});
  const auto adam = parse_kind<Optimizer>("adam")->slots();
  CHECK(adam[0].shape_for({5, 7}) == Shape{5, 7});
}

TEST_CASE("slots have Keras's names, and exist where the rule needs them") {
  CHECK(slot_names("sgd") == Names{});
  CHECK(slot_names("{sgd: {momentum: 0.9}}") == Names{"momentum"});
  CHECK(slot_names("rmsprop") == Names{"velocity"});
  CHECK(slot_names("{rmsprop: {momentum: 0.9}}") == Names{"velocity", "momentum"});
  CHECK(slot_names("{rmsprop: {momentum: 0.9, centered: true}}") ==
        Names{"velocity", "average_gradient", "momentum"});
  CHECK(slot_names("adagrad") == Names{"accumulator"});
  CHECK(parse_kind<Optimizer>("adagrad")->slots()[0].initial == 0.1f);
  CHECK(slot_names("adam") == Names{"momentum", "velocity"});
  CHECK(slot_names("adamw") == Names{"momentum", "velocity"});
  CHECK(slot_names("adamax") == Names{"momentum", "norm"});
  CHECK(slot_names("nadam") == Names{"momentum", "velocity"});
  CHECK(slot_names("adadelta") == Names{"accumulated_grad", "accumulated_delta_var"});
  CHECK(slot_names("lion") == Names{"momentum"});
  CHECK(slot_names("lamb") == Names{"momentum", "velocity"});
  CHECK(slot_names("adafactor") == Names{"row_mean", "column_mean", "velocity"});
}

TEST_CASE("adam's bias correction uses step t of the slots, counted from 1") {
  const auto adam = parse_kind<Optimizer>("{adam: {beta_1: 0.8, beta_2: 0.99}}");
  const auto rule = std::get<math::Adam>(adam->rule());
  for (const int64_t t : {1, 2, 10, 100'000})
    for (const uint64_t since : {0, 5}) {
      const double expected = 0.002 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.8, t));
      const StepState state{adam->numbers(t - 1 + static_cast<int64_t>(since), 0.002), {}};
      CHECK(rule.begin(state, {.slots_since = since}).rate == static_cast<float>(expected));
      const float half = rule.begin(state, {.learning_rate_factor = 0.5f, .slots_since = since}).rate;
      CHECK(half == 0.5f * static_cast<float>(expected));
    }
}

TEST_CASE("lamb's two bias corrections use step t of the slots") {
  const auto lamb = parse_kind<Optimizer>("{lamb: {beta_1: 0.75, beta_2: 0.96875}}");
  const auto rule = std::get<math::Lamb>(lamb->rule());
  for (const int64_t t : {1, 2, 10, 100'000})
    for (const uint64_t since : {0, 5}) {
      const StepState state{lamb->numbers(t - 1 + static_cast<int64_t>(since), 0.5), {}};
      const auto step = rule.begin(state, {.slots_since = since});
      CHECK(step.mean_scale == static_cast<float>(1 / (1 - std::pow(0.75, t))));
      CHECK(step.square_scale == static_cast<float>(1 / (1 - std::pow(0.96875, t))));
    }
}

TEST_CASE("nadam's momenta are Keras's, also after many steps") {
  for (const double beta : {0.9, 0.9999}) {
    const auto nadam = parse_kind<Optimizer>(fmt::format("{{nadam: {{beta_1: {}, beta_2: 0.99}}}}", beta));
    const auto rule = std::get<math::Nadam>(nadam->rule());
    const auto momentum = [&](int64_t t) {
      return beta * (1 - 0.5 * std::pow(0.96, static_cast<double>(t)));
    };
    double product = 1;
    for (int64_t t = 1; t <= 3000; ++t) {
      CAPTURE(t);
      product *= momentum(t);
      const uint64_t since = t % 2 == 0 ? 5 : 0;
      const StepState state{nadam->numbers(t - 1 + static_cast<int64_t>(since), 0.5), {}};
      const auto step = rule.begin(state, {.learning_rate_factor = 0.5f, .slots_since = since});
      CHECK(step.rate == 0.25f);
      const auto is = [](float found, double expected) {
        CHECK(static_cast<double>(found) == doctest::Approx(expected).epsilon(1e-6));
      };
      is(step.mean_scale, momentum(t + 1) / (1 - product * momentum(t + 1)));
      is(step.gradient_scale, (1 - momentum(t)) / (1 - product));
      is(step.square_scale, 1 / (1 - std::pow(0.99, static_cast<double>(t))));
    }
  }
}

TEST_CASE("a rule has the optimizer's slots and the direction") {
  for (const char* yaml : {"sgd", "{sgd: {momentum: 0.9}}", "{sgd: {momentum: 0.9, nesterov: true}}",
                           "rmsprop", "{rmsprop: {centered: true}}", "{rmsprop: {momentum: 0.9}}",
                           "{rmsprop: {momentum: 0.9, centered: true}}", "adagrad", "adam", "adamw", "adamax",
                           "nadam", "adadelta", "lion", "lamb"}) {
    CAPTURE(yaml);
    const auto optimizer = parse_kind<Optimizer>(yaml);
    const RuleTraits traits = traits_of(optimizer->rule());
    CHECK(static_cast<size_t>(traits.slots - (traits.finds_direction ? 1 : 0)) == optimizer->slots().size());
    CHECK(traits.of_gradient);
    CHECK(traits.finds_direction == (optimizer.name == "lamb"));
    CHECK_FALSE(traits.factors);
  }
  // For a weight with one axis, adafactor has other slots than for a matrix.
  const RuleTraits adafactor = traits_of(parse_kind<Optimizer>("adafactor")->rule());
  CHECK(adafactor.slots == 2);
  CHECK(adafactor.finds_direction);
  CHECK(adafactor.factors);
}

TEST_CASE("every step has its learning rate and weight decay") {
  for (const char* name : {"sgd", "rmsprop", "adagrad", "adam", "adamw", "adamax", "nadam", "adadelta",
                           "lion", "lamb", "adafactor"}) {
    CAPTURE(name);
    const StepNumbers numbers =
        parse_kind<Optimizer>(std::string("{") + name + ": {weight_decay: 0.5}}")->numbers(3, 0.25);
    CHECK(numbers.step == 3);
    CHECK(numbers.decay == 0.125f);
    CHECK(numbers.learning_rate == 0.25);
    const float by_default = std::string(name) == "adamw" ? 0.25f * 0.004f : 0.0f;
    CHECK(static_cast<double>(parse_kind<Optimizer>(name)->numbers(0, 0.25).decay) ==
          doctest::Approx(static_cast<double>(by_default)));
  }
}

TEST_CASE("an optimizer written with all options is read back unchanged") {
  for (const char* text : {"sgd", "{rmsprop: {centered: true}}", "adagrad", "{adam: {learning_rate: 0.01}}",
                           "{adamw: {learning_rate: {cosine_decay: {initial: 0.001, steps: 1000}}}}"}) {
    const std::string full = parse_kind<Optimizer>(text).resolved.to_yaml();
    CHECK(parse_kind<Optimizer>(full).resolved.to_yaml() == full);
  }
}

TEST_CASE("errors in optimizers are reported with their location") {
  CHECK(errors("adm") == "o.yaml:1:1 unknown optimizer 'adm'; did you mean 'adam'?");
  CHECK(errors("{adam: {beta1: 0.9}}") == "o.yaml:1:9 unknown key 'beta1' in adam; did you mean 'beta_1'?");
  CHECK(errors("{sgd: {momentum: 2}}") ==
        "o.yaml:1:18 sgd's momentum: expected a number from 0 to 1, found '2'");
  CHECK(errors("{adam: {learning_rate: -1}}") ==
        "o.yaml:1:24 adam's learning_rate: expected a number of at least 0, found '-1'");
  CHECK(errors("{adam: {learning_rate: {constant: {value: -1}}}}") ==
        "o.yaml:1:43 constant's value: expected a number of at least 0, found '-1'");
  CHECK(errors("{sgd: {learning_rate: {linear_warmup: {steps: 9, then: -1}}}}") ==
        "o.yaml:1:56 linear_warmup's then: expected a number of at least 0, found '-1'");
  CHECK(errors("{sgd: {learning_rate: {linear: {}}}}").find("unknown learning rate schedule 'linear'") !=
        std::string::npos);
}
