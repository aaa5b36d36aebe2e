#include "train/shared_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "config/yaml/yaml.h"
#include "run/run_config_parser.h"
#include "train/saved_run.h"

namespace dtrain {

std::optional<Checkpoint> share_checkpoint(World& world, const Checkpoint* mine) {
  const std::string path = world.broadcast_text(mine ? mine->path() : "");
  if (path.empty()) return std::nullopt;
  auto size = static_cast<int64_t>(mine ? mine->file_bytes() : 0);
  world.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  const auto bytes = static_cast<size_t>(size);
  const std::shared_ptr<std::byte[]> file(new std::byte[bytes]);
  if (mine) std::copy(mine->file().begin(), mine->file().end(), file.get());
  world.broadcast({file.get(), bytes});
  return Checkpoint::from_bytes(path, file, bytes);
}

void send_run(World& world, const RunConfig& config, const std::string& directory,
              const Checkpoint* checkpoint) {
  if (world.size() == 1) return;
  world.broadcast_text(config.resolved.to_yaml());
  world.broadcast_text(config.dataset.facts.to_json().dump());
  world.broadcast_text(directory);
  share_checkpoint(world, checkpoint);
}

SharedRun receive_run(World& world) {
  const std::string yaml = world.broadcast_text("");
  const std::string facts = world.broadcast_text("");
  std::string directory = world.broadcast_text("");
  std::optional<Checkpoint> checkpoint = share_checkpoint(world, nullptr);
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(yaml, "the configuration of process 0", diagnostics);
  diagnostics.throw_if_errors();
  auto config = parse_run_config(node, "", diagnostics, ConfigUse::training);
  diagnostics.throw_if_errors();
  config->dataset.facts = DataFacts::from_json(Json::parse(facts));
  return {std::move(*config), std::move(directory), std::move(checkpoint)};
}

}  // namespace dtrain
