#include "train/heads.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

namespace {

/// Whether this is written as a loss is, with a name that losses have.
bool is_loss(const ConfigNode& node) {
  if (node.is_scalar()) return registry<Loss>().contains(node.text());
  return node.is_mapping() && node.entries().size() == 1 &&
         registry<Loss>().contains(node.entries().front().first.text());
}

/// Whether `loss:` is a mapping from outputs, and not a kind of one key.
bool is_by_output(const ConfigNode& loss, const std::vector<ModelOutput>& outputs) {
  if (!loss.is_mapping() || loss.entries().empty()) return false;
  if (loss.entries().size() > 1) return true;
  const auto& [key, value] = loss.entries().front();
  if (registry<Loss>().contains(key.text())) return false;
  return std::any_of(outputs.begin(), outputs.end(),
                     [&, name = key.text()](const ModelOutput& output) { return output.name == name; }) ||
         (is_loss(value) && outputs.front().name.empty());
}

/// One loss an output; empty kinds where something was wrong.
std::vector<Configured<Loss>> read_losses(const ConfigNode& loss, const std::vector<ModelOutput>& outputs,
                                          Diagnostics& diagnostics) {
  if (!is_by_output(loss, outputs))
    return std::vector(outputs.size(), registry<Loss>().parse(loss, diagnostics));
  std::vector<std::string> names;
  for (const ModelOutput& output : outputs) names.push_back(output.name);
  const bool all_known = std::find(names.begin(), names.end(), "") == names.end();
  std::vector<Configured<Loss>> losses(outputs.size());
  for (const auto& [key, value] : loss.entries()) {
    Configured<Loss> kind = registry<Loss>().parse(value, diagnostics);
    const auto found = std::find(names.begin(), names.end(), key.text());
    if (found != names.end())
      losses[static_cast<size_t>(found - names.begin())] = std::move(kind);
    else if (all_known)
      diagnostics.error(key, fmt::format("loss: the model has no output '{}'{}", key.text(),
                                         suggestion(key.text(), names)));
  }
  for (const std::string& name : names)
    if (!name.empty() && !loss.find(name))
      diagnostics.error(loss, fmt::format("loss: the output '{}' has none", name));
  return losses;
}

/// Reports errors at a place of the configuration, in the name of `who`.
ReportError report_at(const Mark& mark, const std::string& who, Diagnostics& diagnostics) {
  return [&diagnostics, mark, who](const std::string& message) {
    diagnostics.error(mark, fmt::format("{}: {}", who, message));
  };
}

/// A warning where the loss takes logits for probabilities, or the other way.
void warn_of_scores(const Graph& graph, ValueRef output, const Configured<Loss>& loss,
                    Diagnostics& diagnostics) {
  if (loss->takes() == Scores::any) return;
  const auto node_of = [&](ValueRef value) -> const GraphNode& {
    return graph.nodes[static_cast<size_t>(value.node)];
  };
  while (node_of(output).kind == "flatten" || node_of(output).kind == "reshape")
    output = node_of(output).inputs[0];
  const GraphNode& node = node_of(output);
  // Of a layer that has no such option nobody knows what its numbers are.
  const std::vector<std::string> options = registry<Layer>().fields(node.kind);
  if (!node.layer || std::find(options.begin(), options.end(), "activation") == options.end()) return;
  const auto function = node.layer->elementwise();
  const bool softmax = node.layer->is_softmax(), sigmoid = function && function->kind == Activation::sigmoid;
  const std::string& name = graph.layer_name(output.node);
  const Mark& mark = loss.resolved.mark();
  if (loss->takes() == Scores::logits && (softmax || sigmoid))
    diagnostics.warning(mark, fmt::format("{} is from_logits, but '{}' ends in a {}: take one of them away",
                                          loss.name, name, softmax ? "softmax" : "sigmoid"));
  if (loss->takes() == Scores::probabilities && !softmax && !sigmoid)
    diagnostics.warning(mark,
                        fmt::format("{} takes '{}' for probabilities, but it ends in no softmax or sigmoid: "
                                    "say from_logits: true, or give it one",
                                    loss.name, name));
}

/// A head of one output, its metrics checked as far as the output is known; totals are named with `prefix`
/// ("" where there is one output only).
void add_head(RunConfig& config, const ModelOutput& output, const Configured<Loss>& loss,
              const std::string& prefix, const ConfigNode& train, Diagnostics& diagnostics) {
  std::optional<TensorSpec> target;
  if (loss && output.spec)
    target = loss->target(*output.spec, report_at(place_in(train, {"loss"}), loss.name, diagnostics));
  Head head{output.value, loss.value, {}, target.value_or(TensorSpec{})};
  if (!prefix.empty()) head.target.name = prefix.substr(0, prefix.size() - 1);
  config.total_names.push_back(prefix + "loss");
  const ConfigNode* written = train.find("metrics");
  for (size_t i = 0; i < config.train.metrics.size(); ++i) {
    const Configured<Metric>& metric = config.train.metrics[i];
    if (!metric) continue;  // reported where it was read
    const ConfigNode& place = written && written->is_sequence() ? written->items()[i] : train;
    if (target) metric->check(*output.spec, head.target, report_at(place.mark(), metric.name, diagnostics));
    const std::string name = prefix + metric.name;
    if (std::find(config.total_names.begin(), config.total_names.end(), name) != config.total_names.end())
      diagnostics.error(place, fmt::format("the metric '{}' is there twice", metric.name));
    head.metrics.push_back(metric.value);
    config.total_names.push_back(name);
  }
  config.heads.push_back(std::move(head));
}

}  // namespace

ParsedHeads parse_heads(RunConfig& config, std::vector<ModelOutput> outputs, const ConfigNode& train,
                        Diagnostics& diagnostics) {
  if (outputs.empty()) outputs.emplace_back();
  ParsedHeads heads;
  std::vector<Configured<Loss>> losses(outputs.size());
  if (const ConfigNode* loss = train.find("loss")) losses = read_losses(*loss, outputs, diagnostics);
  std::vector<ConfigNode::Entry> resolved;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string prefix = outputs.size() > 1 ? outputs[i].name + "_" : "";
    if (prefix == "_") heads.complete = false;
    add_head(config, outputs[i], losses[i], prefix, train, diagnostics);
    if (!losses[i]) continue;
    resolved.push_back(ConfigNode::entry(outputs[i].name, losses[i].resolved));
    if (!config.graph.nodes.empty()) warn_of_scores(config.graph, outputs[i].value, losses[i], diagnostics);
  }
  for (const Configured<Metric>& metric : config.train.metrics) heads.complete = heads.complete && metric;
  if (!resolved.empty())
    heads.losses = outputs.size() > 1 ? ConfigNode::mapping(std::move(resolved)) : resolved[0].second;
  return heads;
}

Json heads_json_schema() {
  const Json kind = registry<Loss>().json_schema();
  const Json by_output = Json::object().set("type", "object").set("additionalProperties", kind);
  return Json::object().set("anyOf", Json::array().push(kind).push(by_output));
}

}  // namespace dtrain
