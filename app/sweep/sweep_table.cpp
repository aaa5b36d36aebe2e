#include "sweep/sweep_table.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/formats/csv_cell.h"
#include "base/json.h"
#include "base/text.h"

namespace dtrain {

namespace {

/// Returns the keys that vary between settings.
std::vector<std::string> keys_of(const std::vector<SweepSetting>& settings) {
  std::vector<std::string> keys;
  for (const SweepSetting& setting : settings)
    for (const auto& [key, value] : setting.values)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  return keys;
}

std::string value_of(const SweepSetting& setting, const std::string& key) {
  for (const auto& [name, value] : setting.values)
    if (name == key) return value;
  return "";
}

}  // namespace

std::string sweep_text(std::span<const SweepRun> runs) {
  const std::vector<SweepSetting> settings = settings_of(runs);
  const std::vector<std::string> keys = keys_of(settings);
  const std::string monitor = monitored_value(runs);
  std::vector<Table::Column> columns;
  for (const std::string& key : short_keys(keys)) columns.push_back({key});
  columns.push_back({"runs", Table::Align::right});
  columns.push_back({monitor.empty() ? "mean" : "best " + monitor, Table::Align::right});
  columns.push_back({"deviation", Table::Align::right});
  const bool any_failed =
      std::any_of(settings.begin(), settings.end(), [](const SweepSetting& s) { return s.failed > 0; });
  if (any_failed) columns.push_back({"failed"});
  Table table(columns);
  for (const SweepSetting& setting : settings) {
    std::vector<std::string> row;
    for (const std::string& key : keys) row.push_back(value_of(setting, key));
    row.push_back(fmt::format("{}/{}", setting.finished, setting.runs));
    row.push_back(setting.mean ? format_value(*setting.mean) : "");
    row.push_back(setting.deviation ? format_value(*setting.deviation) : "");
    if (any_failed)
      row.push_back(setting.failed == 0 ? "" : fmt::format("{}: {}", setting.failed, setting.note));
    table.add(std::move(row));
  }
  return table.str();
}

std::string sweep_csv(std::span<const SweepRun> runs) {
  const std::vector<SweepSetting> settings = settings_of(runs);
  const std::vector<std::string> keys = keys_of(settings);
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value).dump() : ""; };
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + csv_cell(cells[i]);
    return text + "\n";
  };
  std::vector<std::string> header = keys;
  header.insert(header.end(), {"runs", "finished", "failed", "monitor", "mean", "deviation"});
  std::string csv = line(header);
  for (const SweepSetting& setting : settings) {
    std::vector<std::string> row;
    for (const std::string& key : keys) row.push_back(value_of(setting, key));
    row.insert(row.end(), {std::to_string(setting.runs), std::to_string(setting.finished),
                           std::to_string(setting.failed), monitored_value(runs), number(setting.mean),
                           number(setting.deviation)});
    csv += line(row);
  }
  return csv;
}

}  // namespace dtrain
