// dtrain summary: shows a table of a model's layers.
#include <memory>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/text.h"
#include "checkpoint/foreign_file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "commands.h"
#include "print/keras_listing.h"
#include "print/model_table.h"
#include "print/onnx_listing.h"
#include "print/safetensors_listing.h"
#include "run/placement.h"
#include "run/run_config_parser.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

struct SummaryOptions {
  OutputOptions output;
  std::string path;
  std::vector<std::string> sets;
};

/// Returns true if the name ends in .h5 or if the file contains a model. Also returns true for model files of
/// other programs that dtrain cannot read, because the error message of the model reader names the program.
bool is_model_file(const std::string& path) {
  return path.ends_with(".h5") || begins_as_checkpoint(path) || is_foreign_model(path);
}

RunConfig load_either(const SummaryOptions& options) {
  if (file_type(options.path) == FileType::directory || is_model_file(options.path))
    return load_saved_run(options.path, options.sets, print_warning).config;
  return load_run_config(options.path, options.sets);
}

/// Returns the placement of the layers. If this machine lacks the devices of the run, prints a warning and
/// returns an empty placement.
Placement place(const RunConfig& config) {
  try {
    return config.strategy->place(workload_of(config));
  } catch (const UserError& error) {
    print_warning(error.what());
    return {};
  }
}

Json to_json(const RunConfig& config, const Placement& placement) {
  Json layers = Json::array();
  for (const LayerRow& row : layer_rows(config.graph)) {
    Json inputs = Json::array(), shape = Json::array(), devices = Json::array();
    for (const std::string& device : devices_of(placement, row)) devices.push(device);
    for (const std::string& input : row.inputs) inputs.push(input);
    for (const int64_t extent : row.output.shape) shape.push(extent);
    Json layer = Json::object().set("name", row.name).set("kind", row.kind);
    layer.set("inputs", std::move(inputs)).set("output_shape", std::move(shape));
    layer.set("dtype", name_of(row.output.dtype)).set("parameters", row.parameters);
    layer.set("trainable", row.trainable).set("devices", std::move(devices));
    if (!row.shared_with.empty()) layer.set("shared_with", row.shared_with);
    if (row.recompute >= 0) layer.set("recompute", row.recompute);
    layers.push(std::move(layer));
  }
  const int64_t trainable = config.graph.count_parameters(true),
                others = config.graph.count_parameters(false);
  return Json::object()
      .set("name", config.name)
      .set("layers", std::move(layers))
      .set("parameters", Json::object()
                             .set("total", trainable + others)
                             .set("trainable", trainable)
                             .set("non_trainable", others));
}

std::string to_text(const RunConfig& config, const Placement& placement) {
  const int64_t trainable = config.graph.count_parameters(true),
                others = config.graph.count_parameters(false);
  const auto line = [](const char* what, int64_t count) {
    return fmt::format("{:<14}{:>13}  {}\n", what, format_count(count),
                       format_bytes(static_cast<uint64_t>(count) * sizeof(float)));
  };
  return layer_table(config.graph, placement) + "\n" + line("parameters", trainable + others) +
         line("  trainable", trainable) + line("  others", others);
}

void summarize_keras(const SummaryOptions& options) {
  const KerasContent file = read_keras_file(options.path);
  if (options.output.json) print_json(layers_json(file));
  if (options.output.text()) print_text(layers_text(file));
}

void summarize_onnx(const SummaryOptions& options) {
  const OnnxFile file = read_onnx(options.path);
  if (options.output.json) print_json(operators_json(file, options.path));
  if (options.output.text()) print_text(operators_text(file, options.path));
}

void summarize_safetensors(const SummaryOptions& options) {
  const SafetensorsFile file = SafetensorsFile::load(options.path);
  if (options.output.json) print_json(layers_json(file, options.path));
  if (options.output.text()) print_text(layers_text(file, options.path));
}

void summarize(const SummaryOptions& options) {
  if (is_onnx_file(options.path)) return summarize_onnx(options);
  if (begins_as_safetensors(options.path)) return summarize_safetensors(options);
  if (begins_as_hdf5(options.path) || is_keras_archive(options.path)) return summarize_keras(options);
  const RunConfig config = load_either(options);
  const Placement placement = place(config);
  if (options.output.json) print_json(to_json(config, placement));
  if (options.output.text()) print_text(to_text(config, placement));
}

}  // namespace

void add_summary(CommandLine& line) {
  Command command = line.add_command("summary", "Show a table of the layers of a model");
  const auto options = std::make_shared<SummaryOptions>();
  command
      .add_option("PATH", options->path,
                  "A configuration, a run directory, an imported model, a checkpoint file, a Keras .h5 or "
                  ".keras file, a .safetensors or an .onnx file")
      .required();
  add_set_option(command, options->sets);
  add_output_options(command, options->output);
  command.callback([options] { summarize(*options); });
}

}  // namespace dtrain
