// dtrain summary: the table of a model's layers.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/paths.h"
#include "commands.h"
#include "console.h"
#include "model_table.h"
#include "options.h"
#include "text.h"
#include "train/run_config_parser.h"
#include "train/saved_run.h"

namespace dtrain {

namespace {

struct SummaryOptions {
  OutputOptions output;
  std::string path;
  std::vector<std::string> sets;
};

RunConfig load_either(const SummaryOptions& options) {
  if (options.path.ends_with(".h5") || look_at(options.path) == Standing::directory)
    return load_saved_run(options.path, options.sets, print_warning).config;
  return load_run_config(options.path, options.sets);
}

/// The devices that hold the model, each once. None, and a warning, where the run is for another machine.
std::vector<std::string> devices_of(const RunConfig& config) {
  std::vector<std::string> names;
  try {
    for (const DeviceId& device : config.strategy->place().devices())
      if (std::find(names.begin(), names.end(), device.str()) == names.end()) names.push_back(device.str());
  } catch (const UserError& error) {
    print_warning(error.what());
  }
  return names;
}

Json to_json(const RunConfig& config, const std::vector<std::string>& devices) {
  Json device_list = Json::array();
  for (const std::string& device : devices) device_list.push(device);
  Json layers = Json::array();
  for (const LayerRow& row : layer_rows(config.graph)) {
    Json inputs = Json::array(), shape = Json::array();
    for (const std::string& input : row.inputs) inputs.push(input);
    for (const int64_t extent : row.output.shape) shape.push(extent);
    Json layer = Json::object().set("name", row.name).set("kind", row.kind);
    layer.set("inputs", std::move(inputs)).set("output_shape", std::move(shape));
    layer.set("dtype", name_of(row.output.dtype)).set("parameters", row.parameters);
    layer.set("trainable", row.trainable).set("devices", device_list);
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

std::string to_text(const RunConfig& config, const std::vector<std::string>& devices) {
  const std::string device_list = devices.empty() ? "-" : fmt::format("{}", fmt::join(devices, " "));
  Table table(
      {{"layer"}, {"kind"}, {"output shape"}, {"parameters", Table::Align::right}, {"device"}, {"inputs"}});
  std::string previous;
  for (const LayerRow& row : layer_rows(config.graph)) {
    // Most layers read the one above, which goes without saying.
    const bool chained = row.inputs.size() == 1 && row.inputs[0] == previous;
    const std::string parameters = row.parameters == 0 ? "" : format_count(row.parameters);
    table.add({row.name, row.kind, row.output.shape.str(), parameters + (row.trainable ? "" : " (frozen)"),
               device_list, chained ? "" : fmt::format("{}", fmt::join(row.inputs, ", "))});
    previous = row.name;
  }
  const int64_t trainable = config.graph.count_parameters(true),
                others = config.graph.count_parameters(false);
  const auto line = [](const char* what, int64_t count) {
    return fmt::format("{:<14}{:>13}  {}\n", what, format_count(count),
                       format_bytes(static_cast<uint64_t>(count) * sizeof(float)));
  };
  return table.str() + "\n" + line("parameters", trainable + others) + line("  trainable", trainable) +
         line("  others", others);
}

void summarize(const SummaryOptions& options) {
  const RunConfig config = load_either(options);
  const std::vector<std::string> devices = devices_of(config);
  if (options.output.json) print_json(to_json(config, devices));
  if (options.output.text()) print_text(to_text(config, devices));
}

}  // namespace

void add_summary(CommandLine& line) {
  Command command = line.add_command("summary", "The table of a model's layers");
  const auto options = std::make_shared<SummaryOptions>();
  command.add_option("PATH", options->path, "A configuration, a run directory or a checkpoint file")
      .required();
  add_set_option(command, options->sets);
  add_output_options(command, options->output);
  command.callback([options] { summarize(*options); });
}

}  // namespace dtrain
