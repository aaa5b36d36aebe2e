// dtrain stop: asks a running job to save and end.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "report/run_files.h"
#include "run/record/run_directory.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

struct StopOptions {
  OutputOptions output;
  std::string run;
};

void stop(const StopOptions& options) {
  reject_wrong_run(options.run, "stop");
  const std::optional<RunDirectory> around = run_directory_of(options.run);
  const RunFiles run = read_run_files(around ? around->path() : options.run);
  if (run.outcome())
    throw UserError(fmt::format("{}: expected a run that is still in progress, but this run has ended: {}",
                                run.path, run.how()));
  const RunDirectory directory(run.path);
  if (!directory.is_run())
    throw UserError(
        fmt::format("{}: expected a run directory of dtrain, but found files of another program", run.path));
  directory.request_stop();
  // A job on another machine may hold a lock that this machine cannot see.
  if (!run.running)
    print_note(
        fmt::format("{}: no process on this machine is training this run. The request has an effect only if "
                    "a job on another machine is training it",
                    run.path));
  if (options.output.json) print_json(Json::object().set("path", run.path).set("running_here", run.running));
  if (options.output.text())
    print_text(
        fmt::format("asked the run in {} to save a checkpoint and end after the current step\n", run.path));
}

}  // namespace

void add_stop(CommandLine& line) {
  Command command = line.add_command("stop", "Ask a run to save a checkpoint and end after the current step");
  const auto options = std::make_shared<StopOptions>();
  command.add_option("RUN", options->run, "The run directory").required();
  add_output_options(command, options->output);
  command.callback([options] { stop(*options); });
}

}  // namespace dtrain
