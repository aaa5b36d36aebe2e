// Compares schedules with their formulas and with Keras's callbacks and schedules.
#include <cmath>
#include <map>
#include <numbers>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "optim/schedule.h"
#include "support/errors.h"
#include "support/kinds.h"

using namespace dtrain;
using test::parse_kind;

namespace {

constexpr RunLength kRun{.steps_per_epoch = 10, .steps = 200};

std::string errors(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(yaml, "s.yaml", diagnostics);
  registry<Schedule>().parse(node, diagnostics);
  return test::messages(diagnostics);
}

double rate(const Configured<Schedule>& schedule, int64_t step) {
  return schedule->at(step, kRun, Json());
}

/// Returns the learning rate after each epoch. `values` has the monitored value of each epoch.
std::vector<double> plateau(const std::string& yaml, const std::vector<double>& values,
                            const std::string& name = "val_loss", bool larger_is_better = false) {
  const auto schedule = parse_kind<Schedule>(yaml);
  CHECK(schedule->monitor() == name);
  Json state;
  std::vector<double> rates;
  for (const double value : values) {
    std::string message;
    const double before = schedule->at(0, kRun, state);
    state = schedule->after_epoch(
        state,
        [&](const std::string& wanted) {
          return wanted == name ? std::optional(MonitoredNumber{value, larger_is_better}) : std::nullopt;
        },
        message);
    state = Json::parse(state.dump());  // round trip through a checkpoint
    rates.push_back(schedule->at(0, kRun, state));
    CHECK(message.empty() == (rates.back() == before));
  }
  return rates;
}

}  // namespace

TEST_CASE("a bare number is a constant rate") {
  const auto schedule = parse_kind<Schedule>("0.001");
  CHECK(schedule.name == "constant");
  CHECK(rate(schedule, 0) == 0.001);
  CHECK(rate(schedule, 1'000'000) == 0.001);
  CHECK(schedule.resolved.to_yaml() == parse_kind<Schedule>("{constant: {value: 1e-3}}").resolved.to_yaml());
  CHECK(errors("-1") == "s.yaml:1:1: error: constant's value: expected a number of at least 0, found '-1'");
}

TEST_CASE("piecewise_constant: the step of a boundary still has the previous value") {
  const auto schedule =
      parse_kind<Schedule>("{piecewise_constant: {boundaries: [3, 5], values: [0.1, 0.01, 0.001]}}");
  const std::vector<double> expected{0.1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001};
  for (size_t step = 0; step < expected.size(); ++step)
    CHECK(rate(schedule, static_cast<int64_t>(step)) == expected[step]);
}

TEST_CASE("piecewise_constant: inconsistent options are errors") {
  CHECK(errors("{piecewise_constant: {boundaries: [3], values: [0.1]}}") ==
        "s.yaml:1:2: error: piecewise_constant: expected 2 values (one more than there are boundaries), but "
        "found 1");
  CHECK(errors("{piecewise_constant: {boundaries: [3, 3], values: [1, 2, 3]}}") ==
        "s.yaml:1:35: error: piecewise_constant: each boundary must be greater than the boundary before it");
  CHECK(errors("{piecewise_constant: {boundaries: [-3], values: [1, -2]}}") ==
        "s.yaml:1:36: error: piecewise_constant's boundaries: expected a number of steps, such as 400, or of "
        "epochs, such as '5 epochs', found '-3'");
  CHECK(errors("{piecewise_constant: {boundaries: [3], values: [1, -2]}}") ==
        "s.yaml:1:48: error: piecewise_constant: all values must be rates of at least 0");
  CHECK(errors("{piecewise_constant: {boundaries: [3, 1 epoch], values: [1, 2, 3]}}") ==
        "s.yaml:1:35: error: piecewise_constant: either all boundaries must be in steps, or all must be in "
        "epochs");
}

