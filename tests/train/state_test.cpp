// Tests the state from which another process continues a run, and the directory of a run.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <regex>
#include <span>

#include <fmt/format.h>

#include "data/data_facts.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

Json sample_state() {
  TrainingState state;
  state.step = 3;
  state.step_in_epoch = 2;
  state.sums = {1.5, 0, 0, 2, 0.1, 0};
  state.loss_scale = 2;
  state.good_steps = 1;
  state.callbacks = {{"early_stopping", Json()}};
  state.best = TrainingState::Best{0.5, 2, "min loss"};
  state.data["train"] = {"csv", {{"a.csv", 100, "0123"}}, 10, 0, 9};
  return state.to_json();
}

/// Calls `visit` with copies of the document in which one part is replaced by other values or removed.
void for_each_damage(const Json& json, const std::function<void(const Json&)>& visit) {
  for (const Json& other : {Json(), Json(-1), Json("x"), Json::array().push(Json()), Json::object()})
    visit(other);
  if (json.is_object())
    for (const auto& [key, value] : json.entries()) {
      Json without = Json::object();
      for (const auto& [name, kept] : json.entries())
        if (name != key) without.set(name, kept);
      visit(without);
      for_each_damage(value, [&, key = key](const Json& part) { visit(Json(json).set(key, part)); });
    }
  if (json.is_array())
    for (const Json& item : json.items())
      for_each_damage(item, [&](const Json& part) { visit(Json::array().push(part)); });
}

Callback::Verdict after_epoch(const std::string& options, Json& state, double value) {
  Diagnostics diagnostics;
  const auto callback = registry<Callback>().parse(
      parse_yaml("early_stopping: " + options, "c.yaml", diagnostics), diagnostics);
  diagnostics.throw_if_errors();
  return callback->after_epoch(state, [&](const std::string&) { return MonitoredNumber{value}; });
}

}  // namespace

TEST_CASE("a malformed state is a UserError") {
  const Json good = sample_state();
  CHECK(TrainingState::from_json(good, "").to_json().dump() == good.dump());
  int refused = 0;
  for_each_damage(good, [&](const Json& json) {
    CAPTURE(json.dump());
    try {
      TrainingState::from_json(Json::parse(json.dump()), "");
    } catch (const UserError&) {
      ++refused;
    }
  });
  CHECK(refused > 100);
  CHECK_THROWS_WITH_AS(TrainingState::from_json(Json(good).set("best", Json::object()), ""),
                       doctest::Contains("expected an object with 'value', found {}"), UserError);
  CHECK_THROWS_WITH_AS(TrainingState::from_json(Json(good).set("history", "x"), ""),
                       doctest::Contains("expected an array, found \"x\""), UserError);
  const auto with_run = [&](const Json& run) {
    return Json(good).set("sums", Json::object().set("count", 5).set("runs", Json::array().push(run)));
  };
  CHECK_THROWS_WITH_AS(
      TrainingState::from_json(with_run(Json::array()), ""),
      doctest::Contains("in 'runs' must contain an index and numbers, but one of them is empty"), UserError);
  CHECK_THROWS_WITH_AS(
      TrainingState::from_json(with_run(Json::array().push(4).push(0.5).push(0.5)), ""),
      doctest::Contains("below 5 ('count'), but a list in 'runs' begins at index 4 and has 2 numbers"),
      UserError);
}

TEST_CASE("malformed data facts are a UserError") {
  DataFacts facts;
  facts.source.fields = {{"a", "b"}, {"label"}, {0, 1}, 3};
  facts.source.class_names["label"] = {"cat", "dog"};
  facts.source.categories["a"] = {"x", "y"};
  facts.source.fills["x"] = {"mean", "0.5"};
  facts.fitted["x"] = {{"standardize", {{"mean", {1.0, 2.0}}}}};
  facts.split_seed = 7;
  int refused = 0;
  for_each_damage(facts.to_json(), [&](const Json& json) {
    CAPTURE(json.dump());
    try {
      DataFacts::from_json(Json::parse(json.dump()));
    } catch (const UserError&) {
      ++refused;
    }
  });
  CHECK(refused > 100);
}

