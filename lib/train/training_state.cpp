#include "train/training_state.h"

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
      best ? Json::object().set("value", best->value).set("step", best->step).set("watched", best->watched)
           : Json());
  if (!stop_reason.empty()) json.set("stop_reason", stop_reason);
  if (!data.empty()) {
    Json splits = Json::object();
    for (const auto& [split, identity] : data) splits.set(split, identity.to_json());
    json.set("data", std::move(splits));
  }
  return json.set("stopped", stopped).set("epochs", epochs);
}

TrainingState TrainingState::from_json(const Json& json, const std::string& history) try {
  const auto count = [](const Json& holder, const char* key) {
    const int64_t value = holder.at(key).as_int();
    if (value < 0) throw UserError(fmt::format("'{}' is {}", key, value));
    return value;
  };
  TrainingState state;
  state.step = count(json, "step");
  state.epoch = count(json, "epoch");
  state.step_in_epoch = count(json, "step_in_epoch");
  for (const Json& sum : json.at("sums").items()) state.sums.push_back(sum.as_double());
  state.samples = count(json, "samples");
  state.train_seconds = json.at("train_seconds").as_double();
  state.epoch_seconds = json.at("epoch_seconds").as_double();
  if (const Json* scale = json.find("loss_scale")) {
    state.loss_scale = scale->as_double();
    state.good_steps = count(json, "good_steps");
  }
  state.schedule = json.at("schedule");
  for (const Json& callback : json.at("callbacks").items())
    state.callbacks.push_back({callback.at("kind").as_string(), callback.at("state")});
  if (const Json& best = json.at("best"); !best.is_null())
    state.best = Best{best.at("value").as_double(), count(best, "step"), best.at("watched").as_string()};
  if (const Json* data = json.find("data"))
    for (const auto& [split, identity] : data->entries())
      state.data[split] = DataIdentity::from_json(identity);
  state.stopped = json.at("stopped").as_bool();
  if (const Json* reason = json.find("stop_reason")) state.stop_reason = reason->as_string();
  state.epochs = count(json, "epochs");
  if (const Json* records = json.find("history"))
    for (const Json& record : records->items()) state.history.push(record);
  else
    state.history = History::parse(history);
  return state;
} catch (const UserError& error) {
  throw UserError(fmt::format("the checkpoint's state is malformed: {}", error.what()));
}

}  // namespace dtrain
