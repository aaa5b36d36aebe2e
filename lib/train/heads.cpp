#include "train/heads.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

namespace {

/// Whether `loss:` is a mapping from outputs, and not a kind of one key.
bool is_by_output(const Node& loss, const std::vector<std::string>& outputs) {
  if (!loss.is_mapping() || loss.entries().empty()) return false;
  if (loss.entries().size() > 1) return true;
  const std::string& key = loss.entries()[0].first.text();
  return std::find(outputs.begin(), outputs.end(), key) != outputs.end() && !kinds<Loss>().contains(key);
}

/// One loss an output; empty kinds where something was wrong.
std::vector<Kind<Loss>> read_losses(const Node& loss, const std::vector<std::string>& outputs,
                                    Diagnostics& diagnostics) {
  if (!is_by_output(loss, outputs))
    return std::vector(outputs.size(), kinds<Loss>().parse(loss, diagnostics));
  std::vector<Kind<Loss>> losses(outputs.size());
  for (const auto& [key, value] : loss.entries()) {
    const auto found = std::find(outputs.begin(), outputs.end(), key.text());
    if (found == outputs.end()) {
      diagnostics.error(key, fmt::format("loss: the model has no output '{}'{}", key.text(),
                                         suggestion(key.text(), outputs)));
      continue;
    }
    losses[static_cast<size_t>(found - outputs.begin())] = kinds<Loss>().parse(value, diagnostics);
  }
  for (const std::string& output : outputs)
    if (!loss.find(output)) diagnostics.error(loss, fmt::format("loss: the output '{}' has none", output));
  return losses;
}

/// A head of one output, its metrics checked; totals are named with `prefix` ("" where there is one output
/// only).
void add_head(RunConfig& config, int output, const Kind<Loss>& loss, const std::string& prefix,
              const Node& train, Diagnostics& diagnostics) {
  const TensorSpec& spec = config.graph.nodes[static_cast<size_t>(output)].output;
  const auto complain_at = [&](const Node& node, const std::string& who) {
    return [&diagnostics, mark = node.mark(), who](const std::string& message) {
      diagnostics.error(mark, fmt::format("{}: {}", who, message));
    };
  };
  Head head{output, loss.value, {}, {}};
  const auto target = loss->target(spec, complain_at(*train.find("loss"), loss.name));
  if (!target) return;
  head.target = *target;
  if (!prefix.empty()) head.target.name = prefix.substr(0, prefix.size() - 1);
  config.total_names.push_back(prefix + "loss");
  const Node* written = train.find("metrics");
  for (size_t i = 0; i < config.train.metrics.size(); ++i) {
    const Kind<Metric>& metric = config.train.metrics[i];
    if (!metric) continue;  // reported where it was read
    const Node& place = written && written->is_sequence() ? written->items()[i] : train;
    if (!metric->check(spec, head.target, complain_at(place, metric.name))) continue;
    const std::string name = prefix + metric.name;
    if (std::find(config.total_names.begin(), config.total_names.end(), name) != config.total_names.end())
      diagnostics.error(place, fmt::format("the metric '{}' is there twice", metric.name));
    head.metrics.push_back(metric.value);
    config.total_names.push_back(name);
  }
  config.heads.push_back(std::move(head));
}

}  // namespace

Node parse_heads(RunConfig& config, const Node& train, Diagnostics& diagnostics) {
  std::vector<std::string> outputs;
  for (const int output : config.graph.outputs) outputs.push_back(config.graph.layer_name(output));
  const std::vector<Kind<Loss>> losses = read_losses(*train.find("loss"), outputs, diagnostics);
  std::vector<Node::Entry> resolved;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!losses[i]) continue;
    const std::string prefix = outputs.size() > 1 ? outputs[i] + "_" : "";
    add_head(config, config.graph.outputs[i], losses[i], prefix, train, diagnostics);
    resolved.push_back(Node::entry(outputs[i], losses[i].resolved));
  }
  if (resolved.empty()) return Node();
  return outputs.size() > 1 ? Node::mapping(std::move(resolved)) : resolved[0].second;
}

Json heads_json_schema() {
  const Json kind = kinds<Loss>().json_schema();
  const Json by_output = Json::object().set("type", "object").set("additionalProperties", kind);
  return Json::object().set("anyOf", Json::array().push(kind).push(by_output));
}

}  // namespace dtrain
