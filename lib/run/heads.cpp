#include "run/heads.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "run/record/training_state.h"

namespace dtrain {

namespace {

/// Returns whether `node` is a loss: the name of a known loss, or a mapping with this name as its only key.
bool is_loss(const ConfigNode& node) {
  if (node.is_scalar()) return !registry<Loss>().canonical(node.text()).empty();
  return node.is_mapping() && node.entries().size() == 1 &&
         !registry<Loss>().canonical(node.entries().front().first.text()).empty();
}

/// Returns whether `loss:` is a mapping from outputs to losses, rather than one loss with options.
bool is_by_output(const ConfigNode& loss, const std::vector<ModelOutput>& outputs) {
  if (!loss.is_mapping() || loss.entries().empty()) return false;
  if (loss.entries().size() > 1) return true;
  const auto& [key, value] = loss.entries().front();
  if (registry<Loss>().contains(key.text())) return false;
  const auto is_called = [&, name = key.text()](const ModelOutput& output) { return output.name == name; };
  if (std::any_of(outputs.begin(), outputs.end(), is_called)) return true;
  return !is_loss(loss) && is_loss(value) && outputs.front().name.empty();
}

/// Reports outputs without a loss. Does not report an output if an unknown key may be its misspelled name,
/// because the error about the unknown key already suggests the output.
void report_missing_losses(const ConfigNode& loss, const std::vector<std::string>& missing,
                           const std::vector<std::string>& unknown_keys, Diagnostics& diagnostics) {
  if (unknown_keys.size() >= missing.size()) return;
  for (const std::string& name : missing) {
    const auto is_misspelled = [&](const std::string& key) { return is_near(key, std::span(&name, 1)); };
    if (std::none_of(unknown_keys.begin(), unknown_keys.end(), is_misspelled))
      diagnostics.error(loss, fmt::format("loss: the output '{}' has no loss; add one", name));
  }
}

/// Returns one loss per output. A loss is empty if it could not be parsed.
std::vector<Configured<Loss>> read_losses(const ConfigNode& loss, const std::vector<ModelOutput>& outputs,
                                          Diagnostics& diagnostics) {
  if (!is_by_output(loss, outputs))
    return std::vector(outputs.size(), registry<Loss>().parse(loss, diagnostics));
  std::vector<std::string> names;
  for (const ModelOutput& output : outputs) names.push_back(output.name);
  const bool all_known = std::find(names.begin(), names.end(), "") == names.end();
  std::vector<std::string> missing, unknown_keys;
  for (const std::string& name : names)
    if (!name.empty() && !loss.find(name)) missing.push_back(name);
  std::vector<Configured<Loss>> losses(outputs.size());
  for (const auto& [key, value] : loss.entries()) {
    Configured<Loss> kind = registry<Loss>().parse(value, diagnostics);
    const auto found = std::find(names.begin(), names.end(), key.text());
    if (found != names.end()) {
      losses[static_cast<size_t>(found - names.begin())] = std::move(kind);
    } else if (all_known) {
      unknown_keys.push_back(key.text());
      diagnostics.error(key, fmt::format("loss: the model has no output '{}'{}", key.text(),
                                         suggestion_or_list(key.text(), missing.empty() ? names : missing)));
    }
  }
  report_missing_losses(loss, missing, unknown_keys, diagnostics);
  return losses;
}

/// Returns a function that reports errors at `mark`, prefixed with `who`.
ReportError report_at(const Mark& mark, const std::string& who, Diagnostics& diagnostics) {
  return [&diagnostics, mark, who](const std::string& message) {
    diagnostics.error(mark, fmt::format("{}: {}", who, message));
  };
}

}  // namespace

bool can_take_logits(const std::string& kind) {
  const std::vector<std::string> options = registry<Loss>().fields(kind);
  return std::find(options.begin(), options.end(), "from_logits") != options.end();
}

namespace {

/// Warns if the loss expects probabilities but the output has logits, or vice versa.
void warn_of_scores(const Graph& graph, ValueRef output, const Configured<Loss>& loss,
                    Diagnostics& diagnostics) {
  if (loss->takes() == Scores::any) return;
  const auto node_of = [&](ValueRef value) -> const GraphNode& {
    return graph.nodes[static_cast<size_t>(value.node)];
  };
  while (node_of(output).kind == "flatten" || node_of(output).kind == "reshape")
    output = node_of(output).inputs[0];
  const GraphNode& node = node_of(output);
  // A layer without an `activation` option may output logits or probabilities.
  const std::vector<std::string> options = registry<Layer>().fields(node.kind);
  const bool softmax = node.layer && node.layer->is_softmax();
  if (!node.layer || (!softmax && std::find(options.begin(), options.end(), "activation") == options.end()))
    return;
  const auto function = node.layer->elementwise();
  const bool sigmoid = function && function->kind == Activation::sigmoid;
  const std::string& name = graph.layer_name(output.node);
  const Mark& mark = loss.resolved.mark();
  const bool logits = loss->takes() != Scores::probabilities;
  if (logits && (softmax || sigmoid))
    diagnostics.warning(
        mark, fmt::format("{0} has from_logits: true, but '{1}' ends in a {2}; remove from_logits or the {2}",
                          loss.name, name, softmax ? "softmax" : "sigmoid"));
  if (!logits && !softmax && !sigmoid)
    diagnostics.warning(
        mark,
        fmt::format("{} expects probabilities, but '{}' does not end in a softmax or sigmoid; {}add such an "
                    "activation",
                    loss.name, name, can_take_logits(loss.name) ? "set from_logits: true, or " : ""));
  const bool sums_to_one = loss->tells_classes() && !loss->is_of_columns() && !loss->is_of_samples();
  if (!logits && sigmoid && sums_to_one && graph.spec(output).shape.columns() > 1)
    diagnostics.warning(
        mark,
        fmt::format("{} expects probabilities that sum to 1, but '{}' ends in a sigmoid, which computes a "
                    "separate probability for each class; use softmax, or binary_crossentropy if a sample "
                    "may have several classes",
                    loss.name, name));
}

/// A metric as written in the configuration.
struct WrittenMetric {
  Configured<Metric> kind;  // empty if the metric had an error
  Mark mark, name_mark;     // locations of the metric, and of its option `name` if it has one
};
using WrittenMetrics = std::vector<WrittenMetric>;  // metrics of one output

/// The metrics of `metrics:` or `weighted_metrics:`, by output.
struct MetricsByOutput {
  std::vector<WrittenMetrics> outputs;
  ConfigNode resolved = ConfigNode::sequence({});
};

/// Reads a list of metrics, or a single metric.
WrittenMetrics read_list(const ConfigNode& node, Diagnostics& diagnostics) {
  WrittenMetrics list;
  const auto add = [&](const ConfigNode& kind) {
    const bool has_options = kind.is_mapping() && kind.entries().size() == 1;
    const ConfigNode* name = has_options ? kind.entries().front().second.find("name") : nullptr;
    list.push_back(
        {registry<Metric>().parse(kind, diagnostics), kind.mark(), name ? name->mark() : kind.mark()});
  };
  if (!node.is_sequence()) add(node);
  if (node.is_sequence())
    for (const ConfigNode& kind : node.items()) add(kind);
  return list;
}

ConfigNode resolved_list(const WrittenMetrics& list) {
  std::vector<ConfigNode> kinds;
  for (const WrittenMetric& metric : list)
    if (metric.kind) kinds.push_back(metric.kind.resolved);
  return ConfigNode::sequence(std::move(kinds));
}

/// Reads the metrics of each output; a list or a single name applies to every output.
MetricsByOutput read_metrics(const ConfigNode& train, std::string_view key,
                             const std::vector<ModelOutput>& outputs, Diagnostics& diagnostics) {
  MetricsByOutput all;
  all.outputs.resize(outputs.size());
  const ConfigNode* node = train.find(key);
  if (!node || node->is_null()) return all;
  if (!node->is_mapping()) {
    const WrittenMetrics list = read_list(*node, diagnostics);
    for (WrittenMetrics& output : all.outputs) output = list;
    all.resolved = resolved_list(list);
    return all;
  }
  std::vector<std::string> names;
  for (const ModelOutput& output : outputs) names.push_back(output.name);
  const bool all_known = std::find(names.begin(), names.end(), "") == names.end();
  std::vector<ConfigNode::Entry> resolved;
  for (const auto& [name, value] : node->entries()) {
    WrittenMetrics list = read_list(value, diagnostics);
    resolved.push_back(ConfigNode::entry(name.text(), resolved_list(list)));
    const auto found = std::find(names.begin(), names.end(), name.text());
    if (found != names.end())
      all.outputs[static_cast<size_t>(found - names.begin())] = std::move(list);
    else if (all_known)
      diagnostics.error(name, fmt::format("{}: the model has no output '{}'{}", key, name.text(),
                                          suggestion(name.text(), names)));
  }
  all.resolved = ConfigNode::mapping(std::move(resolved));
  return all;
}

/// Returns the name under which a metric is reported: its option `name`, else its type.
std::string name_of_metric(const Configured<Metric>& metric) {
  if (!metric.resolved.is_mapping()) return metric.name;
  const ConfigNode* name = metric.resolved.entries().front().second.find("name");
  return name && !name->is_null() ? name->text() : metric.name;
}

/// Returns the type of a metric and its options, without its option `name`, as text. `chosen`: the type that
/// was chosen for the metric if its type depends on the output and the target (as for `accuracy`); otherwise
/// "".
std::string what_it_computes(const Configured<Metric>& metric, const std::string& chosen) {
  const auto options_of = [](const ConfigNode& resolved) {
    constexpr std::string_view kName[] = {"name"};
    return resolved.is_mapping() ? resolved.entries().front().second.without(kName) : ConfigNode();
  };
  ConfigNode options = options_of(metric.resolved);
  if (!chosen.empty() && options.is_null()) options = options_of(registry<Metric>().make(chosen).resolved);
  return (chosen.empty() ? metric.name : chosen) + ": " + options.to_yaml();
}

/// Returns the reason why a metric cannot be reported under the name `prefix` + `name`; "" if it can. Some
/// names are not possible because they are keys in the records of epochs or in the output of `dtrain
/// evaluate`.
std::string name_problem(const std::string& prefix, const std::string& name) {
  constexpr std::array<std::string_view, 14> kKeys{
      "at_threshold", "epoch",  "step",  "loss",   "learning_rate", "seconds", "samples_per_second",
      "samples",      "errors", "split", "inputs", "checkpoint",    "classes", "in_units_of_data"};
  if (name.empty()) return "the name of a metric must not be empty";
  if (name.starts_with("val_"))
    return fmt::format("'{}' is the name of '{}' on the validation split; choose another name", name,
                       name.substr(4));
  if (name == "per_class" || std::find(kKeys.begin(), kKeys.end(), prefix + name) != kKeys.end())
    return fmt::format("'{}' is already the name of another reported value; choose another name",
                       prefix + name);
  return "";
}

/// Reports names of losses and metrics that begin with "val_" and are equal to the name of another loss or
/// metric on the validation split. This happens, for example, if an output is named 'val'.
void check_validation_names(const std::vector<std::string>& totals, const Mark& mark,
                            Diagnostics& diagnostics) {
  for (const std::string& name : totals) {
    if (!name.starts_with("val_")) continue;
    const std::string plain = name.substr(4);
    if (plain == "loss" || std::find(totals.begin(), totals.end(), plain) != totals.end())
      diagnostics.error(mark,
                        fmt::format("'{}' is the name of a loss or metric of an output, but also the name of "
                                    "'{}' on the validation split; give the output another name",
                                    name, plain));
  }
}

/// Builds the head of one output. `prefix` is put before the names of its loss and metrics; it is "" for a
/// model with one output.
class HeadBuilder {
 public:
  HeadBuilder(RunConfig& config, const ModelOutput& output, const Configured<Loss>& loss, std::string prefix,
              const ConfigNode& train, Diagnostics& diagnostics)
      : config_(config),
        output_(output),
        loss_name_(loss.name),
        prefix_(std::move(prefix)),
        diagnostics_(diagnostics) {
    if (loss && output.spec)
      target_ = loss->target(*output.spec, report_at(place_in(train, {"loss"}), loss.name, diagnostics));
    head_ = {output.value, loss.value, {}, target_.value_or(TensorSpec{})};
    head_.configured_loss = loss.resolved;
    if (!prefix_.empty()) head_.target.name = prefix_.substr(0, prefix_.size() - 1);
    config_.total_names.push_back(prefix_ + "loss");
  }