TEST_CASE("schedules count steps or epochs") {  // epochs have ten steps here
  const auto in_steps = [](const std::string& yaml, int64_t steps) {
    const auto schedule = parse_kind<Schedule>(yaml);
    CHECK(schedule.resolved.to_yaml() ==
          parse_kind<Schedule>(schedule.resolved.to_yaml()).resolved.to_yaml());
    std::vector<double> rates;
    for (int64_t step = 0; step < steps; ++step) rates.push_back(rate(schedule, step));
    return rates;
  };
  const auto check_equal = [&](const std::string& epochs, const std::string& steps) {
    CAPTURE(epochs);
    CHECK(in_steps(epochs, 70) == in_steps(steps, 70));
  };
  check_equal("{exponential_decay: {initial: 0.1, decay_steps: 2 epochs, decay_rate: 0.5}}",
              "{exponential_decay: {initial: 0.1, decay_steps: 20, decay_rate: 0.5}}");
  check_equal("{cosine_decay: {initial: 0.1, steps: 4 epochs, warmup_steps: 0.5 epochs}}",
              "{cosine_decay: {initial: 0.1, steps: 40 steps, warmup_steps: 5}}");
  // The second value applies from the third epoch.
  check_equal("{piecewise_constant: {boundaries: [2 epochs, 5 epochs], values: [3, 2, 1]}}",
              "{piecewise_constant: {boundaries: [19, 49], values: [3, 2, 1]}}");
  CHECK(parse_kind<Schedule>("{cosine_decay: {initial: 0.1, steps: 1 epoch, warmup_steps: 1.5 epochs}}")
            .resolved.to_yaml() ==
        "cosine_decay: {initial: 0.1, steps: 1 epoch, alpha: 0, warmup_steps: 1.5 epochs, warmup_initial: "
        "0}\n");
  for (const char* wrong :
       {"0", "-1", "1.5", "1.5 steps", "5 apples", "epochs", "'5'", "0 epochs", "nan", "1e99"})
    CHECK(errors("{exponential_decay: {initial: 1, decay_rate: 1, decay_steps: " + std::string(wrong) + "}}")
              .starts_with("s.yaml:1:62: error: exponential_decay's decay_steps: expected "));
}

TEST_CASE("a decay lasts until the end of training unless its steps are given") {
  const auto check_equal = [](const std::string& automatic, const std::string& written) {
    CAPTURE(automatic);
    const auto schedule = parse_kind<Schedule>(automatic);
    CHECK(schedule.resolved.to_yaml().find("steps: auto") != std::string::npos);
    for (int64_t step = 0; step < 205; ++step)
      CHECK(rate(schedule, step) == rate(parse_kind<Schedule>(written), step));
    const RunLength longer{.steps_per_epoch = 10, .steps = 400};
    CHECK(schedule->at(200, longer, Json()) > rate(schedule, 200));
  };
  check_equal("{cosine_decay: {initial: 0.1}}", "{cosine_decay: {initial: 0.1, steps: 200}}");
  check_equal("{cosine_decay: {initial: 0.1, steps: auto, warmup_steps: 2 epochs}}",
              "{cosine_decay: {initial: 0.1, steps: 180, warmup_steps: 20}}");
  check_equal("{polynomial_decay: {initial: 0.1, steps: auto}}",
              "{polynomial_decay: {initial: 0.1, steps: 200}}");
  check_equal("{one_cycle: {max: 0.1}}", "{one_cycle: {max: 0.1, steps: 200}}");
  check_equal("{linear_warmup: {steps: 1 epoch, then: {cosine_decay: 0.1}}}",
              "{linear_warmup: {steps: 10, then: {cosine_decay: {initial: 0.1, steps: 190}}}}");
  CHECK(std::isfinite(rate(parse_kind<Schedule>("{cosine_decay: {initial: 0.1, warmup_steps: 300}}"), 300)));
}

TEST_CASE("exponential_decay follows its formula") {
  const auto smooth =
      parse_kind<Schedule>("{exponential_decay: {initial: 0.1, decay_steps: 10, decay_rate: 0.5}}");
  CHECK(rate(smooth, 0) == 0.1);
  CHECK(rate(smooth, 5) == doctest::Approx(0.1 * std::sqrt(0.5)));
  CHECK(rate(smooth, 20) == doctest::Approx(0.025));
  const auto stairs = parse_kind<Schedule>(
      "{exponential_decay: {initial: 0.1, decay_steps: 10, decay_rate: 0.5, staircase: true}}");
  CHECK(rate(stairs, 9) == 0.1);
  CHECK(rate(stairs, 10) == doctest::Approx(0.05));
  CHECK(rate(stairs, 19) == doctest::Approx(0.05));
}

