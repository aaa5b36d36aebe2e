// dtrain predict: computes a trained model's outputs for new inputs.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/wrong_path.h"
#include "commands.h"
#include "config/diagnostics.h"
#include "data/files/array_writer.h"
#include "data/given_file.h"
#include "print/prediction_pictures.h"
#include "print/prediction_table.h"
#include "run/heads.h"
#include "run/probabilities.h"
#include "run/run_plan.h"
#include "run/target_scale.h"
#include "runs/saved_model.h"
#include "train/evaluation/saved_threshold.h"
#include "train/restored_state.h"
#include "train/sample_check.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

struct PredictOptions : ModelOptions, InputOptions {
  OutputOptions output;
  std::vector<std::string> layers;
  std::string output_file, outputs, format;
  std::optional<int64_t> batch_size;
  bool overwrite = false;
};

/// Throws UserError if the output would overwrite an input, a checkpoint, or a file of the run's data set.
void check_output(const PredictOptions& options, const std::vector<std::string>& inputs,
                  const SavedRun& run) {
  namespace fs = std::filesystem;
  const Checkpoint& checkpoint = run.checkpoint;
  if (file_type(options.output_file) == FileType::other)
    throw UserError(
        fmt::format("{}: expected the name of a file or a folder, found {}; give another --output",
                    options.output_file, name_of_type(options.output_file)));
  reject_file_of_run(options.output_file);
  const auto is_output = [&](const std::string& path) {
    std::error_code missing;
    return fs::equivalent(path, options.output_file, missing);
  };
  const fs::path output = absolute_path(options.output_file);
  for (const std::string& path : inputs)
    if (is_output(path))
      throw UserError(fmt::format("{}: this file is an input; give another --output", options.output_file));
  if (is_output(checkpoint.path()) ||
      (output.parent_path().filename() == "checkpoints" && checkpoint_step(output.filename().string())))
    throw UserError(
        fmt::format("{}: this is the name of a checkpoint; give another --output", options.output_file));
  if (file_type(options.output_file) == FileType::file && begins_as_checkpoint(options.output_file))
    throw UserError(fmt::format("{}: this file is a checkpoint; give another --output", options.output_file));
  for (const std::string& file : data_files(run.config.dataset))
    if (is_output(file))
      throw UserError(fmt::format("{}: this is a file of the run's data set; give another --output",
                                  options.output_file));
}

/// Converts the model's outputs to the numbers that are written.
class Predictions {
 public:
  /// `are_of_layers`: true if the graph's outputs are the outputs of --layer; false if they are the model's
  /// own outputs, which have heads in the configuration.
  Predictions(const SavedRun& run, bool are_of_layers, bool are_probabilities)
      : are_of_layers_(are_of_layers), are_probabilities_(are_probabilities) {
    const RunConfig& config = run.config;
    if (!are_of_layers_) units_ = in_units_of_targets(config);
    for (size_t i = 0; i < config.graph.outputs.size(); ++i) {
      if (are_of_layers_) {
        TensorSpec spec = config.graph.spec(config.graph.outputs[i]);
        spec.name = config.graph.value_name(config.graph.outputs[i]);
        outputs_.push_back({spec, {spec.name}});
        continue;
      }
      outputs_.push_back(predicted_output(config, i));
      if (!outputs_.back().classes.empty()) outputs_.back().threshold = saved_threshold(run, i);
      scores_.push_back(config.heads[i].scores());
      const ConfigNode& loss = config.heads[i].configured_loss;
      can_take_logits_.push_back(loss.is_mapping() && can_take_logits(loss.entries().front().first.text()));
      scales_.emplace_back(config, i);
    }
  }

  bool are_probabilities() const { return are_probabilities_; }
  const std::vector<PredictedOutput>& outputs() const { return outputs_; }
  std::vector<TensorSpec> specs() const {
    std::vector<TensorSpec> all;
    for (const PredictedOutput& output : outputs_) all.push_back(output.spec);
    return all;
  }

  /// Converts the model's numbers to the numbers that are written: as float32 in place, or as float64 in
  /// `wide` if float32 has too few digits.
  View finish(size_t output, const View& view, std::vector<double>& wide) {
    if (are_of_layers_) return view;
    const std::span<float> values(view.f32(), static_cast<size_t>(view.elements()));
    if (scores_[output] == Scores::probabilities) look_for_others(output, values);
    if (are_probabilities_)
      make_probabilities(scores_[output], values, outputs_[output].spec.shape.columns());
    else if (are_logits(scores_[output]))
      return view;
    if (!scales_[output].needs_double()) {
      scales_[output].undo(values);
      return view;
    }
    wide = scales_[output].undone(values);
    return {wide.data(), view.shape, DType::float64};
  }

