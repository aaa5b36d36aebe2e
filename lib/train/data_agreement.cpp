#include "train/data_agreement.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace dtrain {

void check_data_agree(World& world, const std::map<std::string, DataIdentity>& mine) {
  if (world.size() == 1) return;
  std::string change;
  for (const auto& [split, its] : mine) {
    const Json first = Json::parse(world.broadcast_text(its.to_json().dump()));
    const std::string text = describe_change(DataIdentity::from_json(first), its);
    if (!text.empty()) change += fmt::format("{}'{}': {}", change.empty() ? "" : "; ", split, text);
  }
  const std::vector<std::string> changes = world.all_gather_texts(change);
  std::string message;
  for (size_t process = 0; process < changes.size(); ++process)
    if (!changes[process].empty()) message += fmt::format("\nprocess {}: {}", process, changes[process]);
  if (!message.empty())
    throw UserError(fmt::format(
        "the data of some processes differ from the data of process 0. Copy the same files to all machines; "
        "to choose the folder of the files, set dataset.root or the environment variable DTRAIN_DATA. The "
        "differences are:{}",
        message));
}

}  // namespace dtrain
