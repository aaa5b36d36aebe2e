#include "report/sweep.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace dtrain {

namespace {

constexpr std::string_view kSeed = "seed";

/// Returns the last `count` components of a key. Returns the whole key if it has fewer components.
std::string end_of_key(const std::string& key, size_t count) {
  size_t at = key.size();
  for (; count > 0 && at != std::string::npos; --count)
    at = at == 0 ? std::string::npos : key.rfind('.', at - 1);
  return at == std::string::npos ? key : key.substr(at + 1);
}

/// Removes the type of a learning rate schedule from a key. Example:
/// "optimizer.adam.learning_rate.cosine_decay.initial" becomes "optimizer.adam.learning_rate.initial".
/// Returns other keys unchanged.
std::string without_schedule(const std::string& key) {
  constexpr std::string_view kRate = "learning_rate.";
  const size_t rate = key.rfind(kRate);
  if (rate == std::string::npos) return key;
  const size_t kind = rate + kRate.size(), dot = key.find('.', kind);
  return dot == std::string::npos ? key : key.substr(0, kind) + key.substr(dot + 1);
}

void set_statistics(const std::vector<double>& values, SweepSetting& setting) {
  if (values.empty()) return;
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  setting.mean = mean;
  if (values.size() > 1) setting.deviation = std::sqrt(squares / (count - 1));
}

/// Returns a JSON number if the text is a number, and otherwise a JSON string.
Json to_json(const std::string& value) {
  try {
    if (Json number = Json::parse(value); number.is_number()) return number;
  } catch (const UserError&) {
  }
  return value;
}

Json to_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::vector<std::string> short_keys(const std::vector<std::string>& whole_keys) {
  std::vector<std::string> keys, names;
  for (const std::string& key : whole_keys) {
    const auto count = std::count_if(whole_keys.begin(), whole_keys.end(), [&](const std::string& other) {
      return without_schedule(other) == without_schedule(key);
    });
    keys.push_back(count == 1 ? without_schedule(key) : key);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    size_t count = key == whole_keys[i] ? 1 : 2;
    const auto is_taken = [&](const std::string& name) {
      return std::any_of(keys.begin(), keys.end(), [&](const std::string& other) {
        return other != key && end_of_key(other, count) == name;
      });
    };
    while (end_of_key(key, count) != key && is_taken(end_of_key(key, count))) ++count;
    names.push_back(end_of_key(key, count));
  }
  return names;
}

SweepRun sweep_run_of(const RunFiles& run) {
  SweepRun result{run.varied, false, false, best_record(run), ""};
  const std::string state = run.state();
  result.finished = state == "finished" || run.outcome() == Outcome::out_of_time;
  result.failed = state == "failed";
  if (result.failed) result.note = run.how();
  return result;
}

std::string monitored_value(std::span<const SweepRun> runs) {
  for (const SweepRun& run : runs)
    if (run.best) return run.best->monitor;
  return "";
}

std::vector<SweepSetting> settings_of(std::span<const SweepRun> runs) {
  std::vector<SweepSetting> settings;
  std::vector<std::vector<double>> values;
  const std::string monitor = monitored_value(runs);
  bool larger_is_better = false;
  for (const SweepRun& run : runs) {
    SweepSetting setting{run.values, 0, 0, 0, {}, {}, ""};
    std::erase_if(setting.values, [](const auto& value) { return value.first == kSeed; });
    const auto found = std::find_if(settings.begin(), settings.end(), [&](const SweepSetting& other) {
      return other.values == setting.values;
    });
    const auto place = static_cast<size_t>(found - settings.begin());
    if (found == settings.end()) {
      settings.push_back(std::move(setting));
      values.emplace_back();
    }
    SweepSetting& into = settings[place];
    ++into.runs;
    into.finished += run.finished ? 1 : 0;
    into.failed += run.failed ? 1 : 0;
    if (run.failed && into.note.empty()) into.note = run.note;
    if (!run.finished || !run.best || run.best->monitor != monitor) continue;
    values[place].push_back(run.best->value);
    larger_is_better = run.best->larger_is_better;
  }
  for (size_t i = 0; i < settings.size(); ++i) set_statistics(values[i], settings[i]);
  std::stable_sort(settings.begin(), settings.end(), [&](const SweepSetting& a, const SweepSetting& b) {
    if (!a.mean || !b.mean) return a.mean && !b.mean;
    return larger_is_better ? *a.mean > *b.mean : *a.mean < *b.mean;
  });
  return settings;
}

Json sweep_json(std::span<const SweepRun> runs) {
  Json list = Json::array();
  for (const SweepSetting& setting : settings_of(runs)) {
    Json values = Json::object();
    for (const auto& [key, value] : setting.values) values.set(key, to_json(value));
    Json json = Json::object().set("values", std::move(values)).set("runs", setting.runs);
    json.set("finished", setting.finished).set("failed", setting.failed);
    json.set("monitor", monitored_value(runs)).set("mean", to_json(setting.mean));
    json.set("deviation", to_json(setting.deviation));
    if (setting.failed > 0) json.set("note", setting.note);
    list.push(std::move(json));
  }
  return list;
}

std::map<std::string, std::vector<SweepRun>> sweeps_of(std::span<const RunFiles> runs) {
  std::map<std::string, std::vector<SweepRun>> sweeps;
  for (const RunFiles& run : runs)
    if (!run.varied.empty())
      sweeps[std::filesystem::path(run.path).parent_path().string()].push_back(sweep_run_of(run));
  return sweeps;
}

}  // namespace dtrain
