#include "report/run_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "config/yaml/yaml.h"
#include "data/columns/column_transforms.h"
#include "run/record/run_directory.h"
#include "run/run_config_parser.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

std::string text_of(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

const ConfigNode* value_at(const ConfigNode& node, std::initializer_list<std::string_view> path) {
  const ConfigNode* at = &node;
  for (const std::string_view key : path) {
    if (at) at = at->find(key);
  }
  return at && at->is_scalar() ? at : nullptr;
}

bool is_file(const std::string& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

bool is_run_directory(const std::string& path) {
  return is_file(path + "/config.yaml") && (is_file(path + "/metrics.jsonl") || is_file(path + "/run.jsonl"));
}

/// Returns the time breakdown that was recorded last, or null if no process has recorded one.
const Json* last_seconds(const std::vector<Json>& events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event)
    if (const Json* spent = event->find("seconds")) return spent;
  return nullptr;
}

int64_t last_count(const std::vector<Json>& records, const char* key) {
  const Json* count = records.empty() ? nullptr : records.back().find(key);
  return count && count->is_int() ? count->as_int() : 0;
}

void flatten(const ConfigNode& node, const std::string& path, Json& into) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.is_mapping() && !node.entries().empty()) {
    for (const auto& [key, value] : node.entries()) flatten(value, below(key.text()), into);
  } else if (node.is_sequence() && !node.items().empty()) {
    for (size_t i = 0; i < node.items().size(); ++i) flatten(node.items()[i], below(std::to_string(i)), into);
  } else if (node.is_scalar()) {
    into.set(path, node.text());
  } else if (!path.empty()) {
    into.set(path, node.is_mapping() ? "{}" : node.is_sequence() ? "[]" : "null");
  }
}

void find_runs_below(const fs::path& folder, int depth, std::vector<std::string>& found) {
  constexpr int kMostDepth = 3;
  if (is_run_directory(folder.string())) return found.push_back(folder.string());
  if (depth > kMostDepth) return;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.is_symlink(error))
      find_runs_below(entry.path(), depth + 1, found);
}

/// Returns the keys that the sweep of a run varies, with their values in this run. Empty if the run does not
/// belong to a sweep.
std::vector<std::pair<std::string, std::string>> read_varied(const std::string& path) {
  const fs::path directory = fs::path(path).lexically_normal();
  std::vector<std::pair<std::string, std::string>> values;
  try {
    const Json sweep = Json::parse(text_of((directory.parent_path() / kSweepFile).string()));
    const Json* runs = sweep.is_object() ? sweep.find("runs") : nullptr;
    const Json* run = runs && runs->is_object() ? runs->find(directory.filename().string()) : nullptr;
    if (!run || !run->is_object()) return values;
    for (const auto& [key, value] : run->entries())
      if (value.is_string()) values.emplace_back(key, value.as_string());
  } catch (const UserError&) {  // the file is missing, or it is not from dtrain
  }
  return values;
}

}  // namespace

namespace {

/// Returns true if the JSON value is a table with as many rows as columns.
bool is_square(const Json& table) {
  if (!table.is_array()) return false;
  const Json::Array& rows = table.items();
  return std::all_of(rows.begin(), rows.end(),
                     [&](const Json& row) { return row.is_array() && row.items().size() == rows.size(); });
}

Json summary_of_matrix(const Json& matrix) {
  constexpr size_t kMostConfusions = 50;
  struct Confusion {
    size_t target, prediction;
    double rows;
  };
  const size_t size = matrix.items().size();
  std::vector<double> actual(size), predicted(size), right(size);
  std::vector<Confusion> confusions;
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j) {
      const double rows = matrix.items()[i].items()[j].as_double();
      actual[i] += rows;
      predicted[j] += rows;
      if (i == j) right[i] = rows;
      if (i != j && rows > 0) confusions.push_back({i, j, rows});
    }
  const size_t shown = std::min(kMostConfusions, confusions.size());
  std::partial_sort(confusions.begin(), confusions.begin() + static_cast<std::ptrdiff_t>(shown),
                    confusions.end(), [](const Confusion& a, const Confusion& b) { return a.rows > b.rows; });
  Json classes = Json::array(), most = Json::array();
  for (size_t i = 0; i < size; ++i)
    classes.push(Json::array().push(actual[i]).push(predicted[i]).push(right[i]));
  for (size_t i = 0; i < shown; ++i)
    most.push(
        Json::array().push(confusions[i].target).push(confusions[i].prediction).push(confusions[i].rows));
  return Json::object().set("classes", std::move(classes)).set("confusions", std::move(most));
}

}  // namespace