  /// Returns a description of the written numbers for the user, such as "probabilities".
  std::string describe() const {
    if (are_of_layers_) return "the outputs of the layers";
    const auto is_any = [](Scores one) { return one == Scores::any; };
    const bool scaled = std::any_of(scales_.begin(), scales_.end(),
                                    [](const TargetScale& scale) { return scale.is_scaled(); });
    if (std::all_of(scores_.begin(), scores_.end(), is_any))
      return scaled ? "predictions, " + units_ : "the model's outputs";
    if (!no_probability_.empty()) return "the model's outputs, which are not all probabilities";
    if (are_probabilities_) {
      std::string thresholds;
      for (const PredictedOutput& output : outputs_)
        if (output.threshold) thresholds += fmt::format(", threshold {:.4f}", *output.threshold);
      return "probabilities" + thresholds;
    }
    return std::any_of(scores_.begin(), scores_.end(), are_logits)
               ? "the model's outputs, which are logits (--outputs probabilities converts them)"
               : "the model's outputs";
  }

  /// Returns a warning if the loss expects probabilities but some output was not a probability, else "".
  const std::string& no_probability() const { return no_probability_; }

 private:
  /// Sets the warning no_probability_ if one of the values is not a probability.
  void look_for_others(size_t index, std::span<const float> values) {
    const PredictedOutput& output = outputs_[index];
    const char* const advice = can_take_logits_[index] ? ", or train with the loss's from_logits: true" : "";
    constexpr float kRounding = 1e-3f;
    if (!no_probability_.empty()) return;
    const auto wrong = std::find_if(values.begin(), values.end(),
                                    [](float value) { return value < -kRounding || value > 1 + kRounding; });
    if (wrong == values.end()) return;
    no_probability_ = fmt::format(
        "'{0}' returned {1:.4g}, which is not a probability, but the loss expects probabilities; let '{0}' "
        "end in a sigmoid or softmax{2}",
        output.spec.name, *wrong, advice);
  }

  bool are_of_layers_, are_probabilities_;
  std::string no_probability_, units_;
  std::vector<PredictedOutput> outputs_;
  std::vector<Scores> scores_;         // interpretation of each output's numbers
  std::vector<bool> can_take_logits_;  // whether the loss of each output can take logits
  std::vector<TargetScale> scales_;    // scale of each output's target
};

/// Replaces the outputs of the graph with the outputs of these layers.
void choose_layers(Graph& graph, const std::vector<std::string>& layers) {
  std::vector<std::string> names;
  std::vector<int> last;  // for each name, the node that computes the layer's output
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].layer) continue;
    const std::string& name = graph.layer_name(static_cast<int>(i));
    if (names.empty() || names.back() != name) {
      names.push_back(name);
      last.emplace_back();
    }
    last.back() = static_cast<int>(i);
  }
  std::vector<ValueRef> outputs;
  for (const std::string& layer : layers) {
    const auto found = std::find(names.begin(), names.end(), layer);
    if (found == names.end())
      throw UserError(
          fmt::format("--layer: the model has no layer '{}'{} (`dtrain summary` shows all layers)", layer,
                      suggestion_or_list(layer, names)));
    outputs.push_back({last[static_cast<size_t>(found - names.begin())]});
    if (const TensorSpec& spec = graph.spec(outputs.back()); spec.dtype != DType::float32)
      throw UserError(
          fmt::format("--layer: the output of a layer must be float32, but the output of '{}' is {}", layer,
                      name_of(spec.dtype)));
  }
  graph.outputs = std::move(outputs);
}

/// Runs the loader's samples through the model in order, and appends the results.
void predict_samples(Predictions& predictions, Engine& engine, Loader& loader, int64_t batch_size,
                     ArrayWriter& writer) {
  const std::atomic<int>& stop = catch_signals().stop;
  const std::vector<TensorSpec> outputs = predictions.specs();
  std::vector<std::vector<float>> memory;
  std::vector<std::vector<double>> wide(outputs.size());
  for (const TensorSpec& output : outputs)
    memory.emplace_back(static_cast<size_t>(batch_size * output.shape.elements()));
  loader.begin(0, 0);
  while (const auto batch = loader.next()) {
    if (stop != 0) throw Interrupted(stop, "stopped");
    std::vector<View> views;
    for (size_t i = 0; i < outputs.size(); ++i)
      views.push_back({memory[i].data(), outputs[i].shape.prepended(batch->size())});
    engine.predict(*batch, views);
    for (size_t i = 0; i < outputs.size(); ++i) views[i] = predictions.finish(i, views[i], wide[i]);
    writer.append(views);
  }
}

