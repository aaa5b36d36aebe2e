#include "report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "report/differences.h"
#include "report/sweep.h"

namespace dtrain {

/// The content of page.html with its scripts. CMake embeds it into the program.
extern const char* const kReportPage;

namespace {

/// Maximum total number of points in the curves of a page. This many points take about a megabyte.
constexpr size_t kMostPoints = 60'000;

/// Rounds a number to six digits, which is more than the page shows. Returns null for infinity and NaN,
/// because JSON does not have them.
Json shown(double value) {
  if (!std::isfinite(value)) return {};
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

struct Curve {
  std::vector<int64_t> epochs;
  std::vector<double> values;
};

/// Returns the curves with their names, in the order in which the names first occur in the records.
std::vector<std::pair<std::string, Curve>> curves_of(const std::vector<Json>& records) {
  std::vector<std::pair<std::string, Curve>> curves;
  std::map<std::string, size_t> places;
  for (const Json& record : records) {
    const Json* epoch = record.find("epoch");
    if (!epoch || !epoch->is_int()) continue;
    for (const auto& [name, value] : record.entries()) {
      if (name == "epoch" || name == "step") continue;
      const bool is_text = value.is_string();
      if (!value.is_number() && !is_text) continue;
      const auto [place, is_new] = places.try_emplace(name, curves.size());
      if (is_new) curves.push_back({name, {}});
      Curve& curve = curves[place->second].second;
      curve.epochs.push_back(epoch->as_int());
      curve.values.push_back(is_text ? std::nan("") : value.as_double());
    }
  }
  return curves;
}

Json to_json(const Curve& curve, size_t most) {
  Json epochs = Json::array(), values = Json::array();
  for (const size_t i : thin_curve(curve.values, most)) {
    epochs.push(curve.epochs[i]);
    values.push(shown(curve.values[i]));
  }
  return Json::object().set("epochs", std::move(epochs)).set("values", std::move(values));
}

Json value_of(const Json* event, const char* key, const Json& otherwise = {}) {
  const Json* value = event ? event->find(key) : nullptr;
  return value ? *value : otherwise;
}

/// Returns the events for the page. For each machine, only its name is included, not its full description.
Json history_of(const RunFiles& run) {
  Json rows = Json::array();
  for (const Json& event : run.events) {
    Json row = Json::object();
    for (const char* key : {"event", "time", "epoch", "step", "how", "command", "version"})
      if (const Json* value = event.find(key)) row.set(key, *value);
    if (const Json* machine = event.find("machine")) row.set("machine", value_of(machine, "name"));
    rows.push(std::move(row));
  }
  return rows;
}

std::string machine_of(const Json* begin) {
  const Json* machine = begin ? begin->find("machine") : nullptr;
  const Json *name = machine ? machine->find("name") : nullptr,
             *cpu = machine ? machine->find("cpu") : nullptr,
             *cores = machine ? machine->find("cores") : nullptr;
  if (!name || !cpu || !cores || !name->is_string() || !cpu->is_string() || !cores->is_int()) return "";
  return fmt::format("On {}: {}, {} cores.", name->as_string(), cpu->as_string(), cores->as_int());
}

/// Returns the class names for each table, indexed by the table's name.
Json class_names_of(const RunFiles& run, const Json& tables) {
  const Json* begin = run.last_begin();
  const Json* by_target = begin ? begin->find("classes") : nullptr;
  Json names = Json::object();
  for (const auto& [table, values] : tables.entries()) {
    const std::string target = run.metrics.target_of(table);
    const Json* found = by_target && by_target->is_object() ? by_target->find(target) : nullptr;
    if (found) names.set(table, *found);
  }
  return names;
}

/// Returns the line of tables.jsonl whose tables the page shows. If the run keeps its best checkpoint, this
/// is the line of the best epoch, and otherwise the last line.
const Json* shown_tables(const RunFiles& run) {
  if (run.tables.empty()) return nullptr;
  if (const auto best = kept_best_record(run))
    for (const Json& line : run.tables)
      if (const Json* epoch = line.find("epoch"); epoch && epoch->is_int() && epoch->as_int() == best->epoch)
        return &line;
  return &run.tables.back();
}

/// Returns the confusion matrices and the values per class for the page.
Json tables_of(const RunFiles& run) {
  Json tables = Json::object();
  if (const Json* line = shown_tables(run))
    for (const auto& [name, value] : line->entries())
      if (name != "epoch" && name != "step") tables.set(name, value);
  return tables;
}

double seconds_of(const std::vector<Json>& records) {
  double seconds = 0;
  for (const Json& record : records)
    if (const Json* spent = record.find("seconds"); spent && spent->is_number())
      seconds += spent->as_double();
  return seconds;
}

Json last_of(const std::vector<Json>& records) {
  Json last = Json::object();
  if (!records.empty())
    for (const auto& [name, value] : records.back().entries())
      if (value.is_number()) last.set(name, shown(value.as_double()));
  return last;
}

/// Returns the numbers in the record of the best epoch. Returns an empty object if there is no best epoch.
Json numbers_of(const RunFiles& run, const std::optional<BestRecord>& best) {
  Json numbers = Json::object();
  for (const Json& record : run.records) {
    const Json* epoch = record.find("epoch");
    if (!best || !epoch || !epoch->is_int() || epoch->as_int() != best->epoch) continue;
    for (const auto& [name, value] : record.entries())
      if (value.is_number()) numbers.set(name, shown(value.as_double()));
  }
  return numbers;
}

/// Returns the configuration keys that the user has written. Returns null if the run did not record them.
Json written_keys(const RunFiles& run) {
  std::set<std::string> keys;
  bool found = false;
  for (const Json& event : run.events)
    if (const Json* written = event.find("written"); written && written->is_array()) {
      found = true;
      for (const Json& key : written->items())
        if (key.is_string()) keys.insert(key.as_string());
    }
  if (!found) return {};
  Json list = Json::array();
  for (const std::string& key : keys) list.push(key);
  return list;
}

Json names_of_metrics(const MetricFacts& metrics) {
  Json computes = Json::object();
  for (const auto& [name, what] : metrics.computes) computes.set(name, what);
  return computes;
}

Json to_json(const std::optional<BestRecord>& best) {
  if (!best) return {};
  return Json::object()
      .set("monitor", best->monitor)
      .set("value", shown(best->value))
      .set("epoch", best->epoch);
}

Json run_json(const RunFiles& run, const std::vector<std::pair<std::string, Curve>>& curves, size_t most) {
  const Json* begin = run.last_begin();
  Json series = Json::object(), bests = Json::object();
  for (const auto& [name, curve] : curves) {
    series.set(name, to_json(curve, most));
    if (const auto best = best_record(run, name)) bests.set(name, shown(best->value));
  }
  const auto epochs = run.epochs_configured();
  Json json = Json::object().set("name", run.name()).set("path", run.path);
  Json varied = Json::object();
  for (const auto& [key, value] : run.varied) varied.set(key, value);
  json.set("varied", std::move(varied));
  json.set("state", run.state()).set("how", run.how());
  json.set("epochs", run.epochs()).set("epochs_configured", epochs ? Json(*epochs) : Json());
  json.set("step", run.steps()).set("seconds", shown(seconds_of(run.records)));
  json.set("began", value_of(run.events.empty() ? nullptr : &run.events.front(), "time"));
  json.set("last", last_of(run.records)).set("best", to_json(best_record(run)));
  json.set("kept_best", to_json(kept_best_record(run)))
      .set("at_best", numbers_of(run, kept_best_record(run)));
  json.set("bests", std::move(bests)).set("series", std::move(series));
  const Json tables = tables_of(run);
  json.set("tables", tables)
      .set("tables_epoch", value_of(shown_tables(run), "epoch"))
      .set("classes", class_names_of(run, tables))
      .set("parameters", value_of(begin, "parameters"));
  json.set("layers", value_of(begin, "layers", Json::array()));
  json.set("memory", value_of(begin, "memory", Json::array()));
  json.set("devices", value_of(begin, "devices", Json::array())).set("machine", machine_of(begin));
  json.set("time", run.seconds);
  json.set("events", history_of(run)).set("settings", settings_of(run.config));
  json.set("samples", run.samples)
      .set("written", written_keys(run))
      .set("computes", names_of_metrics(run.metrics));
  return std::move(json.set("config", run.config_text));
}

/// Returns the differences as [{key, values}]. A value is null if the run does not have the key.
Json differences_json(std::span<const RunFiles> runs) {
  std::vector<RunSettings> settings;
  for (const RunFiles& run : runs) settings.push_back({settings_of(run.config), written_keys(run)});
  Json list = Json::array();
  for (const Difference& difference : find_differences(settings)) {
    Json values = Json::array();
    for (const auto& value : difference.values) values.push(value ? Json(*value) : Json());
    list.push(Json::object().set("key", difference.key).set("values", std::move(values)));
  }
  return list;
}

/// Returns the keys that sweeps vary, and the title of each.
Json titles_of_varied(std::span<const RunFiles> runs) {
  std::vector<std::string> keys;
  for (const RunFiles& run : runs)
    for (const auto& [key, value] : run.varied)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  const std::vector<std::string> titles = short_keys(keys);
  Json all = Json::object();
  for (size_t i = 0; i < keys.size(); ++i) all.set(keys[i], titles[i]);
  return all;
}

/// Returns JSON text that can be placed inside a <script> element: characters that could end the element are
/// escaped.
std::string for_script(const Json& data) {
  std::string text;
  for (const char c : data.dump()) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::vector<size_t> thin_curve(std::span<const double> values, size_t most) {
  std::vector<size_t> kept;
  const size_t count = values.size(), stretches = std::max<size_t>(most, 4) / 2 - 1;
  if (count <= std::max<size_t>(most, 4)) {
    for (size_t i = 0; i < count; ++i) kept.push_back(i);
    return kept;
  }
  kept.push_back(0);
  for (size_t n = 0; n < stretches; ++n) {
    const size_t from = 1 + (count - 2) * n / stretches, to = 1 + (count - 2) * (n + 1) / stretches;
    size_t least = from, greatest = from;
    for (size_t i = from; i < to; ++i) {
      if (std::isnan(values[least]) || values[i] < values[least]) least = i;
      if (std::isnan(values[greatest]) || values[i] > values[greatest]) greatest = i;
    }
    kept.push_back(std::min(least, greatest));
    if (least != greatest) kept.push_back(std::max(least, greatest));
  }
  kept.push_back(count - 1);
  return kept;
}

Json report_data(std::span<const RunFiles> runs, const std::string& program, const std::string& made) {
  std::vector<std::vector<std::pair<std::string, Curve>>> curves;
  size_t count = 0;
  for (const RunFiles& run : runs) {
    curves.push_back(curves_of(run.records));
    count += curves.back().size();
  }
  const size_t most = std::clamp<size_t>(kMostPoints / std::max<size_t>(count, 1), 50, 1000);
  Json larger = Json::array(), list = Json::array();
  std::set<std::string> seen;
  for (size_t i = 0; i < runs.size(); ++i) {
    list.push(run_json(runs[i], curves[i], most));
    for (const auto& [name, curve] : curves[i])
      if (runs[i].metrics.is_larger_better(name) && seen.insert(name).second) larger.push(name);
  }
  Json sweeps = Json::array();
  for (const auto& [folder, of_folder] : sweeps_of(runs))
    sweeps.push(Json::object().set("folder", folder).set("settings", sweep_json(of_folder)));
  return Json::object()
      .set("program", program)
      .set("made", made)
      .set("sweeps", std::move(sweeps))
      .set("varied", titles_of_varied(runs))
      .set("differences", runs.size() > 1 ? differences_json(runs) : Json::array())
      .set("larger_is_better", std::move(larger))
      .set("runs", std::move(list));
}

std::string report_page(std::span<const RunFiles> runs, const std::string& program, const std::string& made) {
  std::string page = kReportPage;
  constexpr std::string_view kPlace = "@DATA@";
  return page.replace(page.find(kPlace), kPlace.size(), for_script(report_data(runs, program, made)));
}

bool is_report_page(const std::string& path) {
  constexpr std::string_view kTitle = "<title>dtrain report</title>";
  constexpr size_t kHead = 1024;  // number of bytes at the beginning of the file that contain the title
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::string start(kHead, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  return start.find(kTitle) != std::string::npos;
}

}  // namespace dtrain
