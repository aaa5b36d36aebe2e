#include "train/evaluation/evaluation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/reading.h"
#include "nn/divisors.h"
#include "nn/shorter_model.h"
#include "run/row_weights.h"
#include "run/weight_columns.h"
#include "train/sample_check.h"

namespace dtrain {

namespace {

/// Calls `visit` with each head, its number of rows, and its accumulators.
template <class Visit>
void for_each_head(const RunConfig& config, std::span<const double> sums, int64_t samples, Visit&& visit) {
  for (const Head& head : config.heads) {
    const int64_t positions = config.graph.spec(head.output).shape.positions();
    const auto count = static_cast<size_t>(head.count_totals());
    visit(head, static_cast<double>(samples) * static_cast<double>(positions), sums.first(count));
    sums = sums.subspan(count);
  }
}

/// Returns the number of rows of a head that share a row weight.
double rows_per_weight(const RunConfig& config, const Head& head) {
  return static_cast<double>(config.graph.spec(head.output).shape.positions() / head.weights_per_sample());
}

/// Returns the sum of a head's row weights; the number of rows if it has no weights.
double weight_of(const RunConfig& config, const Head& head, double rows, std::span<const double> totals) {
  return head.is_weighted() ? totals.back() * rows_per_weight(config, head) : rows;
}

/// Returns the number of a head's rows that are not masked.
double unmasked_rows(const RunConfig& config, const Head& head, double rows, std::span<const double> totals) {
  if (!head.mask) return rows;
  return totals[totals.size() - (head.weights ? 2 : 1)] * rows_per_weight(config, head);
}

/// Returns the mean loss; 0 if all rows have weight 0.
double mean_loss(const Head& head, double weight, std::span<const double> totals) {
  return head.is_weighted() && weight == 0 ? 0 : totals[0] / weight;
}

/// The accumulators of one loss or metric of a head.
struct Total {
  const Head& head;
  const HeadMetric* metric;  // null for the loss
  const TensorSpec& output;
  std::span<const double> sums;
  double rows, weight;  // number of rows that are not masked, and sum of the weights

