// dtrain export: writes a trained model in other tools' file formats.
#include "interop/keras/export/export.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files/paths.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "config/diagnostics.h"
#include "interop/onnx/export.h"
#include "interop/torch/export.h"
#include "run/placement.h"
#include "runs/saved_model.h"
#include "train/exported_run.h"
#include "train/exported_training.h"

namespace dtrain {

namespace {

struct ExportOptions : ModelOptions {
  OutputOptions output;
  std::string output_file, format, outputs, layout;
  std::optional<int64_t> opset;
  bool float16 = false, external_data = false, with_preprocessing = false;
};

/// An export format: its name, its file extension, and the function that writes the files and returns their
/// names.
struct ExportFormat {
  const char* name;
  const char* ending;
  std::vector<std::string> (*write)(const SavedRun& run, const ExportedModel& model,
                                    const ExportOptions& options);
};

std::vector<std::string> write_onnx(const SavedRun&, const ExportedModel& model,
                                    const ExportOptions& options) {
  return export_onnx(model,
                     {.opset = options.opset.value_or(OnnxOptions().opset),
                      .float16 = options.float16,
                      .external_data = options.external_data},
                     options.output_file);
}

std::vector<std::string> write_keras(const SavedRun& run, const ExportedModel& model,
                                     const ExportOptions& options) {
  std::string why_not, warning;
  const std::optional<KerasTraining> training = keras_training(run, why_not, warning);
  if (!training) print_warning("the exported file does not contain the optimizer: " + why_not);
  if (!warning.empty()) print_warning(warning);
  return export_keras(model, training, options.output_file);
}

std::vector<std::string> write_safetensors_file(const SavedRun&, const ExportedModel& model,
                                                const ExportOptions& options) {
  return export_safetensors(model, options.layout == "keras" ? TensorLayout::keras : TensorLayout::pytorch,
                            options.output_file);
}

constexpr std::array kFormats{
    ExportFormat{"keras", ".keras", write_keras},
    ExportFormat{"onnx", ".onnx", write_onnx},
    ExportFormat{"safetensors", ".safetensors", write_safetensors_file},
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const ExportFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

/// Returns the format that --format names or, without --format, the format of the file extension.
const ExportFormat& format_of(const ExportOptions& options) {
  std::string endings;
  for (const ExportFormat& format : kFormats) {
    if (options.format.empty() ? options.output_file.ends_with(format.ending) : options.format == format.name)
      return format;
    endings += fmt::format("{}{}", endings.empty() ? "" : ", ", format.ending);
  }
  throw UserError(fmt::format(
      "--output {}: expected a file name that ends in one of {}; for another name, choose the format with "
      "--format {}",
      options.output_file, endings, fmt::join(format_names(), "|")));
}

/// Throws UserError if an option was given that does not apply to the chosen format.
void reject_options_of_others(const ExportOptions& options, const ExportFormat& format) {
  const bool is_onnx = std::string_view(format.name) == "onnx";
  const bool is_safetensors = std::string_view(format.name) == "safetensors";
  const auto refuse = [&](bool given, const char* option, const char* owner) {
    if (given)
      throw UserError(fmt::format("{}: this option applies only to {}, but the format is {}; omit the option",
                                  option, owner, format.name));
  };
  refuse(!is_onnx && options.opset.has_value(), "--opset", "ONNX");
  refuse(!is_onnx && options.float16, "--float16", "ONNX");
  refuse(!is_onnx && options.external_data, "--external-data", "ONNX");
  refuse(!is_safetensors && !options.layout.empty(), "--layout", "safetensors");
  if (options.opset && *options.opset > kMostOpset)
    throw UserError(fmt::format("--opset: expected a number from {} to {}, found {}", kLeastOpset, kMostOpset,
                                *options.opset));
  // --with-preprocessing and --outputs probabilities add computations to the model. Operator graphs (ONNX)
  // and scripts (for PyTorch) can express them. Keras files contain only layers and cannot.
  if (is_onnx || (is_safetensors && options.layout != "keras")) return;
  refuse(options.with_preprocessing, "--with-preprocessing", "ONNX, and to safetensors in PyTorch's layout");
  refuse(options.outputs == "probabilities", "--outputs probabilities",
         "ONNX, and to safetensors in PyTorch's layout");
}

/// Rejects outputs that would overwrite the run's own files.
void check_output(const ExportOptions& options, const SavedRun& run) {
  const FileType there = file_type(options.output_file);
  if (there == FileType::directory || there == FileType::other)
    throw UserError(fmt::format("{}: expected the name of a file, found {}; give another --output",
                                options.output_file, name_of_type(options.output_file)));
  reject_file_of_run(options.output_file);
  std::error_code missing;
  if (std::filesystem::equivalent(run.checkpoint.path(), options.output_file, missing) ||
      begins_as_checkpoint(options.output_file))
    throw UserError(fmt::format("{}: this file is a checkpoint; give another --output", options.output_file));
}

void print_results(const ExportOptions& options, const ExportFormat& format, const SavedRun& run,
                   const ExportedModel& model, const std::vector<std::string>& files) {
  if (options.output.json) {
    Json written = Json::array(), inputs = Json::array(), outputs = Json::array();
    for (const std::string& file : files) written.push(file);
    for (const ExportedInput& input : model.inputs) inputs.push(input.given.name);
    for (const ExportedOutput& output : model.outputs) outputs.push(output.name);
    print_json(Json::object()
                   .set("format", format.name)
                   .set("files", std::move(written))
                   .set("inputs", std::move(inputs))
                   .set("outputs", std::move(outputs))
                   .set("checkpoint", checkpoint_as_json(run)));
  } else if (options.output.text()) {
    print_text(fmt::format("{}written: {}\n", checkpoint_as_text(run), fmt::join(files, ", ")));
  }
}

void export_model(const ExportOptions& options) {
  const ExportFormat& format = format_of(options);
  reject_options_of_others(options, format);
  const SavedRun run = load_saved_model(options);
  print_warnings(placement_warnings(run.config));
  check_output(options, run);
  const ExportedRun exported = exported_run(run, {.are_probabilities = options.outputs == "probabilities",
                                                  .with_preprocessing = options.with_preprocessing});
  for (const std::string& warning : exported.warnings) print_warning(warning);
  const std::vector<std::string> files = format.write(run, exported.model, options);
  print_results(options, format, run, exported.model, files);
}

}  // namespace

void add_export(CommandLine& line) {
  Command command = line.add_command("export", "Export a trained model to a file for other tools");
  const auto options = std::make_shared<ExportOptions>();
  add_model_options(command, *options, "export");
  command
      .add_option("--output,-o", options->output_file,
                  "The file to write. Without --format, the extension of its name selects the format")
      .required()
      .type_name("FILE");
  command.add_option("--format", options->format, "The format of the file").one_of(format_names());
  command
      .add_option(
          "--outputs", options->outputs,
          "Outputs of the exported model: the raw outputs of the model (default), or probabilities. With "
          "`probabilities`, a sigmoid or softmax is added to outputs that the loss takes as logits")
      .one_of({"raw", "probabilities"});
  command.add_flag("--with-preprocessing", options->with_preprocessing,
                   "Add the transforms rescale, normalize and standardize to the exported model, so that its "
                   "inputs are the untransformed numbers of the data set");
  command
      .add_option("--opset", options->opset,
                  fmt::format("ONNX: operator set version, from {} to {} (default: {})", kLeastOpset,
                              kMostOpset, OnnxOptions().opset))
      .at_least(kLeastOpset);
  command.add_flag("--float16", options->float16,
                   "ONNX: store the weights and compute in float16; inputs and outputs remain float32");
  command.add_flag(
      "--external-data", options->external_data,
      "ONNX: write the weights to FILE.data next to the model (always done for models over 2 GB)");
  command
      .add_option("--layout", options->layout,
                  "safetensors: write the weights in PyTorch's layout, with a script that loads them "
                  "(default), or in Keras's layout")
      .one_of({"pytorch", "keras"});
  add_output_options(command, options->output);
  command.callback([options] { export_model(*options); });
}

}  // namespace dtrain