TEST_CASE("inverse_time_decay follows its formula") {
  const auto smooth =
      parse_kind<Schedule>("{inverse_time_decay: {initial: 0.1, decay_steps: 10, decay_rate: 0.5}}");
  CHECK(rate(smooth, 0) == 0.1);
  CHECK(rate(smooth, 5) == doctest::Approx(0.08));
  CHECK(rate(smooth, 20) == doctest::Approx(0.05));
  const auto stairs = parse_kind<Schedule>(
      "{inverse_time_decay: {initial: 0.1, decay_steps: 10, decay_rate: 1, staircase: true}}");
  CHECK(rate(stairs, 9) == 0.1);
  CHECK(rate(stairs, 10) == doctest::Approx(0.05));
  CHECK(rate(stairs, 19) == doctest::Approx(0.05));
}

TEST_CASE("cosine_decay: linear warm-up, then the cosine over `steps`, then constant") {
  const auto schedule = parse_kind<Schedule>(
      "{cosine_decay: {initial: 0.2, steps: 100, alpha: 0.1, warmup_steps: 10, warmup_initial: 0.05}}");
  CHECK(rate(schedule, 0) == doctest::Approx(0.05));
  CHECK(rate(schedule, 5) == doctest::Approx(0.125));
  CHECK(rate(schedule, 10) == doctest::Approx(0.2));
  CHECK(rate(schedule, 60) == doctest::Approx(0.11));  // halfway: (1 + alpha) / 2
  CHECK(rate(schedule, 35) ==
        doctest::Approx(0.2 * (0.9 * 0.5 * (1 + std::cos(std::numbers::pi / 4)) + 0.1)));
  CHECK(rate(schedule, 110) == doctest::Approx(0.02));
  CHECK(rate(schedule, 100'000) == doctest::Approx(0.02));
  CHECK(rate(parse_kind<Schedule>("{cosine_decay: {initial: 0.2, steps: 100}}"), 0) == 0.2);
}

TEST_CASE("polynomial_decay is Keras's") {
  const auto once =
      parse_kind<Schedule>("{polynomial_decay: {initial: 0.1, steps: 10, end: 0.01, power: 2}}");
  CHECK(rate(once, 0) == 0.1);
  CHECK(rate(once, 3) == doctest::Approx(0.0541));
  CHECK(rate(once, 10) == 0.01);
  CHECK(rate(once, 12) == 0.01);
  const auto again =
      parse_kind<Schedule>("{polynomial_decay: {initial: 0.1, steps: 10, end: 0.01, power: 2, cycle: true}}");
  CHECK(rate(again, 3) == doctest::Approx(0.0541));
  CHECK(rate(again, 10) == 0.01);
  CHECK(rate(again, 12) == doctest::Approx(0.0244));
  CHECK(rate(again, 25) == doctest::Approx(0.0125));
}

TEST_CASE("one_cycle is PyTorch's OneCycleLR") {
  const auto schedule =
      parse_kind<Schedule>("{one_cycle: {max: 1, steps: 11, div_factor: 10, final_div_factor: 100}}");
  const double top = 0.3 * 11 - 1;
  CHECK(rate(schedule, 0) == doctest::Approx(0.1));
  CHECK(rate(schedule, 1) == doctest::Approx(1 + (0.1 - 1) * 0.5 * (1 + std::cos(std::numbers::pi / top))));
  CHECK(rate(schedule, 5) ==
        doctest::Approx(0.001 + 0.999 * 0.5 * (1 + std::cos(std::numbers::pi * (5 - top) / (10 - top)))));
  CHECK(rate(schedule, 10) == doctest::Approx(0.001));
  CHECK(rate(schedule, 1000) == doctest::Approx(0.001));
  for (const char* edge : {"{one_cycle: {max: 1, steps: 1}}", "{one_cycle: {max: 1, steps: 3, warmup: 0}}",
                           "{one_cycle: {max: 1, steps: 3, warmup: 1}}"})
    for (int64_t step = 0; step < 5; ++step) CHECK(std::isfinite(rate(parse_kind<Schedule>(edge), step)));
}

TEST_CASE("linear_warmup precedes any schedule, whose steps count from its end") {
  const auto schedule = parse_kind<Schedule>(
      "{linear_warmup: {steps: 4, initial: 0.1, then: {exponential_decay: {initial: 0.5, decay_steps: 10, "
      "decay_rate: 0.5}}}}");
  CHECK(rate(schedule, 0) == doctest::Approx(0.1));
  CHECK(rate(schedule, 2) == doctest::Approx(0.3));
  CHECK(rate(schedule, 4) == doctest::Approx(0.5));
  CHECK(rate(schedule, 14) == doctest::Approx(0.25));
  CHECK(rate(parse_kind<Schedule>("{linear_warmup: {steps: 2, then: 0.5}}"), 1) == 0.25);
  CHECK(parse_kind<Schedule>("{linear_warmup: {steps: 1 epoch, then: {reduce_on_plateau: {initial: 1}}}}")
            ->monitor() == "val_loss");
  CHECK(errors("{linear_warmup: {steps: 2}}") ==
        "s.yaml:1:2: error: missing key 'then' in linear_warmup (the schedule after the warm-up, or a number "
        "for a constant rate)");
}

TEST_CASE("reduce_on_plateau: waits, reduces, and starts to wait again") {
  const auto rates = plateau("{reduce_on_plateau: {initial: 1, factor: 0.5, patience: 2}}",
                             {1.0, 0.9, 0.9, 0.9, 0.95, 0.95, 0.5, 0.5});
  CHECK(rates == std::vector<double>{1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25});
}

TEST_CASE("reduce_on_plateau: a change within min_delta is no improvement") {
  CHECK(plateau("{reduce_on_plateau: {initial: 1, factor: 0.5, patience: 1, min_delta: 0.1}}",
                {1.0, 0.95, 0.85}) == std::vector<double>{1, 0.5, 0.5});
}

TEST_CASE("reduce_on_plateau: epochs of the cooldown are not counted, as in Keras") {
  CHECK(plateau("{reduce_on_plateau: {initial: 1, factor: 0.5, patience: 1, cooldown: 2}}",
                {1, 1, 1, 1, 1, 1}) == std::vector<double>{1, 0.5, 0.5, 0.25, 0.25, 0.125});
}

TEST_CASE("reduce_on_plateau: the rate stays above min, and the metric determines the direction") {
  const std::string options = "initial: 1, factor: 0.1, patience: 1, min: 0.05";
  CHECK(plateau("{reduce_on_plateau: {" + options + "}}", {1, 1, 1, 1}) ==
        std::vector<double>{1, 0.1, 0.05, 0.05});
  const std::string of_roc = "{reduce_on_plateau: {monitor: val_roc, " + options + "}}";
  CHECK(plateau(of_roc, {0.5, 0.6, 0.7, 0.7}, "val_roc", true) == std::vector<double>{1, 1, 1, 0.1});
  const std::string of_loss = "{reduce_on_plateau: {monitor: val_vaccine_loss, " + options + "}}";
  CHECK(plateau(of_loss, {0.7, 0.6, 0.5, 0.5}, "val_vaccine_loss") == std::vector<double>{1, 1, 1, 0.1});
  CHECK(plateau("{reduce_on_plateau: {monitor: gain, mode: max, " + options + "}}", {1, 2, 1}, "gain") ==
        std::vector<double>{1, 1, 0.1});
}

TEST_CASE("reduce_on_plateau: a missing or NaN metric is no improvement") {
  const auto schedule = parse_kind<Schedule>("{reduce_on_plateau: {initial: 1}}");
  std::string message;
  const Json state = schedule->after_epoch(
      Json(), [](const std::string&) { return std::optional<MonitoredNumber>(); }, message);
  CHECK(state.is_null());
  CHECK(plateau("{reduce_on_plateau: {initial: 1, factor: 0.5, patience: 2}}", {1.0, NAN, NAN, 0.5}) ==
        std::vector<double>{1, 1, 0.5, 0.5});
  // An epoch without a value counts as an epoch without improvement only if an earlier epoch had a value.
  CHECK(plateau("{reduce_on_plateau: {initial: 1, factor: 0.5, patience: 0}}", {NAN, NAN, 1.0, 0.5, NAN}) ==
        std::vector<double>{1, 1, 1, 1, 0.5});
}

TEST_CASE("reduce_on_plateau: another monitor or direction begins again at the current rate") {
  const auto after = [](const std::string& more, Json state, double value) {
    std::string message;
    return parse_kind<Schedule>("{reduce_on_plateau: {initial: 1, factor: 0.5, patience: 1" + more + "}}")
        ->after_epoch(
            std::move(state), [&](const std::string&) { return MonitoredNumber{value}; }, message);
  };
  const Json state = after("", after("", Json(), 0.25), 0.5);
  CHECK(state.at("scale").as_double() == 0.5);
  CHECK(after(", mode: min", state, 0.5).at("scale").as_double() == 0.25);  // auto, the default, means min
  for (const char* change : {", monitor: loss", ", mode: max"}) {
    const Json changed = after(change, state, 0.125);
    CHECK(changed.at("scale").as_double() == 0.5);
    CHECK(changed.at("best").as_double() == 0.125);
    CHECK(changed.at("wait").as_int() == 0);
  }
  for (const Json& wrong : {Json("x"), Json::object(), Json::object().set("scale", "x")})
    CHECK_THROWS_AS(parse_kind<Schedule>("{reduce_on_plateau: {initial: 1}}")->at(0, kRun, wrong), UserError);
}

TEST_CASE("errors in schedules are reported with their location") {
  CHECK(errors("cosine_deacy: {initial: 1, steps: 3}") ==
        "s.yaml:1:1: error: unknown learning rate schedule 'cosine_deacy'; did you mean 'cosine_decay'?");
  CHECK(errors("{cosine_decay: {initial: 1, step: 3}}").find("s.yaml:1:29: error: unknown key 'step'") !=
        std::string::npos);
  CHECK(errors("{reduce_on_plateau: {initial: 1, factor: 1}}") ==
        "s.yaml:1:42: error: reduce_on_plateau's factor: expected a number of at least 0 and less than 1, "
        "found '1'");
  CHECK(errors("constant") != "");
}

TEST_CASE("after a change of the steps per epoch, schedules in epochs continue from the same epoch") {
  // 5 of 10 epochs had 8 steps each, and the others have 4: step 40 is at the beginning of epoch 6.
  const RunLength run{.steps_per_epoch = 4, .steps = 40, .shift = 5 * 4 - 40},
      same{.steps_per_epoch = 4, .steps = 40};
  const auto at = [&](const std::string& yaml, const RunLength& length, int64_t step) {
    return parse_kind<Schedule>(yaml)->at(step, length, Json());
  };
  for (const char* yaml :
       {"cosine_decay: {initial: 0.1}", "cosine_decay: {initial: 0.1, warmup_steps: 2 epochs}",
        "one_cycle: {max: 0.1}", "polynomial_decay: {initial: 0.1}",
        "linear_warmup: {steps: 2 epochs, then: {cosine_decay: {initial: 0.1}}}",
        "exponential_decay: {initial: 0.1, decay_steps: 3 epochs, decay_rate: 0.5}",
        "inverse_time_decay: {initial: 0.1, decay_steps: 3 epochs, decay_rate: 0.5}",
        "piecewise_constant: {boundaries: [2 epochs, 6 epochs], values: [3, 2, 1]}"}) {
    CAPTURE(yaml);
    for (const int64_t step : {40, 43, 44, 50, 59}) CHECK(at(yaml, run, step) == at(yaml, same, step - 20));
  }
  // Counts in steps are numbers of steps of the whole run.
  for (const char* yaml : {"cosine_decay: {initial: 0.1, steps: 60}",
                           "piecewise_constant: {boundaries: [41, 50], values: [3, 2, 1]}",
                           "exponential_decay: {initial: 0.1, decay_steps: 30, decay_rate: 0.5}"}) {
    CAPTURE(yaml);
    for (const int64_t step : {40, 43, 50, 59}) CHECK(at(yaml, run, step) == at(yaml, same, step));
  }
}
