// dtrain runs: the runs in a folder, with their state and their best.
#include <array>
#include <ctime>
#include <memory>
#include <time.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/paths.h"
#include "commands.h"
#include "console.h"
#include "options.h"
#include "report/run_files.h"
#include "text.h"

namespace dtrain {

namespace {

struct RunsOptions {
  OutputOptions output;
  std::string folder = "runs";
};

/// The time of the run's last event, as the run wrote it: "2026-11-21T22:39:54+0100".
std::string time_of(const RunFiles& run) {
  const Json* time = run.events.empty() ? nullptr : run.events.back().find("time");
  return time && time->is_string() ? time->as_string() : "";
}

/// The same in the time zone of this process, to the minute: "2026-11-21 21:39".
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
  return Json::object()
      .set("path", run.path)
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

std::string to_text(const std::vector<RunFiles>& runs) {
  Table table({{"run"},
               {"state"},
               {"epochs", Table::Align::right},
               {"best"},
               {"at epoch", Table::Align::right},
               {"when"}});
  for (const RunFiles& run : runs) {
    const auto best = best_record(run);
    const auto configured = run.epochs_configured();
    table.add({run.path, run.state(),
               format_count(run.epochs()) + (configured ? "/" + format_count(*configured) : ""),
               best ? fmt::format("{} {}", best->monitor, format_value(best->value)) : "",
               best ? format_count(best->epoch) : "", local_time_of(run)});
  }
  return table.str();
}

void list_runs(const RunsOptions& options) {
  if (look_at(options.folder) != Standing::directory)
    throw UserError(
        fmt::format("{}: expected a folder with runs, {}", options.folder,
                    look_at(options.folder) == Standing::nothing ? "there is nothing" : "found a file"));
  std::vector<RunFiles> runs;
  for (const std::string& path : find_runs(options.folder)) runs.push_back(read_run_files(path));
  if (options.output.json) {
    Json list = Json::array();
    for (const RunFiles& run : runs) list.push(to_json(run));
    print_json(list);
  }
  if (options.output.text())
    print_text(runs.empty() ? fmt::format("no runs in {}\n", options.folder) : to_text(runs));
}

}  // namespace

void add_runs(CommandLine& line) {
  Command command = line.add_command("runs", "The runs in a folder: state, epochs, best value");
  const auto options = std::make_shared<RunsOptions>();
  command.add_option("FOLDER", options->folder, "Where they are (runs where not given)");
  add_output_options(command, options->output);
  command.callback([options] { list_runs(*options); });
}

}  // namespace dtrain