/// Writes the results of all samples. If writing fails, adds to the error message how much was already
/// written.
void predict_all(Predictions& predictions, Engine& engine, Loader& loader, int64_t batch_size,
                 ArrayWriter& writer) {
  try {
    predict_samples(predictions, engine, loader, batch_size, writer);
  } catch (const Interrupted&) {
    throw;
  } catch (const UserError& error) {
    throw UserError(error.what() + writer.describe_written());
  } catch (const Error& error) {
    throw Error(error.what() + writer.describe_written());
  }
  writer.finish();
}

/// Returns the format of a text file: the value of --format, else the format of the file's extension. On
/// standard output, the default is the format of the inputs. Returns nullopt for array files.
std::optional<TextFormat> text_format_of(const PredictOptions& options, bool reads_json_lines) {
  const std::string ending = std::filesystem::path(options.output_file).extension();
  if (!options.format.empty() && is_array_file(options.output_file))
    throw UserError(
        fmt::format("{}: --format is only for text files, but {} files contain arrays; omit --format, or "
                    "give an --output that ends in .csv or .jsonl",
                    options.output_file, ending));
  if (options.format == "jsonl" || (options.format.empty() && ending == ".jsonl"))
    return TextFormat::json_lines;
  if (options.format == "csv" || ending == ".csv") return TextFormat::csv;
  if (options.output_file != kStandardStream) return std::nullopt;
  return reads_json_lines ? TextFormat::json_lines : TextFormat::csv;
}

/// Throws UserError for options that cannot be combined with a folder of images as output.
void check_picture_options(const PredictOptions& options) {
  const auto refuse = [&](const char* option) {
    throw UserError(
        fmt::format("{}: {} is only for files of numbers, but the files in a folder are images; omit the "
                    "option, or give a file (.h5, .npy, .csv or .jsonl)",
                    options.output_file, option));
  };
  if (!options.outputs.empty()) refuse("--outputs");
  if (!options.format.empty()) refuse("--format");
  if (!options.layers.empty()) refuse("--layer");
}

std::unique_ptr<ArrayWriter> open_pictures_writer(const PredictOptions& options, const RunConfig& config,
                                                  const Dataset& inputs) {
  std::vector<PictureOutput> outputs;
  for (size_t i = 0; i < config.heads.size(); ++i) outputs.push_back(picture_output(config, i));
  return open_prediction_pictures(options.output_file, std::move(outputs), inputs, options.overwrite);
}

std::unique_ptr<ArrayWriter> open_writer(const PredictOptions& options, std::optional<TextFormat> format,
                                         const Predictions& predictions, const Dataset& inputs) {
  if (!format) return open_array_writer(options.output_file, predictions.specs(), inputs.size());
  auto sink =
      options.output_file == kStandardStream ? open_standard_output() : open_text_file(options.output_file);
  return open_prediction_table(std::move(sink), *format, predictions.outputs(),
                               predictions.are_probabilities(), inputs);
}

void print_results(const PredictOptions& options, const SavedRun& run, const Predictions& predictions,
                   int64_t samples, bool writes_pictures) {
  if (options.output.json) {
    Json shapes = Json::object();
    for (const TensorSpec& spec : predictions.specs()) {
      Json shape = Json::array().push(samples);
      for (const int64_t extent : spec.shape) shape.push(extent);
      shapes.set(spec.name, std::move(shape));
    }
    print_json(Json::object()
                   .set("output", options.output_file)
                   .set("samples", samples)
                   .set("shapes", std::move(shapes))
                   .set("outputs", writes_pictures ? "images"
                                   : predictions.are_probabilities() && predictions.no_probability().empty()
                                       ? "probabilities"
                                       : "raw")
                   .set("checkpoint", checkpoint_as_json(run)));
  } else if (options.output.text() && options.output_file != kStandardStream) {
    print_text(fmt::format("{}{} predicted, written to {}: {}\n", checkpoint_as_text(run),
                           format_plural(samples, "sample"), options.output_file,
                           writes_pictures ? "an image for each" : predictions.describe()));
  }
}

