// dtrain import: converts a Keras model file to a folder that other commands accept as a model.
#include "interop/keras/import/import.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files/new_file.h"
#include "base/files/paths.h"
#include "base/name_list.h"
#include "base/text.h"
#include "checkpoint/foreign_file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "commands.h"
#include "config/load/load.h"
#include "nn/parameters.h"
#include "print/model_table.h"
#include "run/run_config_parser.h"
#include "train/checkpoint_content.h"
#include "train/saved_run.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

struct ImportOptions {
  OutputOptions output;
  std::string path, folder;
  std::vector<std::string> sets;
  bool with_optimizer = false;
};

/// The folder that an import fills. The destructor removes everything that was written, unless keep() was
/// called.
class NewFolder {
 public:
  /// Throws UserError if the path is a file or a folder with files.
  explicit NewFolder(std::string path) : path_(std::move(path)) {
    const FileType found = file_type(path_);
    std::error_code error;
    if (found == FileType::file || found == FileType::other ||
        (found == FileType::directory && !fs::is_empty(path_, error)))
      throw UserError(fmt::format("{}: expected a new or an empty folder, found {}; give another --output",
                                  path_, found == FileType::directory ? "a folder with files" : "a file"));
    was_there_ = found == FileType::directory;
    fs::create_directories(path_, error);
    if (error) throw UserError(fmt::format("{}: cannot be created: {}", path_, error.message()));
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    if (is_kept_) return;
    std::error_code ignored;
    for (const std::string& name : written_) fs::remove(file(name), ignored);
    if (!was_there_) fs::remove(path_, ignored);
  }

  /// Returns the path for a new file in the folder.
  std::string add(const std::string& name) {
    written_.push_back(name);
    return file(name);
  }
  void keep() { is_kept_ = true; }

 private:
  std::string file(const std::string& name) const { return (fs::path(path_) / name).string(); }

  std::string path_;
  bool was_there_ = false, is_kept_ = false;
  std::vector<std::string> written_;
};

/// Returns the configuration for the checkpoint. It contains a name, the model and, unless `train` is null,
/// the training options.
ConfigNode config_with(const std::string& name, const ConfigNode& model, const ConfigNode& train) {
  std::vector<ConfigNode::Entry> entries{ConfigNode::entry("name", ConfigNode::scalar(name, true)),
                                         ConfigNode::entry("model", model)};
  if (!train.is_null()) entries.push_back(ConfigNode::entry("train", train));
  return ConfigNode::mapping(std::move(entries));
}

/// Returns the model changed by --set.
ConfigNode with_sets(const ConfigNode& model, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  const ConfigNode config = apply_sets(config_with("model", model, {}), sets, diagnostics);
  diagnostics.throw_if_errors();
  return *config.find("model");
}

/// Returns a text such as "multi_gpu_model: 4 towers, saved twice"; "" if the saved model was not wrapped by
/// multi_gpu_model().
std::string describe_towers(const std::vector<int>& towers) {
  if (towers.empty()) return "";
  const bool are_equal =
      std::adjacent_find(towers.begin(), towers.end(), std::not_equal_to<>()) == towers.end();
  std::string text = "multi_gpu_model: ";
  text += are_equal ? fmt::format("{} towers", towers.front())
                    : fmt::format("{} towers", fmt::join(towers, ", then "));
  if (towers.size() == 2) text += ", saved twice";
  if (towers.size() > 2) text += fmt::format(", saved {} times", towers.size());
  return text;
}

/// Describes the training configuration of the file; "" if the file has no training configuration.
std::string describe_training(const Json& training) {
  if (!training.is_object()) return "";
  return "the optimizer, losses and metrics that the file was compiled with";
}

struct Report {
  std::string file, keras_version, name, towers;
  int64_t layers = 0, parameters = 0;
  std::vector<std::pair<std::string, std::string>> inputs = {}, outputs = {};  // name and shape
  std::vector<std::string> blocks = {}, left_out = {};
};

