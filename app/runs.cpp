// dtrain runs: lists the runs in a folder with their state and best value.
#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <memory>
#include <time.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "commands.h"
#include "report/run_files.h"
#include "report/sweep.h"
#include "sweep/sweep_table.h"

namespace dtrain {

namespace {

struct RunsOptions {
  OutputOptions output;
  std::string folder = "runs";
};

/// Returns the time of the run's last event as written by the run: "2026-11-21T22:39:54+0100".
std::string time_of(const RunFiles& run) {
  const Json* time = run.events.empty() ? nullptr : run.events.back().find("time");
  return time && time->is_string() ? time->as_string() : "";
}

/// Returns time_of() in this process's time zone, to the minute: "2026-11-21 21:39".
std::string local_time_of(const RunFiles& run) {
  const std::string written = time_of(run);
  std::tm time{};
  const char* end = ::strptime(written.c_str(), "%Y-%m-%dT%H:%M:%S%z", &time);
  if (!end || *end != '\0') return written;
  const long offset = time.tm_gmtoff;  // timegm() may change it
  const std::time_t seconds = ::timegm(&time) - offset;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &local);
  return text.data();
}

Json to_json(const RunFiles& run) {
  const auto best = best_record(run);
  const auto configured = run.epochs_configured();
  Json varied = Json::object();
  for (const auto& [key, value] : run.varied) varied.set(key, value);
  return Json::object()
      .set("path", run.path)
      .set("varied", std::move(varied))
      .set("name", run.name())
      .set("state", run.state())
      .set("how", run.how())
      .set("epochs", run.epochs())
      .set("epochs_configured", configured ? Json(*configured) : Json())
      .set("step", run.steps())
      .set("best", best ? Json::object()
                              .set("monitor", best->monitor)
                              .set("value", best->value)
                              .set("epoch", best->epoch)
                        : Json())
      .set("last_epoch", run.records.empty() ? Json() : run.records.back())
      .set("time", time_of(run));
}

/// Returns the keys that the sweeps of these runs vary, each key once.
std::vector<std::string> varied_keys(const std::vector<RunFiles>& runs) {
  std::vector<std::string> keys;
  for (const RunFiles& run : runs)
    for (const auto& [key, value] : run.varied)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  return keys;
}

/// Formats the runs, with a column for each key that a sweep varies.
std::string runs_text(const std::vector<RunFiles>& runs) {
  const std::vector<std::string> keys = varied_keys(runs);
  std::vector<Table::Column> columns{{"run"}};
  for (const std::string& key : short_keys(keys)) columns.push_back({key});
  columns.insert(
      columns.end(),
      {{"state"}, {"epochs", Table::Align::right}, {"best"}, {"at epoch", Table::Align::right}, {"when"}});
  Table table(columns);
  for (const RunFiles& run : runs) {
    const auto best = best_record(run);
    const auto configured = run.epochs_configured();
    const std::map<std::string, std::string> values(run.varied.begin(), run.varied.end());
    std::vector<std::string> row{run.path};
    for (const std::string& key : keys) row.push_back(values.contains(key) ? values.at(key) : "");
    row.insert(row.end(),
               {run.state(), format_count(run.epochs()) + (configured ? "/" + format_count(*configured) : ""),
                best ? fmt::format("{} {}", best->monitor, format_value(best->value)) : "",
                best ? format_count(best->epoch) : "", local_time_of(run)});
    table.add(std::move(row));
  }
  return table.str();
}

/// Formats a table of settings for each sweep with runs in the list.
std::string sweeps_text(const std::vector<RunFiles>& runs) {
  std::string text;
  for (const auto& [folder, of_folder] : sweeps_of(runs))
    text += fmt::format("\n{}: mean and deviation by setting\n{}", folder, sweep_text(of_folder));
  return text;
}

void list_runs(const RunsOptions& options) {
  if (const FileType type = file_type(options.folder); type != FileType::directory)
    throw UserError(fmt::format("{}: expected a folder with runs, but {}", options.folder,
                                type == FileType::nothing
                                    ? "there is no such folder"
                                    : fmt::format("found {}", name_of_type(options.folder))));
  std::vector<RunFiles> runs;
  for (const std::string& path : find_runs(options.folder)) runs.push_back(read_run_files(path));
  if (options.output.json) {
    Json list = Json::array();
    for (const RunFiles& run : runs) list.push(to_json(run));
    print_json(list);
  }
  if (options.output.text())
    print_text(runs.empty() ? fmt::format("no runs in {}\n", options.folder)
                            : runs_text(runs) + sweeps_text(runs));
}

}  // namespace

void add_runs(CommandLine& line) {
  Command command =
      line.add_command("runs", "List the runs in a folder with their state, epochs and best value");
  const auto options = std::make_shared<RunsOptions>();
  command.add_option("FOLDER", options->folder, "The folder of the runs (default: runs)");
  add_output_options(command, options->output);
  command.callback([options] { list_runs(*options); });
}

}  // namespace dtrain
