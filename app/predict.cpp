// dtrain predict: what a trained model makes of new inputs.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/paths.h"
#include "commands.h"
#include "console.h"
#include "data/array_writer.h"
#include "data/readers/csv_text.h"
#include "options.h"
#include "prediction_table.h"
#include "saved_model.h"
#include "signals.h"
#include "text.h"
#include "train/placement.h"
#include "train/sample_check.h"
#include "train/target_scale.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

struct PredictOptions {
  OutputOptions output;
  std::string path, input_file, output_file;
  std::optional<int64_t> batch_size;
  std::optional<bool> header;
  std::string delimiter;
  std::vector<std::string> sets;
  bool best = false;
};

/// The model's outputs under the names that people know them by.
std::vector<TensorSpec> output_specs(const Graph& graph) {
  std::vector<TensorSpec> specs;
  for (const ValueRef& output : graph.outputs) {
    TensorSpec spec = graph.spec(output);
    spec.name = graph.layer_name(output.node);
    specs.push_back(std::move(spec));
  }
  return specs;
}

/// What is read from must not be written over, nor any other checkpoint, nor what a run was made of.
void check_output(const PredictOptions& options, const SavedRun& run) {
  namespace fs = std::filesystem;
  const Checkpoint& checkpoint = run.checkpoint;
  const Standing there = look_at(options.output_file);
  if (there == Standing::directory || there == Standing::other)
    throw UserError(fmt::format("{}: expected the name of a file, found {}; give another --output",
                                options.output_file,
                                there == Standing::directory ? "a folder" : "something else"));
  const auto is_output = [&](const std::string& path) {
    std::error_code missing;
    return fs::equivalent(path, options.output_file, missing);
  };
  const fs::path output = absolute_path(options.output_file);
  if (is_output(options.input_file))
    throw UserError(fmt::format("{}: is the input; give another --output", options.output_file));
  if (is_output(checkpoint.path()) ||
      (output.parent_path().filename() == "checkpoints" && checkpoint_step(output.filename().string())))
    throw UserError(fmt::format("{}: is a checkpoint's name; give another --output", options.output_file));
  if (begins_as_checkpoint(options.output_file))
    throw UserError(fmt::format("{}: is a checkpoint; give another --output", options.output_file));
  for (const std::string& file : data_files(run.config.dataset))
    if (is_output(file))
      throw UserError(
          fmt::format("{}: is a file of the run's data set; give another --output", options.output_file));
}

/// The loader's samples through the model, in order; numbers in the units of the data's targets.
void predict_all(const RunConfig& config, Replicas& replicas, Loader& loader, int64_t batch_size,
                 const std::vector<TensorSpec>& outputs, ArrayWriter& writer) {
  const std::atomic<int>& stop = catch_signals().stop;
  std::vector<std::vector<float>> memory;
  std::vector<TargetScale> scales;
  for (size_t i = 0; i < outputs.size(); ++i) {
    memory.emplace_back(static_cast<size_t>(batch_size * outputs[i].shape.elements()));
    scales.emplace_back(config, i);
  }
  loader.begin(0, 0);
  while (const auto batch = loader.next()) {
    if (stop != 0) throw Interrupted(stop, "stopped; nothing was written");
    std::vector<View> views;
    for (size_t i = 0; i < outputs.size(); ++i)
      views.push_back({memory[i].data(), outputs[i].shape.prepended(batch->size())});
    replicas.predict(*batch, views);
    for (size_t i = 0; i < outputs.size(); ++i) scales[i].undo(memory[i].data(), views[i].elements());
    writer.append(views);
  }
  writer.finish();
}

TextOptions text_options(const PredictOptions& options) {
  TextOptions text{options.header, std::nullopt};
  if (options.delimiter == "\\t") text.delimiter = '\t';  // as it is written in a shell
  if (options.delimiter.size() == 1) text.delimiter = options.delimiter[0];
  if (options.delimiter == "whitespace") text.delimiter = kBlanksDelimit;
  if (!options.delimiter.empty() && !text.delimiter)
    throw UserError(
        fmt::format("--delimiter: expected one character or 'whitespace', found '{}'", options.delimiter));
  return text;
}

/// A .csv of a run that knows names is a table with them; every other file holds arrays.
std::unique_ptr<ArrayWriter> open_writer(const std::string& path, const RunConfig& config,
                                         const std::vector<TensorSpec>& outputs, const Dataset& inputs) {
  if (std::filesystem::path(path).extension() == ".csv" && has_named_predictions(config, inputs))
    return open_prediction_table(path, config, outputs, inputs);
  return open_array_writer(path, outputs, inputs.size());
}

void predict(const PredictOptions& options) {
  const SavedRun run = load_saved_model(options.path, options.sets, options.best);
  const RunConfig& config = run.config;
  check_output(options, run);
  place_replicas(config);  // what this machine cannot do is said before the data are opened
  const auto inputs =
      open_inputs(options.input_file, config.dataset, config.graph.input_specs(), text_options(options));
  for (const std::string& warning : inputs->warnings()) print_warning(warning);
  const int64_t batch_size =
      std::min(options.batch_size.value_or(config.train.batch_size), std::max<int64_t>(inputs->size(), 1));
  check_samples(config, *inputs, "predicted");
  Loader loader(inputs, {.batch_size = batch_size, .prefetch = config.dataset.prefetch});
  const std::vector<TensorSpec> outputs = output_specs(config.graph);
  const auto writer = open_writer(options.output_file, config, outputs, *inputs);
  const auto replicas = replicas_for_inference(run, Plan::Purpose::prediction, batch_size, loader);
  predict_all(config, *replicas, loader, batch_size, outputs, *writer);

  if (options.output.json) {
    Json shapes = Json::object();
    for (const TensorSpec& spec : outputs) {
      Json shape = Json::array().push(loader.samples());
      for (const int64_t extent : spec.shape) shape.push(extent);
      shapes.set(spec.name, std::move(shape));
    }
    print_json(Json::object()
                   .set("output", options.output_file)
                   .set("samples", loader.samples())
                   .set("shapes", std::move(shapes)));
  } else if (options.output.text()) {
    print_text(fmt::format("{} predicted, written to {}\n", format_plural(loader.samples(), "sample"),
                           options.output_file));
  }
}

}  // namespace

void add_predict(CommandLine& line) {
  Command command = line.add_command("predict", "A trained model's outputs for new inputs");
  const auto options = std::make_shared<PredictOptions>();
  command.add_option("PATH", options->path, "A run directory (its newest checkpoint), or one checkpoint file")
      .required();
  command
      .add_option("--input,-i", options->input_file,
                  "The inputs, before the data set's transforms: .h5, .npy, .csv or IDX, a picture, or a "
                  "folder of them")
      .required()
      .type_name("PATH");
  command
      .add_option("--output,-o", options->output_file,
                  "Where the outputs go, in the inputs' order: .h5, .npy or .csv (with names, where the run "
                  "knows them)")
      .required()
      .type_name("FILE");
  command
      .add_option("--batch-size", options->batch_size, "Samples at a time (as in training where not given)")
      .at_least(1)
      .type_name("N");
  add_best_option(command, options->best);
  command.add_flag(
      "--header,!--no-header", [options](bool given) { options->header = given; },
      "Whether the first line of text holds names (as in the run's own csv where not given)");
  command
      .add_option(
          "--delimiter", options->delimiter,
          "The character between the values of text, or whitespace (as in the run's own csv where not given)")
      .type_name("CHARACTER");
  add_set_option(command, options->sets);
  add_output_options(command, options->output);
  command.callback([options] { predict(*options); });
}

}  // namespace dtrain