std::vector<Json> parse_tables(std::string_view lines) {
  std::vector<Json> all;
  for (size_t at = 0, end; (end = lines.find('\n', at)) != std::string_view::npos; at = end + 1)
    for (Json& record : parse_json_lines(lines.substr(at, end + 1 - at))) {
      Json shown = Json::object();
      for (const auto& [name, table] : record.entries())
        shown.set(name, is_square(table) && table.items().size() > kMostMatrixClasses
                            ? summary_of_matrix(table)
                            : table);
      all.push_back(std::move(shown));
    }
  return all;
}

std::vector<Json> parse_json_lines(std::string_view text) {
  std::vector<Json> records;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) try {
      if (Json record = Json::parse(text.substr(at, end - at)); record.is_object())
        records.push_back(std::move(record));
    } catch (const UserError&) {  // a line truncated when a process was killed; complete lines may follow
    }
  return records;
}

Json settings_of(const ConfigNode& config) {
  Json settings = Json::object();
  flatten(config, "", settings);
  return settings;
}

std::vector<std::string> find_runs(const std::string& folder) {
  std::vector<std::string> found;
  find_runs_below(fs::path(folder).lexically_normal(), 0, found);
  std::sort(found.begin(), found.end());
  return found;
}

RunFiles read_run_files(const std::string& path) {
  RunFiles run;
  run.path = path;
  while (run.path.size() > 1 && run.path.ends_with('/')) run.path.pop_back();
  if (!is_run_directory(run.path)) {
    const FileType type = file_type(path);
    const std::string found = type == FileType::nothing     ? "there is no such directory"
                              : type == FileType::directory ? "found another directory"
                                                            : fmt::format("found {}", name_of_type(path));
    throw UserError(
        fmt::format("{}: expected a run directory (with config.yaml and run.jsonl), but {}", path, found));
  }
  run.config_text = text_of(run.path + "/config.yaml");
  Diagnostics diagnostics;
  run.config = parse_yaml(run.config_text, run.path + "/config.yaml", diagnostics);
  run.metrics = MetricFacts::of(run.config);
  run.records = parse_json_lines(text_of(run.path + "/metrics.jsonl"));
  run.tables = parse_tables(text_of(run.path + "/tables.jsonl"));
  run.events = parse_json_lines(text_of(run.path + "/run.jsonl"));
  if (const std::vector<Json> samples = parse_json_lines(text_of(run.path + "/samples.json"));
      !samples.empty())
    run.samples = samples.front();
  run.running = RunDirectory(run.path).is_held();
  run.varied = read_varied(run.path);
  // A process that was killed has recorded no time breakdown.
  const Json *end = run.last_event("end"), *begin = run.last_begin();
  const Json* seconds = end && begin && end > begin ? last_seconds(run.events) : nullptr;
  if (seconds) run.seconds = *seconds;
  return run;
}

MetricFacts MetricFacts::of(const ConfigNode& config) {
  MetricFacts facts;
  Diagnostics diagnostics;
  const auto run = parse_run_config(config, "", diagnostics);
  if (!run) return facts;
  facts.known = true;
  size_t total = 0;
  for (const Head& head : run->heads) {
    ++total;  // the loss
    for (const HeadMetric& metric : head.metrics) {
      const std::string& name = run->total_names[total++];
      if (metric.metric->larger_is_better()) facts.larger_is_better.insert(name);
      facts.targets[name] = name_for_of(head.target);
      const std::string output = name.substr(0, name.size() - metric.name.size());
      facts.computes[name] =
          fmt::format("{}{}{}", output, metric.weighted ? "weighted " : "", metric.computes);
    }
  }
  return facts;
}

