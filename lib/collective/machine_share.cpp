#include "collective/machine_share.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "device/device.h"
#include "device/gpu_info.h"
#include "processes/machine.h"

namespace dtrain {

Range SharedPlace::share_of(size_t n) const {
  return {static_cast<int64_t>(index * n / sharing), static_cast<int64_t>((index + 1) * n / sharing)};
}

SharedPlace place_among_equals(World& world, const std::string& mine) {
  const std::vector<std::string> all = world.all_gather_texts(mine);
  SharedPlace place{0, 0};
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != mine) continue;
    if (static_cast<int>(rank) < world.rank()) ++place.index;
    ++place.sharing;
  }
  return place;
}

Range own_gpus(World& world) {
  const auto count = static_cast<size_t>(gpu_is_expected() ? gpu_presence().count : 0);
  std::string list = boot_id();
  for (size_t gpu = 0; gpu < count; ++gpu) {
    const int index = static_cast<int>(gpu);
    list += fmt::format(" {}/{}", gpu_pci_id(index), gpu_uuid(index));
  }
  const SharedPlace place = place_among_equals(world, list);
  return count < place.sharing ? Range{0, static_cast<int64_t>(count)} : place.share_of(count);
}

std::string find_shared_gpu(World& world, std::span<const int> gpus) {
  Json mine = Json::array();
  for (const int index : gpus)
    mine.push(Json::object()
                  .set("machine", boot_id())
                  .set("host", host_name())
                  .set("pci", gpu_pci_id(index))
                  .set("uuid", gpu_uuid(index)));
  struct User {
    size_t rank = 0;
    std::string uuid;
  };
  std::map<std::pair<std::string, std::string>, User> users;  // keys: boot id and PCI address
  const std::vector<std::string> all = world.all_gather_texts(mine.dump());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Json list = Json::parse(all[rank]);
    for (const Json& gpu : list.items()) {
      const auto text = [&](const char* key) { return gpu.find(key)->as_string(); };
      if (text("pci").empty()) continue;
      const auto [user, is_new] = users.try_emplace({text("machine"), text("pci")}, User{rank, text("uuid")});
      if (is_new || user->second.rank == rank) continue;
      return fmt::format("processes {} and {} both use {}the GPU {} of {}", user->second.rank, rank,
                         user->second.uuid == text("uuid") ? "" : "MIG instances of ", text("pci"),
                         text("host"));
    }
  }
  return "";
}

}  // namespace dtrain
