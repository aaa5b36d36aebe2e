#include "cli/core_share.h"

#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/console.h"
#include "device/cpu/affinity.h"

namespace dtrain {

namespace {

/// Returns the running system's identifier: containers on one machine have the same.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace

void share_cores(Processes& processes) {
  const std::vector<int> cores = cpu::thread_cores();
  const std::string mine = fmt::format("{} {}", boot_id(), fmt::join(cores, ","));
  const std::vector<std::string> all = processes.all_gather(mine);
  size_t index = 0, sharing = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != mine) continue;
    if (static_cast<int>(rank) < processes.rank()) ++index;
    ++sharing;
  }
  const auto present = static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (processes.local_rank() == 0 && cores.size() * static_cast<size_t>(processes.local_size()) < present)
    print_warning(fmt::format(
        "the launcher has bound the processes of {} to {} of its {} cores each; to use all of "
        "them, start with mpirun --bind-to none (Open MPI), mpiexec -bind-to none (MPICH) or srun "
        "--cpus-per-task",
        host_name(), cores.size(), present));
  if (sharing < 2) return;
  if (cores.size() < sharing) return cpu::bind_thread({cores[index % cores.size()]});
  const auto first = [&](size_t part) {
    return cores.begin() + static_cast<int64_t>(part * cores.size() / sharing);
  };
  cpu::bind_thread({first(index), first(index + 1)});
}

}  // namespace dtrain