  /// Adds metrics. Reports metrics that cannot be computed for the output, if the shape of the output is
  /// known.
  void add(const WrittenMetrics& written, bool weighted) {
    for (const WrittenMetric& metric : written)
      // If `kind` is empty, the error was reported when the metric was parsed.
      if (metric.kind) add(metric, weighted);
  }
  Head take() { return std::move(head_); }

 private:
  void add(const WrittenMetric& as_written, bool weighted) {
    const Configured<Metric>& written = as_written.kind;
    const Mark& mark = as_written.mark;
    HeadMetric metric{name_of_metric(written), written.value, 1, weighted};
    metric.configured = written.resolved;
    if (const std::string problem = name_problem(prefix_, metric.name); !problem.empty())
      diagnostics_.error(as_written.name_mark, "name: " + problem);
    const auto is_there = [&] {
      return std::find(config_.total_names.begin(), config_.total_names.end(), prefix_ + metric.name) !=
             config_.total_names.end();
    };
    if (weighted && is_there()) metric.name = "weighted_" + metric.name;  // the name that Keras uses
    if (is_there()) {
      const std::vector<std::string> options = registry<Metric>().fields(written.name);
      const bool takes_name = std::find(options.begin(), options.end(), "name") != options.end();
      diagnostics_.error(
          mark,
          fmt::format("the metric '{}' is given twice{}", metric.name,
                      takes_name
                          ? fmt::format("; give the second one a name, such as `{}: {{name: second_{}}}`",
                                        written.name, metric.name)
                          : ""));
    }
    if (head_.loss)
      if (auto as_it_is = metric.metric->for_loss(*head_.loss)) metric.metric = std::move(as_it_is);
    const ReportError report_error = [&](const std::string& message) {
      const bool is_accuracy =
          written.name.ends_with("_accuracy") && message.find("target") != std::string::npos;
      report_at(mark, written.name, diagnostics_)(
          is_accuracy ? fmt::format("{}; the metric cannot be used with the loss {}; use 'accuracy', which "
                                    "works with every classification loss",
                                    message, loss_name_)
                      : message);
    };
    if (target_ && metric.metric->check(*output_.spec, head_.target, report_error)) {
      metric.sums = sums_of(*metric.metric, report_error);
      metric.computes = what_it_computes(written, metric.metric->chosen_kind(*output_.spec, head_.target));
    }
    config_.total_names.push_back(prefix_ + metric.name);
    head_.metrics.push_back(std::move(metric));
  }

