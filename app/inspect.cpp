// dtrain inspect: shows the content of a checkpoint, or of a .h5, .keras, .safetensors or .onnx file.
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/foreign_file.h"
#include "checkpoint/hash.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "print/keras_listing.h"
#include "print/onnx_listing.h"
#include "print/progress.h"
#include "print/safetensors_listing.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

struct InspectOptions {
  OutputOptions output;
  std::string path;
  bool config = false;
};

/// Returns the checksum of the array's bytes as 16 hexadecimal digits. Equal arrays have equal checksums.
std::string checksum_of(const ArrayRef& array) {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(array.data), array.bytes());
  return fmt::format("{:016x}", checksum(Parts(&bytes, 1)));
}

Json to_json(const ArrayRef& array, const std::string& name) {
  Json shape = Json::array();
  for (const int64_t extent : array.shape) shape.push(extent);
  return Json::object()
      .set("name", name)
      .set("shape", std::move(shape))
      .set("dtype", name_of(array.dtype))
      .set("checksum", checksum_of(array));
}

Json to_json(const Checkpoint& checkpoint, const TrainingState& state, bool with_config) {
  const CheckpointContent& content = checkpoint.content();
  Json weights = Json::array(), slots = Json::array();
  for (const LayerWeights& layer : content.layers)
    for (const ArrayRef& weight : layer.weights)
      weights.push(to_json(weight, layer.layer + "/" + weight.name));
  for (const OptimizerSlot& slot : content.slots) {
    Json arrays = Json::array();
    for (const ArrayRef& array : slot.arrays) arrays.push(to_json(array, array.name));
    slots.push(Json::object().set("name", slot.name).set("arrays", std::move(arrays)));
  }
  Json result = Json::object().set("path", checkpoint.path());
  result.set("bytes", static_cast<int64_t>(checkpoint.file_bytes()));
  result.set("step", state.step).set("epoch", state.epoch).set("step_in_epoch", state.step_in_epoch);
  if (const Json* seed = content.state.find("seed")) result.set("seed", *seed);
  if (state.best)
    result.set("best", Json::object().set("value", state.best->value).set("step", state.best->step));
  result.set("last_epoch", state.history.last());
  result.set("weights", std::move(weights)).set("slots", std::move(slots));
  if (with_config) result.set("config", content.config_yaml);
  return result;
}

void add_rows(Table& table, const std::string& group, const std::vector<ArrayRef>& arrays,
              const std::string& prefix) {
  for (const ArrayRef& array : arrays)
    table.add({group, prefix + array.name, array.shape.str(), format_count(array.shape.elements()),
               checksum_of(array)});
}

std::string to_text(const Checkpoint& checkpoint, const TrainingState& state) {
  const CheckpointContent& content = checkpoint.content();
  std::string text =
      fmt::format("file   {}, {}, whole\n", checkpoint.path(), format_bytes(checkpoint.file_bytes()));
  text += fmt::format("step   {}, {} done", format_count(state.step), format_plural(state.epoch, "epoch"));
  if (state.step_in_epoch > 0)
    text += fmt::format(" and {} of the next", format_plural(state.step_in_epoch, "step"));
  if (const Json* seed = content.state.find("seed")) text += fmt::format("\nseed   {}", seed->as_int());
  if (const Json& last = state.history.last(); !last.is_null())
    text += fmt::format("\nepoch  {}: {}", last.at("epoch").as_int(), format_metrics(last, ", "));
  if (state.best)
    text += fmt::format("\nbest   {} at step {}", format_value(state.best->value), state.best->step);
  Table table({{"sort"}, {"array"}, {"shape"}, {"elements", Table::Align::right}, {"checksum"}});
  for (const LayerWeights& layer : content.layers)
    add_rows(table, "weight", layer.weights, layer.layer + "/");
  for (const OptimizerSlot& slot : content.slots) add_rows(table, "slot " + slot.name, slot.arrays, "");
  return text + "\n\n" + table.str();
}

/// Inspects a Keras .h5 or .keras file.
void inspect_keras(const InspectOptions& options) {
  if (options.config)
    throw UserError(
        fmt::format("{}: --config requires a dtrain checkpoint, found a Keras file", options.path));
  const KerasContent file = read_keras_file(options.path);
  if (options.output.json)
    print_json(arrays_json(file));
  else if (options.output.text())
    print_text(arrays_text(file));
}

/// Inspects a .safetensors file.
void inspect_safetensors(const InspectOptions& options) {
  if (options.config)
    throw UserError(
        fmt::format("{}: --config requires a dtrain checkpoint, found a safetensors file", options.path));
  const SafetensorsFile file = SafetensorsFile::load(options.path);
  if (options.output.json) print_json(arrays_json(file, options.path));
  if (options.output.text()) print_text(arrays_text(file, options.path));
}

void inspect(const InspectOptions& options) {
  if (is_onnx_file(options.path)) {
    if (options.config)
      throw UserError(
          fmt::format("{}: --config requires a dtrain checkpoint, found an ONNX file", options.path));
    const OnnxFile file = read_onnx(options.path);
    if (options.output.json) print_json(arrays_json(file, options.path));
    if (options.output.text()) print_text(arrays_text(file, options.path));
    return;
  }
  if (begins_as_safetensors(options.path)) return inspect_safetensors(options);
  if (begins_as_hdf5(options.path) || is_keras_archive(options.path)) return inspect_keras(options);
  reject_wrong_run(options.path, "inspect");
  const Checkpoint checkpoint = load_best_checkpoint(options.path, print_warning);
  const TrainingState state = saved_state(checkpoint);
  if (options.output.json) {
    print_json(to_json(checkpoint, state, options.config));
  } else if (options.output.text()) {
    print_text(options.config ? checkpoint.content().config_yaml : to_text(checkpoint, state));
  }
}

}  // namespace

void add_inspect(CommandLine& line) {
  Command command = line.add_command(
      "inspect", "Show the content of a checkpoint, or of a Keras, .safetensors or .onnx file");
  const auto options = std::make_shared<InspectOptions>();
  command
      .add_option("FILE", options->path,
                  "A checkpoint, a run directory (its best checkpoint, otherwise its newest), an imported "
                  "model, a Keras .h5 or .keras file, a .safetensors or an .onnx file")
      .required();
  command.add_flag("--config", options->config, "Show the configuration in the checkpoint, as YAML");
  add_output_options(command, options->output);
  command.callback([options] { inspect(*options); });
}

}  // namespace dtrain
