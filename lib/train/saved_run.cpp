#include "train/saved_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/name_list.h"
#include "checkpoint/directory_lock.h"
#include "config/load/load.h"
#include "interop/keras/export/model_config.h"
#include "run/record/training_state.h"
#include "run/run_config_parser.h"
#include "train/keras_training.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

bool is_trained(const ParameterLayout& layout, const ParameterSlice& slice) {
  return slice.offset < layout.trained();
}

/// Returns whether the checkpoint has no optimizer state of a weight. (If only a part of it is missing,
/// dtrain did not write the checkpoint, and the result is false.)
bool was_not_trained(const Checkpoint& checkpoint, const ParameterSlice& slice) {
  const auto& slots = checkpoint.content().slots;
  return std::none_of(slots.begin(), slots.end(), [&](const OptimizerSlot& slot) {
    return checkpoint.slot(slot.name, slice.path()) != nullptr;
  });
}

/// Writes the part of an array of the state that belongs to a parameter: `range`, of shape `shape`.
void restore_array(const Checkpoint& checkpoint, const ArrayRef* array, const ParameterSlice& slice,
                   const Shape& shape, std::string_view state, Range range, Engine& engine) {
  const std::string name = slice.path();
  if (!array)
    throw UserError(fmt::format("{}: expected the weight '{}', found none", checkpoint.path(), name));
  if (array->shape != shape || array->dtype != DType::float32)
    throw UserError(fmt::format("{}: '{}': expected {} float32, found {} {}", checkpoint.path(), name,
                                shape.str(), array->shape.str(), name_of(array->dtype)));
  if (range.size() == 0) return;
  engine.state().write(state, range, static_cast<const float*>(array->data));
}

/// Writes a parameter.
void restore_parameter(const Checkpoint& checkpoint, const ArrayRef* array, const ParameterSlice& slice,
                       Engine& engine) {
  restore_array(checkpoint, array, slice, slice.shape, kParameters,
                {slice.offset, slice.offset + slice.elements()}, engine);
}

/// Throws UserError for a directory that exists but cannot be read, rather than treating it as one without
/// checkpoints.
void check_can_be_listed(const std::string& directory) {
  std::error_code error;
  const fs::directory_iterator listing(directory, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw UserError(fmt::format("{}: could not be read: {}", directory, error.message()));
}

/// Throws the error for a directory without checkpoints.
[[noreturn]] void refuse_without_checkpoints(const RunDirectory& directory) {
  throw UserError(
      directory.is_run()
          ? fmt::format("{}: the run has not saved a checkpoint yet; `dtrain fit CONFIG --resume` starts it",
                        directory.path())
          : fmt::format("{}: expected a run directory (with checkpoints/ckpt-....h5 in it) or a checkpoint, "
                        "found a folder without checkpoints",
                        directory.path()));
}

}  // namespace

RunConfig saved_config(const Checkpoint& checkpoint, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  ConfigNode node =
      parse_yaml(checkpoint.content().config_yaml, checkpoint.path() + " (its configuration)", diagnostics);
  diagnostics.throw_if_errors();
  node = apply_sets(std::move(node), sets, diagnostics);
  diagnostics.throw_if_errors();
  auto config = parse_run_config(node, "", diagnostics, ConfigUse::model);
  diagnostics.throw_if_errors();
  config->dataset.facts = saved_facts(checkpoint);
  return std::move(*config);
}

TrainingState saved_state(const Checkpoint& checkpoint) {
  const CheckpointContent& content = checkpoint.content();
  return TrainingState::from_json(content.state, content.history, content.tables);
}

DataFacts saved_facts(const Checkpoint& checkpoint) {
  const Json& state = checkpoint.content().state;
  if (const Json* facts = state.find("facts")) return DataFacts::from_json(*facts);
  // Checkpoints of earlier versions contain only the column names of the training split.
  const Json* data = state.find("data");
  const Json* train = data ? data->find("train") : nullptr;
  const Json* fields = train ? train->find("fields") : nullptr;
  return fields ? DataFacts{{FieldNames::from_json(*fields), {}, {}, {}}, {}, {}} : DataFacts();
}