  int64_t sums_of(const Metric& metric, const ReportError& report_error) const {
    const int64_t sums = metric.sums(*output_.spec, head_.target);
    const auto kept = static_cast<int64_t>(count_totals(config_.graph, config_.heads)) + head_.count_totals();
    if (sums > TrainingState::kMostSums - kept)
      report_error(
          fmt::format("the metric needs {} counts for an output of shape {}; all metrics of a run together "
                      "may have at most {} counts, and the metrics before this one already have {}",
                      sums, output_.spec->shape.str(), TrainingState::kMostSums, kept));
    return sums;
  }

  RunConfig& config_;
  const ModelOutput& output_;
  std::string loss_name_, prefix_;
  Diagnostics& diagnostics_;
  std::optional<TensorSpec> target_;
  Head head_;
};

/// Sets the masks of the heads. Reports an error if a loss cannot use the mask of its output.
void set_masks(RunConfig& config, const Mark& mark, Diagnostics& diagnostics) {
  const Graph& graph = config.graph;
  for (Head& head : config.heads) {
    const ValueRef value = graph.mask_of(head.output);
    if (value == ValueRef()) continue;
    head.mask = HeadMask{value, graph.spec(value).shape};
    if (head.loss && head.loss->is_of_samples() && head.mask->shape.rank() > 0)
      diagnostics.error(
          mark, fmt::format("the output '{}' has a mask, which marks padding in the inputs, but this loss is "
                            "computed over whole samples and cannot skip masked positions. Use another loss, "
                            "or set `ignore_mask: true` on a layer between the mask and the output",
                            graph.layer_name(head.output.node)));
  }
}

}  // namespace

ParsedHeads parse_heads(RunConfig& config, std::vector<ModelOutput> outputs, const ConfigNode& train,
                        Diagnostics& diagnostics) {
  if (outputs.empty()) outputs.emplace_back();
  ParsedHeads heads;
  std::vector<Configured<Loss>> losses(outputs.size());
  if (const ConfigNode* loss = train.find("loss"))
    losses = read_losses(registry<Loss>().without_replaced(*loss), outputs, diagnostics);
  const MetricsByOutput metrics = read_metrics(train, "metrics", outputs, diagnostics);
  const MetricsByOutput weighted = read_metrics(train, "weighted_metrics", outputs, diagnostics);
  std::vector<ConfigNode::Entry> resolved;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string prefix = outputs.size() > 1 ? outputs[i].name + "_" : "";
    if (prefix == "_") heads.complete = false;
    HeadBuilder head(config, outputs[i], losses[i], prefix, train, diagnostics);
    head.add(metrics.outputs[i], false);
    head.add(weighted.outputs[i], true);
    config.heads.push_back(head.take());
    for (const WrittenMetrics& written : {metrics.outputs[i], weighted.outputs[i]})
      for (const WrittenMetric& metric : written) heads.complete = heads.complete && metric.kind;
    if (!losses[i]) continue;
    resolved.push_back(ConfigNode::entry(outputs[i].name, losses[i].resolved));
    if (!config.graph.nodes.empty()) warn_of_scores(config.graph, outputs[i].value, losses[i], diagnostics);
  }
  if (!config.graph.nodes.empty()) set_masks(config, place_in(train, {"loss"}), diagnostics);
  // With only one output, the names are "loss" and the names of metrics, which name_problem() has already
  // checked.
  if (config.heads.size() > 1)
    check_validation_names(config.total_names, place_in(train, {"loss"}), diagnostics);
  if (!resolved.empty())
    heads.losses = outputs.size() > 1 ? ConfigNode::mapping(std::move(resolved)) : resolved[0].second;
  heads.metrics = metrics.resolved;
  heads.weighted_metrics = weighted.resolved;
  return heads;
}

