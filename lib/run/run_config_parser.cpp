#include "run/run_config_parser.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "config/load/load.h"
#include "data/located_error.h"
#include "run/auto_widths.h"
#include "run/checks/dataset_checks.h"
#include "run/heads.h"
#include "run/monitors.h"
#include "run/placement.h"
#include "run/row_weights.h"
#include "run/thresholds.h"
#include "run/weight_columns.h"

namespace dtrain {

namespace {

/// The name of the run and of its folder.
struct RunName {
  std::string text;
};

bool is_run_name(std::string_view text) {
  constexpr size_t kLongest = 255;  // limit of common file systems
  return !text.empty() && text.size() <= kLongest && text != "." && text != ".." &&
         text.find('/') == std::string_view::npos;
}

}  // namespace

template <>
struct Codec<RunName> {
  static bool parse(const ConfigNode& node, const std::string& where, RunName& out,
                    Diagnostics& diagnostics) {
    if (!node.is_scalar() || !is_run_name(node.text()))
      return report_unexpected(node, where, "a valid folder name, of at most 255 characters without '/'",
                               diagnostics);
    out.text = node.text();
    return true;
  }
  static ConfigNode write(const RunName& value) { return Codec<std::string>::write(value.text); }
  static Json schema() { return json_type("string").set("minLength", 1).set("pattern", "^[^/]*$"); }
};

namespace {

struct TopLevel {
  std::optional<std::string> base;
  std::optional<RunName> name;
  int64_t seed = 0;
  ConfigNode model, dataset, train, checkpoint;
  Configured<Strategy> strategy = registry<Strategy>().make("mirrored");
};

/// Returns the schema of the top-level keys. `is_run`: whether `dataset` and `train` are required. They are
/// not required if the configuration describes only a model.
Schema<TopLevel> make_top_level_schema(bool is_run) {
  Schema<TopLevel> schema("A run of dtrain.");
  const auto add_part = [&](const char* key, ConfigNode TopLevel::*member, const char* doc) {
    is_run ? schema.required(key, member, doc) : schema.optional(key, member, doc);
  };
  schema
      .optional(
          "base", &TopLevel::base,
          "path of another configuration, which this configuration extends. Mappings are merged key by key. "
          "Any other value, such as a number or a list, replaces the value of the other configuration")
      .optional("name", &TopLevel::name,
                "name of the run and of its folder under runs/; the default is the name of the configuration "
                "file without its extension")
      .optional("seed", &TopLevel::seed, "seed of all random numbers", at_least<int64_t>(0))
      .required("model", &TopLevel::model, "the network, written here or in another YAML file");
  add_part("dataset", &TopLevel::dataset, "the data, written here or in another YAML file");
  schema.optional("strategy", &TopLevel::strategy, "the strategy that distributes the run over devices");
  add_part("train", &TopLevel::train, "options of the training");
  schema.optional("checkpoint", &TopLevel::checkpoint, "options for saving checkpoints")
      .rule([](const TopLevel& top, const ConfigNode& node, Diagnostics& diagnostics) {
        // load_config() removes `base` after it has loaded a configuration file, so `base` is found here only
        // if the configuration does not come from a file.
        if (top.base)
          diagnostics.error(
              *node.find("base"),
              "base: only a configuration file can extend another configuration; remove `base` here");
      });
  return schema;
}

const Schema<TopLevel>& top_level_schema(ConfigUse use = ConfigUse::description) {
  static const Schema<TopLevel> run = make_top_level_schema(true), model = make_top_level_schema(false);
  return use == ConfigUse::model ? model : run;
}

/// Adds the options for metrics, row weights and predicted classes.
void add_metric_options(Schema<TrainOptions>& schema) {
  schema
      .optional("metrics", &TrainOptions::metrics,
                "metrics to report in addition to the loss: a list for all outputs, or a mapping from "
                "output names to lists")
      .optional(
          "weighted_metrics", &TrainOptions::weighted_metrics,
          "like `metrics`, but each row is weighted as in the loss, by `class_weight` and sample weights")
      .optional("class_weight", &TrainOptions::class_weight,
                "weights of the classes in the training loss: a mapping from classes to weights, such as "
                "{cat: 1, dog: 3}, or `balanced`, which gives all classes the same total weight (masked "
                "positions do not count). The loss of "
                "a batch is the weighted mean over its rows, so weights only have an effect relative to the "
                "other rows of the batch, and no effect if batch_size is 1")
      .optional("threshold", &TrainOptions::threshold,
                "for an output with two classes: the probability above which the second class is predicted "
                "(default: 0.5). It is a number, or a goal for which the threshold is chosen on the "
                "validation split after each epoch: {maximize: f1_score}, {maximize: balanced_accuracy}, "
                "{precision: 0.9} (the highest recall with at least this precision) or {recall: 0.9} (the "
                "highest precision with at least this recall). To choose it, the predicted probabilities are "
                "counted in intervals. The width of an interval is at most 0.4 % of its logit, which is less "
                "than 0.001 in probability. The threshold is in the middle between two neighboring intervals "
                "that contain predictions");
}

Schema<TrainOptions> make_train_schema() {
  Schema<TrainOptions> schema("Options of the training.");
  schema
      .optional("epochs", &TrainOptions::epochs, "number of passes over the training split",
                between<int64_t>(0, 1000000000))
      .optional("batch_size", &TrainOptions::batch_size,
                "number of samples in a step, summed over all replicas", between<int64_t>(1, 2147483647))
      .required("loss", &TrainOptions::loss,
                "the loss to minimize: one loss for every output, or a mapping from output names to losses")
      .required("optimizer", &TrainOptions::optimizer,
                "the rule that updates the weights from their gradients");
  add_metric_options(schema);
  schema
      .optional("precision", &TrainOptions::precision,
                "the number format in which layers compute; only GPUs support formats other than float32")
      .optional(
          "deterministic", &TrainOptions::deterministic,
          "whether to use only deterministic algorithms, so that repeated runs have bit-identical results. "
          "On GPUs, these algorithms are slower. With several GPUs, dtrain also sets NCCL_ALGO=Ring")
      .optional("clip_norm", &TrainOptions::clip_norm,
                "maximum L2 norm of the whole gradient; larger gradients are scaled down",
                greater_than<std::optional<double>>(0.0))
      .optional("clip_value", &TrainOptions::clip_value,
                "maximum absolute value of each element of the gradient; larger elements are clipped",
                greater_than<std::optional<double>>(0.0))
      .optional("accumulate", &TrainOptions::accumulate,
                "number of microbatches into which each replica divides its share of the batch (gradient "
                "accumulation). A step then needs less memory. The gradient is the same as without "
                "accumulation, unless the model has batch normalization",
                between<int64_t>(1, 2147483647))
      .optional("max_time", &TrainOptions::max_time,
                "time limit of the run, such as '8 hours'. The run saves a checkpoint and ends within this "
                "time. The time starts again when the run is resumed")
      .optional("step_timeout", &TrainOptions::step_timeout,
                "the run ends with an error if the GPUs make no progress in a step for this time. The time "
                "for reading samples and for preparing kernels does not count")
      .optional("peer_timeout", &TrainOptions::peer_timeout,
                "in a run of several processes, the run ends with an error if a process does not respond for "
                "this time")
      .optional("callbacks", &TrainOptions::callbacks,
                "callbacks, which monitor or change the run. If the list is not empty and does not contain "
                "`terminate_on_nan`, this callback is added")
      .optional("groups", &TrainOptions::groups, "groups of weights with their own training options")
      .rule([](const TrainOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
        if (options.clip_norm && options.clip_value)
          diagnostics.error(node, "give either 'clip_norm' or 'clip_value', not both");
      });
  return schema;
}

const Schema<TrainOptions>& train_schema() {
  static const Schema<TrainOptions> schema = make_train_schema();
  return schema;
}

const Schema<BestOptions>& best_schema() {
  static const auto schema =
      Schema<BestOptions>("Also keep the best checkpoint.")
          .optional("monitor", &BestOptions::monitor,
                    "the metric that is monitored, by its name in metrics.jsonl, such as `val_loss`")
          .optional("mode", &BestOptions::mode, kMonitorMode);
  return schema;
}

}  // namespace

template <>
struct Codec<BestOptions> {
  static bool parse(const ConfigNode& node, const std::string& where, BestOptions& out,
                    Diagnostics& diagnostics) {
    return best_schema().parse(node, where, out, diagnostics);
  }
  static ConfigNode write(const BestOptions& value) { return best_schema().write(value); }
  static Json schema() { return best_schema().json_schema(); }
};

namespace {

const Schema<CheckpointOptions>& checkpoint_schema() {
  static const auto schema =
      Schema<CheckpointOptions>("Options for saving checkpoints.")
          .optional("every", &CheckpointOptions::every,
                    "interval between checkpoints, such as '1 epoch', '200 steps' or '10 minutes'. With "
                    "`auto`, a checkpoint is saved at the end of each epoch, unless the last save was less "
                    "than ten seconds ago. The final state is always saved")
          .optional("keep", &CheckpointOptions::keep, "number of newest checkpoints to keep",
                    at_least<int64_t>(1))
          .optional("best", &CheckpointOptions::best,
                    "a metric whose best value decides which checkpoint is also kept. The best checkpoint is "
                    "saved at once if saving takes less than a twentieth of the time since the last save, "
                    "otherwise within ten seconds");
  return schema;
}

constexpr const char* kTerminateOnNan = "terminate_on_nan";

/// Adds the callback `terminate_on_nan` to a list of callbacks. An empty list remains empty, so that users
/// can disable all callbacks.
void add_default_callbacks(std::vector<Configured<Callback>>& callbacks) {
  const auto is_it = [](const Configured<Callback>& callback) { return callback.name == kTerminateOnNan; };
  if (!callbacks.empty() && std::none_of(callbacks.begin(), callbacks.end(), is_it))
    callbacks.push_back(registry<Callback>().make(kTerminateOnNan));
}

/// Reports duplicates of callbacks that a run may have only once: an average of the weights, and TensorBoard.
void check_callbacks_once(const std::vector<Configured<Callback>>& callbacks, Diagnostics& diagnostics) {
  std::set<std::string> met;
  for (const Configured<Callback>& callback : callbacks)
    if (callback && (callback->average_decay() || callback->tensorboard()) &&
        !met.insert(callback.name).second)
      diagnostics.error(
          callback.resolved.mark(),
          fmt::format("callbacks: '{}' is given twice, but may be given only once", callback.name));
}

/// Returns true if a part of the configuration is given and can be checked.
bool is_readable(const ConfigNode& node, std::string_view part) {
  const ConfigNode* const content = node.find(part);
  return content && !content->is_unreadable();
}

/// Returns the configuration of a run with all defaults.
ConfigNode resolved_run(const RunConfig& config, const ParsedHeads& heads) {
  std::vector<ConfigNode::Entry> parts{
      ConfigNode::entry("name", ConfigNode::scalar(config.name, true)),
      ConfigNode::entry("seed", ConfigNode::scalar(std::to_string(config.seed))),
      ConfigNode::entry("model", config.graph.resolved)};
  if (config.written.find("dataset")) parts.push_back(ConfigNode::entry("dataset", config.dataset.resolved));
  parts.push_back(ConfigNode::entry("strategy", config.strategy.resolved));
  if (config.has_training())
    parts.push_back(ConfigNode::entry("train", train_schema()
                                                   .write(config.train)
                                                   .with("loss", heads.losses)
                                                   .with("metrics", heads.metrics)
                                                   .with("weighted_metrics", heads.weighted_metrics)));
  parts.push_back(ConfigNode::entry("checkpoint", checkpoint_schema().write(config.checkpoint)));
  return ConfigNode::mapping(std::move(parts));
}

/// Implements parse_run_config(), but does not read data. If the model has `auto` shapes or units (see
/// `ends`), the result has no graph.
std::optional<RunConfig> parse_parts(const ConfigNode& node, const std::string& name, ConfigUse use,
                                     ModelEnds& ends, Diagnostics& diagnostics) {
  const size_t before = diagnostics.count();
  TopLevel top;
  top_level_schema(use).parse(node, "the configuration", top, diagnostics);
  RunConfig config;
  config.written = node;
  config.name = top.name ? top.name->text : name;
  config.seed = top.seed;
  config.strategy = top.strategy;
  config.train.callbacks = {registry<Callback>().make(kTerminateOnNan)};
  // Parses every part even if earlier parts have errors, so that all errors are reported at once.
  if (node.find("train")) train_schema().parse(top.train, "train", config.train, diagnostics);
  add_default_callbacks(config.train.callbacks);
  check_callbacks_once(config.train.callbacks, diagnostics);
  checkpoint_schema().parse(top.checkpoint, "checkpoint", config.checkpoint, diagnostics);
  std::optional<Graph> graph;
  if (is_readable(node, "model")) graph = parse_model(top.model, diagnostics, &ends);
  if (graph) config.graph = std::move(*graph);
  if (graph) apply_groups(config.train.groups, config.graph, diagnostics);
  const ParsedHeads heads = parse_heads(config, ends.outputs, top.train, diagnostics);
  const size_t before_dataset = diagnostics.count();
  if (is_readable(node, "dataset"))
    if (auto dataset = parse_dataset(top.dataset, diagnostics)) config.dataset = std::move(*dataset);
  config.dataset.seed = static_cast<uint64_t>(config.seed);
  const bool dataset_known = is_readable(node, "dataset") && diagnostics.count() == before_dataset;
  if (dataset_known && graph) check_dataset_fits(config, diagnostics);
  set_row_weights(config, diagnostics);
  if (dataset_known && graph && diagnostics.count() == before) check_lengths(config, diagnostics);

  // If the dataset has errors, assumes that it has the splits named in the configuration.
  const bool validation = config.dataset.validation || (!dataset_known && top.dataset.find("validation")) ||
                          top.dataset.is_unreadable();
  add_thresholds(config, validation, diagnostics);
  check_monitors(config, validation, heads.complete, diagnostics);
  if (use == ConfigUse::training) {
    check_divisors(config, diagnostics);
    if (dataset_known) check_train_split(config, diagnostics);
    if (config.strategy) place_replicas(config, diagnostics);
  }
  if (diagnostics.count() > before) {
    // Missing files are otherwise reported when the data are opened, which needs a valid configuration.
    if (dataset_known && use == ConfigUse::training) check_files_exist(config.dataset, diagnostics);
    return std::nullopt;
  }
  config.resolved = resolved_run(config, heads);
  config.warnings = diagnostics.warnings();
  return config;
}

}  // namespace

std::optional<RunConfig> parse_run_config(const ConfigNode& node, const std::string& name,
                                          Diagnostics& diagnostics, ConfigUse use) {
  ModelEnds ends;
  std::optional<RunConfig> config = parse_parts(node, name, use, ends, diagnostics);
  if (!config || !ends.is_open()) return config;
  const size_t before = diagnostics.count();
  ConfigNode settled;
  try {
    settled = with_widths(node, *config, ends, diagnostics);
  } catch (const LocatedError& error) {
    for (const auto& [mark, message] : error.errors()) diagnostics.error(mark, message);
    // Finds missing files of the other splits, too. with_widths() reads only the training split.
    if (use == ConfigUse::training) check_files_exist(config->dataset, diagnostics);
  }
  if (diagnostics.count() != before) return std::nullopt;
  return parse_parts(settled, name, use, ends, diagnostics);
}

RunConfig load_run_config(const std::string& path, const std::vector<std::string>& sets, ConfigUse use) {
  Diagnostics diagnostics;
  const ConfigNode node = load_config(path, sets, diagnostics);
  if (node.is_null()) diagnostics.throw_if_errors();
  const std::string stem = std::filesystem::path(path).stem().string();
  auto config = parse_run_config(node, is_run_name(stem) ? stem : "run", diagnostics, use);
  diagnostics.throw_if_errors();
  return std::move(*config);
}

Json run_config_json_schema() {
  SchemaDefinitions definitions;
  Json schema = top_level_schema().json_schema();
  Json properties = *schema.find("properties");
  /// Returns a schema that allows either a path or the part itself, with the description and the default that
  /// the top-level schema has for this key.
  const auto in_file_or_place = [&schema](const char* key, Json part) {
    const Json path = Json::object()
                          .set("type", "string")
                          .set("title", "path of a YAML file")
                          .set("description", "the path of a YAML file with this part of the configuration");
    Json either = Json::object().set("anyOf", Json::array().push(path).push(std::move(part)));
    for (const char* keyword : {"description", "default"})
      if (const Json* entry = schema.at("properties").at(key).find(keyword)) either.set(keyword, *entry);
    return either;
  };
  Json train = train_schema().json_schema();
  Json train_properties = *train.find("properties");
  const auto describe = [&train_properties](const char* key, Json part) {
    if (const Json* entry = train_properties.at(key).find("description")) part.set("description", *entry);
    train_properties.set(key, std::move(part));
  };
  describe("loss", heads_json_schema());
  describe("metrics", metrics_json_schema().set("default", Json::array()));
  describe("weighted_metrics", metrics_json_schema().set("default", Json::array()));
  describe("class_weight", class_weight_json_schema());
  // This is the default because parse_run_config() adds terminate_on_nan if the key is missing.
  describe("callbacks",
           Json(train_properties.at("callbacks")).set("default", Json::array().push(kTerminateOnNan)));
  train.set("properties", std::move(train_properties));
  properties.set("model", in_file_or_place("model", model_json_schema()));
  properties.set("dataset", in_file_or_place("dataset", dataset_json_schema()));
  properties.set("strategy", in_file_or_place("strategy", registry<Strategy>().json_schema()));
  properties.set("train", std::move(train));
  properties.set("checkpoint", checkpoint_schema().json_schema());
  schema.set("properties", std::move(properties));
  Json document = Json::object().set("$schema", "https://json-schema.org/draft/2020-12/schema");
  for (const auto& [key, value] : schema.entries()) document.set(key, value);
  return document.set("$defs", definitions.take());
}

}  // namespace dtrain
