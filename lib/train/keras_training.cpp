#include "train/keras_training.h"

namespace dtrain {

namespace {

/// Of one output, under the names that dtrain reports them by.
Json metrics_of(const RunConfig& config, const Head& head) {
  const TensorSpec& output = config.graph.spec(head.output);
  Json metrics = Json::array();
  for (size_t i = 0; i < head.metrics.size(); ++i) {
    Json metric = head.metrics[i]->keras_config(output, head.target);
    Json options = metric.at("config");
    metric.set("config", std::move(options.set("name", config.train.metrics[i].name)));
    metrics.push(std::move(metric));
  }
  return metrics;
}

}  // namespace

Json keras_training_config(const RunConfig& config, int64_t steps_per_epoch, const Json& schedule) {
  Json optimizer = config.train.optimizer->keras_config(steps_per_epoch, schedule);
  if (optimizer.is_null()) return {};
  const auto add_option = [&](const char* name, std::optional<double> value) {
    if (!value) return;
    Json options = optimizer.at("config");
    optimizer.set("config", std::move(options.set(name, *value)));
  };
  add_option("global_clipnorm", config.train.clip_norm);
  add_option("clipvalue", config.train.clip_value);
  Json losses = Json::array(), metrics = Json::array();
  for (const Head& head : config.heads) {
    losses.push(head.loss->keras_config());
    metrics.push(metrics_of(config, head));
  }
  const bool single = config.heads.size() == 1;
  return Json::object()
      .set("loss", single ? losses.items().front() : std::move(losses))
      .set("metrics", single ? metrics.items().front() : std::move(metrics))
      .set("weighted_metrics", Json())
      .set("loss_weights", Json())
      .set("optimizer_config", std::move(optimizer));
}

}  // namespace dtrain
