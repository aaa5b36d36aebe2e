#include "run/record/training_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

/// Stores only sequences of consecutive non-zero sums, because most sums of a metric remain 0. A sequence is
/// stored as [index of the first sum, value of the first sum, value of the second sum, ...].
Json sums_json(const std::vector<double>& sums) {
  Json runs = Json::array();
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == 0) continue;
    Json run = Json::array().push(i);
    for (; i < sums.size() && sums[i] != 0; ++i) run.push(sums[i]);
    runs.push(std::move(run));
  }
  return Json::object()
      .set("count", sums.size())
      .set("version", TrainingState::kSumsVersion)
      .set("runs", std::move(runs));
}

/// The reverse of sums_json(). Also reads an array of all sums, which checkpoints of earlier versions
/// contain.
std::vector<double> sums_from(const Json& json) {
  std::vector<double> sums;
  if (json.is_array()) {
    for (const Json& sum : json.items()) sums.push_back(sum.as_double());
    return sums;
  }
  const int64_t count = json.at("count").as_int();
  if (count < 0 || count > TrainingState::kMostSums)
    throw UserError(
        fmt::format("'count' must be from 0 to {}, but it is {}", TrainingState::kMostSums, count));
  sums.resize(static_cast<size_t>(count));
  for (const Json& run : json.at("runs").items()) {
    const std::vector<Json>& values = run.items();
    if (values.empty())
      throw UserError(
          "'sums': the lists in 'runs' must contain an index and numbers, but one of them is empty");
    const int64_t first = values[0].as_int(), numbers = static_cast<int64_t>(values.size()) - 1;
    if (first < 0 || first > count || numbers > count - first)
      throw UserError(
          fmt::format("'sums': the indices of the sums must be at least 0 and below {} ('count'), but a list "
                      "in 'runs' begins at index {} and has {} numbers",
                      count, first, numbers));
    for (size_t i = 1; i < values.size(); ++i)
      sums[static_cast<size_t>(first) + i - 1] = values[i].as_double();
  }
  return sums;
}

}  // namespace

Json TrainingState::to_json() const {
  Json json = Json::object();
  json.set("step", step).set("epoch", epoch).set("step_in_epoch", step_in_epoch);
  json.set("sums", step_in_epoch > 0 ? sums_json(sums) : Json::array()).set("samples", samples);
  json.set("train_seconds", train_seconds).set("epoch_seconds", epoch_seconds);
  if (loss_scale != 0) json.set("loss_scale", loss_scale).set("good_steps", good_steps);
  if (!slots_since.empty()) {
    Json since = Json::object();
    for (const auto& [weight, steps] : slots_since) since.set(weight, steps);
    json.set("slots_since", std::move(since));
  }
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

std::string TrainingState::table_lines() const {
  std::string lines = best && best->tables ? *best->tables : "";
  if (tables && !(best && best->tables == tables)) lines += *tables;
  return lines;
}

/// Takes the history from `records`, or from `lines` if `records` is null.
void TrainingState::take_history(const Json* records, const std::string& lines) {
  std::string written;
  for (const Json& record : records ? records->items() : Json::Array()) written += record.dump() + "\n";
  Json newest;
  history = History::parse(records ? written : lines, [&](Json record) {
    if (best && record.at("step").as_int() == best->step) best->tables = table_line(record);
    newest = std::move(record);
  });
  if (newest.is_null() || newest.at("epoch").as_int() != history.last().at("epoch").as_int()) return;
  const bool is_best = best && best->tables && best->step == newest.at("step").as_int();
  tables = is_best ? best->tables : table_line(newest);
}

void TrainingState::take_tables(std::string_view lines) {
  for (size_t at = 0, end; at < lines.size(); at = end + 1) {
    end = lines.find('\n', at);
    if (end == std::string_view::npos) throw UserError("the last line of the tables has no newline");
    const std::string_view line = lines.substr(at, end + 1 - at);
    const int64_t its_step = Json::parse(line.substr(0, line.size() - 1)).at("step").as_int();
    const auto shared = std::make_shared<const std::string>(line);
    if (best && best->step == its_step) best->tables = shared;
    if (history.last().at("step").as_int() == its_step) tables = shared;
  }
}

TrainingState TrainingState::from_json(const Json& json, const std::string& history,
                                       std::string_view tables) try {
  const auto count = [](const Json& holder, const char* key) {
    const int64_t value = holder.at(key).as_int();
    if (value < 0) throw UserError(fmt::format("'{}' must be at least 0, but it is {}", key, value));
    return value;
  };
  TrainingState state;
  state.step = count(json, "step");
  state.epoch = count(json, "epoch");
  state.step_in_epoch = count(json, "step_in_epoch");
  state.sums = sums_from(json.at("sums"));
  const Json* version = json.at("sums").find("version");
  state.sums_version = version ? count(json.at("sums"), "version") : 1;
  state.samples = count(json, "samples");
  state.train_seconds = json.at("train_seconds").as_double();
  state.epoch_seconds = json.at("epoch_seconds").as_double();
  if (const Json* scale = json.find("loss_scale")) {
    state.loss_scale = scale->as_double();
    state.good_steps = count(json, "good_steps");
  }
  if (const Json* since = json.find("slots_since"))
    for (const auto& [weight, steps] : since->entries()) {
      state.slots_since[weight] = count(*since, weight.c_str());
      if (steps.as_int() > state.step)
        throw UserError(
            fmt::format("'slots_since' is step {} for '{}', but the run has completed only {} steps",
                        steps.as_int(), weight, state.step));
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
  state.take_history(json.find("history"), history);
  state.take_tables(tables);
  return state;
} catch (const UserError& error) {
  throw UserError(fmt::format("the checkpoint's state is malformed: {}", error.what()));
}

}  // namespace dtrain