void predict(const PredictOptions& options, World& world) {
  if (options.output_file == kStandardStream && options.output.json)
    throw UserError("--json and --output - both write to standard output; omit one of them");
  SavedRun run = load_saved_model(options);
  RunConfig& config = run.config;
  const std::vector<std::string> paths = find_given_paths(options.inputs);
  const bool writes_pictures =
      options.output_file != kStandardStream && is_picture_folder(options.output_file);
  if (writes_pictures) check_picture_options(options);
  if (options.output_file != kStandardStream) check_output(options, paths, run);
  if (!options.layers.empty()) choose_layers(config.graph, options.layers);
  const RunPlan plan = plan_run(config, world);  // reports missing devices before the data are opened
  print_warnings(plan.warnings);
  const GivenFiles given = open_given_files(paths);
  const auto format = writes_pictures ? std::nullopt : text_format_of(options, given.front().is_json_lines());
  const auto inputs = open_inputs(given, config.dataset, config.graph.input_specs(), options.text());
  for (const std::string& warning : inputs->warnings()) print_warning(warning);
  const int64_t batch_size =
      std::min(options.batch_size.value_or(config.train.batch_size), std::max<int64_t>(inputs->size(), 1));
  check_samples(config, *inputs, "predicted");
  Loader loader(inputs, {.batch_size = batch_size, .prefetch = config.dataset.prefetch});
  const bool are_probabilities =
      options.outputs.empty() ? format.has_value() || writes_pictures : options.outputs == "probabilities";
  Predictions predictions(run, !options.layers.empty(), are_probabilities);
  const auto writer = writes_pictures ? open_pictures_writer(options, config, *inputs)
                                      : open_writer(options, format, predictions, *inputs);
  const auto engine =
      engine_for_inference(plan, run.checkpoint, Plan::Purpose::prediction, batch_size, loader);
  predict_all(predictions, *engine, loader, batch_size, *writer);
  if (!predictions.no_probability().empty()) print_warning(predictions.no_probability());
  print_results(options, run, predictions, loader.samples(), writes_pictures);
}

}  // namespace

void add_predict(CommandLine& line, World& world) {
  Command command = line.add_command("predict", "Compute a trained model's outputs for new inputs");
  const auto options = std::make_shared<PredictOptions>();
  add_model_options(command, *options, "predict");
  command
      .add_option(
          "--input,-i", options->inputs,
          "Files with the inputs: .h5, .npy, .csv, JSON lines or IDX files, images, folders of images, or "
          "patterns ('pics/*.jpg'); - is standard input. The files contain untransformed inputs, because the "
          "transforms of the data set are applied to them. They are read in the given order")
      .required()
      .type_name("PATH");
  command
      .add_option(
          "--output,-o", options->output_file,
          "The file for the outputs, which are in the order of the inputs. An .h5 or .npy file contains "
          "arrays of the model's outputs; a .csv or .jsonl file contains the names of the classes with their "
          "probabilities, or numbers; - is standard output. If the path is a folder (DIR/), a PNG file with "
          "the mask or the image that the model returns is written to the folder for each input")
      .required()
      .type_name("FILE");
  command
      .add_option("--outputs", options->outputs,
                  "The numbers to write: the model's raw outputs, or probabilities (default: raw for .h5 and "
                  ".npy files, else probabilities)")
      .one_of({"raw", "probabilities"});
  command
      .add_option(
          "--format", options->format,
          "Text format (default: by the file's extension; on standard output, the format of the inputs)")
      .one_of({"csv", "jsonl"});
  command
      .add_option("--layer", options->layers,
                  "Write the output of this layer, such as an embedding, instead of the model's outputs. "
                  "`dtrain summary` shows the names of the layers. The option may be repeated")
      .type_name("NAME")
      .one_value_each()
      .excludes(command.option("--outputs"));
  command.add_flag("--overwrite", options->overwrite,
                   "Replace PNG files that already exist in the folder of --output");
  command
      .add_option("--batch-size", options->batch_size,
                  "Number of samples per batch (default: the batch size of the training)")
      .at_least(1)
      .type_name("N");
  add_text_options(command, *options);
  add_output_options(command, options->output);
  command.callback([options, &world] { predict(*options, world); });
}

}  // namespace dtrain
