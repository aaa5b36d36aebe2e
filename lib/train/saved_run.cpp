#include "train/saved_run.h"

#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "config/load.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

std::string weight_name(const ParameterSlice& slice) {
  return slice.layer + "/" + slice.name;
}

bool is_trained(const ParameterLayout& layout, const ParameterSlice& slice) {
  return slice.offset < layout.trained();
}

void copy_array(const Checkpoint& checkpoint, const ArrayRef* array, const ParameterSlice& slice, float* to) {
  const std::string name = weight_name(slice);
  if (!array)
    throw UserError(fmt::format("{}: expected the weight '{}', found none", checkpoint.path(), name));
  if (array->shape != slice.shape || array->dtype != DType::float32)
    throw UserError(fmt::format("{}: '{}': expected {} float32, found {} {}", checkpoint.path(), name,
                                slice.shape.str(), array->shape.str(), name_of(array->dtype)));
  std::memcpy(to, array->data, array->bytes());
}

}  // namespace

RunConfig saved_config(const Checkpoint& checkpoint, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  Node node =
      parse_yaml(checkpoint.content().config_yaml, checkpoint.path() + " (its configuration)", diagnostics);
  diagnostics.throw_if_errors();
  node = apply_sets(std::move(node), sets, diagnostics);
  diagnostics.throw_if_errors();
  auto config = parse_run_config(node, "", diagnostics);
  diagnostics.throw_if_errors();
  config->dataset.fields = saved_fields(checkpoint);
  return std::move(*config);
}

FieldNames saved_fields(const Checkpoint& checkpoint) {
  const Json& state = checkpoint.content().state;
  const Json* data = state.find("data");
  const Json* train = data ? data->find("train") : nullptr;
  const Json* fields = train ? train->find("fields") : nullptr;
  return fields ? FieldNames::from_json(*fields) : FieldNames();
}

std::optional<Checkpoint> load_newest(const RunDirectory& directory,
                                      const std::function<void(const std::string&)>& warn) {
  const std::vector<std::string> paths = directory.checkpoints();
  std::string last_error;
  for (size_t i = paths.size(); i-- > 0;) {
    try {
      return Checkpoint::load(paths[i]);
    } catch (const UserError& error) {
      last_error = error.what();
      warn(last_error + (i > 0 ? "; taking the one before it" : ""));
    }
  }
  if (!paths.empty())
    throw UserError(fmt::format("{}: none of its checkpoints can be read", directory.checkpoint_directory()));
  return std::nullopt;
}

SavedRun load_saved_run(const std::string& path, const std::vector<std::string>& sets,
                        const std::function<void(const std::string&)>& warn) {
  std::optional<RunDirectory> directory;
  std::optional<Checkpoint> checkpoint;
  if (!fs::exists(path))
    throw UserError(fmt::format("{}: expected a run directory or a checkpoint, found nothing", path));
  if (fs::is_directory(path)) {
    const fs::path given = fs::weakly_canonical(path);
    const bool inside = given.filename() == "checkpoints" && !fs::exists(given / "checkpoints");
    directory = RunDirectory(inside ? given.parent_path().string() : fs::path(path).string());
    checkpoint = load_newest(*directory, warn);
    if (!checkpoint)
      throw UserError(
          fmt::format("{}: holds no checkpoints; `dtrain fit CONFIG --resume` begins where none was saved",
                      directory->checkpoint_directory()));
  } else {
    directory = RunDirectory::around(path);
    checkpoint = Checkpoint::load(path);
  }
  RunConfig config = saved_config(*checkpoint, sets);
  return {std::move(*checkpoint), std::move(config), std::move(directory)};
}

void restore_weights(const Checkpoint& checkpoint, Replicas& replicas) {
  const std::span<float> values = replicas.values();
  for (const ParameterSlice& slice : replicas.layout().slices())
    copy_array(checkpoint, checkpoint.weight(weight_name(slice)), slice, values.data() + slice.offset);
}

bool restore_slots(const Checkpoint& checkpoint, const RunConfig& config, Replicas& replicas) {
  const auto wanted = config.train.optimizer->slots();
  const auto& found = checkpoint.content().slots;
  if (wanted.size() != found.size()) return false;
  for (size_t s = 0; s < wanted.size(); ++s)
    if (wanted[s].name != found[s].name) return false;
  const HostArrays arrays = replicas.arrays();
  for (size_t s = 0; s < wanted.size(); ++s)
    for (const ParameterSlice& slice : replicas.layout().slices())
      if (is_trained(replicas.layout(), slice))
        copy_array(checkpoint, checkpoint.slot(wanted[s].name, weight_name(slice)), slice,
                   arrays.slots[s].data() + slice.offset);
  return true;
}

CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const HostArrays& arrays, const TrainingState& state) {
  CheckpointContent content;
  for (size_t i = 0; i < config.graph.nodes.size(); ++i) {
    const GraphNode& node = config.graph.nodes[i];
    if (node.is_activation_of_previous) continue;
    LayerWeights layer{node.name, {}};
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      const ParameterSlice& slice = layout.slice(static_cast<int>(i), static_cast<int>(k));
      layer.weights.push_back({slice.name, slice.shape, DType::float32, arrays.values.data() + slice.offset});
    }
    content.layers.push_back(std::move(layer));
  }
  const auto slots = config.train.optimizer->slots();
  for (size_t s = 0; s < slots.size(); ++s) {
    OptimizerSlot slot{slots[s].name, {}};
    for (const ParameterSlice& slice : layout.slices())
      if (is_trained(layout, slice))
        slot.arrays.push_back(
            {weight_name(slice), slice.shape, DType::float32, arrays.slots[s].data() + slice.offset});
    content.slots.push_back(std::move(slot));
  }
  content.model_config = config.graph.keras_model_config(config.name);
  content.state = state.to_json().set("seed", config.seed);
  content.history = state.history.text();
  content.config_yaml = config.resolved.to_yaml();
  return content;
}

}  // namespace dtrain
