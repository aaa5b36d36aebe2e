#include "train/evaluation/errors_in_units.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "device/device.h"
#include "run/probabilities.h"

namespace dtrain {

/// One metric of one output.
struct ErrorsInUnits::ScaledError {
  std::string name;
  size_t head;
  std::shared_ptr<const Metric> metric;
  bool weighted;
  /// The factor that converts the metric's value, as computed by the evaluation, to the unit of the data.
  /// Nullopt if a factor is not enough, so that the error must be computed from predictions.
  std::optional<double> factor;
  std::vector<double> sums;
  double weight = 0;  // sum of the weights of all rows so far
};

ErrorsInUnits::ErrorsInUnits(const RunConfig& config)
    : config_(config),
      context_(make_cpu_context({}, {available_cores().front()}, false)),
      ops_(make_cpu_ops(*context_)) {
  size_t total = 0;
  for (size_t head = 0; head < config.heads.size(); ++head) {
    const auto& metrics = config.heads[head].metrics;
    const std::string& loss = config.total_names[total];
    scales_.emplace_back(config, head);
    if (scales_.back().is_scaled()) {
      const size_t before = errors_.size();
      for (size_t i = 0; i < metrics.size(); ++i)
        if (metrics[i].metric->unit_power() != 0)
          add(config.total_names[total + 1 + i], head, metrics[i].metric, true, metrics[i].weighted);
      const std::string prefix = loss.substr(0, loss.size() - std::string_view("loss").size());
      if (errors_.size() == before)
        for (const char* kind : {"mean_absolute_error", "root_mean_squared_error"})
          add(prefix + kind, head, registry<Metric>().make(kind).value, false, false);
    }
    total += 1 + metrics.size();
  }
}

ErrorsInUnits::~ErrorsInUnits() = default;

void ErrorsInUnits::add(const std::string& name, size_t head, std::shared_ptr<const Metric> metric,
                        bool is_configured, bool weighted) {
  const Head& one = config_.heads[head];
  const TensorSpec& output = config_.graph.spec(one.output);
  std::optional<double> factor;
  if (const auto unit = scales_[head].unit(); unit && is_configured)
    factor = std::pow(*unit, metric->unit_power());
  if (!factor && (one.mask || !metric->check(output, one.target, [](const std::string&) {}))) return;
  const auto sums = static_cast<size_t>(metric->sums(output, one.target));
  errors_.push_back({name, head, std::move(metric), weighted, factor, std::vector<double>(sums), 0});
}

bool ErrorsInUnits::needs_predictions() const {
  return std::any_of(errors_.begin(), errors_.end(), [](const ScaledError& error) { return !error.factor; });
}

void ErrorsInUnits::visit(const PredictedBatch& batch) {
  for (size_t head = 0; head < batch.heads.size(); ++head) {
    const HeadBatch& found = batch.heads[head];
    const auto is_wanted = [&](const ScaledError& error) { return error.head == head && !error.factor; };
    if (std::none_of(errors_.begin(), errors_.end(), is_wanted)) continue;
    const Shape& shape = config_.graph.spec(config_.heads[head].output).shape;
    const auto rows = static_cast<int64_t>(batch.rows.size()) * shape.positions();
    std::vector<float> output(found.output.begin(), found.output.end());
    make_probabilities(config_.heads[head].loss->takes(), output, shape.columns());
    scales_[head].undo_scale(output);  // offsets cancel, because the metrics use differences only
    std::vector<float> target(found.target.f32(), found.target.f32() + found.target.elements());
    scales_[head].undo_scale(target);
    for (ScaledError& error : errors_) {
      if (!is_wanted(error)) continue;
      MetricArguments arguments{.prediction = output.data(),
                                .target = {target.data(), found.target.shape},
                                .sums = error.sums.data(),
                                .rows = rows,
                                .columns = shape.columns()};
      if (!error.weighted || found.weights.empty()) {
        error.weight += static_cast<double>(rows);
      } else {
        const int64_t each = rows / static_cast<int64_t>(found.weights.size());
        arguments.weights = {found.weights.data(), each};
        error.weight +=
            static_cast<double>(each) * std::accumulate(found.weights.begin(), found.weights.end(), 0.0);
      }
      error.metric->run(*ops_, arguments);
    }
  }
}

std::vector<std::pair<std::string, double>> ErrorsInUnits::results(
    const std::vector<std::pair<std::string, double>>& numbers) const {
  std::vector<std::pair<std::string, double>> all;
  for (const ScaledError& error : errors_) {
    if (!error.factor) {
      const TensorSpec& output = config_.graph.spec(config_.heads[error.head].output);
      all.emplace_back(error.name, error.metric->result(error.sums, error.weight, output).as_double());
      continue;
    }
    const auto number = std::find_if(numbers.begin(), numbers.end(),
                                     [&](const auto& one) { return one.first == error.name; });
    if (number != numbers.end()) all.emplace_back(error.name, number->second * *error.factor);
  }
  return all;
}

}  // namespace dtrain
