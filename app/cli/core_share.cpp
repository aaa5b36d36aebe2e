#include "cli/core_share.h"

#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/console.h"
#include "device/cpu/affinity.h"
#include "device/gpu_info.h"

namespace dtrain {

namespace {

/// Returns the boot id of the machine. All containers on a machine have the same boot id.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

/// The result of place_among_equals(): `sharing` is the number of processes that passed the same text as this
/// process, and `index` is the index of this process among them.
struct Place {
  size_t index = 0, sharing = 0;

  /// Divides a list among the `sharing` processes, and returns the part of this process.
  template <class T>
  std::vector<T> share_of(const std::vector<T>& list) const {
    const auto first = [&](size_t part) {
      return list.begin() + static_cast<int64_t>(part * list.size() / sharing);
    };
    return {first(index), first(index + 1)};
  }
};

Place place_among_equals(World& world, const std::string& mine) {
  const std::vector<std::string> all = world.all_gather_texts(mine);
  Place place;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != mine) continue;
    if (static_cast<int>(rank) < world.rank()) ++place.index;
    ++place.sharing;
  }
  return place;
}

}  // namespace

void share_cores(const Processes& processes, World& world) {
  const std::vector<int> cores = cpu::thread_cores();
  const Place place = place_among_equals(world, fmt::format("{} {}", boot_id(), fmt::join(cores, ",")));
  const auto present = static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (processes.local_rank() == 0 && cores.size() * static_cast<size_t>(processes.local_size()) < present)
    print_warning(
        fmt::format("the launcher has bound each process on the machine {} to {} of the machine's {} cores. "
                    "To use all cores, start the run with mpirun --bind-to none (Open MPI), mpiexec -bind-to "
                    "none (MPICH) or srun --cpus-per-task",
                    host_name(), cores.size(), present));
  if (place.sharing < 2) return;
  if (cores.size() < place.sharing) return cpu::bind_thread({cores[place.index % cores.size()]});
  cpu::bind_thread(place.share_of(cores));
}

/// The host name is compared in addition to the boot id and the numbers of the GPUs: two containers on one
/// machine may have different GPUs with the same numbers.
void share_gpus(World& world) {
  const std::vector<std::string> gpus = visible_gpus();
  const Place place =
      place_among_equals(world, fmt::format("{} {} {}", boot_id(), host_name(), fmt::join(gpus, ",")));
  if (place.sharing > 1 && gpus.size() >= place.sharing) show_only_gpus(place.share_of(gpus));
}

}  // namespace dtrain