TEST_CASE("sums within an epoch are saved without runs of zeros") {
  TrainingState state;
  state.step_in_epoch = 1;
  state.sums.assign(1'000'000, 0.0);
  state.sums[0] = 0.1;
  state.sums[999'998] = 3;
  state.sums[999'999] = std::nan("");
  const std::string text = state.to_json().dump();
  CHECK(text.size() < 500);
  const TrainingState back = TrainingState::from_json(Json::parse(text), "");
  REQUIRE(back.sums.size() == state.sums.size());
  const auto numbers = [](const TrainingState& of) {
    return std::as_bytes(std::span(of.sums).first(999'999));
  };
  CHECK(std::ranges::equal(numbers(back), numbers(state)));
  CHECK(std::isnan(back.sums.back()));
  state.step_in_epoch = 0;
  CHECK(state.to_json().at("sums").dump() == "[]");
}

TEST_CASE("sums in checkpoints of earlier versions are one complete array") {
  const auto sums_of = [](const std::string& sums) {
    return TrainingState::from_json(sample_state().set("sums", Json::parse(sums)), "").sums;
  };
  CHECK(sums_of("[1.5, 0, 2]") == std::vector<double>{1.5, 0, 2});
  CHECK(sums_of(R"({"count": 4, "runs": [[1, 7, 8]]})") == std::vector<double>{0, 7, 8, 0});
  for (const char* wrong : {R"({"count": 4, "runs": [[3, 7, 8]]})", R"({"count": 4, "runs": [[-1, 7]]})",
                            R"({"count": 4, "runs": [[]]})", R"({"count": 99999999999, "runs": []})",
                            R"({"count": -1, "runs": []})"})
    CHECK_THROWS_AS(sums_of(wrong), UserError);
}

TEST_CASE("a malformed callback state is a UserError") {
  for (const Json& wrong : {Json("x"), Json(1), Json::array(), Json::object(),
                            Json::object().set("watched", "min val_loss").set("best", "x")}) {
    Json state = wrong;
    CHECK_THROWS_AS(after_epoch("{patience: 3}", state, 1.0), UserError);
  }
}

TEST_CASE("early stopping ends with the last of `patience` epochs without improvement") {
  for (const int patience : {0, 1, 2, 3}) {
    Json state;
    const std::string options = fmt::format("{{patience: {}}}", patience);
    CHECK(!after_epoch(options, state, 1.0).stop);
    for (int epoch = 1; epoch < patience; ++epoch) CHECK(!after_epoch(options, state, 1.0).stop);
    CHECK(after_epoch(options, state, 1.0).stop);
  }
}

TEST_CASE("early stopping waits for a number before it counts epochs without improvement") {
  Json state;
  const double nan = std::nan("");
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(!after_epoch("{patience: 1}", state, nan).stop);
  CHECK(!after_epoch("{patience: 1}", state, 0.5).stop);
  CHECK(after_epoch("{patience: 1}", state, nan).stop);
}

TEST_CASE("early stopping restarts if the monitor or its direction changes") {
  Json state;
  after_epoch("{patience: 2}", state, 0.25);
  after_epoch("{patience: 2}", state, 0.5);
  const Json before = state;
  CHECK(after_epoch("{patience: 2, mode: min}", state, 0.75).stop);  // auto, the default, means min
  for (const char* options : {"{patience: 2, monitor: loss}", "{patience: 2, mode: max}"}) {
    state = before;
    CHECK(!after_epoch(options, state, 0.75).stop);
    CHECK(state.at("best").as_double() == 0.75);
    CHECK(state.at("waited").as_int() == 0);
  }
}

TEST_CASE("checkpoints are set aside by step, for any number of digits") {
  const TempDir directory;
  const RunDirectory run(directory.path());
  std::filesystem::create_directory(run.checkpoint_directory());
  for (const int64_t step : {99'999'999, 100'000'000, 1'000'000'000})
    std::ofstream(run.checkpoint_path(step));
  CHECK(run.set_aside_after(100'000'000) == std::vector{run.checkpoint_path(1'000'000'000) + ".set-aside"});
  CHECK(run.set_aside_after(99'999'999) == std::vector{run.checkpoint_path(100'000'000) + ".set-aside"});
  CHECK(run.checkpoints() == std::vector{run.checkpoint_path(99'999'999)});
}

TEST_CASE("intervals are parsed if their JSON schema accepts them") {
  const std::regex pattern(Codec<Interval>::schema().at("pattern").as_string());
  const auto parses = [](const std::string& text) {
    Diagnostics diagnostics;
    Interval interval;
    return Codec<Interval>::parse(ConfigNode::scalar(text), "every", interval, diagnostics);
  };
  for (const char* text :
       {"1 epoch", "200 steps", "10 minutes", "1e3 steps", "1E+3 steps", "5e-1 minutes", ".5 minutes",
        "1. epoch", "2epochs", "25e-1minutes", "8 hours", "1 day", "30 seconds", "auto"}) {
    CAPTURE(text);
    CHECK(parses(text));
    CHECK(std::regex_match(text, pattern));
  }
  for (const char* text :
       {"1", "epoch", ". steps", "1.2.3 minutes", "1e steps", "-1 steps", "+1 steps", "1 epochss",
        "inf steps", "0x10 steps", " 1 epoch", "1 epoch ", "1 auto", "autos", "1 week"}) {
    CAPTURE(text);
    CHECK(!parses(text));
    CHECK(!std::regex_match(text, pattern));
  }
}

TEST_CASE("durations are parsed if their JSON schema accepts them") {
  const std::regex pattern(Codec<TimeSpan>::schema().at("pattern").as_string());
  const auto parse = [](const std::string& text) -> std::optional<TimeSpan> {
    Diagnostics diagnostics;
    TimeSpan duration;
    if (!Codec<TimeSpan>::parse(ConfigNode::scalar(text), "max_time", duration, diagnostics))
      return std::nullopt;
    return duration;
  };
  for (const auto& [written, seconds] : std::vector<std::pair<std::string, double>>{
           {"8 hours", 28800}, {"1 day", 86400}, {"0.5 minutes", 30}, {"2.5seconds", 2.5}}) {
    const std::string& text = written;
    CAPTURE(text);
    REQUIRE(parse(text));
    CHECK(parse(text)->seconds() == seconds);
    CHECK(parse(Codec<TimeSpan>::write(*parse(text)).text())->seconds() == seconds);
    CHECK(std::regex_match(text, pattern));
  }
  for (const char* text : {"8", "1 epoch", "10 steps", "auto", "-1 hours", "0 hours", "1 hour 5 minutes"}) {
    CAPTURE(text);
    CHECK(!parse(text));
    CHECK((std::string(text) == "0 hours" || !std::regex_match(text, pattern)));
  }
}