Report report_on(const ImportOptions& options, const KerasImport& imported, const RunConfig& config) {
  Report report{options.path, imported.keras_version, imported.name, describe_towers(imported.towers)};
  for (const LayerRow& row : layer_rows(config.graph)) report.layers += row.kind == "input" ? 0 : 1;
  report.parameters = config.graph.count_parameters(true) + config.graph.count_parameters(false);
  for (const TensorSpec& input : config.graph.input_specs())
    report.inputs.emplace_back(input.name, input.shape.str());
  for (const ValueRef& output : config.graph.outputs)
    report.outputs.emplace_back(config.graph.layer_name(output.node), config.graph.spec(output).shape.str());
  report.blocks = imported.blocks;
  const std::string training = describe_training(imported.training_config);
  if (imported.training)
    report.left_out = imported.training->left_out;
  else if (!training.empty())
    report.left_out.push_back(training);
  report.left_out.insert(report.left_out.end(), imported.left_out.begin(), imported.left_out.end());
  return report;
}

std::string as_text(const Report& report) {
  const auto line = [](const char* what, const std::string& text) {
    return fmt::format("{:<10}{}\n", what, text);
  };
  const auto list = [](const std::vector<std::pair<std::string, std::string>>& values) {
    std::vector<std::string> shown;
    for (const auto& [name, shape] : values) shown.push_back(fmt::format("{} {}", name, shape));
    return list_some(shown, 10);
  };
  std::string text =
      line("file", fmt::format("{}{}", report.file,
                               report.keras_version.empty() ? "" : ", Keras " + report.keras_version));
  text += line("model", fmt::format("{}{}, {}", report.name.empty() ? "" : "'" + report.name + "', ",
                                    format_plural(report.layers, "layer"),
                                    format_plural(report.parameters, "parameter")));
  text += line("inputs", list(report.inputs)) + line("outputs", list(report.outputs));
  if (!report.towers.empty()) text += line("removed", report.towers);
  const auto lines = [&](const char* what, const std::vector<std::string>& texts) {
    for (size_t i = 0; i < texts.size(); ++i) text += line(i == 0 ? what : "", texts[i]);
  };
  lines("blocks", report.blocks);
  lines("left out", report.left_out);
  return text;
}

Json as_json(const Report& report, const std::string& folder) {
  const auto list = [](const std::vector<std::pair<std::string, std::string>>& values) {
    Json object = Json::object();
    for (const auto& [name, shape] : values) object.set(name, shape);
    return object;
  };
  const auto texts = [](const std::vector<std::string>& some) {
    Json array = Json::array();
    for (const std::string& one : some) array.push(one);
    return array;
  };
  return Json::object()
      .set("file", report.file)
      .set("keras_version", report.keras_version)
      .set("name", report.name)
      .set("layers", report.layers)
      .set("parameters", report.parameters)
      .set("inputs", list(report.inputs))
      .set("outputs", list(report.outputs))
      .set("removed", report.towers)
      .set("blocks", texts(report.blocks))
      .set("left_out", texts(report.left_out))
      .set("folder", folder);
}

/// Returns the optimizer's slots, in the optimizer's order. Arrays that the file lacks get their initial
/// values, which are stored in `initial`.
std::vector<ArrayOf> slots_of(const RunConfig& config, const ParameterLayout& layout,
                              const KerasImport& imported, std::vector<std::vector<float>>& initial) {
  std::vector<ArrayOf> slots;
  for (const Optimizer::Slot& slot : config.slots()) {
    const auto& all = imported.training->state.slots;
    const auto of_slot = all.find(slot.name);
    const auto in_file = [&all, of_slot](const ParameterSlice& slice) -> const float* {
      if (of_slot == all.end()) return nullptr;
      const auto array = of_slot->second.find(slice.path());
      return array == of_slot->second.end() ? nullptr : array->second.values.get();
    };
    int64_t most = 0;
    for (const ParameterSlice& slice : layout.slices())
      if (!in_file(slice)) most = std::max(most, slice.elements());
    initial.emplace_back(static_cast<size_t>(most), slot.initial);
    slots.emplace_back([in_file, begin = initial.back().data()](const ParameterSlice& slice) {
      const float* found = in_file(slice);
      return found ? found : begin;
    });
  }
  return slots;
}