std::optional<Checkpoint> load_newest(const RunDirectory& directory,
                                      const std::function<void(const std::string&)>& warn) {
  const DirectoryLock lock(directory.checkpoint_directory(), DirectoryLock::Kind::shared);
  check_can_be_listed(directory.checkpoint_directory());
  // The lock prevents checkpoints from being removed meanwhile. On file systems without locks, listed files
  // may be gone when they are opened, and newer ones may exist: then list again.
  std::set<std::string> damaged;
  for (int looks = 0; looks < 100; ++looks) {
    const std::vector<std::string> paths = directory.checkpoints();
    bool gone = false;
    for (size_t i = paths.size(); i-- > 0 && !gone;) {
      if (damaged.contains(paths[i])) continue;
      try {
        return Checkpoint::load(paths[i]);
      } catch (const UserError& error) {
        gone = file_type(paths[i]) == FileType::nothing;
        if (gone) continue;
        damaged.insert(paths[i]);
        warn(std::string(error.what()) + (i > 0 ? "; using the previous one" : ""));
      }
    }
    if (gone) continue;
    if (paths.empty()) return std::nullopt;
    break;
  }
  throw UserError(fmt::format("{}: none of its checkpoints can be read", directory.checkpoint_directory()));
}

namespace {

/// Returns why the state of a run names no best checkpoint.
std::string why_no_best(const RunConfig& config, const TrainingState& state) {
  if (!config.checkpoint.best)
    return "its configuration does not ask for one (`checkpoint: {best: {monitor: val_loss}}`)";
  const std::string& monitor = config.checkpoint.best->monitor;
  const Json& last = state.history.last();
  if (last.is_null()) return "it has not finished an epoch";
  const Json* value = last.find(monitor);
  if (value && std::isnan(value->as_double())) return fmt::format("its monitor '{}' is nan", monitor);
  return fmt::format("no epoch has ended since its monitor became '{}'", monitor);
}

/// Loads the checkpoint that the newest one's state names as the best so far. A running run may meanwhile
/// replace the best checkpoint; then its newest checkpoint names the new one.
Checkpoint best_of(const RunDirectory& directory, Checkpoint newest,
                   const std::function<void(const std::string&)>& warn) {
  for (int tries = 10;; --tries) {
    const TrainingState state = saved_state(newest);
    if (!state.best)
      throw UserError(fmt::format("{}: its run has no best checkpoint: {}; omit --best to use the newest",
                                  directory.path(), why_no_best(saved_config(newest, {}), state)));
    if (state.best->step == state.step) return newest;
    const std::string path = directory.checkpoint_path(state.best->step);
    if (file_type(path) != FileType::nothing || tries == 0) return Checkpoint::load(path);
    auto newer = load_newest(directory, warn);
    if (!newer || newer->path() == newest.path())
      throw UserError(
          fmt::format("{}: expected the best checkpoint so far, named by {}, found nothing; omit --best to "
                      "use the newest",
                      path, newest.path()));
    newest = *std::move(newer);
  }
}

}  // namespace

std::string best_checkpoint_at(const std::string& path, const std::function<void(const std::string&)>& warn) {
  if (auto imported = imported_model_at(path)) return *std::move(imported);
  if (file_type(path) != FileType::directory) return path;
  const RunDirectory directory = *run_directory_of(path);
  const std::optional<Checkpoint> newest = load_newest(directory, warn);
  if (!newest) refuse_without_checkpoints(directory);
  const TrainingState state = saved_state(*newest);
  if (!state.best) return newest->path();
  std::string best = directory.checkpoint_path(state.best->step);
  if (file_type(best) != FileType::nothing) return best;
  warn(fmt::format("{}: the best checkpoint, named by {}, does not exist; using the latter", best,
                   newest->path()));
  return newest->path();
}

