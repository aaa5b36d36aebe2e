#include "train/keras_training.h"

#include <algorithm>

#include "interop/training_formats.h"
#include "run/learning_rate.h"

namespace dtrain {

namespace {

/// Returns the metrics of one output that Keras also has, with the names under which dtrain reports them.
Json metrics_of(const RunConfig& config, const Head& head, bool weighted) {
  const TensorSpec& output = config.graph.spec(head.output);
  Json metrics = Json::array();
  for (const HeadMetric& of_head : head.metrics) {
    if (of_head.weighted != weighted || of_head.configured.is_null()) continue;
    Json metric = keras_metric(of_head.configured, head.loss.get(), output, head.target);
    if (metric.is_null()) continue;
    Json options = metric.at("config");
    metric.set("config", std::move(options.set("name", of_head.name)));
    metrics.push(std::move(metric));
  }
  return metrics;
}

bool has_weighted_metrics(const RunConfig& config) {
  for (const Head& head : config.heads)
    for (const HeadMetric& metric : head.metrics)
      if (metric.weighted) return true;
  return false;
}

/// Returns whether Keras has all losses of the run and averages them as dtrain does. If rows have weights,
/// the averages differ: Keras divides by the number of rows, dtrain by the sum of their weights.
bool has_keras_losses(const RunConfig& config) {
  return std::none_of(config.heads.begin(), config.heads.end(), [](const Head& head) {
    return head.weights || keras_loss(head.configured_loss).is_null();
  });
}

}  // namespace

Json keras_outputs(const RunConfig& config) {
  if (!has_keras_losses(config)) return {};
  Json losses = Json::array(), metrics = Json::array(), weighted = Json::array(), weights = Json::array();
  bool has_loss_weights = false;
  for (const Head& head : config.heads) {
    losses.push(keras_loss(head.configured_loss));
    metrics.push(metrics_of(config, head, false));
    weighted.push(metrics_of(config, head, true));
    weights.push(head.loss->weight());
    has_loss_weights = has_loss_weights || head.loss->weight() != 1;
  }
  const bool single = config.heads.size() == 1;
  if (single)
    for (Json* of_each : {&losses, &metrics, &weighted}) *of_each = Json(of_each->items().front());
  return Json::object()
      .set("loss", std::move(losses))
      .set("metrics", std::move(metrics))
      .set("weighted_metrics", has_weighted_metrics(config) ? std::move(weighted) : Json())
      .set("loss_weights", has_loss_weights ? std::move(weights) : Json());
}

Json keras_training_config(const RunConfig& config, int64_t steps_per_epoch, const Json& schedule) {
  Json optimizer = keras_optimizer(config.train.optimizer, run_length(config, steps_per_epoch), schedule);
  Json training = keras_outputs(config);
  if (optimizer.is_null() || training.is_null()) return {};
  const auto add_option = [&](const char* name, std::optional<double> value) {
    if (!value) return;
    Json options = optimizer.at("config");
    optimizer.set("config", std::move(options.set(name, *value)));
  };
  add_option("global_clipnorm", config.train.clip_norm);
  add_option("clipvalue", config.train.clip_value);
  return training.set("optimizer_config", std::move(optimizer));
}

}  // namespace dtrain