  bool is_number() const { return !metric || metric->metric->is_number(output); }
  Json value() const {
    if (!metric) return mean_loss(head, weight, sums);
    return metric->metric->result(sums, metric->weighted ? weight : rows, output);
  }
};

/// Calls `visit` with the name and the accumulators of each loss and metric.
template <class Visit>
void for_each_total(const RunConfig& config, std::span<const double> sums, int64_t samples, Visit&& visit) {
  size_t name = 0;
  for_each_head(config, sums, samples, [&](const Head& head, double rows, std::span<const double> totals) {
    const double weight = weight_of(config, head, rows, totals);
    const double counted = unmasked_rows(config, head, rows, totals);
    const TensorSpec& output = config.graph.spec(head.output);
    visit(config.total_names[name++], Total{head, nullptr, output, totals.first(1), counted, weight});
    size_t first = 1;
    for (const HeadMetric& metric : head.metrics) {
      const auto count = static_cast<size_t>(metric.sums);
      visit(config.total_names[name++],
            Total{head, &metric, output, totals.subspan(first, count), counted, weight});
      first += count;
    }
  });
}

/// Returns the sum of the row weights of each training sample; null if the model does not need these sums.
std::shared_ptr<const SampleWeights> sample_weights_of(const RunConfig& config, const Dataset& data) {
  if (!needs_divisors(config.graph, config.heads)) return nullptr;
  return std::make_shared<const SampleWeights>(weigh_samples(data, weight_columns(config)));
}

}  // namespace

bool is_suspect(const RunConfig& config, double loss) {
  const auto may_be_negative = [](const Head& head) { return head.loss->may_be_negative(); };
  return !std::isfinite(loss) ||
         (loss < 0 && std::none_of(config.heads.begin(), config.heads.end(), may_be_negative));
}

std::shared_ptr<const Dataset> open_samples(const RunConfig& config, const SplitSpec& split, bool training) {
  const auto open = [&](bool is_training) {
    return open_split(config.dataset, split, config.graph.input_specs(), config.targets(), is_training);
  };
  auto data = open(training);
  if (!training) return with_weights(std::move(data), config, nullptr);
  // Balanced class weights are computed from the classes of samples. If an augmentation mixes samples, the
  // samples are therefore opened a second time without augmentations.
  const auto& augment = config.dataset.augment;
  const bool blended = config.class_weights && std::any_of(augment.begin(), augment.end(),
                                                           [](const auto& one) { return one->mixing(); });
  const auto counted = blended ? open(false) : data;
  return with_weights(std::move(data), config, counted.get());
}

std::shared_ptr<const SampleLengths> lengths_of(const RunConfig& config, const Dataset& data) {
  if (!config.dataset.batches.bucket_by_length) return nullptr;
  const PaddedSequences sequences = padded_sequences(config.graph);
  std::vector<PaddedColumn> columns;
  for (const PaddedSequences::Input& input : sequences.inputs)
    columns.push_back({input.index, input.padding});
  return std::make_shared<const SampleLengths>(
      round_lengths(exact_lengths(data, columns), sequences.positions));
}

RowsOfBatch own_rows(const RunPlan& plan, Plan::Purpose purpose) {
  if (plan.world.size() == 1) return nullptr;
  return [&plan, purpose](int64_t size) {
    std::vector<std::pair<int64_t, int64_t>> rows;
    for (int rank = 0; rank < plan.ranks.local(); ++rank) {
      const Microbatches microbatches = microbatches_of(plan, rank, purpose, size);
      for (int number = 0; number < microbatches.count(); ++number) {
        const Range range = microbatches[number];
        if (range.size() > 0) rows.emplace_back(range.begin, range.end);
      }
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  };
}

std::unique_ptr<Loader> open_loader(const RunConfig& config, const SplitSpec& split, bool shuffle,
                                    bool training, RowsOfBatch rows) {
  auto data = open_samples(config, split, training);
  std::shared_ptr<const SampleLengths> lengths;
  std::shared_ptr<const SampleWeights> weights;
  try {
    check_targets_at_hand(config, *data, training ? "the training data" : "the evaluated split");
    lengths = lengths_of(config, *data);
    if (training) weights = sample_weights_of(config, *data);
  } catch (const UserError& error) {
    throw UserError(located(split.mark, error.what()));
  }
  return std::make_unique<Loader>(std::move(data), LoaderOptions{.batch_size = config.train.batch_size,
                                                                 .shuffle = shuffle,
                                                                 .seed = static_cast<uint64_t>(config.seed),
                                                                 .prefetch = config.dataset.prefetch,
                                                                 .rows = std::move(rows),
                                                                 .lengths = std::move(lengths),
                                                                 .weights = std::move(weights)});
}

void Measures::add_numbers_to(Json& record, const std::string& prefix) const {
  for (const auto& [name, value] : numbers) record.set(prefix + name, value);
}

void Measures::add_to(Json& record) const {
  add_numbers_to(record);
  for (const auto& [name, value] : tables) record.set(name, value);
}

double loss_of(const RunConfig& config, std::span<const double> sums, int64_t samples) {
  double loss = 0;
  for_each_head(config, sums, samples, [&](const Head& head, double rows, std::span<const double> totals) {
    loss += head.loss->weight() * mean_loss(head, weight_of(config, head, rows, totals), totals);
  });
  if (config.graph.has_penalties()) loss += sums.back() / static_cast<double>(samples);
  return loss;
}

std::vector<std::pair<std::string, double>> numbers_of(const RunConfig& config, std::span<const double> sums,
                                                       int64_t samples) {
  std::vector<std::pair<std::string, double>> numbers{{"loss", loss_of(config, sums, samples)}};
  for_each_total(config, sums, samples, [&](const std::string& name, const Total& total) {
    if (name != "loss" && total.is_number()) numbers.emplace_back(name, total.value().as_double());
  });
  return numbers;
}

Measures measures_of(const RunConfig& config, std::span<const double> sums, int64_t samples) {
  Measures measures;
  measures.numbers = numbers_of(config, sums, samples);
  for_each_total(config, sums, samples, [&](const std::string& name, const Total& total) {
    if (!total.metric) return;
    if (!total.is_number()) measures.tables.emplace_back(name, total.value());
    const Metric& metric = *total.metric->metric;
    if (Json curve = metric.curve(total.sums, total.output); !curve.is_null())
      measures.curves.emplace_back(name, std::move(curve));
    if (const double by = metric.uncertainty(total.sums, total.output); by > Measures::kStatedAccuracy)
      measures.uncertain.push_back({name, by});
  });
  return measures;
}

std::string Measures::Uncertain::describe(const std::string& prefix) const {
  return fmt::format(
      "{}{} may be off by up to {:.2g}, because many different scores are so close to each other that they "
      "are counted as equal; set a larger num_thresholds to distinguish more scores",
      prefix, name, by);
}

std::vector<std::string> clear_outdated(const RunConfig& config, std::span<double> sums, int64_t version) {
  std::vector<std::string> names;
  for_each_total(config, sums, 0, [&](const std::string& name, const Total& total) {
    if (!total.metric || total.metric->metric->sums_version() <= version) return;
    names.push_back(name);
    const auto first = static_cast<size_t>(total.sums.data() - sums.data());
    std::ranges::fill(sums.subspan(first, total.sums.size()), 0.0);
  });
  return names;
}

std::optional<Measures> evaluate_split(const RunConfig& config, Engine& engine, Loader& loader,
                                       const std::function<bool()>& should_stop) {
  std::vector<double> sums(count_totals(config.graph, config.heads), 0.0);
  loader.begin(0, 0);
  while (const auto batch = read_next(loader)) {
    if (should_stop && should_stop()) return std::nullopt;
    const BatchTotals& totals = engine.evaluate(*batch);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += totals.sums[i];
  }
  Measures measures = measures_of(config, sums, loader.samples());
  if (is_suspect(config, measures.loss())) check_samples(config, loader.dataset(), "the evaluated split");
  return measures;
}

}  // namespace dtrain
