// What a run remembers from one process to the next, and the directory that it is kept in.
#include <functional>

#include "runs.h"

using namespace dtrain;
using namespace dtrain::testing;

namespace {

Json sample_state() {
  TrainingState state;
  state.step = 3;
  state.sums = {1.5};
  state.callbacks = {{"early_stopping", Json()}};
  state.best = TrainingState::Best{0.5, 2, "loss"};
  state.history.push(Json::object().set("epoch", 1).set("step", 3));
  return state.to_json();
}

/// Calls back with the document, a part of which is another value in turn or (nothing) is not there.
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

}  // namespace

TEST_CASE("a state that is malformed anywhere is a UserError") {
  const Json good = sample_state();
  CHECK(TrainingState::from_json(good).to_json().dump() == good.dump());
  int refused = 0;
  for_each_damage(good, [&](const Json& json) {
    CAPTURE(json.dump());
    try {
      TrainingState::from_json(Json::parse(json.dump()));
    } catch (const UserError&) {
      ++refused;
    }
  });
  CHECK(refused > 100);
  CHECK_THROWS_WITH_AS(TrainingState::from_json(Json(good).set("best", Json::object())),
                       doctest::Contains("expected an object with 'value', found {}"), UserError);
  CHECK_THROWS_WITH_AS(TrainingState::from_json(Json(good).set("history", "x")),
                       doctest::Contains("expected an array, found \"x\""), UserError);
}
