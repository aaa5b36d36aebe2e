// The entry point: runs the subcommand and maps its exceptions to messages and exit codes.
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_deadline.h"
#include "cli/connected_world.h"
#include "cli/console.h"
#include "cli/exit_codes.h"
#include "cli/invocation.h"
#include "cli/last_resort.h"
#include "cli/process_group.h"
#include "cli/signals.h"
#include "collective/collective.h"
#include "commands.h"
#include "device/gpu_info.h"
#include "train/trainer.h"
#include "version.h"

namespace dtrain {

namespace {

void run(int argc, char** argv, World& world) {
  CommandLine line("dtrain", "Trains neural networks described by YAML files.");
  line.set_version(version_text, "Show the version of this program and of its libraries");
  add_fit(line, world);
  add_resume(line, world);
  add_stop(line);
  add_evaluate(line, world);
  add_predict(line, world);
  add_generate(line, world);
  add_export(line);
  add_check(line, world);
  for (const auto add :
       {add_summary, add_inspect, add_import, add_diff, add_new, add_sweep, add_report, add_runs})
    add(line);
  add_gpus(line, world);
  for (const auto add : {add_schema, add_completion, add_help}) add(line);
  line.run(argc, argv);
}

/// The result of attempt(): the exit code and the error message of the work that it ran.
struct Attempt {
  int exit_code = kDone;
  std::string error;  // the message to print; empty if there is none
};

Attempt attempt(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Interrupted& interruption) {
    print_note(interruption.what());
    return {128 + interruption.signal(), ""};
  } catch (const Unequal&) {
    return {kFailed, ""};
  } catch (const ReportedByProcess0&) {
    return {kWrong, ""};
  } catch (const UserError& error) {
    return {kWrong, error.what()};
  } catch (const std::bad_alloc&) {
    return {kFailed, "out of memory"};
  } catch (const std::length_error&) {
    return {kFailed, "out of memory: the requested size is larger than any machine's memory"};
  } catch (const std::filesystem::filesystem_error& error) {
    return {kFailed, fmt::format("{}: {}", error.path1().string(), error.code().message())};
  } catch (const std::exception& error) {
    return {kFailed, error.what()};
  }
}

int run_as_process(int argc, char** argv) {
  std::unique_ptr<Processes> processes;
  bool idle = false;
  Launch launch;
  Attempt outcome = attempt([&] {
    launch = detect_launch();
    if (runs_together(argc, argv)) {
      join_processes(launch, chosen_network(argc, argv), processes);
    } else {
      idle = launch.rank > 0;
    }
  });
  if (idle) return kDone;
  if (outcome.exit_code == kDone)
    outcome = attempt([&] {
      if (!processes) return run(argc, argv, single_process());
      ConnectedWorld connected(*processes);
      run(argc, argv, connected.world());
    });
  if (processes) return leave_processes(*processes, outcome.exit_code, outcome.error);
  if (outcome.exit_code != kDone) print_error_of(launch, outcome.error);
  return outcome.exit_code;
}

}  // namespace

}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  set_gpu_environment();
  set_nccl_environment(false);
  install_last_resort();
  ignore_write_signals();
  take_signals();  // must be called before any other thread exists
  remember_command(argc, argv);
  const int exit_code = run_as_process(argc, argv);
  if (!has_stuck_thread()) return exit_code;
  std::fflush(nullptr);
  ::_exit(exit_code);
}