void import_file(const ImportOptions& options) {
  if (const FileType type = file_type(options.path); type != FileType::file)
    throw UserError(fmt::format("{}: expected a Keras model file, but {}", options.path,
                                type == FileType::nothing
                                    ? "there is no such file"
                                    : fmt::format("found {}", name_of_type(options.path))));
  if (!begins_as_hdf5(options.path) && !is_keras_archive(options.path))
    throw UserError(fmt::format(
        "{}: expected a Keras model file (.keras, .h5), found {}", options.path,
        begins_as_checkpoint(options.path) ? "a checkpoint of dtrain" : describe_file(options.path)));
  const std::string stem = fs::path(options.path).stem().string();
  std::string path = options.folder.empty() ? stem : without_dots(options.folder);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  NewFolder folder(path);
  const KerasImport imported =
      import_keras(options.path, options.with_optimizer,
                   [&](const ConfigNode& model) { return with_sets(model, options.sets); });
  Diagnostics diagnostics;
  const ConfigNode written =
      config_with(stem, imported.model, imported.training ? imported.training->train : ConfigNode());
  const auto config = parse_run_config(written, "model", diagnostics, ConfigUse::model);
  diagnostics.throw_if_errors();
  const ParameterLayout layout(config->graph);
  std::vector<std::vector<float>> initial;
  const std::vector<ArrayOf> slots = slots_of(*config, layout, imported, initial);
  const ArrayOf values = [&](const ParameterSlice& slice) {
    return imported.parameters.at(slice.path()).values.get();
  };
  TrainingState state;
  if (imported.training) state.step = imported.training->state.iteration.value_or(0);
  CheckpointContent content = checkpoint_content(*config, layout, values, slots, state, 1);
  const Report report = report_on(options, imported, *config);
  content.state.set("imported", as_json(report, path));
  save_checkpoint(folder.add(kImportedWeights), content);
  if (imported.mapped) imported.mapped->check();
  write_new_file(folder.add(kImportedModel),
                 fmt::format("# Converted from {} by `dtrain import`. To use this model in a configuration, "
                             "write `model: {}/{}`.\n{}",
                             fs::path(options.path).filename().string(), path, kImportedModel,
                             imported.model.to_yaml()));
  const std::string text = as_text(report);
  write_new_file(folder.add("report.txt"), text);
  folder.keep();
  if (options.output.json) print_json(as_json(report, path));
  if (options.output.text())
    print_text(fmt::format("{0}written   {1}: {2}, {3}, report.txt\n", text, path, kImportedModel,
                           kImportedWeights));
}

}  // namespace

void add_import(CommandLine& line) {
  Command command = line.add_command("import", "Convert a Keras model file to a dtrain model");
  const auto options = std::make_shared<ImportOptions>();
  command.add_option("FILE", options->path, "A .keras or .h5 file with a whole model saved by Keras")
      .required();
  command
      .add_option("--output,-o", options->folder,
                  "The folder for the model and its weights; it must be new or empty (default: the file's "
                  "name without its extension)")
      .type_name("DIR");
  command.add_flag("--with-optimizer", options->with_optimizer,
                   "Also import the losses, the metrics, and the optimizer with its state. The training can "
                   "then be continued with `dtrain resume DIR --output RUN --set dataset=FILE.yaml`");
  add_set_option(command, options->sets);
  add_output_options(command, options->output);
  command.callback([options] { import_file(*options); });
}

}  // namespace dtrain