bool MetricFacts::is_larger_better(const std::string& name) const {
  return larger_is_better.contains(name) ||
         (name.starts_with("val_") && larger_is_better.contains(name.substr(4)));
}

std::string MetricFacts::target_of(const std::string& name) const {
  auto found = targets.find(name);
  if (found == targets.end() && name.starts_with("val_")) found = targets.find(name.substr(4));
  return found == targets.end() ? "" : found->second;
}

std::string RunFiles::name() const {
  if (const ConfigNode* name = value_at(config, {"name"})) return name->text();
  return fs::path(path).lexically_normal().filename().string();
}

int64_t RunFiles::epochs() const {
  return last_count(records, "epoch");
}

int64_t RunFiles::steps() const {
  return last_count(records, "step");
}

std::optional<int64_t> RunFiles::epochs_configured() const {
  const ConfigNode* epochs = value_at(config, {"train", "epochs"});
  if (!epochs) return std::nullopt;
  const std::string& text = epochs->text();
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(count) : std::nullopt;
}

const Json* RunFiles::last_event(std::string_view name) const {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const Json* what = event->find("event");
    if (what && what->is_string() && what->as_string() == name) return &*event;
  }
  return nullptr;
}

const Json* RunFiles::last_begin() const {
  const Json *fit = last_event("fit"), *resume = last_event("resume");
  return resume && (!fit || resume > fit) ? resume : fit;
}

std::string RunFiles::state() const {
  if (running) return "running";
  const std::optional<Outcome> ended = outcome();
  if (ended == Outcome::failed) return "failed";
  if (const auto end = epochs_configured(); end && epochs() >= *end) return "finished";
  if (events.empty() && records.empty()) return "empty";
  return ended == Outcome::stopped ? "finished" : "stopped";
}

std::optional<Outcome> RunFiles::outcome() const {
  const Json *end = last_event("end"), *begin = last_begin();
  if (running || !end || (begin && end < begin)) return std::nullopt;
  return outcome_of(*end);
}

std::string RunFiles::how() const {
  if (running) return "";
  const Json *end = last_event("end"), *begin = last_begin();
  if (begin && (!end || end < begin)) return "killed, or the machine stopped";
  const Json* words = end ? end->find("how") : nullptr;
  return words && words->is_string() ? words->as_string() : "";
}

std::optional<BestRecord> best_record(const RunFiles& run, const std::string& monitor, MonitorMode mode) {
  const bool is_loss = monitor == "loss" || monitor.ends_with("_loss");
  if (mode == MonitorMode::automatic && !run.metrics.known && !is_loss) return std::nullopt;
  mode = resolved(mode, run.metrics.is_larger_better(monitor));
  std::optional<BestRecord> best;
  for (size_t i = 0; i < run.records.size(); ++i) {
    const Json* value = run.records[i].find(monitor);
    if (!value || !value->is_number() || std::isnan(value->as_double())) continue;
    if (best && !improves(value->as_double(), best->value, mode)) continue;
    const Json* epoch = run.records[i].find("epoch");
    best = {monitor, value->as_double(),
            epoch && epoch->is_int() ? epoch->as_int() : static_cast<int64_t>(i) + 1,
            mode == MonitorMode::max};
  }
  return best;
}

std::optional<BestRecord> kept_best_record(const RunFiles& run) {
  const ConfigNode* monitor = value_at(run.config, {"checkpoint", "best", "monitor"});
  const ConfigNode* written = value_at(run.config, {"checkpoint", "best", "mode"});
  MonitorMode mode = MonitorMode::automatic;
  for (const auto& [value, name] : names_of<MonitorMode>)
    if (written && name == written->text()) mode = value;
  if (!monitor) return std::nullopt;
  return best_record(run, monitor->text(), mode);
}

std::optional<BestRecord> best_record(const RunFiles& run) {
  if (value_at(run.config, {"checkpoint", "best", "monitor"})) return kept_best_record(run);
  if (auto best = best_record(run, "val_loss")) return best;
  return best_record(run, "loss");
}

}  // namespace dtrain
