#include "cli/process_group.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/exit_deadline.h"
#include "cli/connected_world.h"
#include "cli/console.h"
#include "cli/core_share.h"
#include "cli/process_end.h"
#include "cli/signals.h"
#include "device/device.h"
#include "processes/agreement.h"

namespace dtrain {

namespace {

/// Returns the facts that must be equal on all processes before they read any file. The environment variables
/// determine how GPUs are used, and a launcher may pass them only to the processes on its own machine.
Json program_facts(const Processes& processes) {
  Json facts = Json::object();
  for (const char* name :
       {"DTRAIN_CUDA_GRAPHS", "DTRAIN_FILTER_GRADIENT", "DTRAIN_P2P", "NCCL_ALGO", "NCCL_PROTO"})
    if (const char* value = std::getenv(name)) facts.set(name, value);
  return facts.set("dtrain", DTRAIN_VERSION)
      .set("build", build_id())
      .set("MPI", processes.mpi_version())
      .set("oneDNN", onednn_version())
      .set("CUDA", cuda_build_version())
      .set("CPU instruction set", cpu_info().instruction_set);
}

void handle_failure_in_process_0(Processes& processes, const std::string& message) {
  static ExitDeadline deadline;
  // If process 0 did not notice the failure itself, another process has reported that process 0 did not
  // respond. In this case the other process prints the error, and process 0 prints nothing.
  if (!processes.control().failure()->noticed_here) mute_console([](std::string_view) {});
  print_error(message);
  processes.transport().abort();
  deadline.arm(message);
}

void handle_failure(Processes& processes) {
  const auto failure = processes.control().failure();
  // The error is printed directly, because the console is muted.
  if (failure->noticed_here && speaks_for_process_0(processes))
    fmt::print(stderr, "error: {}\n", failure->message);
  processes.transport().abort();
  std::thread([&processes, code = failure->exit_code] { end_after_process_0(processes, code); }).detach();
}

/// Prints the error and ends this process. Does not wait for the thread that hangs, because this thread may
/// never return. Process 0 first sends the error to the other processes.
void handle_hang(Processes& processes, const std::string& message) {
  print_error(message);
  processes.transport().abort();
  std::thread([&processes] {
    if (processes.rank() > 0) end_after_process_0(processes, 1);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ::_exit(1);
  }).detach();
}

/// Prints a warning of another process, unless the same warning was printed already.
void print_warning_of(const Processes& processes, int rank, const std::string& warning) {
  static std::set<std::string> others;  // used on the control channel's thread only
  if (was_printed(warning) || !others.insert(warning).second) return;
  const std::string& host = processes.hosts()[static_cast<size_t>(rank)];
  print_warning(fmt::format("{}: {}", process_name(host, rank, processes.size()), warning));
}

}  // namespace

bool runs_together(int argc, const char* const* argv) {
  constexpr std::array<std::string_view, 5> kCommands = {"fit", "resume", "evaluate", "check", "gpus"};
  // If the command line contains one of these options (as in `check --fit` or `gpus --watch`), process 0 runs
  // the command alone.
  constexpr std::array<std::string_view, 4> kAlone = {"--help", "-h", "--fit", "--watch"};
  if (argc < 2 || std::find(kCommands.begin(), kCommands.end(), argv[1]) == kCommands.end()) return false;
  return std::none_of(argv + 2, argv + argc, [&](std::string_view word) {
    return std::find(kAlone.begin(), kAlone.end(), word) != kAlone.end();
  });
}

ChosenNetwork chosen_network(int argc, const char* const* argv) {
  constexpr std::string_view kOption = "--interface";
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == kOption && i + 1 < argc) return {argv[i + 1]};
    if (word.starts_with(kOption) && word.substr(kOption.size()).starts_with('='))
      return {std::string(word.substr(kOption.size() + 1))};
  }
  const char* const variable = std::getenv("DTRAIN_INTERFACE");
  return variable ? ChosenNetwork{variable, "the environment variable DTRAIN_INTERFACE"} : ChosenNetwork();
}

void add_interface_option(Command& command) {
  static std::string parsed;  // unused: chosen_network() has already read the option
  command
      .add_option("--interface", parsed,
                  "The network interface over which several processes are connected: its name, or a range of "
                  "addresses such as 10.77.0.0/16 (default: the environment variable DTRAIN_INTERFACE if it "
                  "is set, otherwise any interface)")
      .type_name("NAME|CIDR");
}

void join_processes(const Launch& launch, const ChosenNetwork& network,
                    std::unique_ptr<Processes>& connected) {
  choose_network(network);
  connected = connect_processes(launch, network);
  if (!connected) return;
  Processes& processes = *connected;
  ControlChannel& control = processes.control();
  control.set_progress(0, "starting");
  control.on_hang([&processes](const std::string& message) { handle_hang(processes, message); });
  if (processes.rank() == 0) {
    remember_warnings();
    control.on_log(
        [&processes](int rank, const std::string& line) { print_warning_of(processes, rank, line); });
    control.on_failure(
        [&processes](const std::string& message) { handle_failure_in_process_0(processes, message); });
  } else {
    mute_console([&control](std::string_view warning) { control.log(std::string(warning)); });
    control.on_failure([&processes](const std::string&) { handle_failure(processes); });
  }
  // This World is destroyed at the end of this function, before the run begins, because its thread was
  // started before the cores were divided and may use all cores.
  ConnectedWorld connection(processes);
  World& world = connection.world();
  share_cores(processes, world);  // first, because program_facts() counts the cores of this process
  share_gpus(world);
  processes.check_agreement(world.all_gather_texts(program_facts(processes).dump()));
}

int leave_processes(Processes& processes, int exit_code, const std::string& error) {
  ControlChannel& control = processes.control();
  if (error.empty()) {
    // After a stop by a signal, the launcher sends SIGTERM to all processes once the first process has ended.
    ignore_stop_signals();
    if (processes.finish(exit_code)) return exit_code;
  }
  // Several processes may find the same error. In this case, process 0 reports it, so the other processes
  // first wait for a message that process 0 has failed.
  if (processes.rank() > 0) control.wait_for_failure(std::chrono::milliseconds(500));
  control.report_error(error, exit_code);  // no effect after a failure of another process
  const auto failure = control.failure();
  if (failure) {
    exit_code = failure->exit_code;
  } else {
    print_error(error);
  }
  if (processes.rank() > 0) end_after_process_0(processes, exit_code);
  processes.close_control();
  std::fflush(nullptr);
  if (failure && failure->silent) processes.end_all(exit_code);
  ::_exit(exit_code);
}

void print_error_of(const Launch& launch, const std::string& error) {
  if (!error.empty() && launch.local_rank == 0)
    print_error(launch.rank == 0
                    ? error
                    : fmt::format("{}: {}", process_name(host_name(), launch.rank, launch.size), error));
  // The launcher ends all processes as soon as one process has failed. Process 0 may still need time to print
  // its error.
  if (launch.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace dtrain