std::optional<std::string> imported_model_at(const std::string& path) {
  std::string file = (fs::path(path) / kImportedWeights).string();
  if (file_type(path) != FileType::directory || file_type(file) != FileType::file) return std::nullopt;
  if (RunDirectory(path).is_run()) return std::nullopt;
  return file;
}

std::optional<RunDirectory> run_directory_of(const std::string& path) {
  const FileType type = file_type(path);
  if (type == FileType::nothing)
    throw UserError(fmt::format("{}: expected a run directory or a checkpoint, found nothing", path));
  if (type != FileType::directory) return RunDirectory::around(path);
  const fs::path given = real_path(path);
  const bool inside =
      given.filename() == "checkpoints" && file_type((given / "checkpoints").string()) == FileType::nothing;
  return RunDirectory(inside ? given.parent_path().string() : fs::path(path).string());
}

namespace {

/// Loads the best checkpoint according to `newest`. On failure, throws for Which::best; otherwise warns and
/// loads the newest one.
std::pair<Checkpoint, Which> load_best(const RunDirectory& directory, Checkpoint newest,
                                       const std::function<void(const std::string&)>& warn, Which which) {
  try {
    return {best_of(directory, std::move(newest), warn), Which::best};
  } catch (const UserError& error) {
    if (which == Which::best) throw;
    warn(error.what());
  }
  return {load_newest(directory, warn).value(), Which::newest};
}

}  // namespace

SavedRun load_saved_run(const std::string& given, const std::vector<std::string>& sets,
                        const std::function<void(const std::string&)>& warn, Which which) {
  const std::string path = imported_model_at(given).value_or(given);
  std::optional<RunDirectory> directory = run_directory_of(path);
  if (file_type(path) != FileType::directory) {
    if (which == Which::best)
      throw UserError(fmt::format("{}: this is a single checkpoint; --best needs a run directory", path));
    Checkpoint checkpoint = Checkpoint::load(path);
    RunConfig config = saved_config(checkpoint, sets);
    return {std::move(checkpoint), std::move(config), std::move(directory)};
  }
  std::optional<Checkpoint> newest = load_newest(*directory, warn);
  if (!newest) refuse_without_checkpoints(*directory);
  if (which == Which::preferred &&
      (!saved_config(*newest, sets).checkpoint.best || !saved_state(*newest).best))
    which = Which::newest;
  auto [checkpoint, loaded] = which == Which::newest ? std::pair{*std::move(newest), Which::newest}
                                                     : load_best(*directory, *std::move(newest), warn, which);
  RunConfig config = saved_config(checkpoint, sets);
  return {std::move(checkpoint), std::move(config), std::move(directory), loaded};
}

