#include "cli/core_share.h"

#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/console.h"
#include "collective/machine_share.h"
#include "device/cpu/affinity.h"
#include "device/gpu_info.h"
#include "processes/machine.h"

namespace dtrain {

void share_cores(const Processes& processes, World& world) {
  const std::vector<int> cores = cpu::thread_cores();
  const SharedPlace place = place_among_equals(world, fmt::format("{} {}", boot_id(), fmt::join(cores, ",")));
  const auto present = static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (processes.local_rank() == 0 && cores.size() * static_cast<size_t>(processes.local_size()) < present)
    print_warning(
        fmt::format("the launcher has bound each process on the machine {} to {} of the machine's {} cores. "
                    "To use all cores, start the run with mpirun --bind-to none (Open MPI), mpiexec -bind-to "
                    "none (MPICH) or srun --cpus-per-task",
                    host_name(), cores.size(), present));
  if (place.sharing < 2) return;
  if (cores.size() < place.sharing) return cpu::bind_thread({cores[place.index % cores.size()]});
  const Range own = place.share_of(cores.size());
  cpu::bind_thread({cores.begin() + own.begin, cores.begin() + own.end});
}

void share_gpus(World& world) {
  const Range own = own_gpus(world);
  if (own.size() > 0) use_only_gpus(static_cast<int>(own.begin), static_cast<int>(own.size()));
}

}  // namespace dtrain