std::optional<MetricOfHead> find_metric(const RunConfig& config, const std::string& name) {
  size_t total = 0;
  for (const Head& head : config.heads) {
    ++total;  // skips the loss
    for (const HeadMetric& metric : head.metrics)
      if (config.total_names[total++] == name) return MetricOfHead{&head, &metric};
  }
  if (name.starts_with("val_")) return find_metric(config, name.substr(4));
  return std::nullopt;
}

void add_metric(RunConfig& config, size_t index, const std::string& name,
                std::shared_ptr<const Metric> metric) {
  Head& head = config.heads[index];
  const TensorSpec& output = config.graph.spec(head.output);
  if (auto as_it_is = metric->for_loss(*head.loss)) metric = std::move(as_it_is);
  size_t end = 0;  // end of this head's names
  for (size_t i = 0; i <= index; ++i) end += 1 + config.heads[i].metrics.size();
  config.total_names.insert(config.total_names.begin() + static_cast<int64_t>(end), name);
  const int64_t sums = metric->sums(output, head.target);
  head.metrics.push_back({name, std::move(metric), sums, false});
}

Json heads_json_schema() {
  const Json kind = registry<Loss>().json_schema();
  const Json by_output = Json::object().set("type", "object").set("additionalProperties", kind);
  return Json::object().set("anyOf", Json::array().push(kind).push(by_output));
}

Json metrics_json_schema() {
  const Json kind = registry<Metric>().json_schema();
  const Json list = Json::object().set("type", "array").set("items", kind);
  const Json either = Json::object().set("anyOf", Json::array().push(list).push(kind));
  const Json by_output = Json::object().set("type", "object").set("additionalProperties", either);
  return Json::object().set("anyOf", Json::array().push(list).push(json_type("string")).push(by_output));
}

}  // namespace dtrain