namespace {

/// Name of the slot with the weights from which training continues, in checkpoints whose weights are
/// averages.
constexpr std::string_view kUnaveraged = "unaveraged";

/// Loads the weights that training continues with, if the checkpoint's main weights are averages, and
/// initializes the average if the run keeps one. Returns a message for the user, usually "".
std::string restore_average(const Checkpoint& checkpoint, Engine& engine) {
  const auto& slots = checkpoint.content().slots;
  const bool averaged = std::any_of(slots.begin(), slots.end(),
                                    [](const OptimizerSlot& slot) { return slot.name == kUnaveraged; });
  engine.state().begin_average();
  if (!averaged)
    return engine.state().has_average()
               ? "the checkpoint has no average of the weights: the average starts as a copy of them"
               : "";
  for (const ParameterSlice& slice : engine.layout().slices())
    if (const ArrayRef* array = checkpoint.slot(kUnaveraged, slice.path()))
      restore_parameter(checkpoint, array, slice, engine);
  return "";
}

/// Returns the type of the optimizer in the checkpoint's configuration; "" if there is none.
std::string optimizer_of(const Checkpoint& checkpoint) {
  Diagnostics diagnostics;
  const ConfigNode config = parse_yaml(checkpoint.content().config_yaml, checkpoint.path(), diagnostics);
  const ConfigNode* train = config.is_mapping() ? config.find("train") : nullptr;
  const ConfigNode* optimizer = train && train->is_mapping() ? train->find("optimizer") : nullptr;
  if (!optimizer) return "";
  if (optimizer->is_scalar()) return optimizer->text();
  return optimizer->is_mapping() && !optimizer->entries().empty() ? optimizer->entries()[0].first.text() : "";
}

/// Returns whether optimizer `a` can continue with the state of `b`: equally named slots have the same
/// meaning.
bool same_slots(std::string a, std::string b) {
  for (std::string* name : {&a, &b})
    if (*name == "adamw" || *name == "lamb" || *name == "nadam") *name = "adam";
  return a == b;
}

/// Loads the optimizer state. Records in slots_since the weights whose state is missing, with the
/// checkpoint's step. Returns a message for the user, usually "".
std::string restore_slots(const Checkpoint& checkpoint, const RunConfig& config, Engine& engine,
                          TrainingState& state) {
  const std::map<std::string, int64_t> before = std::exchange(state.slots_since, {});
  const auto wanted = config.slots();
  std::vector<OptimizerSlot> found = checkpoint.content().slots;
  std::erase_if(found, [](const OptimizerSlot& slot) { return slot.name == kUnaveraged; });
  const auto same = [](const Optimizer::Slot& a, const OptimizerSlot& b) { return a.name == b.name; };
  if (!std::equal(wanted.begin(), wanted.end(), found.begin(), found.end(), same) ||
      !(wanted.empty() || same_slots(config.train.optimizer.name, optimizer_of(checkpoint)))) {
    for (const ParameterSlice& slice : engine.layout().slices())
      if (is_trained(engine.layout(), slice)) state.slots_since[slice.path()] = state.step;
    return "the checkpoint is of another optimizer: the optimizer state starts with its initial values";
  }
  std::vector<std::string> reset;
  const std::vector<SlotLayout> layouts = slot_layouts(engine.layout(), wanted);
  for (const ParameterSlice& slice : engine.layout().slices()) {
    if (wanted.empty() || !is_trained(engine.layout(), slice)) continue;
    if (was_not_trained(checkpoint, slice)) {
      reset.push_back(slice.path());
      state.slots_since[slice.path()] = state.step;
      continue;
    }
    if (const auto since = before.find(slice.path()); since != before.end()) state.slots_since.insert(*since);
    for (const SlotLayout& layout : layouts)
      if (const auto shape = layout.slot().shape_for(slice.shape))
        restore_array(checkpoint, checkpoint.slot(layout.name(), slice.path()), slice, *shape, layout.name(),
                      layout.of(slice), engine);
  }
  if (reset.empty()) return "";
  return fmt::format(
      "the checkpoint has no optimizer state for {}, not trained before: {} with initial values",
      list_some(reset), reset.size() == 1 ? "it starts" : "they start");
}

}  // namespace

void restore_weights(const Checkpoint& checkpoint, Engine& engine) {
  for (const ParameterSlice& slice : engine.layout().slices())
    restore_parameter(checkpoint, checkpoint.weight(slice.path()), slice, engine);
}

std::string restore_for_training(const Checkpoint& checkpoint, const RunConfig& config, Engine& engine,
                                 TrainingState& state) {
  engine.allocate(Plan::Purpose::training, config.train.batch_size);
  restore_weights(checkpoint, engine);
  std::string reset = restore_slots(checkpoint, config, engine, state);
  engine.set_slots_since(state.slots_since);
  const std::string average = restore_average(checkpoint, engine);
  if (!average.empty()) reset += (reset.empty() ? "" : "; ") + average;
  engine.state().finish_writing();
  return reset;
}

