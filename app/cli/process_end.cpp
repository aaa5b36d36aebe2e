#include "cli/process_end.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <unistd.h>

#include "cli/console.h"

namespace dtrain {

bool speaks_for_process_0(const Processes& processes) {
  const auto& hosts = processes.hosts();
  const auto other =
      std::find_if(hosts.begin() + 1, hosts.end(), [&](const auto& host) { return host != hosts[0]; });
  return processes.rank() == (other == hosts.end() ? 1 : static_cast<int>(other - hosts.begin()));
}

void end_after_process_0(Processes& processes, int exit_code) {
  ControlChannel& control = processes.control();
  while (!control.wait_for_others(std::chrono::seconds(1))) continue;
  std::fflush(nullptr);
  const auto failure = control.failure();
  if (failure && failure->silent && speaks_for_process_0(processes)) processes.end_all(exit_code);
  ::_exit(exit_code);
}

void end_without_cleanup(Processes& processes, const std::string& why) {
  const auto failure = processes.control().failure();
  const int exit_code = failure ? failure->exit_code : 1;
  if (processes.rank() > 0) end_after_process_0(processes, exit_code);
  print_error(failure ? why : processes.control().complete_own_error(why));
  std::fflush(nullptr);
  if (failure && failure->silent) processes.end_all(exit_code);
  ::_exit(exit_code);
}

}  // namespace dtrain
