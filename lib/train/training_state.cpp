#include "train/training_state.h"

#include <variant>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

Json TrainingState::to_json() const {
  Json json = Json::object();
  json.set("step", step).set("epoch", epoch).set("step_in_epoch", step_in_epoch);
  Json json_sums = Json::array();
  for (const double sum : sums) json_sums.push(sum);
  json.set("sums", json_sums).set("samples", samples);
  json.set("train_seconds", train_seconds).set("epoch_seconds", epoch_seconds);
  if (loss_scale != 0) json.set("loss_scale", loss_scale).set("good_steps", good_steps);
  json.set("schedule", schedule);
  Json json_callbacks = Json::array();
  for (const OfCallback& callback : callbacks)
    json_callbacks.push(Json::object().set("kind", callback.kind).set("state", callback.state));
  json.set("callbacks", json_callbacks);
  json.set(
      "best",
      best ? Json::object().set("value", best->value).set("step", best->step).set("monitor", best->monitor)
           : Json());
  return json.set("stopped", stopped).set("epochs", epochs).set("history", history);
}

TrainingState TrainingState::from_json(const Json& json) try {
  const auto at = [&](const char* key) -> const Json& {
    const Json* found = json.find(key);
    if (!found) throw UserError(fmt::format("the checkpoint's state has no '{}'", key));
    return *found;
  };
  TrainingState state;
  state.step = at("step").as_int();
  state.epoch = at("epoch").as_int();
  state.step_in_epoch = at("step_in_epoch").as_int();
  for (const Json& sum : at("sums").items()) state.sums.push_back(sum.as_double());
  state.samples = at("samples").as_int();
  state.train_seconds = at("train_seconds").as_double();
  state.epoch_seconds = at("epoch_seconds").as_double();
  if (const Json* scale = json.find("loss_scale")) {
    state.loss_scale = scale->as_double();
    state.good_steps = at("good_steps").as_int();
  }
  state.schedule = at("schedule");
  for (const Json& callback : at("callbacks").items())
    state.callbacks.push_back({callback.find("kind")->as_string(), *callback.find("state")});
  if (const Json& best = at("best"); best.is_object())
    state.best =
        Best{best.find("value")->as_double(), best.find("step")->as_int(), best.find("monitor")->as_string()};
  state.stopped = at("stopped").as_bool();
  state.epochs = at("epochs").as_int();
  state.history = at("history");
  return state;
} catch (const std::bad_variant_access&) {
  throw UserError("the checkpoint's state holds a value of the wrong type");
}

}  // namespace dtrain