std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size,
                                             const DataMemory& data) {
  auto engine = std::make_unique<Engine>(plan);
  engine->memory().set_data(data);
  engine->allocate(purpose, batch_size);
  restore_weights(checkpoint, *engine);
  engine->state().finish_writing();
  return engine;
}

std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size,
                                             const Loader& loader) {
  return engine_for_inference(
      plan, checkpoint, purpose, batch_size,
      DataMemory{.most_samples = loader.samples(), .read_ahead = loader.read_ahead_memory()});
}

namespace {

OptimizerSlot slot_content(const ParameterLayout& layout, const Optimizer::Slot& slot, const ArrayOf& array) {
  OptimizerSlot content{slot.name, {}};
  for (const ParameterSlice& slice : layout.slices())
    if (const auto shape = slot.shape_for(slice.shape); shape && is_trained(layout, slice))
      content.arrays.push_back({slice.path(), *shape, DType::float32, array(slice)});
  return content;
}

/// Returns a function that finds arrays in `all`, which has the layout of all parameters.
ArrayOf in_one(std::span<const float> all) {
  return [all](const ParameterSlice& slice) { return all.data() + slice.offset; };
}

/// Returns a function that finds arrays of a slot in `all`.
ArrayOf in_slot(std::span<const float> all, const SlotLayout& layout) {
  return [all, layout](const ParameterSlice& slice) { return all.data() + layout.of(slice).begin; };
}

}  // namespace

CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const HostArrays& arrays, const TrainingState& state,
                                     int64_t steps_per_epoch) {
  std::vector<ArrayOf> slots;
  const std::vector<SlotLayout> layouts = slot_layouts(layout, config.slots());
  for (size_t s = 0; s < arrays.slots.size(); ++s)
    slots.push_back(s < layouts.size() ? in_slot(arrays.slots[s], layouts[s]) : in_one(arrays.slots[s]));
  const ArrayOf values = in_one(arrays.values);
  if (slots.size() == layouts.size())
    return checkpoint_content(config, layout, values, slots, state, steps_per_epoch);
  // The checkpoint's main weights are the average; the weights for training are an additional slot.
  const ArrayOf model = [&, average = std::move(slots.back())](const ParameterSlice& slice) {
    return is_trained(layout, slice) ? average(slice) : values(slice);
  };
  slots.pop_back();
  CheckpointContent content = checkpoint_content(config, layout, model, slots, state, steps_per_epoch);
  content.slots.push_back(slot_content(layout, {std::string(kUnaveraged)}, values));
  return content;
}

CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const ArrayOf& values, const std::vector<ArrayOf>& slots,
                                     const TrainingState& state, int64_t steps_per_epoch) {
  CheckpointContent content;
  const std::vector<KerasLayer> layers = keras_layers(config.graph);
  for (const KerasLayer& keras : layers) {
    const GraphNode& node = config.graph.nodes[static_cast<size_t>(keras.node)];
    LayerWeights layer{node.name, {}, keras.name};
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      const ParameterSlice& slice = layout.slice(keras.node, static_cast<int>(k));
      layer.weights.push_back({slice.name, slice.shape, DType::float32, values(slice)});
    }
    content.layers.push_back(std::move(layer));
  }
  const auto of_optimizer = config.slots();
  for (size_t s = 0; s < of_optimizer.size(); ++s)
    content.slots.push_back(slot_content(layout, of_optimizer[s], slots[s]));
  content.model_config = keras_model_config(config.graph, config.name, layers);
  if (config.has_training())
    content.training_config = keras_training_config(config, steps_per_epoch, state.schedule);
  content.state = state.to_json().set("seed", config.seed);
  if (!config.dataset.facts.empty()) content.state.set("facts", config.dataset.facts.to_json());
  content.history = state.history.text();
  content.tables = state.table_lines();
  content.config_yaml = config.resolved.to_yaml();
  return content;
}

}  // namespace dtrain
