#include "train/evaluation.h"

#include <cmath>

#include "train/reading.h"
#include "train/sample_check.h"

namespace dtrain {

bool is_suspect(double loss) {
  return !std::isfinite(loss) || loss < 0;
}

std::unique_ptr<Loader> open_loader(const RunConfig& config, const SplitSpec& split, bool shuffle) {
  auto data = open_split(config.dataset, split, config.graph.input_specs(), config.targets());
  const bool train = config.dataset.train && &split == &*config.dataset.train;
  try {
    check_targets_at_hand(config, *data, train ? "trained on" : "evaluated");
  } catch (const UserError& error) {
    throw UserError(located(split.mark, error.what()));
  }
  return std::make_unique<Loader>(std::move(data), LoaderOptions{.batch_size = config.train.batch_size,
                                                                 .shuffle = shuffle,
                                                                 .seed = static_cast<uint64_t>(config.seed),
                                                                 .prefetch = config.dataset.prefetch});
}

std::vector<std::pair<std::string, double>> means_of(const RunConfig& config, const std::vector<double>& sums,
                                                     int64_t samples) {
  std::vector<std::pair<std::string, double>> means{{"loss", 0.0}};
  size_t total = 0;
  for (const Head& head : config.heads) {
    const Shape& shape = config.graph.spec(head.output).shape;
    const int64_t positions = shape.rank() ? shape.elements() / shape.back() : 1;
    const double rows = static_cast<double>(samples) * static_cast<double>(positions);
    for (size_t i = 0; i <= head.metrics.size(); ++i, ++total) {
      const double mean = sums[total] / rows;
      if (i == 0) means[0].second += mean;
      if (config.total_names[total] != "loss") means.emplace_back(config.total_names[total], mean);
    }
  }
  return means;
}

std::optional<std::vector<std::pair<std::string, double>>> evaluate_split(
    const RunConfig& config, Replicas& replicas, Loader& loader, const std::function<bool()>& is_to_end) {
  std::vector<double> sums(config.total_names.size(), 0.0);
  loader.begin(0, 0);
  while (const auto batch = read_next(loader)) {
    if (is_to_end && is_to_end()) return std::nullopt;
    const BatchTotals& totals = replicas.evaluate(*batch);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += totals.sums[i];
  }
  auto means = means_of(config, sums, loader.samples());
  if (is_suspect(means[0].second)) check_samples(config, loader.dataset(), "evaluated");
  return means;
}

}  // namespace dtrain
